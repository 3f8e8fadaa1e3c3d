// Descriptor sets that commands bind, and plans of commands by what these refer to: the native form of
// `SaidStates.bind` in harness/vkharness/commands/said_states.py and of `PlansBySets` in harness/vkharness/commands/drawing/plans_by_sets.py.
//
// A program that takes fresh sets in each frame, or writes them anew, says binds that nobody has said before. This binds
// them as the handler does, and looks up what a dispatch does with them. Which sets tell all by what they refer to, and
// what that is, Python says once for each layout and each set that was written.

#ifndef VKHARNESS_BOUND_SETS_HPP
#define VKHARNESS_BOUND_SETS_HPP

#include "moved_accesses.hpp"
#include "set_writes.hpp"

#include <array>
#include <initializer_list>
#include <unordered_map>
#include <vector>

namespace vkharness {

struct BoundSets {
    enum Name { COMMAND_BUFFER, POINT, FIRST, SETS, OFFSETS, LAYOUT, CONTENTS, MOVED, BOUND, AT, USED, REACHES, NAMES };
    static constexpr const char *NAME = "vkCmdBindDescriptorSets";
    static constexpr std::size_t MOST_LAYOUTS = 1 << 10;  // of which it is known how many dynamic offsets they take

    struct Layout {
        Ref held;
        long long dynamic;  // offsets that a set of it takes; negative where such sets tell more or less
    };

    PyObject_HEAD
    Ref objects, by_id;       // Python: what has the number of moves; a dictionary of objects by id
    Ref offsets_of, refers;   // Python: of a layout, `Layout::dynamic`; of (objects, set), what the set refers to
    Ref writes;               // `SetWrites`
    Ref bind_kind, bound, set, table;  // types: of a known bind, of a bound set, of sets, of plans by sets
    std::unordered_map<PyObject *, Layout> layouts;
    MovedAccesses accesses;
    Slotted plans;         // a plan, of which others are made
    Py_ssize_t effects;    // where the effects of a plan lie
    Py_ssize_t most;       // plans of one table

    static PyTypeObject *type;
    static PyObject *names[NAMES];

    // BoundSets(objects, objects by id, offsets_of, refers, SetWrites, type of known binds, of bound sets, of sets, of plans by sets,
    // an access, a plan, most plans of one table)
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *given[9], *access, *plan;
        Py_ssize_t most;
        if (!PyArg_ParseTuple(arguments, "OO!OOO!O!O!O!O!OOn", &given[0], &PyDict_Type, &given[1], &given[2], &given[3],
                              SetWrites::type, &given[4], &PyType_Type, &given[5], &PyType_Type, &given[6], &PyType_Type,
                              &given[7], &PyType_Type, &given[8], &access, &plan, &most)) {
            return nullptr;
        }
        if (!is_tuple(given[5]) || !is_tuple(given[6]) || !is_dictionary(given[8])) {
            PyErr_SetString(PyExc_TypeError, "takes two types of tuples, one of sets and one of dictionaries");
            return nullptr;
        }
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        BoundSets *const sets = of(self.get());
        int at = 0;
        for (Ref BoundSets::*each : refs()) new (&(sets->*each)) Ref(Ref::share(given[at++]));
        new (&sets->layouts) std::unordered_map<PyObject *, Layout>();
        new (&sets->accesses) MovedAccesses();
        new (&sets->plans) Slotted();
        sets->most = most;
        const bool fits = sets->accesses.learn(access) && sets->plans.learn(plan, {"effects"}, &sets->effects);
        return fits ? self.release() : nullptr;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        of(object)->plans.~Slotted();
        of(object)->accesses.~MovedAccesses();
        of(object)->layouts.~unordered_map();
        for (Ref BoundSets::*each : refs()) (of(object)->*each).~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        for (Ref BoundSets::*each : refs()) Py_VISIT((of(object)->*each).get());
        for (const auto &each : of(object)->layouts) Py_VISIT(each.second.held.get());
        Py_VISIT(of(object)->accesses.like());
        Py_VISIT(of(object)->plans.like());
        return 0;
    }

