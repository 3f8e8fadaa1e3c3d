// The memory that descriptor sets of buffers refer to, by value: the native form of `contents_of` in
// harness/vkharness/commands/drawing/set_contents.py, whose words these are.
//
// Python says once what a set with descriptors of these types and sizes refers to. A set whose descriptors differ from it in
// where the memory lies alone is that, moved: `MovedContents` has the numbers, and says the rest when somebody asks. It leaves
// all others to Python: sets of images, and large ones.

#ifndef VKHARNESS_NUMBERED_CONTENTS_HPP
#define VKHARNESS_NUMBERED_CONTENTS_HPP

#include "slotted.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace vkharness {

// The properties that sets of one shape share: all but where the memory lies.
struct ContentsShape {
    // The memory behind one descriptor of `like`, which is a MemoryPart; none where there is none.
    struct Descriptor {
        long long binding, element;
        Ref place, part;
    };

    PyObject_HEAD
    Ref like;  // Python: what one of them refers to, a SetContents
    std::vector<Descriptor> descriptors;

    static PyTypeObject *type;
    static ContentsShape *of(PyObject *object) { return reinterpret_cast<ContentsShape *>(object); }

    // None with an exception.
    static Ref make(const Ref &like) {
        Ref self = Ref::take(type->tp_alloc(type, 0));
        if (!self) return self;
        new (&of(self.get())->like) Ref(Ref::share(like.get()));
        new (&of(self.get())->descriptors) std::vector<Descriptor>();
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        of(object)->descriptors.~vector();
        of(object)->like.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(of(object)->like.get());
        for (const Descriptor &each : of(object)->descriptors) {
            Py_VISIT(each.place.get());
            Py_VISIT(each.part.get());
        }
        return 0;
    }

    static int clear(PyObject *) { return 0; }  // nothing: it is whole as long as somebody has contents of it
};

PyTypeObject *ContentsShape::type = nullptr;

// The contents of equal sets: as a SetContents of Python it has `number`, `shape` and `memories`, which is made when
// somebody asks. The garbage collector looks at it from then on: before it is in no cycle.
struct MovedContents {
    enum Contents { NUMBER, SHAPE, MEMORIES, FIELDS };  // the fields of a SetContents
    enum Part { RESOURCE, SPACE, BEGIN, END, LIMIT, READ, WHOLE, PARTS };  // the fields of a MemoryPart
    // Where the memory behind one descriptor lies.
    struct Where {
        long long resource, space, begin, end, limit;
    };

    PyObject_VAR_HEAD
    PyObject *shape, *memories;  // shape: a ContentsShape; memories: none at first
    long long number;
    Where parts[1];

    static PyTypeObject *type;
    static MovedContents *of(PyObject *object) { return reinterpret_cast<MovedContents *>(object); }
    static bool is_one(PyObject *object) { return Py_TYPE(object) == type; }

    // None with an exception.
    static Ref make(const Ref &shape, long long number, const Where *parts, std::size_t count) {
        MovedContents *const made = PyObject_GC_NewVar(MovedContents, type, static_cast<Py_ssize_t>(count));
        if (!made) return Ref();
        made->shape = Py_NewRef(shape.get());
        made->memories = nullptr;
        made->number = number;
        std::copy(parts, parts + count, made->parts);
        return Ref::take(reinterpret_cast<PyObject *>(made));
    }

    // A field of this, or of a SetContents. None with an exception.
    static Ref field(const Ref &contents, Contents which) {
        if (!is_one(contents.get())) return Ref::share(PyTuple_GET_ITEM(contents.get(), which));
        if (which == NUMBER) return Ref::take(get_number(contents.get(), nullptr));
        return Ref::take(which == SHAPE ? get_shape(contents.get(), nullptr) : get_memories(contents.get(), nullptr));
    }

