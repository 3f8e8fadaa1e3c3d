// Conversions between Python and the values of a store of ranges. Whoever fails returns false or nullptr, with an
// exception set.

#ifndef VKHARNESS_RANGE_VALUES_HPP
#define VKHARNESS_RANGE_VALUES_HPP

#include "range_accesses.hpp"
#include "range_changes.hpp"

namespace vkharness {

inline PyObject *fault(const char *what) {
    PyErr_SetString(PyExc_TypeError, what);
    return nullptr;
}

inline bool to_number(PyObject *object, unsigned long long &number) {
    number = PyLong_AsUnsignedLongLong(object);
    return number != static_cast<unsigned long long>(-1) || !PyErr_Occurred();
}

inline bool addresses(PyObject *const *given, Address &begin, Address &end) {
    return to_address(given[0], begin) && to_address(given[1], end);
}

inline bool to_span(PyObject *span, Address &begin, Address &end) {
    if (!PyTuple_Check(span) || PyTuple_GET_SIZE(span) != 2) return fault("a span is two addresses") != nullptr;
    return to_address(PyTuple_GET_ITEM(span, 0), begin) && to_address(PyTuple_GET_ITEM(span, 1), end);
}

inline bool to_tag(PyObject *given, BatchOrder::Tag &tag) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 2) return fault("a tag is two numbers") != nullptr;
    tag.submit = PyLong_AsLongLong(PyTuple_GET_ITEM(given, 0));
    if (tag.submit == -1 && PyErr_Occurred()) return false;
    tag.batch = PyLong_AsLongLong(PyTuple_GET_ITEM(given, 1));
    return tag.batch != -1 || !PyErr_Occurred();
}

// An entry of Python: state, write or None, reads.
inline bool to_entry(RangeStore &store, PyObject *given, Entry &entry) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 3) return fault("an entry is three values") != nullptr;
    PyObject *const write = PyTuple_GET_ITEM(given, 1), *const reads = PyTuple_GET_ITEM(given, 2);
    unsigned long long number = NO_PLACE;
    if (write != Py_None && !to_number(write, number)) return false;
    if (!PyTuple_Check(reads)) return fault("reads are a tuple") != nullptr;
    std::vector<PlaceNumber> several;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(reads); ++at) {
        unsigned long long read;
        if (!to_number(PyTuple_GET_ITEM(reads, at), read)) return false;
        several.push_back(read);
    }
    StateNumber state;
    if (!store.automaton().number(PyTuple_GET_ITEM(given, 0), state)) return false;
    entry.write = number;
    entry.reads = Reads::of(several.data(), several.size());
    entry.slot = store.slots.of(state);
    store.slots.share(entry.slot);
    return true;
}

inline bool read_covers(RangeStore &store, PyObject *ranges, std::vector<RangeStore::Cover> &covers) {
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(ranges); ++at) {
        PyObject *const given = PyTuple_GET_ITEM(ranges, at);
        if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 5) return fault("a range is five values");
        PyObject *const *const values = &PyTuple_GET_ITEM(given, 0);
        RangeStore::Cover cover{};
        if (!to_address(values[0], cover.space) || !addresses(values + 1, cover.begin, cover.end)) return false;
        if (values[3] == Py_None) {
            if (!store.automaton().number(values[4], cover.state)) return false;
        } else if (!read_asking(values[3], cover.change)) {
            return false;
        }
        covers.push_back(std::move(cover));
    }
    return true;
}

inline Ref entry_of(const RangeStore &store, PyObject *state, PlaceNumber write, const PlaceNumber *reads,
                    std::size_t count) {
    Ref several = Ref::take(PyTuple_New(static_cast<Py_ssize_t>(count)));
    if (!several) return several;
    for (std::size_t at = 0; at < count; ++at) {
        PyObject *const read = PyLong_FromUnsignedLongLong(reads[at]);
        if (!read) return Ref();
        PyTuple_SET_ITEM(several.get(), static_cast<Py_ssize_t>(at), read);
    }
    Ref number = write == NO_PLACE ? Ref::share(Py_None) : Ref::take(PyLong_FromUnsignedLongLong(write));
    if (!number) return number;
    PyTypeObject *const made = reinterpret_cast<PyTypeObject *>(store.types().entry);
    Ref entry = tuple_to_fill(made, 3);
    if (!entry) return entry;
    PyTuple_SET_ITEM(entry.get(), 0, Py_NewRef(state));
    PyTuple_SET_ITEM(entry.get(), 1, number.release());
    PyTuple_SET_ITEM(entry.get(), 2, several.release());
    return entry;
}

inline Ref three(Address begin, Address end, Ref entry) {
    Ref from = from_address(begin), to = from_address(end);
    Ref made = entry && from && to ? Ref::take(PyTuple_New(3)) : Ref();
    if (!made) return made;
    PyTuple_SET_ITEM(made.get(), 0, from.release());
    PyTuple_SET_ITEM(made.get(), 1, to.release());
    PyTuple_SET_ITEM(made.get(), 2, entry.release());
    return made;
}

inline Ref piece_of(const RangeStore &store, const RangePiece &piece, PyObject *state) {
    const Reads &reads = piece.value.reads;
    return three(piece.begin, piece.end, entry_of(store, state, piece.value.write, reads.begin(), reads.count));
}

inline PyObject *met_list(const RangeStore &store, const std::vector<RangeStore::Met> &met, bool with_step) {
    Ref list = Ref::take(PyList_New(static_cast<Py_ssize_t>(met.size())));
    for (std::size_t at = 0; list && at < met.size(); ++at) {
        const RangeStore::Live &before = met[at].before;
        PyObject *const state = const_cast<RangeStore &>(store).automaton().object(before.state);
        Ref piece = three(met[at].begin, met[at].end,
                          entry_of(store, state, before.write, before.reads.data(), before.reads.size()));
        if (piece && with_step) {
            piece = Ref::take(Py_BuildValue("nO", static_cast<Py_ssize_t>(met[at].step), piece.get()));
        }
        if (!piece) return nullptr;
        PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(at), piece.release());
    }
    return list.release();
}

}  // namespace vkharness

#endif