    // For the garbage collector: forgets layouts. The objects and functions, which stay, break cycles.
    static int clear(PyObject *object) {
        std::unordered_map<PyObject *, Layout> old;
        old.swap(of(object)->layouts);
        return 0;
    }

    // bind(command buffer, its id, kept, name, args): what is kept of a command whose name and arguments these are, of which
    // this was kept before. It has bound sets then. None where Python must find what the command does.
    static PyObject *bind_method(BoundSets *self, PyObject *const *arguments) {
        if (!PyUnicode_CheckExact(arguments[3])) return Py_NewRef(Py_None);
        Ref kept = self->bind(arguments[0], arguments[1], Ref::share(arguments[2]), arguments[3], arguments[4]);
        return kept || PyErr_Occurred() ? kept.release() : Py_NewRef(Py_None);
    }

    // write(name, args): whether a call writes sets, and has done so.
    static PyObject *write_method(BoundSets *self, PyObject *const *arguments) {
        const bool done = PyUnicode_CheckExact(arguments[0]) && self->has_written(arguments[0], arguments[1]);
        return PyErr_Occurred() ? nullptr : PyBool_FromLong(done);
    }

    // plan(table, command buffer): what the table has for the sets that are bound, or False.
    static PyObject *plan_method(BoundSets *self, PyObject *const *arguments) {
        if (!self->is_table(arguments[0])) {
            PyErr_SetString(PyExc_TypeError, "takes plans by sets");
            return nullptr;
        }
        Ref plan = self->plan(Ref::share(arguments[0]), arguments[1]);
        return plan || PyErr_Occurred() ? plan.release() : Py_NewRef(Py_False);
    }

    // Whether a call that says this writes sets, and has done so. False also with an exception.
    bool has_written(PyObject *name, PyObject *args) {
        if (PyUnicode_CompareWithASCIIString(name, SetWrites::NAME) != 0) return false;
        return reinterpret_cast<SetWrites *>(writes.get())->write(args);
    }

    bool is_table(PyObject *object) const { return is(object, table); }
    bool is_bind(PyObject *object) const { return is(object, bind_kind); }

