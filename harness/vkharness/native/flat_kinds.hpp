// What flat plans (flat_plans.hpp) of copies, fills and updates have in common: the kind of the command, and its buffers.

#ifndef VKHARNESS_FLAT_KINDS_HPP
#define VKHARNESS_FLAT_KINDS_HPP

#include "python.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace vkharness {

constexpr long long FAR_ADDRESS = 1ll << 61;  // no buffer lies there: sums stay in 64 bits

// Reads a number that is no address behind all memory. False where it is none, and no exception.
inline bool near_number(PyObject *value, long long &found) {
    if (!value || !PyLong_CheckExact(value)) return false;
    int overflow = 0;
    found = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow && found >= 0 && found < FAR_ADDRESS;
}

// A tuple of numbers, or none with an exception.
inline Ref numbers_of(const std::uint64_t *numbers, std::size_t count) {
    Ref made = Ref::take(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (std::size_t at = 0; made && at < count; ++at) {
        PyObject *const number = PyLong_FromUnsignedLongLong(numbers[at]);
        if (!number) return Ref();
        PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(at), number);
    }
    return made;
}
inline Ref numbers_of(const std::vector<std::uint64_t> &numbers) { return numbers_of(numbers.data(), numbers.size()); }

// What all commands of a kind have in common: which accesses they make, of which of their buffers and numbers.
struct FlatKind {
    static constexpr std::size_t MOST = 2;  // accesses and buffers
    struct Part {
        Ref access;  // one of its kind
        std::size_t buffer, offset, size;  // which buffer, and which numbers of a region
        bool writes;
    };

    PyObject_HEAD
    Ref unfold;         // Python: (places, numbers, data) to (effects, writes)
    std::size_t words;  // numbers of a region
    long long unit;     // sizes are multiples of it
    bool has_data;      // there is one region, with bytes behind its numbers; the last of those says how many
    std::size_t count;
    Part parts[MOST];

    static PyTypeObject *type;
    static FlatKind *of(PyObject *object) { return reinterpret_cast<FlatKind *>(object); }

    // FlatKind(unfold, words, unit, whether there are data, ((access, buffer, offset, size, whether it writes), ...))
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *unfold, *parts;
        Py_ssize_t words;
        long long unit;
        int has_data;
        if (!PyArg_ParseTuple(arguments, "OnLpO!", &unfold, &words, &unit, &has_data, &PyTuple_Type, &parts)) return nullptr;
        const std::size_t count = static_cast<std::size_t>(PyTuple_GET_SIZE(parts));
        if (words < 1 || unit < 1 || !count || count > MOST) return fault();
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        FlatKind *const kind = of(self.get());
        new (&kind->unfold) Ref(Ref::share(unfold));
        for (Part &each : kind->parts) new (&each) Part();
        kind->words = static_cast<std::size_t>(words);
        kind->unit = unit;
        kind->has_data = has_data;
        for (; kind->count < count; ++kind->count) {
            PyObject *access;
            Py_ssize_t buffer, offset, size;
            int writes;
            PyObject *const row = PyTuple_GET_ITEM(parts, static_cast<Py_ssize_t>(kind->count));
            if (!PyTuple_Check(row) || !PyArg_ParseTuple(row, "Onnnp", &access, &buffer, &offset, &size, &writes)) {
                return PyErr_Occurred() ? nullptr : fault();
            }
            const auto fits = [](Py_ssize_t which, Py_ssize_t end) { return which >= 0 && which < end; };
            if (!fits(buffer, MOST) || !fits(offset, words) || !fits(size, words)) return fault();
            const auto place = [](Py_ssize_t which) { return static_cast<std::size_t>(which); };
            kind->parts[kind->count] = Part{Ref::share(access), place(buffer), place(offset), place(size), writes != 0};
        }
        return self.release();
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        of(object)->unfold.~Ref();
        for (Part &each : of(object)->parts) each.~Part();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(of(object)->unfold.get());
        for (const Part &each : of(object)->parts) Py_VISIT(each.access.get());
        return 0;
    }

    // Nothing: a kind is whole as long as somebody has a plan of it. The function breaks cycles.
    static int clear(PyObject *) { return 0; }

    static PyObject *fault() {
        PyErr_SetString(PyExc_ValueError, "no such kind of command");
        return nullptr;
    }
};

PyTypeObject *FlatKind::type = nullptr;

// What plans of commands of one kind over the same buffers have in common.
struct FlatOrigin {
    // Where a buffer is, as Python says it: id, space, first address and size.
    struct Place {
        long long id = 0, space = 0, offset = 0, size = 0;
        bool operator==(const Place &other) const {
            return id == other.id && space == other.space && offset == other.offset && size == other.size;
        }
    };

    PyObject_HEAD
    Ref kind, places;  // places: a tuple
    Place place[FlatKind::MOST];

    static PyTypeObject *type;
    static FlatOrigin *of(PyObject *object) { return reinterpret_cast<FlatOrigin *>(object); }
    const FlatKind &of_kind() const { return *FlatKind::of(kind.get()); }

    // None with an exception.
    static Ref make(PyObject *kind, const Place *place, Ref &&places) {
        Ref self = places ? Ref::take(type->tp_alloc(type, 0)) : Ref();
        if (!self) return self;
        new (&of(self.get())->kind) Ref(Ref::share(kind));
        new (&of(self.get())->places) Ref(std::move(places));
        std::copy(place, place + FlatKind::MOST, of(self.get())->place);
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        of(object)->kind.~Ref();
        of(object)->places.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(of(object)->kind.get());
        Py_VISIT(of(object)->places.get());
        return 0;
    }

    static int clear(PyObject *) { return 0; }  // nothing, as of its kind
};

PyTypeObject *FlatOrigin::type = nullptr;

}  // namespace vkharness

#endif
