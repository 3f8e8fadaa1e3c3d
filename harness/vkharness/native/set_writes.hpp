// Writes of descriptor sets: the native form of `update_sets` in harness/vkharness/commands/drawing/descriptors.py, for writes of one
// descriptor each.
//
// Which member of a write has what a descriptor of a type refers to is data that Python gives. It leaves to Python what is
// rare: several descriptors at once, copies, bindings that the layout lacks.

#ifndef VKHARNESS_SET_WRITES_HPP
#define VKHARNESS_SET_WRITES_HPP

#include "key_form.hpp"

namespace vkharness {

struct SetWrites {
    enum Name { WRITES, COPIES, SET, BINDING, ELEMENT, COUNT, TYPE, LAYOUT, BINDINGS, HELD, SLOTS, CONTENTS, NAMES };
    static constexpr const char *NAME = "vkUpdateDescriptorSets";

    PyObject_HEAD
    Ref by_id, infos;      // dictionaries: objects by id; by type of descriptor (the member of a write, members of its elements)
    Ref set, descriptors;  // types: of sets, of descriptors

    static PyTypeObject *type;
    static PyObject *names[NAMES];

    // SetWrites(objects by id, infos, type of sets, type of descriptors)
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *given[4];
        if (!PyArg_ParseTuple(arguments, "O!O!O!O!", &PyDict_Type, &given[0], &PyDict_Type, &given[1], &PyType_Type, &given[2],
                              &PyType_Type, &given[3])) {
            return nullptr;
        }
        PyTypeObject *const kind = reinterpret_cast<PyTypeObject *>(given[3]);
        if (!PyType_IsSubtype(kind, &PyTuple_Type) || kind->tp_basicsize != PyTuple_Type.tp_basicsize || kind->tp_dictoffset) {
            PyErr_SetString(PyExc_TypeError, "takes a type of tuples");
            return nullptr;
        }
        PyObject *const self = made->tp_alloc(made, 0);
        int at = 0;
        for (Ref SetWrites::*each : refs()) {
            if (self) new (&(of(self)->*each)) Ref(Ref::share(given[at++]));
        }
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        for (Ref SetWrites::*each : refs()) (of(object)->*each).~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        for (Ref SetWrites::*each : refs()) Py_VISIT((of(object)->*each).get());
        return 0;
    }

    // Nothing: it is whole as long as somebody may ask it. The dictionary of objects breaks cycles.
    static int clear(PyObject *) { return 0; }

    // Whether the writes of a call with these arguments were done. Otherwise Python must do all of them. False also with an
    // exception.
    bool write(PyObject *args) {
        const Ref writes = item(args, WRITES), copies = writes ? item(args, COPIES) : Ref();
        if (!copies || !PyList_CheckExact(writes.get())) return false;
        if (copies.get() != Py_None && !(PyList_CheckExact(copies.get()) && PyList_GET_SIZE(copies.get()) == 0)) return false;
        for (Py_ssize_t at = 0; at < PyList_GET_SIZE(writes.get()); ++at) {
            if (!write_one(Ref::share(PyList_GET_ITEM(writes.get(), at)))) return false;
        }
        return true;
    }

    // The same of a call that the bytes of a form say.
    bool write(PyObject *form, const char *bytes) {
        const KeyForm::Field *several = nullptr, *copied = nullptr;
        const char *writes = nullptr, *copies = nullptr;
        KeyForm::of(form)->walk(bytes, [&](const KeyForm::Field &field, const char *at) {
            if (field.name.get() == names[WRITES]) several = &field, writes = at;
            if (field.name.get() == names[COPIES]) copied = &field, copies = at;
        });
        if (!several || !copied || several->kind != 's' || KeyForm::elements(*copied, copies)) return false;
        std::uint64_t count = KeyForm::elements(*several, writes);
        for (; count; --count) {
            if (!write_one(*KeyForm::of(several->part.get()), writes)) return false;
        }
        return true;
    }