    // Binds sets as the bytes of a form say, of which nothing is kept: most programs that say something new each time say it
    // once. False where Python must, or with an exception.
    bool bind_once(PyObject *buffer, PyObject *id, PyObject *form, const char *bytes) {
        const KeyForm::Field *fields[NAMES] = {};
        const char *places[NAMES] = {};
        KeyForm::of(form)->walk(bytes, [&](const KeyForm::Field &field, const char *at) {
            for (const Name each : {COMMAND_BUFFER, POINT, FIRST, SETS, OFFSETS}) {
                if (field.name.get() == names[each]) fields[each] = &field, places[each] = at;
            }
        });
        Ref values[FIRST + 1];
        for (const Name each : {COMMAND_BUFFER, POINT, FIRST}) {
            if (!fields[each] || !(values[each] = KeyForm::value(*fields[each], places[each]))) return false;
        }
        if (!fields[SETS] || !fields[OFFSETS] || !PyLong_CheckExact(id) || !PyLong_CheckExact(values[FIRST].get())) return false;
        if (PyObject_RichCompareBool(values[COMMAND_BUFFER].get(), id, Py_EQ) <= 0) return false;
        const Ref dynamic = offsets_from(*fields[OFFSETS], places[OFFSETS]);
        const std::uint64_t count = dynamic ? KeyForm::elements(*fields[SETS], places[SETS]) : 0;
        const Ref all = dynamic ? Ref::take(PyTuple_New(static_cast<Py_ssize_t>(count))) : Ref();
        const long long first = PyLong_AsLongLong(values[FIRST].get());
        Py_ssize_t taken = 0;
        for (std::uint64_t at = 0; all && at < count; ++at, places[SETS] += KeyForm::NUMBER) {
            const Ref set = KeyForm::value(*fields[SETS], places[SETS]);
            Ref each = set ? place(first + static_cast<long long>(at), set, dynamic, taken) : Ref();
            if (!each) return false;
            PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(at), each.release());
        }
        return all && has_bound(buffer, values[POINT].get(), all.get(), true);
    }

    // As `bind_method`; none also with an exception.
    Ref bind(PyObject *buffer, PyObject *id, Ref &&kept, PyObject *name, PyObject *args) {
        if (kept.get() == Py_None) kept = found(buffer, id, name, args);
        if (!kept || !is_bind(kept.get()) || PyTuple_GET_SIZE(kept.get()) != 3 ||
            PyTuple_GET_ITEM(kept.get(), 0) != buffer || !PyTuple_CheckExact(PyTuple_GET_ITEM(kept.get(), 2))) {
            return Ref();
        }
        PyObject *const point = PyTuple_GET_ITEM(kept.get(), 1), *const sets = PyTuple_GET_ITEM(kept.get(), 2);
        return has_bound(buffer, point, sets, false) ? std::move(kept) : Ref();
    }

    // The plan for the sets that are bound, or None where there are no effects; none where it is not known, or with an
    // exception.
    Ref plan(const Ref &table, PyObject *buffer) {
        const Ref now = attribute(objects.get(), MOVED), used = now ? attribute(table.get(), USED) : Ref();
        const Ref point = used ? attribute(table.get(), AT) : Ref(), sets = point ? attribute(buffer, BOUND) : Ref();
        if (!sets || !PyDict_CheckExact(sets.get()) || !PyTuple_CheckExact(used.get())) return Ref();
        const Ref places = Ref::share(PyDict_GetItemWithError(sets.get(), point.get()));
        if (!places && PyErr_Occurred()) return Ref();
        Few<Used, 4> several;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(used.get()); ++at) {
            Used each = bound_at(places, PyTuple_GET_ITEM(used.get(), at), now);
            if (!each.dynamic) return Ref();
            several.push(std::move(each));
        }
        const Ref key = key_of(several);
        Ref found = key ? Ref::share(PyDict_GetItemWithError(table.get(), key.get())) : Ref();
        return found || PyErr_Occurred() ? std::move(found) : moved(table, used, several, key);
    }

  private:
    // A set that is used: what it refers to, none where nothing is bound, and its dynamic offsets, none where that is not
    // known.
    struct Used {
        Ref contents, dynamic;
        Ref field(MovedContents::Contents which) const {
            return contents ? MovedContents::field(contents, which) : Ref::share(Py_None);
        }
    };

    static BoundSets *of(PyObject *object) { return reinterpret_cast<BoundSets *>(object); }

    static constexpr std::array<Ref BoundSets::*, 9> refs() {  // no vector: the garbage collector has no memory
        return {&BoundSets::objects,   &BoundSets::by_id, &BoundSets::offsets_of, &BoundSets::refers, &BoundSets::writes,
                &BoundSets::bind_kind, &BoundSets::bound, &BoundSets::set,        &BoundSets::table};
    }

    static bool is_tuple(PyObject *object) {
        PyTypeObject *const kind = reinterpret_cast<PyTypeObject *>(object);
        return PyType_IsSubtype(kind, &PyTuple_Type) && kind->tp_basicsize == PyTuple_Type.tp_basicsize && !kind->tp_dictoffset;
    }
    static bool is_dictionary(PyObject *object) { return PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(object), &PyDict_Type); }
    static bool is(PyObject *object, const Ref &kind) { return Py_TYPE(object) == reinterpret_cast<PyTypeObject *>(kind.get()); }
    static Ref attribute(PyObject *object, Name name) { return Ref::take(PyObject_GetAttr(object, names[name])); }
    static Ref item(PyObject *from, Name name) {
        return PyDict_CheckExact(from) ? Ref::share(PyDict_GetItemWithError(from, names[name])) : Ref();
    }

    // The set of an id, or none.
    Ref set_of(PyObject *id) const {
        Ref held = PyLong_CheckExact(id) ? Ref::share(PyDict_GetItemWithError(by_id.get(), id)) : Ref();
        return held && is(held.get(), set) ? std::move(held) : Ref();
    }

    // Makes the result that is kept for a bind with new arguments; none where it is no bind of sets that tell all.
    Ref found(PyObject *buffer, PyObject *id, PyObject *name, PyObject *args) {
        if (PyUnicode_CompareWithASCIIString(name, NAME)) return Ref();
        const Ref into = item(args, COMMAND_BUFFER);
        if (!into || !PyLong_CheckExact(into.get()) || !PyLong_CheckExact(id)) return Ref();
        if (PyObject_RichCompareBool(into.get(), id, Py_EQ) <= 0) return Ref();
        const Ref point = item(args, POINT), first = point ? item(args, FIRST) : Ref(), sets = first ? item(args, SETS) : Ref();
        const Ref offsets = sets ? item(args, OFFSETS) : Ref();
        if (!offsets || !PyLong_CheckExact(point.get()) || !PyLong_CheckExact(first.get()) || !PyList_CheckExact(sets.get())) return Ref();
        const Ref dynamic = offsets.get() == Py_None ? Ref::take(PyTuple_New(0))
                                                     : PyList_CheckExact(offsets.get()) ? Ref::take(PyList_AsTuple(offsets.get())) : Ref();
        const long long index = dynamic ? PyLong_AsLongLong(first.get()) : -1;
        if (index < 0) return PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError) ? (PyErr_Clear(), Ref()) : Ref();
        const Ref all = Ref::take(PyTuple_New(PyList_GET_SIZE(sets.get())));
        Py_ssize_t taken = 0;
        for (Py_ssize_t at = 0; all && at < PyTuple_GET_SIZE(all.get()); ++at) {
            if (at >= PyList_GET_SIZE(sets.get())) return Ref();
            Ref each = place(index + at, Ref::share(PyList_GET_ITEM(sets.get(), at)), dynamic, taken);
            if (!each) return each;
            PyTuple_SET_ITEM(all.get(), at, each.release());
        }
        return all ? tuple_of(bind_kind, {buffer, point.get(), all.get()}) : Ref();
    }

    // (set index, id, bound set) of a set that takes its dynamic offsets behind those that were taken.
    Ref place(long long index, const Ref &id, const Ref &dynamic, Py_ssize_t &taken) {
        const Ref held = set_of(id.get()), layout = held ? attribute(held.get(), LAYOUT) : Ref();
        const long long count = layout ? offsets_in(layout) : -1;
        if (count < 0) return Ref();
        const Py_ssize_t end = count < PyTuple_GET_SIZE(dynamic.get()) - taken ? taken + static_cast<Py_ssize_t>(count)
                                                                                : PyTuple_GET_SIZE(dynamic.get());
        const Ref own = Ref::take(PyTuple_GetSlice(dynamic.get(), taken, end));
        taken = end;
        const Ref number = own ? Ref::take(PyLong_FromLongLong(index)) : Ref();
        const Ref made = number ? tuple_of(bound, {held.get(), own.get()}) : Ref();
        return made ? Ref::take(PyTuple_Pack(3, number.get(), id.get(), made.get())) : Ref();
    }

    // How many dynamic offsets a set of a layout takes; negative where it tells more or less, or with an exception.
    long long offsets_in(const Ref &layout) {
        const auto known = layouts.find(layout.get());
        if (known != layouts.end()) return known->second.dynamic;
        const Ref told = Ref::take(PyObject_CallOneArg(offsets_of.get(), layout.get()));
        const long long count = told ? PyLong_AsLongLong(told.get()) : -1;
        if (PyErr_Occurred()) return -1;
        std::unordered_map<PyObject *, Layout> old;
        if (layouts.size() >= MOST_LAYOUTS) old.swap(layouts);
        layouts.insert_or_assign(layout.get(), Layout{Ref::share(layout.get()), count});
        return count;
    }

    // A named tuple.
    static Ref tuple_of(const Ref &named, std::initializer_list<PyObject *> items) {
        PyTypeObject *const kind = reinterpret_cast<PyTypeObject *>(named.get());
        Ref made = tuple_to_fill(kind, static_cast<Py_ssize_t>(items.size()));
        Py_ssize_t at = 0;
        for (PyObject *each : items) {
            if (made) PyTuple_SET_ITEM(made.get(), at++, Py_NewRef(each));
        }
        return made;
    }

    // Dynamic offsets, as a tuple. None with an exception.
    static Ref offsets_from(const KeyForm::Field &field, const char *at) {
        const std::uint64_t count = KeyForm::elements(field, at);
        const Ref made = Ref::take(PyTuple_New(static_cast<Py_ssize_t>(count)));
        for (std::uint64_t each = 0; made && each < count; ++each, at += field.size) {
            Ref offset = KeyForm::value(field, at);
            if (!offset) return Ref();
            PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(each), offset.release());
        }
        return made ? left_out(Ref::share(made.get())) : Ref();
    }

    // Puts sets into a command buffer, if all of them are still there. Each gets a bound set of its own, if they are not new:
    // what was found of one holds until it is bound again.
    bool has_bound(PyObject *buffer, PyObject *point, PyObject *several, bool are_new) const {
        const Py_ssize_t count = PyTuple_GET_SIZE(several);
        for (Py_ssize_t at = 0; at < count && !are_new; ++at) {
            PyObject *const each = PyTuple_GET_ITEM(several, at);
            if (!PyTuple_CheckExact(each) || PyTuple_GET_SIZE(each) != 3 || !is(PyTuple_GET_ITEM(each, 2), bound)) return false;
            if (PyTuple_GET_SIZE(PyTuple_GET_ITEM(each, 2)) != 2) return false;
            const Ref held = set_of(PyTuple_GET_ITEM(each, 1));
            if (!held || held.get() != PyTuple_GET_ITEM(PyTuple_GET_ITEM(each, 2), 0)) return false;
        }
        const Ref sets = attribute(buffer, BOUND);
        if (!sets || !PyDict_CheckExact(sets.get())) return false;
        Ref places = Ref::share(PyDict_GetItemWithError(sets.get(), point));
        if (!places && !PyErr_Occurred()) {
            places = Ref::take(PyDict_New());
            if (!places || PyDict_SetItem(sets.get(), point, places.get()) < 0) return false;
        }
        if (!places || !PyDict_CheckExact(places.get())) return false;
        for (Py_ssize_t at = 0; at < count; ++at) {
            PyObject *const each = PyTuple_GET_ITEM(several, at), *const held = PyTuple_GET_ITEM(each, 2);
            const Ref made = are_new ? Ref::share(held) : tuple_of(bound, {PyTuple_GET_ITEM(held, 0), PyTuple_GET_ITEM(held, 1)});
            if (!made || PyDict_SetItem(places.get(), PyTuple_GET_ITEM(each, 0), made.get()) < 0) return false;
        }
        return true;
    }

    Used bound_at(const Ref &places, PyObject *index, const Ref &now) const {
        Used used;
        Ref held;
        if (places && PyDict_CheckExact(places.get())) held = Ref::share(PyDict_GetItemWithError(places.get(), index));
        if (PyErr_Occurred()) return used;
        if (!held) {
            used.dynamic = Ref::take(PyTuple_New(0));
        } else if (is(held.get(), bound) && PyTuple_GET_SIZE(held.get()) == 2 && PyTuple_CheckExact(PyTuple_GET_ITEM(held.get(), 1))) {
            used.contents = contents_of(Ref::share(PyTuple_GET_ITEM(held.get(), 0)), now);
            if (used.contents) used.dynamic = Ref::share(PyTuple_GET_ITEM(held.get(), 1));
        }
        return used;
    }

    // Finds the resources that a set refers to: a MovedContents or a SetContents. None with an exception, or where it is nothing
    // such.
    Ref contents_of(const Ref &held, const Ref &now) const {
        const Ref known = attribute(held.get(), CONTENTS);
        if (!known) return Ref();
        Ref contents;
        if (PyTuple_CheckExact(known.get()) && PyTuple_GET_SIZE(known.get()) == 2) {
            const int same = PyObject_RichCompareBool(PyTuple_GET_ITEM(known.get(), 0), now.get(), Py_EQ);
            if (same < 0) return Ref();
            if (same) contents = Ref::share(PyTuple_GET_ITEM(known.get(), 1));
        }
        if (!contents) contents = Ref::take(PyObject_CallFunctionObjArgs(refers.get(), objects.get(), held.get(), nullptr));
        const bool is_tuple = contents && PyTuple_Check(contents.get()) && PyTuple_GET_SIZE(contents.get()) == MovedContents::FIELDS;
        return is_tuple || (contents && MovedContents::is_one(contents.get())) ? std::move(contents) : Ref();
    }

    // As `PlansBySets.key`.
    static Ref key_of(Few<Used, 4> &several) {
        Ref key = Ref::take(PyTuple_New(2 * static_cast<Py_ssize_t>(several.size())));
        Py_ssize_t at = 0;
        for (Used &each : several) {
            Ref number = key ? each.field(MovedContents::NUMBER) : Ref();
            if (!number) return number;
            PyTuple_SET_ITEM(key.get(), at++, number.release());
            PyTuple_SET_ITEM(key.get(), at++, Py_NewRef(each.dynamic.get()));
        }
        return key;
    }

    // None where there are no effects; none with an exception, or where these are not known.
    Ref plan_of(Ref &&all) const {
        if (!all || !PyTuple_GET_SIZE(all.get())) return all ? Ref::share(Py_None) : Ref();
        const Ref plan = plans.copy();
        if (plan) Slotted::set(plan, effects, all.get());
        return Ref::share(plan.get());
    }

    // A new plan for sets, of what is accessed of memory of these shapes; none where that is not known, or with an exception.
    Ref moved(const Ref &table, const Ref &used, Few<Used, 4> &several, const Ref &key) {
        const Ref reaches = attribute(table.get(), REACHES);
        const Ref shapes = reaches && PyDict_CheckExact(reaches.get()) ? Ref::take(PyTuple_New(PyTuple_GET_SIZE(used.get()))) : Ref();
        if (!shapes) return Ref();
        MovedAccesses::AllHeld held;
        Py_ssize_t at = 0;
        for (Used &each : several) {
            const long long index = PyLong_AsLongLong(PyTuple_GET_ITEM(used.get(), at));
            if (index == -1 && PyErr_Occurred()) return Ref();
            Ref shape = each.field(MovedContents::SHAPE);
            if (!shape || (each.contents && shape.get() == Py_None)) return Ref();
            PyTuple_SET_ITEM(shapes.get(), at++, shape.release());
            if (each.contents) held.push({index, Ref::share(each.contents.get()), Ref::share(each.dynamic.get())});
        }
        const Ref reached = Ref::share(PyDict_GetItemWithError(reaches.get(), shapes.get()));
        Ref plan = reached ? MovedAccesses::flat(reached.get(), held) : Ref();
        if (!plan && reached && !PyErr_Occurred()) plan = plan_of(accesses.at(reached.get(), held));
        if (!plan) return plan;
        if (PyDict_GET_SIZE(table.get()) >= most) PyDict_Clear(table.get());
        return PyDict_SetItem(table.get(), key.get(), plan.get()) < 0 ? Ref() : std::move(plan);
    }
};

