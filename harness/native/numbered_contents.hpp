// What descriptor sets of buffers refer to, by value: the native form of `contents_of` in
// harness/commands/drawing/set_contents.py, whose words these are.
//
// Python says once what a set with descriptors of these types and sizes refers to. A set whose descriptors differ from it in
// where the memory lies alone is that, moved. It leaves all others to Python: sets of images, and large ones.

#ifndef VKHARNESS_NUMBERED_CONTENTS_HPP
#define VKHARNESS_NUMBERED_CONTENTS_HPP

#include "slotted.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace vkharness {

struct NumberedContents {
    static constexpr long long FAR = 1ll << 61;  // no memory lies there: sums stay in 64 bits

    // Where the memory behind one descriptor lies.
    struct Where {
        Ref place, resource, space;
        long long begin, end, limit;
    };
    // A set, as it is read.
    struct Read {
        std::string value, shape;  // all that decides what it refers to; the same but for where that lies
        Few<Where, 8> parts;
    };

    enum Name { LAYOUT, ID, SLOTS, CONTENTS, MOVED, CLEARED, FRESH, NAMES };

    PyObject_HEAD
    Ref shaders, by_id, refers, descriptors;  // Python: `KnownShaders`; objects by id; `contents_of`; the type of descriptors
    Slotted buffer;                           // one, which shows where the members lie
    Py_ssize_t members[4];
    std::unordered_map<std::string, Ref> young, old, shapes;  // by value, those asked for lately in the young one; by shape
    Py_ssize_t most_descriptors, most_contents;
    long long cleared;  // how often all that is known of shaders was forgotten before these were made

    static PyTypeObject *type;
    static PyObject *names[NAMES];

