// `RangeStore` for Python.

#ifndef VKHARNESS_RANGE_STORE_TYPE_HPP
#define VKHARNESS_RANGE_STORE_TYPE_HPP

#include <deque>

#include "automaton_type.hpp"
#include "range_values.hpp"

namespace vkharness {

// Puts a store, or none, in the place of the one that there is.
inline void put_store(RangeStoreObject *self, RangeStore *store) {
    RangeStore *const before = std::exchange(self->store, store);
    if (!std::exchange(self->broken, false)) delete before;
}

struct RangeStoreType {
    using Arguments = PyObject *const *;
    static PyTypeObject *type;

    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *automaton;
        RangeStore::Types types;
        Py_ssize_t awake, steps, new_step, kept;
        if (!PyArg_ParseTuple(arguments, "O!OOOO(nnnn)", AutomatonType::type, &automaton, &types.entry, &types.sizes,
                              &types.run, &types.nothing, &awake, &steps, &new_step, &kept)) {
            return nullptr;
        }
        if (!PyType_Check(types.entry) ||
            !PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(types.entry), &PyTuple_Type)) {
            PyErr_SetString(PyExc_TypeError, "entries are tuples");
            return nullptr;
        }
        RangeStoreObject *const self = reinterpret_cast<RangeStoreObject *>(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        self->automaton = reinterpret_cast<AutomatonObject *>(Py_NewRef(automaton));
        const SlotLimits limits{static_cast<std::size_t>(awake), static_cast<std::size_t>(steps),
                                static_cast<std::size_t>(new_step), static_cast<std::size_t>(kept)};
        self->store = RangeStore::make(self->automaton, types, limits);
        if (!self->store) {
            Py_DECREF(self);
            return PyErr_NoMemory();
        }
        return reinterpret_cast<PyObject *>(self);
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        RangeStoreObject *const self = reinterpret_cast<RangeStoreObject *>(object);
        put_store(self, nullptr);
        Py_XDECREF(self->automaton);
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        const RangeStoreObject *const self = reinterpret_cast<RangeStoreObject *>(object);
        Py_VISIT(self->automaton);
        return self->store ? self->store->traverse(visit, arg) : 0;
    }

    // Puts an empty store in the place of this one: whoever still calls it meets one that knows nothing. Not while an
    // operation is going on. One that is has whoever called it, so that it is no garbage.
    static int clear(PyObject *object) {
        RangeStoreObject *const self = reinterpret_cast<RangeStoreObject *>(object);
        if (!self->store || self->busy) return 0;
        const RangeStore &old = *self->store;
        RangeStore *const empty = RangeStore::make(self->automaton, old.types(), old.slots.limits());
        if (!empty) return 0;
        put_store(self, empty);
        AutomatonType::reclaim(self->automaton);
        return 0;
    }

    // -- batches ----------------------------------------------------------------------------------------------------

    static PyObject *add_batch(RangeStoreObject *self, Arguments given) {
        unsigned long long number;
        BatchOrder::Batch made;
        if (!to_number(given[0], number) || !to_address(given[1], made.queue) || !to_tag(given[2], made.tag)) return nullptr;
        const int over = PyObject_IsTrue(given[3]);
        if (over < 0) return nullptr;
        made.over = over;
        self->store->batches.add(static_cast<std::uint32_t>(number), made);
        Py_RETURN_NONE;
    }

    static PyObject *finish_batch(RangeStoreObject *self, Arguments given) {
        unsigned long long number;
        if (!to_number(given[0], number)) return nullptr;
        self->store->batches.finish(static_cast<std::uint32_t>(number));
        Py_RETURN_NONE;
    }

    static PyObject *is_finished(RangeStoreObject *self, Arguments given) {
        unsigned long long place;
        if (!to_number(given[0], place)) return nullptr;
        return PyBool_FromLong(self->store->batches.is_finished(place));
    }