  private:
    static SetWrites *of(PyObject *object) { return reinterpret_cast<SetWrites *>(object); }
    static std::initializer_list<Ref SetWrites::*> refs() {
        static constexpr std::initializer_list<Ref SetWrites::*> all = {&SetWrites::by_id, &SetWrites::infos, &SetWrites::set,
                                                                       &SetWrites::descriptors};
        return all;
    }
    static Ref attribute(PyObject *object, Name name) { return Ref::take(PyObject_GetAttr(object, names[name])); }
    static Ref item(PyObject *from, Name name) { return item(from, names[name]); }
    static Ref item(PyObject *from, PyObject *key) {
        return PyDict_CheckExact(from) ? Ref::share(PyDict_GetItemWithError(from, key)) : Ref();
    }
    // A number of a dictionary, or none.
    static Ref number(PyObject *from, Name name) {
        Ref found = item(from, name);
        return found && PyLong_CheckExact(found.get()) ? std::move(found) : Ref();
    }

    bool write_one(const Ref &write) {
        const Ref id = number(write.get(), SET), binding = id ? number(write.get(), BINDING) : Ref();
        const Ref element = binding ? number(write.get(), ELEMENT) : Ref(), kind = element ? number(write.get(), TYPE) : Ref();
        const Ref count = kind ? number(write.get(), COUNT) : Ref();
        if (!count || PyLong_AsLong(count.get()) != 1) {
            PyErr_Clear();
            return false;
        }
        const Ref held = Ref::share(PyDict_GetItemWithError(by_id.get(), id.get()));
        if (!held || Py_TYPE(held.get()) != reinterpret_cast<PyTypeObject *>(set.get())) return false;
        return put(held, binding, element, has(held, binding, element) ? read(write, kind) : Ref());
    }

    // Reads a write from bytes, and goes behind it.
    bool write_one(const KeyForm &form, const char *&bytes) {
        Ref values[TYPE + 1];
        Few<std::pair<const KeyForm::Field *, const char *>, 8> lists;
        form.walk(bytes, [&](const KeyForm::Field &field, const char *at) {
            if (field.form == '+') lists.push({&field, at});
            for (const Name each : {SET, BINDING, ELEMENT, COUNT, TYPE}) {
                if (field.form == 'v' && field.name.get() == names[each]) values[each] = KeyForm::value(field, at);
            }
        });
        for (const Name each : {SET, BINDING, ELEMENT, COUNT, TYPE}) {
            if (!values[each] || !PyLong_CheckExact(values[each].get())) return false;
        }
        const Ref &binding = values[BINDING], &element = values[ELEMENT], &kind = values[TYPE];
        if (PyLong_AsLong(values[COUNT].get()) != 1) return false;
        const Ref held = Ref::share(PyDict_GetItemWithError(by_id.get(), values[SET].get()));
        const Ref info = held ? item(infos.get(), kind.get()) : Ref();
        if (!info || Py_TYPE(held.get()) != reinterpret_cast<PyTypeObject *>(set.get()) || !is_info(info)) return false;
        for (auto &[field, at] : lists) {
            if (PyUnicode_Compare(field->name.get(), PyTuple_GET_ITEM(info.get(), 0)) != 0) continue;
            if (KeyForm::elements(*field, at) != 1 || !has(held, binding, element)) return false;
            return put(held, binding, element, read(*field, at, kind, PyTuple_GET_ITEM(info.get(), 1)));
        }
        return false;
    }

    static bool is_info(const Ref &info) {
        return PyTuple_CheckExact(info.get()) && PyTuple_GET_SIZE(info.get()) == 2 && PyUnicode_Check(PyTuple_GET_ITEM(info.get(), 0)) &&
               PyTuple_CheckExact(PyTuple_GET_ITEM(info.get(), 1));
    }

    // The descriptor that the bytes of an element give.
    Ref read(const KeyForm::Field &field, const char *at, const Ref &kind, PyObject *members) const {
        Ref values[3];
        if (field.kind == 's') {
            KeyForm::of(field.part.get())->walk(at, [&](const KeyForm::Field &member, const char *place) {
                for (Py_ssize_t each = 0; each < PyTuple_GET_SIZE(members) && each < 3; ++each) {
                    if (member.name.get() == PyTuple_GET_ITEM(members, each)) values[each] = KeyForm::value(member, place);
                }
            });
        } else if (field.kind == 'h' && !PyTuple_GET_SIZE(members)) {
            values[0] = KeyForm::value(field, at);
        }
        for (Ref &each : values) {
            if (!each && !PyErr_Occurred() && values[0]) each = Ref::take(PyLong_FromLong(0));
            if (!each || !PyLong_CheckExact(each.get())) return Ref();
        }
        return descriptor(kind, values);
    }

