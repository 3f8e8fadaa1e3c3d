// `SpanMap` of harness/vkharness/spans.py as a native type: the same methods and results, over a B+-tree.
//
// To compare two values, to call a change, to make a result, to give up a value: each may run Python, and that may change
// the very map. So a method first copies what it needs of the tree, with references of its own, and runs Python only
// then. What it has found out is void when the map was changed meanwhile: that is an error, as with a set.

#ifndef VKHARNESS_SPAN_MAP_HPP
#define VKHARNESS_SPAN_MAP_HPP

#include "python.hpp"

namespace vkharness {

struct SpanMap {
    PyObject_HEAD
    SpanTree<PyObject *> tree;
    unsigned long long changes;  // how often spans came or went

    struct Piece {
        Address begin, end;
        Ref value;
    };
    using Pieces = Few<Piece>;
    using Tree = SpanTree<PyObject *>;

    static PyTypeObject *type, *iterator_type;

    static PyObject *make(PyTypeObject *made, PyObject *, PyObject *) {
        SpanMap *const self = reinterpret_cast<SpanMap *>(made->tp_alloc(made, 0));
        if (self) new (&self->tree) Tree();
        return reinterpret_cast<PyObject *>(self);
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        clear(object);
        reinterpret_cast<SpanMap *>(object)->tree.~Tree();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        const Tree &tree = reinterpret_cast<SpanMap *>(object)->tree;
        for (auto at = tree.first(); !at.end(); at = at.next()) Py_VISIT(at->value);
        return 0;
    }

    static int clear(PyObject *object) {
        SpanMap *const self = reinterpret_cast<SpanMap *>(object);
        while (!self->tree.last().end()) {
            const auto last = self->tree.last();
            const Ref value = Ref::take(last->value);
            self->tree.erase(last->begin);
            ++self->changes;
        }
        return 0;
    }

    static Py_ssize_t length(PyObject *object) {
        return static_cast<Py_ssize_t>(reinterpret_cast<SpanMap *>(object)->tree.size());
    }

    // -- methods ----------------------------------------------------------------------------------------------------

    static PyObject *exact(SpanMap *self, PyObject *const *arguments) {
        Address begin, end;
        if (!addresses(arguments, begin, end)) return nullptr;
        const auto held = self->tree.find(begin);
        return Py_NewRef(!held.end() && held->end == end ? held->value : Py_None);
    }

    static PyObject *set_exact(SpanMap *self, PyObject *const *arguments) {
        Address begin, end;
        if (!addresses(arguments, begin, end)) return nullptr;
        if (self->set(begin, end, arguments[2])) Py_RETURN_NONE;
        PyErr_SetString(PyExc_KeyError, "no such span is held");
        return nullptr;
    }

    static PyObject *put(SpanMap *self, PyObject *const *arguments) {
        Address begin, end;
        if (!addresses(arguments, begin, end)) return nullptr;
        if (self->set(begin, end, arguments[2])) Py_RETURN_NONE;
        return assign(self, arguments);
    }

    static PyObject *assign(SpanMap *self, PyObject *const *arguments) {
        Address begin, end;
        if (!addresses(arguments, begin, end)) return nullptr;
        Pieces made;
        if (begin < end) made.push({begin, end, Ref::share(arguments[2])});
        return self->replace(begin, end, made);
    }

    static PyObject *erase(SpanMap *self, PyObject *const *arguments) {
        Address begin, end;
        if (!addresses(arguments, begin, end)) return nullptr;
        Pieces none;
        return self->replace(begin, end, none);
    }

    static PyObject *pieces(SpanMap *self, PyObject *const *arguments) {
        Address begin, end;
        if (!addresses(arguments, begin, end)) return nullptr;
        Pieces found;
        self->find(begin, end, found);
        Ref list = Ref::take(PyList_New(static_cast<Py_ssize_t>(found.size())));
        if (!list) return nullptr;
        for (std::size_t at = 0; at < found.size(); ++at) {
            Ref piece = as_tuple(found[at].begin, found[at].end, found[at].value.get());
            if (!piece) return nullptr;
            PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(at), piece.release());
        }
        return list.release();
    }

    static PyObject *update(SpanMap *self, PyObject *const *arguments) {
        Address begin, end;
        if (!addresses(arguments, begin, end)) return nullptr;
        if (begin >= end) Py_RETURN_NONE;
        PyObject *const change = arguments[2];
        Pieces old, made;
        self->find(begin, end, old);
        Address at = begin;
        for (const Piece &each : old) {
            if (each.begin > at && !changed(change, at, each.begin, Py_None, made)) return nullptr;
            if (!changed(change, each.begin, each.end, each.value.get(), made)) return nullptr;
            at = each.end;
        }
        if (at < end && !changed(change, at, end, Py_None, made)) return nullptr;
        return made.size() || old.size() ? self->replace(begin, end, made) : Py_NewRef(Py_None);
    }

