// Plans of copies between two buffers: the native form of `copy_buffer` in harness/commands/transfer.py, for one region.
//
// A program that streams copies other bytes in each frame, so that nobody has said before what it says. Then this finds
// out what a copy does without a question to Python, but for the plan table's. It leaves to Python what is rare: several
// regions, buffers that were not seen, ranges that hold nothing.

#ifndef VKHARNESS_BUFFER_COPIES_HPP
#define VKHARNESS_BUFFER_COPIES_HPP

#include "python.hpp"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace vkharness {

struct BufferCopies {
    static constexpr long long FAR = 1ll << 61;  // no buffer lies there: sums stay in 64 bits

    // Where a buffer is, as Python says it: id, space, first address and size; nothing where Python does not.
    struct Place {
        Ref held;
        long long offset = 0, size = 0;
        PyObject *object(int at) const { return PyTuple_GET_ITEM(held.get(), at); }
    };
    enum Name { COMMAND_BUFFER, INFO, REGIONS, SOURCE, TARGET, SOURCE_OFFSET, TARGET_OFFSET, SIZE, NAMES };

    PyObject_HEAD
    Ref places, said;      // a dictionary by id of (id, space, first address, size); a set of ids
    Ref plan_of;           // Python: of what a copy is, its effects, and what it writes, the plan
    Ref read, write;       // an access of each kind, of which others are made
    Ref copied, repeated;  // the types of what a copy is, and of what is kept: kinds of tuples
    std::vector<Py_ssize_t> members;
    Py_ssize_t space, spans, resource;  // where these members lie in an access

    static PyTypeObject *type;
    static PyObject *names[NAMES];