    // NumberedContents(shaders, objects by id, contents_of, type of descriptors, a buffer, most descriptors of a set, most
    // contents)
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *given[4], *buffer;
        Py_ssize_t most_descriptors, most_contents;
        if (!PyArg_ParseTuple(arguments, "OO!OO!Onn", &given[0], &PyDict_Type, &given[1], &given[2], &PyType_Type, &given[3], &buffer,
                              &most_descriptors, &most_contents)) {
            return nullptr;
        }
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        NumberedContents *const known = of(self.get());
        int at = 0;
        for (Ref *each : {&known->shaders, &known->by_id, &known->refers, &known->descriptors}) new (each) Ref(Ref::share(given[at++]));
        new (&known->buffer) Slotted();
        for (Table *each : {&known->young, &known->old, &known->shapes}) new (each) Table();
        known->most_descriptors = most_descriptors;
        known->most_contents = most_contents;
        known->cleared = 0;
        return known->buffer.learn(buffer, {"id", "size", "memory", "offset"}, known->members) ? self.release() : nullptr;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        NumberedContents *const known = of(object);
        for (Table *each : {&known->young, &known->old, &known->shapes}) each->~Table();
        known->buffer.~Slotted();
        for (Ref *each : {&known->shaders, &known->by_id, &known->refers, &known->descriptors}) each->~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        const NumberedContents *const known = of(object);
        for (const Ref *each : {&known->shaders, &known->by_id, &known->refers, &known->descriptors}) Py_VISIT(each->get());
        Py_VISIT(known->buffer.like());
        for (const Table *table : {&known->young, &known->old, &known->shapes}) {
            for (const auto &each : *table) Py_VISIT(each.second.get());
        }
        return 0;
    }

    // What it remembers. It can be called as long as somebody has it: the functions break cycles.
    static int clear(PyObject *object) {
        of(object)->forget();
        return 0;
    }

    // contents(objects, set): what the set refers to now, which it keeps.
    static PyObject *called(PyObject *object, PyObject *arguments, PyObject *) {
        PyObject *objects, *set;
        if (!PyArg_ParseTuple(arguments, "OO", &objects, &set)) return nullptr;
        const Locked locked(object);
        try {
            Ref found = of(object)->now(objects, set);
            return found || PyErr_Occurred()
                       ? found.release()
                       : PyObject_CallFunctionObjArgs(of(object)->refers.get(), objects, set, nullptr);
        } catch (const std::bad_alloc &) {
            return PyErr_NoMemory();
        }
    }

  private:
    using Table = std::unordered_map<std::string, Ref>;
    enum Contents { NUMBER, SHAPE, MEMORIES, FIELDS };
    enum Descriptor { TYPE, RESOURCE, FROM, COUNT, DESCRIPTOR };
    enum Part { PART_RESOURCE, SPACE, BEGIN, END, LIMIT, READ, WHOLE, PARTS };  // the fields of a MemoryPart
    enum Member { OWN, BYTES, MEMORY, OFFSET };
    static constexpr std::size_t VALUES = 9, SHAPES = 4;  // numbers of a descriptor in `Read::value` and in `Read::shape`

    static NumberedContents *of(PyObject *object) { return reinterpret_cast<NumberedContents *>(object); }

    void forget() {
        Table none, nothing, nowhere;
        none.swap(young);
        nothing.swap(old);
        nowhere.swap(shapes);
    }

    // What a set refers to. None with an exception, or where Python must say that.
    Ref now(PyObject *objects, PyObject *held) {
        const Ref count = attribute(shaders.get(), CLEARED), layout = count ? attribute(held, LAYOUT) : Ref();
        const Ref id = layout ? attribute(layout.get(), ID) : Ref(), slots = id ? attribute(held, SLOTS) : Ref();
        const Ref moves = slots ? attribute(objects, MOVED) : Ref();
        const long long times = moves ? PyLong_AsLongLong(count.get()) : -1;
        if (!moves || PyErr_Occurred()) return Ref();
        if (std::exchange(cleared, times) != times) forget();
        Read set;
        if (!read(id.get(), slots.get(), set)) return Ref();
        Ref found = find(set);
        if (!found) found = moved(set);
        if (!found && !PyErr_Occurred()) {
            found = Ref::take(PyObject_CallFunctionObjArgs(refers.get(), objects, held, nullptr));
            if (found) told(set, found);
            return found;
        }
        const Ref kept = found ? left_out(Ref::take(PyTuple_Pack(2, moves.get(), found.get()))) : Ref();
        return kept && PyObject_SetAttr(held, names[CONTENTS], kept.get()) == 0 ? std::move(found) : Ref();
    }

    static Ref attribute(PyObject *object, Name name) { return Ref::take(PyObject_GetAttr(object, names[name])); }

    // Reads the descriptors of a set. False where Python must do so, or with an exception.
    bool read(PyObject *layout_id, PyObject *slots, Read &set) const {
        if (!PyDict_CheckExact(slots) || PyDict_GET_SIZE(slots) > most_descriptors) return false;
        const std::size_t count = static_cast<std::size_t>(PyDict_GET_SIZE(slots));
        set.value.reserve((1 + VALUES * count) * sizeof(long long));
        set.shape.reserve((1 + SHAPES * count) * sizeof(long long));
        if (!append(layout_id, set.value)) return false;
        set.shape = set.value;
        PyObject *place, *descriptor;
        for (Py_ssize_t at = 0; PyDict_Next(slots, &at, &place, &descriptor);) {
            if (!read_one(Ref::share(place), Ref::share(descriptor), set)) return false;
        }
        return true;
    }

    // What was numbered of this value, or none.
    Ref find(const Read &set) {
        auto found = young.find(set.value);
        if (found != young.end()) return Ref::share(found->second.get());
        found = old.find(set.value);
        if (found == old.end()) return Ref();
        Ref contents = std::move(found->second);
        old.erase(found);
        remember(set, contents);
        return contents;
    }

    // What a set refers to, if Python has said what one like it does. None also with an exception.
    Ref moved(Read &set) {
        const auto found = shapes.find(set.shape);
        if (found == shapes.end()) return Ref();
        const Ref like = Ref::share(found->second.get()), memories = Ref::take(PyDict_New());
        PyObject *const others = PyTuple_GET_ITEM(like.get(), MEMORIES);
        for (Where &each : set.parts) {
            const Ref part = memories ? Ref::share(PyDict_GetItemWithError(others, each.place.get())) : Ref();
            if (PyErr_Occurred() || !memories) return Ref();
            if (!part) continue;
            const Ref made = moved_part(part, each);
            if (!made || PyDict_SetItem(memories.get(), each.place.get(), made.get()) < 0) return Ref();
        }
        const Ref number = Ref::take(PyObject_CallMethodNoArgs(shaders.get(), names[FRESH]));
        Ref contents = number ? like_tuple(like) : Ref();
        if (!contents) return contents;
        PyTuple_SET_ITEM(contents.get(), NUMBER, Py_NewRef(number.get()));
        PyTuple_SET_ITEM(contents.get(), SHAPE, Py_NewRef(PyTuple_GET_ITEM(like.get(), SHAPE)));
        PyTuple_SET_ITEM(contents.get(), MEMORIES, Py_NewRef(left_out(Ref::share(memories.get())).get()));
        contents = left_out(std::move(contents));
        remember(set, contents);
        return contents;
    }

    // Python has said what a set refers to.
    void told(const Read &set, const Ref &contents) {
        if (!is_contents(contents.get()) || PyTuple_GET_ITEM(contents.get(), SHAPE) == Py_None) return;
        remember(set, contents);
        Table gone;
        if (shapes.size() >= static_cast<std::size_t>(most_contents)) gone.swap(shapes);
        const Ref before = std::exchange(shapes[set.shape], Ref::share(contents.get()));
    }

    // Whether this can be what a set refers to: number, shape and memories.
    static bool is_contents(PyObject *object) {
        return PyTuple_Check(object) && PyTuple_GET_SIZE(object) == FIELDS && is_plain(Py_TYPE(object)) &&
               PyDict_CheckExact(PyTuple_GET_ITEM(object, MEMORIES));
    }

    static bool is_plain(PyTypeObject *kind) { return kind->tp_basicsize == PyTuple_Type.tp_basicsize && !kind->tp_dictoffset; }

    static bool integer(PyObject *value, long long &found) {
        if (!PyLong_CheckExact(value)) return false;
        int overflow = 0;
        found = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow > 0) found = FAR;
        if (overflow < 0 || found < 0) return false;
        found = std::min(found, FAR);
        return true;
    }

    static void append(long long number, std::string &key) { key.append(reinterpret_cast<const char *>(&number), sizeof number); }
    static bool append(PyObject *value, std::string &key) {
        long long number;
        if (!integer(value, number) || number == FAR) return false;
        append(number, key);
        return true;
    }

    bool read_one(const Ref &place, const Ref &descriptor, Read &set) const {
        if (!PyTuple_CheckExact(place.get()) || PyTuple_GET_SIZE(place.get()) != 2 || PyTuple_GET_SIZE(descriptor.get()) != DESCRIPTOR ||
            Py_TYPE(descriptor.get()) != reinterpret_cast<PyTypeObject *>(descriptors.get())) {
            return false;
        }
        PyObject *const id = PyTuple_GET_ITEM(descriptor.get(), RESOURCE);
        const Ref found = PyLong_CheckExact(id) ? Ref::share(PyDict_GetItemWithError(by_id.get(), id)) : Ref();
        if (!found || Py_TYPE(found.get()) != Py_TYPE(this->buffer.like())) return false;
        const Ref own = member(found, OWN), memory = member(found, MEMORY), first = member(found, OFFSET);
        const Ref limit = member(found, BYTES);
        long long type, from, count, start, size, binding, element;
        if (!own || !memory || !first || !limit || !integer(PyTuple_GET_ITEM(descriptor.get(), TYPE), type) ||
            !integer(PyTuple_GET_ITEM(descriptor.get(), FROM), from) || !integer(PyTuple_GET_ITEM(descriptor.get(), COUNT), count) ||
            !integer(first.get(), start) || !integer(limit.get(), size) || !integer(PyTuple_GET_ITEM(place.get(), 0), binding) ||
            !integer(PyTuple_GET_ITEM(place.get(), 1), element) || start >= FAR || size >= FAR) {
            return false;
        }
        const long long begin = std::min(from, size), end = count < size - begin ? begin + count : size;
        for (const long long each : {binding, element, type, end - begin}) append(each, set.shape);
        for (const long long each : {binding, element, type, begin, end, start, size}) append(each, set.value);
        if (!append(own.get(), set.value)) return false;
        if (memory.get() == Py_None) append(-1, set.value);
        else if (!append(memory.get(), set.value)) return false;
        set.parts.push({Ref::share(place.get()), Ref::share(own.get()), Ref::share(memory.get() == Py_None ? own.get() : memory.get()),
                        start + begin, start + end, start + size});
        return true;
    }

    Ref member(const Ref &found, Member which) const { return Ref::share(*Slotted::member(found.get(), members[which])); }

    // A part of memory that differs from another one in where it lies. None with an exception, or where it is none.
    static Ref moved_part(const Ref &part, const Where &where) {
        if (!PyTuple_Check(part.get()) || PyTuple_GET_SIZE(part.get()) != PARTS || !is_plain(Py_TYPE(part.get()))) return Ref();
        const Ref begin = Ref::take(PyLong_FromLongLong(where.begin)), end = Ref::take(PyLong_FromLongLong(where.end));
        const Ref limit = Ref::take(PyLong_FromLongLong(where.limit));
        Ref made = begin && end && limit ? like_tuple(part) : Ref();
        if (!made) return made;
        PyObject *const fields[] = {where.resource.get(), where.space.get(), begin.get(), end.get(), limit.get(),
                                    PyTuple_GET_ITEM(part.get(), READ), PyTuple_GET_ITEM(part.get(), WHOLE)};
        for (Py_ssize_t at = 0; at < PARTS; ++at) PyTuple_SET_ITEM(made.get(), at, Py_NewRef(fields[at]));
        return left_out(std::move(made));
    }

    // An empty tuple of the same type and size, to be filled.
    static Ref like_tuple(const Ref &tuple) {
        PyTypeObject *const kind = Py_TYPE(tuple.get());
        return Ref::take(kind->tp_alloc(kind, PyTuple_GET_SIZE(tuple.get())));
    }

    void remember(const Read &set, const Ref &contents) {
        Table gone;
        if (young.size() >= static_cast<std::size_t>(most_contents)) {
            gone.swap(old);
            old.swap(young);
        }
        const Ref before = std::exchange(young[set.value], Ref::share(contents.get()));
    }
};

PyTypeObject *NumberedContents::type = nullptr;
PyObject *NumberedContents::names[NAMES] = {};

inline bool add_numbered_contents(PyObject *module) {
    static PyType_Slot slots[] = {
        slot(Py_tp_new, NumberedContents::make), slot(Py_tp_dealloc, NumberedContents::unmake),
        slot(Py_tp_traverse, NumberedContents::traverse), slot(Py_tp_clear, NumberedContents::clear),
        slot(Py_tp_call, NumberedContents::called), {0, nullptr},
    };
    static PyType_Spec spec = {"harness.native._core.NumberedContents", sizeof(NumberedContents), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    const char *const texts[] = {"layout", "id", "slots", "contents", "moved", "cleared", "fresh"};
    for (int at = 0; at < NumberedContents::NAMES; ++at) {
        if (!(NumberedContents::names[at] = PyUnicode_InternFromString(texts[at]))) return false;
    }
    NumberedContents::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return NumberedContents::type && PyModule_AddType(module, NumberedContents::type) == 0;
}

}  // namespace vkharness

#endif