    // The batches with these numbers alone.
    static PyObject *keep_batches(RangeStoreObject *self, Arguments given) {
        const Ref several = Ref::take(PySequence_Fast(given[0], "numbers are wanted"));
        if (!several) return nullptr;
        NumberTable<bool> kept;
        for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(several.get()); ++at) {
            unsigned long long number;
            if (!to_number(PySequence_Fast_GET_ITEM(several.get(), at), number)) return nullptr;
            kept.put(number, true);
        }
        self->store->batches.keep([&](std::uint32_t number) { return kept.find(number) != nullptr; });
        Py_RETURN_NONE;
    }

    // (queue, {queue: tag}): what that queue did races with nothing, what others did up to a tag with nothing that follows.
    static PyObject *set_clock(RangeStoreObject *self, Arguments given) {
        Address own;
        if (!to_address(given[0], own)) return nullptr;
        if (!PyDict_Check(given[1])) return fault("a clock is a dict");
        const Ref tags = Ref::take(PyDict_Copy(given[1]));  // Python may change the other meanwhile
        if (!tags) return nullptr;
        std::unordered_map<Address, BatchOrder::Tag, AddressHash> clock;
        PyObject *queue, *tag;
        for (Py_ssize_t at = 0; PyDict_Next(tags.get(), &at, &queue, &tag);) {
            Address number;
            BatchOrder::Tag read;
            if (!to_address(queue, number) || !to_tag(tag, read)) return nullptr;
            clock[number] = read;
        }
        self->store->batches.set_clock(own, std::move(clock));
        Py_RETURN_NONE;
    }

    // -- sizes ------------------------------------------------------------------------------------------------------

    static PyObject *ranges(RangeStoreObject *self, Arguments) { return PyLong_FromSize_t(self->store->pieces.size()); }

    static PyObject *sizes(RangeStoreObject *self, Arguments) {
        const Slots &slots = self->store->slots;
        return PyObject_CallFunction(self->store->types().sizes, "nnnK", static_cast<Py_ssize_t>(slots.awake().size()),
                                     static_cast<Py_ssize_t>(slots.sleeping()), static_cast<Py_ssize_t>(slots.kept()),
                                     slots.steps());
    }

    static PyObject *states(RangeStoreObject *self, Arguments) {
        RangeStore &store = *self->store;
        std::vector<Ref> all;  // before there is a list: to make it may run Python
        for (const SlotNumber each : store.slots.awake()) {
            all.push_back(Ref::share(store.automaton().object(store.slots.state(each))));
        }
        Ref found = Ref::take(PyList_New(static_cast<Py_ssize_t>(all.size())));
        for (std::size_t at = 0; found && at < all.size(); ++at) {
            PyList_SET_ITEM(found.get(), static_cast<Py_ssize_t>(at), all[at].release());
        }
        return found.release();
    }

    static PyObject *has(RangeStoreObject *self, Arguments given) {
        Address space;
        if (!to_address(given[0], space)) return nullptr;
        const RangeTree *const tree = self->store->pieces.tree(space);
        return PyBool_FromLong(tree && tree->size());
    }

    static PyObject *spaces(RangeStoreObject *self, Arguments) {
        Ref found = Ref::take(PyList_New(0));
        bool good = static_cast<bool>(found);
        std::vector<Address> all;
        self->store->pieces.each_space([&](Address space, const RangeTree &) { all.push_back(space); });
        for (std::size_t at = 0; good && at < all.size(); ++at) {
            const Ref number = from_address(all[at]);
            good = number && PyList_Append(found.get(), number.get()) == 0;
        }
        return good ? found.release() : nullptr;
    }

    static PyObject *place_numbers(RangeStoreObject *self, Arguments) {
        std::vector<PlaceNumber> all;
        self->store->pieces.each_space([&](Address, const RangeTree &tree) {
            for (auto at = tree.first(); !at.end(); at = at.next()) {
                if (at->value.write != NO_PLACE) all.push_back(at->value.write);
                all.insert(all.end(), at->value.reads.begin(), at->value.reads.end());
            }
        });
        Ref found = Ref::take(PyList_New(static_cast<Py_ssize_t>(all.size())));
        for (std::size_t at = 0; found && at < all.size(); ++at) {
            PyObject *const number = PyLong_FromUnsignedLongLong(all[at]);
            if (!number) return nullptr;
            PyList_SET_ITEM(found.get(), static_cast<Py_ssize_t>(at), number);
        }
        return found.release();
    }

    // -- ranges -----------------------------------------------------------------------------------------------------

    // The held parts of [begin, end), as they are now: whatever sleeps there wakes.
    static PyObject *pieces(RangeStoreObject *self, Arguments given) {
        Address space, begin, end;
        if (!to_address(given[0], space) || !addresses(given + 1, begin, end)) return nullptr;
        const Busy busy(self);
        if (!busy.good()) return nullptr;
        RangeStore &store = *self->store;
        RangePieces::Pieces found;
        if (const RangeTree *const tree = store.pieces.tree(space)) store.pieces.find(*tree, begin, end, found);
        Ref list = Ref::take(PyList_New(static_cast<Py_ssize_t>(found.size())));
        for (std::size_t at = 0; list && at < found.size(); ++at) {
            SlotNumber root;
            if (!store.slots.find(found[at].value.slot, root)) return nullptr;
            PyObject *const state = store.automaton().object(store.slots.state(root));
            Ref piece = piece_of(store, found[at], state);
            if (!piece) return nullptr;
            PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(at), piece.release());
        }
        return list.release();
    }

    // All ranges of a space, and whether they sleep; those that do go on sleeping, and seem never accessed.
    static PyObject *everything(RangeStoreObject *self, Arguments given) {
        Address space;
        if (!to_address(given[0], space)) return nullptr;
        const Busy busy(self);
        if (!busy.good()) return nullptr;
        RangeStore &store = *self->store;
        RangePieces::Pieces found;
        if (const RangeTree *const tree = store.pieces.tree(space)) {
            for (auto at = tree->first(); !at.end(); at = at.next()) found.push_back({at->begin, at->end, at->value});
        }
        Ref list = Ref::take(PyList_New(static_cast<Py_ssize_t>(found.size())));
        for (std::size_t at = 0; list && at < found.size(); ++at) {
            PyObject *state = store.types().nothing;
            SlotNumber root;
            const bool sleeps = store.slots.sleeps(found[at].value.slot);
            if (!sleeps) {
                if (!store.slots.find(found[at].value.slot, root)) return nullptr;
                state = store.automaton().object(store.slots.state(root));
            }
            Ref piece = piece_of(store, found[at], state);
            if (piece) {
                piece = Ref::take(PyTuple_Pack(4, PyTuple_GET_ITEM(piece.get(), 0), PyTuple_GET_ITEM(piece.get(), 1),
                                               PyTuple_GET_ITEM(piece.get(), 2), sleeps ? Py_True : Py_False));
            }
            if (!piece) return nullptr;
            PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(at), piece.release());
        }
        return list.release();
    }

    template <bool ANYWAY>
    static PyObject *set(RangeStoreObject *self, Arguments given) {
        Address space, begin, end;
        if (!to_address(given[0], space) || !addresses(given + 1, begin, end)) return nullptr;
        const Busy busy(self);
        Entry entry;
        if (!busy.good() || !to_entry(*self->store, given[3], entry)) return nullptr;
        if (ANYWAY) self->store->pieces.assign(space, begin, end, entry);
        else self->store->pieces.put(space, begin, end, entry);
        Py_RETURN_NONE;
    }

    static PyObject *erase(RangeStoreObject *self, Arguments given) {
        Address space, begin, end;
        if (!to_address(given[0], space) || !addresses(given + 1, begin, end)) return nullptr;
        const Busy busy(self);
        if (!busy.good()) return nullptr;
        self->store->pieces.erase(space, begin, end);
        Py_RETURN_NONE;
    }

    static PyObject *drop(RangeStoreObject *self, Arguments given) {
        Address space;
        if (!to_address(given[0], space)) return nullptr;
        const Busy busy(self);
        if (!busy.good()) return nullptr;
        self->store->pieces.drop(space);
        Py_RETURN_NONE;
    }

    static PyObject *forget_over(RangeStoreObject *self, Arguments given) {
        Address space;
        if (!to_address(given[0], space)) return nullptr;
        const int writes = PyObject_IsTrue(given[1]);
        const Busy busy(self);
        return writes < 0 || !busy.good() ? nullptr : PyBool_FromLong(self->store->forget_over(space, writes));
    }

    static PyObject *let_reads_be_over(RangeStoreObject *self, Arguments) {
        self->store->reads_are_over = true;
        Py_RETURN_NONE;
    }

    // -- what commands do -------------------------------------------------------------------------------------------

    // (space, spans, request, place number, racing) of an access. [(begin, end, entry before)] where there is a hazard,
    // or where something may race.
    static PyObject *apply(RangeStoreObject *self, Arguments given) {
        Address space;
        unsigned long long place;
        if (!to_address(given[0], space) || !to_number(given[3], place)) return nullptr;
        RangeStore::Racing racing = RangeStore::NO_RACE;
        if (!read_racing(given[4], racing)) return nullptr;
        if (!PyTuple_Check(given[1])) return fault("spans are a tuple");
        const Busy busy(self);
        if (!busy.good()) return nullptr;
        RangeStore &store = *self->store;
        RangeStore::Asked asked{0, place, racing, 0};
        if (!store.automaton().request(given[2], asked.request)) return nullptr;
        std::vector<RangeStore::Met> met;
        RangeStore::Spans spans;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(given[1]); ++at) {
            RangeStore::Span span;
            if (!to_span(PyTuple_GET_ITEM(given[1], at), span.begin, span.end)) return nullptr;
            spans.push(std::move(span));
        }
        if (!store.apply(space, spans, RangeStore::are_apart(spans), asked, met)) return nullptr;
        return met_list(store, met, false);
    }

    static PyObject *map(RangeStoreObject *self, Arguments given) {
        Asking change;
        const Busy busy(self);
        if (!busy.good() || !read_asking(given[0], change)) return nullptr;
        if (!self->store->slots.map(given[0], change.number)) return nullptr;
        Py_RETURN_NONE;
    }

    // (change or None, place number, covers) of a command that synchronizes: a change of everything, and of ranges, as
    // (space, begin, end, change, None), or (space, begin, end, None, state) for what counts as a write. All of them
    // apply to the states as they were before.
    static PyObject *synchronize(RangeStoreObject *self, Arguments given) {
        unsigned long long place;
        Asking everything;
        if (!to_number(given[1], place)) return nullptr;
        if (!PyList_Check(given[2])) return fault("ranges are a list");
        const Busy busy(self);
        if (!busy.good() || (given[0] != Py_None && !read_asking(given[0], everything))) return nullptr;
        RangeStore &store = *self->store;
        const Ref ranges = Ref::take(PyList_AsTuple(given[2]));  // Python may change the list meanwhile
        std::vector<RangeStore::Cover> covers;
        if (!ranges || !read_covers(store, ranges.get(), covers)) return nullptr;
        if (!store.synchronize(everything, place, covers)) return nullptr;
        Py_RETURN_NONE;
    }

    // See store_forms_type.hpp.
    static PyObject *form(RangeStoreObject *self, Arguments given);
    static PyObject *run(RangeStoreObject *self, Arguments given);
    static bool read_step(RangeStore &store, PyObject *given, FormStep &step, std::uint32_t &notes);
    static Ref notes_of(const std::deque<Noted> &last, std::size_t most);
    static bool found_or_made(RangeStoreObject *self, PyObject *plan, bool keeps, PyObject *standpoint,
                              std::shared_ptr<const Form> &form);

    static PyObject *check(RangeStoreObject *self, Arguments) {
        const char *const broken = self->store->pieces.broken();
        if (!broken) Py_RETURN_NONE;
        PyErr_SetString(PyExc_AssertionError, broken);
        return nullptr;
    }

};