    static PyObject *check(SpanMap *self, PyObject *const *) {
        const char *const broken = self->tree.broken();
        if (!broken) Py_RETURN_NONE;
        PyErr_SetString(PyExc_AssertionError, broken);
        return nullptr;
    }

    static PyObject *iterate(PyObject *self);

    static Ref as_tuple(Address begin, Address end, PyObject *value) {
        Ref from = from_address(begin), to = from_address(end);
        if (!from || !to) return Ref();
        Ref piece = Ref::take(PyTuple_New(3));
        if (!piece) return Ref();
        PyTuple_SET_ITEM(piece.get(), 0, from.release());
        PyTuple_SET_ITEM(piece.get(), 1, to.release());
        PyTuple_SET_ITEM(piece.get(), 2, Py_NewRef(value));
        return piece;
    }

  private:
    static bool addresses(PyObject *const *arguments, Address &begin, Address &end) {
        return to_address(arguments[0], begin) && to_address(arguments[1], end);
    }

    // Whether precisely this span is held, and has the value now.
    bool set(Address begin, Address end, PyObject *value) {
        const auto held = tree.find(begin);
        if (held.end() || held->end != end) return false;
        const Ref old = Ref::take(std::exchange(held.value(), Py_NewRef(value)));
        return true;
    }

    // The held parts of [begin, end), clipped to it.
    void find(Address begin, Address end, Pieces &found) {
        if (begin >= end) return;
        auto at = tree.before(begin);
        if (at.end()) at = tree.first();
        for (; !at.end() && at->begin < end; at = at.next()) {
            if (at->end <= begin) continue;
            found.push({std::max(at->begin, begin), std::min(at->end, end), Ref::share(at->value)});
        }
    }

    // False with an exception set; else what a change makes of a piece or a gap is among `made`.
    static bool changed(PyObject *change, Address begin, Address end, PyObject *value, Pieces &made) {
        const Ref from = from_address(begin), to = from_address(end);
        if (!from || !to) return false;
        PyObject *const arguments[] = {from.get(), to.get(), value};
        Ref now = Ref::take(PyObject_Vectorcall(change, arguments, 3, nullptr));
        if (!now) return false;
        if (now.get() != Py_None) made.push({begin, end, std::move(now)});
        return true;
    }

    // Puts spans, in order and inside of [begin, end), in the place of what that holds. Neighbours that touch it or reach
    // into it are put in again with the new spans, joined to those that are equal.
    PyObject *replace(Address begin, Address end, Pieces &made) {
        if (begin >= end) Py_RETURN_NONE;
        const unsigned long long before = changes;
        Pieces all;
        std::size_t old = 0;
        auto first = tree.at_or_after(begin);
        const auto left = first.end() ? tree.last() : first.previous();
        auto at = first;
        if (!left.end() && left->end >= begin) {
            first = left;
            ++old;
            all.push({left->begin, begin, Ref::share(left->value)});
        }
        for (Piece &each : made) all.push(std::move(each));
        const auto last = tree.before(end);
        if (!last.end() && last->end > end) all.push({end, last->end, Ref::share(last->value)});
        for (; !at.end() && at->begin < end; at = at.next()) ++old;
        if (!at.end() && at->begin == end) {
            ++old;
            all.push({end, at->end, Ref::share(at->value)});
        }
        Few<std::size_t> kept;
        if (!join_equal(all, kept)) return nullptr;
        if (changes != before) {
            PyErr_SetString(PyExc_RuntimeError, "the map changed while its values were compared");
            return nullptr;
        }
        exchange(first, old, all, kept);
        Py_RETURN_NONE;
    }

    // Joins pieces that touch and have equal values to the first of them; `kept` are the places of those. False with an
    // exception set.
    static bool join_equal(Pieces &all, Few<std::size_t> &kept) {
        for (std::size_t at = 0; at < all.size(); ++at) {
            if (kept.size() && all[kept.back()].end == all[at].begin) {
                const int equal = PyObject_RichCompareBool(all[kept.back()].value.get(), all[at].value.get(), Py_EQ);
                if (equal < 0) return false;
                if (equal) {
                    all[kept.back()].end = all[at].end;
                    continue;
                }
            }
            kept.push(std::size_t(at));
        }
        return true;
    }