    // Where the memory behind a descriptor lies, and whether any access counts for all of it; none where there is none.
    const Where *find(long long binding, long long element, bool &is_whole) const {
        std::size_t at = 0;
        for (const ContentsShape::Descriptor &each : ContentsShape::of(shape)->descriptors) {
            const Where &where = parts[at++];
            if (each.binding != binding || each.element != element) continue;
            is_whole = each.part && PyTuple_GET_ITEM(each.part.get(), WHOLE) != Py_None;
            return each.part ? &where : nullptr;
        }
        return nullptr;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        Py_CLEAR(of(object)->memories);
        Py_CLEAR(of(object)->shape);
        PyObject_GC_Del(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(of(object)->shape);
        Py_VISIT(of(object)->memories);
        return 0;
    }

    static int clear(PyObject *object) {
        const Ref old = Ref::take(std::exchange(of(object)->memories, nullptr));
        return 0;
    }

    static PyObject *get_number(PyObject *object, void *) { return PyLong_FromLongLong(of(object)->number); }

    static PyObject *get_shape(PyObject *object, void *) {
        return Py_NewRef(PyTuple_GET_ITEM(ContentsShape::of(of(object)->shape)->like.get(), SHAPE));
    }

    static PyObject *get_memories(PyObject *object, void *) {
        const Locked locked(object);
        MovedContents *const self = of(object);
        if (self->memories) return Py_NewRef(self->memories);
        Ref made = Ref::take(PyDict_New());
        std::size_t at = 0;
        for (const ContentsShape::Descriptor &each : ContentsShape::of(self->shape)->descriptors) {
            const Where &where = self->parts[at++];
            if (!each.part || !made) continue;
            const Ref part = moved_part(each.part, where);
            if (!part || PyDict_SetItem(made.get(), each.place.get(), part.get()) < 0) return nullptr;
        }
        if (made && !self->memories) {
            self->memories = Py_NewRef(made.get());
            if (!PyObject_GC_IsTracked(object)) PyObject_GC_Track(object);
        }
        return made.release();
    }

    static bool is_plain(PyTypeObject *kind) { return kind->tp_basicsize == PyTuple_Type.tp_basicsize && !kind->tp_dictoffset; }
    static bool is_part(PyObject *object) {
        return PyTuple_Check(object) && PyTuple_GET_SIZE(object) == PARTS && is_plain(Py_TYPE(object));
    }

  private:
    // A part of memory that differs from another one in where it lies. None with an exception.
    static Ref moved_part(const Ref &part, const Where &where) {
        PyTypeObject *const kind = Py_TYPE(part.get());
        Ref made = tuple_to_fill(kind, PARTS);
        Py_ssize_t at = 0;
        for (const long long each : {where.resource, where.space, where.begin, where.end, where.limit}) {
            Ref number = made ? Ref::take(PyLong_FromLongLong(each)) : Ref();
            if (!number) return number;
            PyTuple_SET_ITEM(made.get(), at++, number.release());
        }
        for (; at < PARTS; ++at) PyTuple_SET_ITEM(made.get(), at, Py_NewRef(PyTuple_GET_ITEM(part.get(), at)));
        return left_out(std::move(made));
    }
};

PyTypeObject *MovedContents::type = nullptr;

struct NumberedContents {
    static constexpr long long FAR = 1ll << 61;  // no memory lies there: sums stay in 64 bits

    // A set, as it is read.
    struct Read {
        std::string value, shape;  // all that decides what it refers to; the same but for where that lies
        Few<MovedContents::Where, 8> parts;
    };

    enum Name { LAYOUT, ID, SLOTS, CONTENTS, MOVED, CLEARED, NAMES };

    PyObject_HEAD
    Ref shaders, by_id, refers, descriptors;  // Python: `KnownShaders`; objects by id; `contents_of`; the type of descriptors
    Slotted buffer;                           // one, which shows where the members lie
    Py_ssize_t members[4];
    std::unordered_map<std::string, Ref> young, old, shapes;  // by value, those asked for lately in the young one; by shape
    Py_ssize_t most_descriptors, most_contents;
    long long last;     // the last number that was given here, below 0: Python gives those above
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
        known->last = known->cleared = 0;
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

    // For the garbage collector: forgets the results. It can be called as long as somebody has it: the functions break
    // cycles.
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
    enum Descriptor { TYPE, RESOURCE, FROM, COUNT, DESCRIPTOR };
    enum Member { OWN, BYTES, MEMORY, OFFSET };
    static constexpr std::size_t VALUES = 9, SHAPES = 4;  // numbers of a descriptor in `Read::value` and in `Read::shape`

    static NumberedContents *of(PyObject *object) { return reinterpret_cast<NumberedContents *>(object); }

    void forget() {
        Table none, nothing, nowhere;
        none.swap(young);
        nothing.swap(old);
        nowhere.swap(shapes);
    }

    // Finds the contents of a set. None with an exception, or where Python must say them.
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
            if (found && !told(set, slots, found)) return Ref();
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

    // Finds the contents that are kept for this value, or none.
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

    // Makes the contents of a set if Python has said those of a set of its shape; else none, also with an exception.
    Ref moved(const Read &set) {
        const auto found = shapes.find(set.shape);
        if (found == shapes.end()) return Ref();
        Ref contents = MovedContents::make(found->second, --last, set.parts.begin(), set.parts.size());
        if (contents) remember(set, contents);
        return contents;
    }

    // Python has said what a set refers to. False with an exception.
    bool told(const Read &set, const Ref &slots, const Ref &contents) {
        if (!is_contents(contents.get()) || PyTuple_GET_ITEM(contents.get(), MovedContents::SHAPE) == Py_None) return true;
        remember(set, contents);
        const Ref made = shape_of(set, slots, contents);
        if (!made || PyErr_Occurred()) return !PyErr_Occurred();
        Table gone;
        if (shapes.size() >= static_cast<std::size_t>(most_contents)) gone.swap(shapes);
        const Ref before = std::exchange(shapes[set.shape], Ref::share(made.get()));
        return true;
    }