inline PyTypeObject *RangeStoreType::type = nullptr;

// Adds the types to the module; false with an exception set.
inline bool add_range_store(PyObject *module) {
    using Object = RangeStoreObject;
    using T = RangeStoreType;
    static PyMethodDef automaton_methods[] = {
        method<AutomatonObject, AutomatonType::sizes, 0>("sizes"),
        {nullptr, nullptr, 0, nullptr},
    };
    static PyMethodDef methods[] = {
        method<Object, T::add_batch, 4>("add_batch"),
        method<Object, T::finish_batch, 1>("finish_batch"),
        method<Object, T::is_finished, 1>("is_finished"),
        method<Object, T::keep_batches, 1>("keep_batches"),
        method<Object, T::set_clock, 2>("set_clock"),
        method<Object, T::ranges, 0>("ranges"),
        method<Object, T::sizes, 0>("sizes"),
        method<Object, T::states, 0>("states"),
        method<Object, T::has, 1>("has"),
        method<Object, T::spaces, 0>("spaces"),
        method<Object, T::place_numbers, 0>("place_numbers"),
        method<Object, T::pieces, 3>("pieces"),
        method<Object, T::everything, 1>("everything"),
        method<Object, T::set<false>, 4>("put"),
        method<Object, T::set<true>, 4>("assign"),
        method<Object, T::erase, 3>("erase"),
        method<Object, T::drop, 1>("drop"),
        method<Object, T::forget_over, 2>("forget_over"),
        method<Object, T::let_reads_be_over, 0>("let_reads_be_over"),
        method<Object, T::apply, 5>("apply"),
        method<Object, T::map, 1>("map"),
        method<Object, T::synchronize, 3>("synchronize"),
        method<Object, T::form, 4>("form"),
        method<Object, T::run, 7>("run"),
        method<Object, T::check, 0>("_check"),
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot automaton_slots[] = {
        slot(Py_tp_new, caught<AutomatonType::make>), slot(Py_tp_dealloc, AutomatonType::unmake),
        slot(Py_tp_traverse, AutomatonType::traverse), slot(Py_tp_clear, AutomatonType::clear),
        slot(Py_tp_methods, automaton_methods), {0, nullptr},
    };
    static PyType_Slot slots[] = {
        slot(Py_tp_new, caught<T::make>), slot(Py_tp_dealloc, T::unmake), slot(Py_tp_traverse, T::traverse),
        slot(Py_tp_clear, T::clear), slot(Py_tp_methods, methods), {0, nullptr},
    };
    const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE;
    PyType_Spec automaton_spec = {"vkharness.native._core.Automaton", sizeof(AutomatonObject), 0, flags, automaton_slots};
    PyType_Spec spec = {"vkharness.native._core.RangeStore", sizeof(RangeStoreObject), 0, flags, slots};
    AutomatonType::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &automaton_spec, nullptr));
    T::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return AutomatonType::type && T::type && PyModule_AddType(module, AutomatonType::type) == 0 &&
           PyModule_AddType(module, T::type) == 0;
}

}  // namespace vkharness

#endif