    // Exchanges so many spans from `first` on for the pieces that are kept. What is given up is given up at the end.
    void exchange(Tree::Place first, std::size_t old, Pieces &all, Few<std::size_t> &kept) {
        Few<Ref> gone;
        Few<Tree::Held> made;
        auto at = first;
        for (std::size_t each = 0; each < old; ++each, at = at.next()) gone.push(Ref::share(at->value));
        for (const std::size_t which : kept) made.emplace(all[which].begin, all[which].end, all[which].value.get());
        // There is memory for both lists: now references change hands.
        ++changes;
        for (const Tree::Held &each : made) Py_INCREF(each.value);
        tree.splice(first, old, made.begin(), made.size());
        for (const Ref &each : gone) Py_DECREF(each.get());  // that of the tree
    }
};

inline PyTypeObject *SpanMap::type = nullptr;
inline PyTypeObject *SpanMap::iterator_type = nullptr;

// Goes on behind the last span that it gave, whatever the map holds then.
struct SpanMapIterator {
    PyObject_HEAD
    PyObject *map;
    Address begun;
    bool started;

    static PyObject *next(PyObject *object) {
        SpanMapIterator *const self = reinterpret_cast<SpanMapIterator *>(object);
        if (!self->map) return nullptr;
        SpanMap *const map = reinterpret_cast<SpanMap *>(self->map);
        Address begin, end;
        Ref value;
        {
            const Locked locked(self->map);
            const auto at = self->started ? map->tree.at_or_after(self->begun + 1) : map->tree.first();
            if (at.end()) return nullptr;
            begin = at->begin;
            end = at->end;
            value = Ref::share(at->value);
        }
        self->begun = begin;
        self->started = true;
        return SpanMap::as_tuple(begin, end, value.get()).release();
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(reinterpret_cast<SpanMapIterator *>(object)->map);
        return 0;
    }

    static int clear(PyObject *object) {
        Py_CLEAR(reinterpret_cast<SpanMapIterator *>(object)->map);
        return 0;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        clear(object);
        made->tp_free(object);
        Py_DECREF(made);
    }
};

inline PyObject *SpanMap::iterate(PyObject *self) {
    PyObject *const object = iterator_type->tp_alloc(iterator_type, 0);
    if (object) reinterpret_cast<SpanMapIterator *>(object)->map = Py_NewRef(self);
    return object;
}

// Adds the types to the module; false with an exception set.
inline bool add_span_map(PyObject *module) {
    static PyMethodDef methods[] = {
        method<SpanMap, SpanMap::exact, 2>("exact"),
        method<SpanMap, SpanMap::set_exact, 3>("set_exact"),
        method<SpanMap, SpanMap::put, 3>("put"),
        method<SpanMap, SpanMap::pieces, 2>("pieces"),
        method<SpanMap, SpanMap::erase, 2>("erase"),
        method<SpanMap, SpanMap::assign, 3>("assign"),
        method<SpanMap, SpanMap::update, 3>("update"),
        method<SpanMap, SpanMap::check, 0>("_check"),
        {"__class_getitem__", Py_GenericAlias, METH_CLASS | METH_O, nullptr},
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        slot(Py_tp_new, caught<SpanMap::make>), slot(Py_tp_dealloc, SpanMap::unmake), slot(Py_tp_traverse, SpanMap::traverse),
        slot(Py_tp_clear, SpanMap::clear), slot(Py_tp_iter, SpanMap::iterate), slot(Py_sq_length, caught<SpanMap::length>),
        slot(Py_tp_methods, methods), {0, nullptr},
    };
    static PyType_Slot iterator_slots[] = {
        slot(Py_tp_dealloc, SpanMapIterator::unmake), slot(Py_tp_traverse, SpanMapIterator::traverse),
        slot(Py_tp_clear, SpanMapIterator::clear), slot(Py_tp_iter, PyObject_SelfIter),
        slot(Py_tp_iternext, caught<SpanMapIterator::next>), {0, nullptr},
    };
    const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE;
    PyType_Spec spec = {"vkharness.native._core.SpanMap", sizeof(SpanMap), 0, flags, slots};
    PyType_Spec iterator_spec = {"vkharness.native._core.SpanMapIterator", sizeof(SpanMapIterator), 0,
                                 flags | Py_TPFLAGS_DISALLOW_INSTANTIATION, iterator_slots};
    SpanMap::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    SpanMap::iterator_type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &iterator_spec, nullptr));
    return SpanMap::type && SpanMap::iterator_type && PyModule_AddType(module, SpanMap::type) == 0;
}

}  // namespace vkharness

#endif