    // BufferCopies(places, said, plan_of, read, write, copied, repeated)
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *places, *said, *plan_of, *read, *write, *copied, *repeated;
        if (!PyArg_ParseTuple(arguments, "O!O!OOOO!O!", &PyDict_Type, &places, &PySet_Type, &said, &plan_of, &read,
                              &write, &PyType_Type, &copied, &PyType_Type, &repeated)) {
            return nullptr;
        }
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        BufferCopies *const copies = of(self.get());
        new (&copies->places) Ref(Ref::share(places));
        new (&copies->said) Ref(Ref::share(said));
        new (&copies->plan_of) Ref(Ref::share(plan_of));
        new (&copies->read) Ref(Ref::share(read));
        new (&copies->write) Ref(Ref::share(write));
        new (&copies->copied) Ref(Ref::share(copied));
        new (&copies->repeated) Ref(Ref::share(repeated));
        new (&copies->members) std::vector<Py_ssize_t>();
        return copies->find_members() ? self.release() : nullptr;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        of(object)->members.~vector();
        for (Ref BufferCopies::*each : refs()) (of(object)->*each).~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        for (Ref BufferCopies::*each : refs()) Py_VISIT((of(object)->*each).get());
        return 0;
    }

    // Nothing: copies are whole as long as somebody may ask them. The dictionary and the functions break cycles.
    static int clear(PyObject *) { return 0; }

    // record(command buffer, its id, changes, name, args): what is kept of a command that copies into a buffer, or None
    // where Python must find that.
    static PyObject *record_method(BufferCopies *self, PyObject *const *arguments) {
        if (!PyUnicode_CheckExact(arguments[3])) return Py_NewRef(Py_None);
        Ref kept = self->record(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
        return kept || PyErr_Occurred() ? kept.release() : Py_NewRef(Py_None);
    }

    // What that is kept with: (changes, command buffer, plan). None where Python must find it, or with an exception.
    Ref record(PyObject *buffer, PyObject *id, PyObject *changes, PyObject *name, PyObject *args) {
        const char *const text = PyUnicode_AsUTF8(name);
        if (!text || std::strncmp(text, "vkCmdCopyBuffer", 15) || (text[15] && text[15] != '2')) return Ref();
        const Ref into = item(args, COMMAND_BUFFER);
        if (!into || !PyLong_CheckExact(into.get()) || !PyLong_CheckExact(id)) return Ref();
        const int same = PyObject_RichCompareBool(into.get(), id, Py_EQ);
        Ref plan = same > 0 ? this->plan(args) : Ref();
        PyTypeObject *const kind = reinterpret_cast<PyTypeObject *>(repeated.get());
        Ref kept = plan ? Ref::take(kind->tp_alloc(kind, 3)) : Ref();
        if (!kept) return kept;
        PyTuple_SET_ITEM(kept.get(), 0, Py_NewRef(changes));
        PyTuple_SET_ITEM(kept.get(), 1, Py_NewRef(buffer));
        PyTuple_SET_ITEM(kept.get(), 2, plan.release());
        return kept;
    }

  private:
    // The plan of a copy with these arguments; none where Python must find it, or with an exception.
    Ref plan(PyObject *args) {
        const Ref info = item(args, INFO);
        if (!info && PyErr_Occurred()) return Ref();
        PyObject *const from = info ? info.get() : args;
        const Ref regions = item(from, REGIONS);
        if (!regions || !PyList_CheckExact(regions.get()) || PyList_GET_SIZE(regions.get()) != 1) return Ref();
        const Ref region = Ref::share(PyList_GET_ITEM(regions.get(), 0));
        const Place source = find(item(from, SOURCE)), target = source.held ? find(item(from, TARGET)) : Place();
        if (!target.held) return Ref();
        const Ref begin = item(region.get(), SOURCE_OFFSET), to = begin ? item(region.get(), TARGET_OFFSET) : Ref();
        const Ref bytes = to ? item(region.get(), SIZE) : Ref();
        if (!bytes) return Ref();
        const Ref reads = accessed(read, source, begin, bytes), writes = reads ? accessed(write, target, to, bytes) : Ref();
        const Ref effects = writes ? left_out(Ref::take(PyTuple_Pack(2, reads.get(), writes.get()))) : Ref();
        const Ref parts = effects ? left_out(Ref::take(PyTuple_Pack(3, begin.get(), to.get(), bytes.get()))) : Ref();
        const Ref copy = parts ? told(source, target, left_out(Ref::take(PyTuple_Pack(1, parts.get())))) : Ref();
        if (!copy || PySet_Add(said.get(), source.object(0)) < 0 || PySet_Add(said.get(), target.object(0)) < 0) return Ref();
        PyObject *const given[] = {nullptr, copy.get(), effects.get(), copy.get()};
        return Ref::take(PyObject_Vectorcall(plan_of.get(), given + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    }

    // What a copy is.
    Ref told(const Place &source, const Place &target, const Ref &regions) const {
        PyTypeObject *const kind = reinterpret_cast<PyTypeObject *>(copied.get());
        Ref copy = regions ? Ref::take(kind->tp_alloc(kind, 9)) : Ref();
        if (!copy) return copy;
        for (int at = 0; at < 4; ++at) {
            PyTuple_SET_ITEM(copy.get(), at, Py_NewRef(source.object(at)));
            PyTuple_SET_ITEM(copy.get(), at + 4, Py_NewRef(target.object(at)));
        }
        PyTuple_SET_ITEM(copy.get(), 8, Py_NewRef(regions.get()));
        return left_out(std::move(copy));
    }

    static BufferCopies *of(PyObject *object) { return reinterpret_cast<BufferCopies *>(object); }

    static std::vector<Ref BufferCopies::*> refs() {
        return {&BufferCopies::places, &BufferCopies::said,   &BufferCopies::plan_of, &BufferCopies::read,
                &BufferCopies::write,  &BufferCopies::copied, &BufferCopies::repeated};
    }

    // Where the members of an access lie. False with an exception.
    bool find_members() {
        PyTypeObject *const kind = Py_TYPE(read.get());
        space = spans = resource = 0;
        const bool fits = Py_TYPE(write.get()) == kind && kind->tp_itemsize == 0 && kind->tp_dictoffset == 0 && kind->tp_dict &&
                          PyType_HasFeature(kind, Py_TPFLAGS_HEAPTYPE) && PyType_IS_GC(kind) && is_tuple(copied) &&
                          is_tuple(repeated);
        PyObject *name, *value;
        for (Py_ssize_t at = 0; fits && PyDict_Next(kind->tp_dict, &at, &name, &value);) {
            if (Py_TYPE(value) != &PyMemberDescr_Type) continue;
            const PyMemberDef *const member = reinterpret_cast<PyMemberDescrObject *>(value)->d_member;
            if (member->type != T_OBJECT_EX) continue;
            members.push_back(member->offset);
            if (!std::strcmp(member->name, "space")) space = member->offset;
            if (!std::strcmp(member->name, "spans")) spans = member->offset;
            if (!std::strcmp(member->name, "resource")) resource = member->offset;
        }
        if (space && spans && resource) return true;
        PyErr_SetString(PyExc_TypeError, "takes two accesses and a type of tuples");
        return false;
    }

    static bool is_tuple(const Ref &object) {
        PyTypeObject *const kind = reinterpret_cast<PyTypeObject *>(object.get());
        return PyType_IsSubtype(kind, &PyTuple_Type) && kind->tp_basicsize == PyTuple_Type.tp_basicsize && !kind->tp_dictoffset;
    }

    // A value of a dictionary, or none.
    static Ref item(PyObject *from, Name name) {
        return PyDict_CheckExact(from) ? Ref::share(PyDict_GetItemWithError(from, names[name])) : Ref();
    }

    // Reads a number that is no address behind all memory. False where it is none, and no exception.
    static bool number(PyObject *value, long long &found) {
        if (!value || !PyLong_CheckExact(value)) return false;
        int overflow = 0;
        found = PyLong_AsLongLongAndOverflow(value, &overflow);
        return !overflow && found >= 0 && found < FAR;
    }

    Place find(const Ref &id) const {
        Place place;
        if (id) place.held = Ref::share(PyDict_GetItemWithError(places.get(), id.get()));
        const bool fits = place.held && PyTuple_CheckExact(place.held.get()) && PyTuple_GET_SIZE(place.held.get()) == 4 &&
                          PyLong_CheckExact(place.object(0)) && PyLong_CheckExact(place.object(1)) &&
                          number(place.object(2), place.offset) && number(place.object(3), place.size);
        return fits ? std::move(place) : Place();
    }

    // An access of a range of a buffer, clipped to it (`Buffer.span`). None where it holds nothing.
    Ref accessed(const Ref &like, const Place &place, const Ref &offset, const Ref &bytes) const {
        long long first, count;
        if (!number(offset.get(), first) || !number(bytes.get(), count)) return Ref();
        const long long begin = std::min(first, place.size), end = std::min(begin + count, place.size);
        if (begin >= end) return Ref();
        const Ref low = Ref::take(PyLong_FromLongLong(place.offset + begin));
        const Ref high = Ref::take(PyLong_FromLongLong(place.offset + end));
        const Ref span = low && high ? left_out(Ref::take(PyTuple_Pack(2, low.get(), high.get()))) : Ref();
        const Ref all = span ? left_out(Ref::take(PyTuple_Pack(1, span.get()))) : Ref();
        PyTypeObject *const kind = Py_TYPE(like.get());
        Ref made = all ? Ref::take(kind->tp_alloc(kind, 0)) : Ref();
        if (!made) return made;
        for (const Py_ssize_t at : members) *member(made.get(), at) = Py_XNewRef(*member(like.get(), at));
        for (const auto &[at, value] : {std::pair(space, place.object(1)), std::pair(spans, all.get()),
                                        std::pair(resource, place.object(0))}) {
            const Ref old = Ref::take(std::exchange(*member(made.get(), at), Py_NewRef(value)));
        }
        return left_out(std::move(made));
    }

    static PyObject **member(PyObject *object, Py_ssize_t offset) {
        return reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + offset);
    }
};

PyTypeObject *BufferCopies::type = nullptr;
PyObject *BufferCopies::names[NAMES] = {};

inline bool add_buffer_copies(PyObject *module) {
    static PyMethodDef methods[] = {
        method<BufferCopies, BufferCopies::record_method, 5>("record"),
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        slot(Py_tp_new, BufferCopies::make), slot(Py_tp_dealloc, BufferCopies::unmake),
        slot(Py_tp_traverse, BufferCopies::traverse), slot(Py_tp_clear, BufferCopies::clear),
        slot(Py_tp_methods, methods), {0, nullptr},
    };
    static PyType_Spec spec = {"harness.native._core.BufferCopies", sizeof(BufferCopies), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    const char *const texts[] = {"commandBuffer", "pCopyBufferInfo", "pRegions", "srcBuffer",
                                 "dstBuffer",     "srcOffset",       "dstOffset", "size"};
    for (int at = 0; at < BufferCopies::NAMES; ++at) {
        if (!(BufferCopies::names[at] = PyUnicode_InternFromString(texts[at]))) return false;
    }
    BufferCopies::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return BufferCopies::type && PyModule_AddType(module, BufferCopies::type) == 0;
}

}  // namespace vkharness

#endif