    // Makes the shape of the sets like one with these slots and contents. None also where Python says something else,
    // or has changed the slots.
    static Ref shape_of(const Read &set, const Ref &slots, const Ref &contents) {
        Ref made = ContentsShape::make(contents);
        const Ref memories = Ref::share(PyTuple_GET_ITEM(contents.get(), MovedContents::MEMORIES));
        if (static_cast<std::size_t>(PyDict_GET_SIZE(slots.get())) != set.parts.size()) return Ref();
        std::size_t number = 0;
        PyObject *place, *descriptor;
        for (Py_ssize_t at = 0; made && PyDict_Next(slots.get(), &at, &place, &descriptor);) {
            ContentsShape::Descriptor each{0, 0, Ref::share(place), Ref()};
            if (!PyTuple_CheckExact(place) || PyTuple_GET_SIZE(place) != 2 || !integer(PyTuple_GET_ITEM(place, 0), each.binding) ||
                !integer(PyTuple_GET_ITEM(place, 1), each.element)) {
                return Ref();
            }
            long long read[2];
            if (number == set.parts.size()) return Ref();
            std::memcpy(read, set.value.data() + (1 + VALUES * number++) * sizeof *read, sizeof read);
            if (read[0] != each.binding || read[1] != each.element) return Ref();
            each.part = Ref::share(PyDict_GetItemWithError(memories.get(), each.place.get()));
            if (PyErr_Occurred() || (each.part && !MovedContents::is_part(each.part.get()))) return Ref();
            ContentsShape::of(made.get())->descriptors.push_back(std::move(each));
        }
        return number == set.parts.size() ? std::move(made) : Ref();
    }

    // Whether this can be what a set refers to: number, shape and memories.
    static bool is_contents(PyObject *object) {
        return PyTuple_Check(object) && PyTuple_GET_SIZE(object) == MovedContents::FIELDS &&
               PyDict_CheckExact(PyTuple_GET_ITEM(object, MovedContents::MEMORIES));
    }

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
        long long number, space;
        if (!integer(own.get(), number) || number == FAR) return false;
        if (memory.get() == Py_None) space = -1;
        else if (!integer(memory.get(), space) || space == FAR) return false;
        for (const long long each : {binding, element, type, end - begin}) append(each, set.shape);
        for (const long long each : {binding, element, type, begin, end, start, size, number, space}) append(each, set.value);
        set.parts.push({number, space < 0 ? number : space, start + begin, start + end, start + size});
        return true;
    }

    Ref member(const Ref &found, Member which) const { return Ref::share(*Slotted::member(found.get(), members[which])); }

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
        slot(Py_tp_new, caught<NumberedContents::make>), slot(Py_tp_dealloc, NumberedContents::unmake),
        slot(Py_tp_traverse, NumberedContents::traverse), slot(Py_tp_clear, NumberedContents::clear),
        slot(Py_tp_call, NumberedContents::called), {0, nullptr},
    };
    static PyType_Spec spec = {"vkharness.native._core.NumberedContents", sizeof(NumberedContents), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    const char *const texts[] = {"layout", "id", "slots", "contents", "moved", "cleared"};
    for (int at = 0; at < NumberedContents::NAMES; ++at) {
        if (!(NumberedContents::names[at] = PyUnicode_InternFromString(texts[at]))) return false;
    }
    static PyType_Slot shape_slots[] = {
        slot(Py_tp_dealloc, ContentsShape::unmake), slot(Py_tp_traverse, ContentsShape::traverse),
        slot(Py_tp_clear, ContentsShape::clear), {0, nullptr},
    };
    static PyGetSetDef values[] = {
        {"number", caught<MovedContents::get_number>, nullptr, nullptr, nullptr},
        {"shape", caught<MovedContents::get_shape>, nullptr, nullptr, nullptr},
        {"memories", caught<MovedContents::get_memories>, nullptr, nullptr, nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    static PyType_Slot moved_slots[] = {
        slot(Py_tp_dealloc, MovedContents::unmake), slot(Py_tp_traverse, MovedContents::traverse),
        slot(Py_tp_clear, MovedContents::clear), slot(Py_tp_getset, values), {0, nullptr},
    };
    const unsigned flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    static PyType_Spec shape_spec = {"vkharness.native._core.ContentsShape", sizeof(ContentsShape), 0, flags, shape_slots};
    static PyType_Spec moved_spec = {"vkharness.native._core.MovedContents", offsetof(MovedContents, parts),
                                     sizeof(MovedContents::Where), flags, moved_slots};
    for (const auto &[type, made] : {std::pair(&ContentsShape::type, &shape_spec), std::pair(&MovedContents::type, &moved_spec),
                                     std::pair(&NumberedContents::type, &spec)}) {
        *type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, made, nullptr));
        if (!*type || PyModule_AddType(module, *type) < 0) return false;
    }
    return true;
}

}  // namespace vkharness

#endif