PyTypeObject *BoundSets::type = nullptr;
PyObject *BoundSets::names[NAMES] = {};

inline bool add_bound_sets(PyObject *module) {
    static PyMethodDef methods[] = {
        method<BoundSets, BoundSets::bind_method, 5>("bind"),
        method<BoundSets, BoundSets::plan_method, 2>("plan"),
        method<BoundSets, BoundSets::write_method, 2>("write"),
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        slot(Py_tp_new, caught<BoundSets::make>), slot(Py_tp_dealloc, BoundSets::unmake), slot(Py_tp_traverse, BoundSets::traverse),
        slot(Py_tp_clear, BoundSets::clear), slot(Py_tp_methods, methods), {0, nullptr},
    };
    static PyType_Spec spec = {"vkharness.native._core.BoundSets", sizeof(BoundSets), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    const char *const texts[] = {"commandBuffer", "pipelineBindPoint", "firstSet", "pDescriptorSets", "pDynamicOffsets", "layout",
                                 "contents",      "moved",             "sets",     "point",           "used",
                                 "reaches"};
    for (int at = 0; at < BoundSets::NAMES; ++at) {
        if (!(BoundSets::names[at] = PyUnicode_InternFromString(texts[at]))) return false;
    }
    BoundSets::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return BoundSets::type && PyModule_AddType(module, BoundSets::type) == 0;
}

}  // namespace vkharness

#endif