    // Writes a descriptor. False where there is none.
    static bool put(const Ref &held, const Ref &binding, const Ref &element, const Ref &descriptor) {
        const Ref place = descriptor ? left_out(Ref::take(PyTuple_Pack(2, binding.get(), element.get()))) : Ref();
        const Ref slots = place ? attribute(held.get(), SLOTS) : Ref();
        if (!slots || !PyDict_CheckExact(slots.get()) || PyObject_SetAttr(held.get(), names[CONTENTS], Py_None) < 0) return false;
        return PyDict_SetItem(slots.get(), place.get(), descriptor.get()) == 0;
    }

    // Whether the layout of a set has an array element of a binding.
    static bool has(const Ref &held, const Ref &binding, const Ref &element) {
        const Ref layout = attribute(held.get(), LAYOUT), bindings = layout ? attribute(layout.get(), BINDINGS) : Ref();
        const Ref found = bindings ? item(bindings.get(), binding.get()) : Ref();
        const Ref most = found ? attribute(found.get(), HELD) : Ref();
        return most && PyLong_CheckExact(most.get()) && PyObject_RichCompareBool(element.get(), most.get(), Py_LT) > 0;
    }

    // The descriptor that a write gives; none where Python must read it, or with an exception.
    Ref read(const Ref &write, const Ref &kind) {
        const Ref info = item(infos.get(), kind.get());
        if (!info || !is_info(info)) return Ref();
        PyObject *const members = PyTuple_GET_ITEM(info.get(), 1);
        const Ref several = item(write.get(), PyTuple_GET_ITEM(info.get(), 0));
        if (!several || !PyList_CheckExact(several.get()) || PyList_GET_SIZE(several.get()) != 1) return Ref();
        const Ref one = Ref::share(PyList_GET_ITEM(several.get(), 0));
        const Ref nothing = Ref::take(PyLong_FromLong(0));
        Ref values[3] = {Ref::share(one.get()), Ref::share(nothing.get()), Ref::share(nothing.get())};
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(members) && at < 3; ++at) {
            values[at] = item(one.get(), PyTuple_GET_ITEM(members, at));
        }
        for (const Ref &each : values) {
            if (!each || !PyLong_CheckExact(each.get())) return Ref();
        }
        return descriptor(kind, values);
    }

    Ref descriptor(const Ref &kind, Ref *values) const {
        PyTypeObject *const tuple = reinterpret_cast<PyTypeObject *>(descriptors.get());
        Ref made = tuple_to_fill(tuple, 4);
        if (!made) return made;
        PyTuple_SET_ITEM(made.get(), 0, Py_NewRef(kind.get()));
        for (Py_ssize_t at = 0; at < 3; ++at) PyTuple_SET_ITEM(made.get(), at + 1, values[at].release());
        return left_out(std::move(made));
    }
};

PyTypeObject *SetWrites::type = nullptr;
PyObject *SetWrites::names[NAMES] = {};

inline bool add_set_writes(PyObject *module) {
    static PyType_Slot slots[] = {
        slot(Py_tp_new, caught<SetWrites::make>), slot(Py_tp_dealloc, SetWrites::unmake), slot(Py_tp_traverse, SetWrites::traverse),
        slot(Py_tp_clear, SetWrites::clear), {0, nullptr},
    };
    static PyType_Spec spec = {"vkharness.native._core.SetWrites", sizeof(SetWrites), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    const char *const texts[] = {"pDescriptorWrites", "pDescriptorCopies", "dstSet",   "dstBinding", "dstArrayElement", "descriptorCount",
                                 "descriptorType",    "layout",            "bindings", "count",      "slots",           "contents"};
    for (int at = 0; at < SetWrites::NAMES; ++at) {
        if (!(SetWrites::names[at] = PyUnicode_InternFromString(texts[at]))) return false;
    }
    SetWrites::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return SetWrites::type && PyModule_AddType(module, SetWrites::type) == 0;
}

}  // namespace vkharness

#endif
