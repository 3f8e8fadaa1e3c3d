// Calls that were made and that nobody has looked at yet, in order, and what they say.
//
// A frame makes the same calls as the frame before it. So what a call says (its name and its arguments, with ids in place
// of handles) is one object for all calls that say the same. Whoever judges it keeps with it what such a command does
// (`RepeatedCommand` of harness/commands/interpret.py): then it need not be asked again, and no code of Python runs.

#ifndef VKHARNESS_FRONT_WAITING_HPP
#define VKHARNESS_FRONT_WAITING_HPP

#include "bound_sets.hpp"
#include "flat_table.hpp"

#include <vector>

namespace vkharness {

// What a call says. `kept` is for whoever judges it: what was found out of it once.
struct Saying {
    PyObject_HEAD
    PyObject *name, *args, *kept;
    PyObject *site, *line;  // the last site that said this, and the line of Python for both; none at first

    static PyTypeObject *type;

    // None with an exception.
    static Ref make(PyObject *name, Ref &&args) {
        Ref self = Ref::take(type->tp_alloc(type, 0));
        if (!self) return self;
        Saying *const saying = reinterpret_cast<Saying *>(self.get());
        saying->name = Py_NewRef(name);
        saying->args = args.release();
        saying->kept = Py_NewRef(Py_None);
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        Saying *const saying = reinterpret_cast<Saying *>(object);
        for (PyObject **each : {&saying->name, &saying->args, &saying->kept, &saying->site, &saying->line}) Py_CLEAR(*each);
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        const Saying *const saying = reinterpret_cast<Saying *>(object);
        Py_VISIT(saying->args);
        Py_VISIT(saying->kept);
        Py_VISIT(saying->line);
        return 0;
    }

    // What was found out of it goes. What it says stays, for whoever still has it.
    static int clear(PyObject *object) {
        Saying *const saying = reinterpret_cast<Saying *>(object);
        const Ref kept = Ref::take(std::exchange(saying->kept, Py_NewRef(Py_None)));
        const Ref site = Ref::take(std::exchange(saying->site, nullptr));
        const Ref line = Ref::take(std::exchange(saying->line, nullptr));
        return 0;
    }

    // The line of the command and this site, which `line_of(name, site)` gives once; none with an exception.
    Ref line_at(const Ref &from, PyObject *line_of) {
        if (line && site == from.get()) return Ref::share(line);
        PyObject *const given[] = {nullptr, name, from.get()};
        Ref found = Ref::take(PyObject_Vectorcall(line_of, given + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
        if (found) {
            const Ref old_site = Ref::take(std::exchange(site, Py_NewRef(from.get())));
            const Ref old_line = Ref::take(std::exchange(line, Py_NewRef(found.get())));
        }
        return found;
    }
};

PyTypeObject *Saying::type = nullptr;

struct WaitingCall {
    Ref saying, site, index;
    unsigned long thread;
};

// Calls that were taken out of the log: an iterator over (number, saying, site, thread).
struct WaitingCalls {
    PyObject_HEAD
    std::vector<WaitingCall> calls;
    std::size_t next;

    static PyTypeObject *type;

    // None with an exception.
    static Ref make(std::vector<WaitingCall> &&calls) {
        Ref self = Ref::take(type->tp_alloc(type, 0));
        if (self) new (&of(self.get())->calls) std::vector<WaitingCall>(std::move(calls));
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        of(object)->calls.~vector();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        for (const WaitingCall &each : of(object)->calls) Py_VISIT(each.saying.get());
        return 0;
    }

    static int clear(PyObject *object) {
        std::vector<WaitingCall> calls;
        calls.swap(of(object)->calls);
        return 0;
    }

    static PyObject *next_row(PyObject *object) {
        const Locked locked(object);
        WaitingCalls *const self = of(object);
        if (self->next >= self->calls.size()) return nullptr;
        const WaitingCall &each = self->calls[self->next];
        const Ref thread = Ref::take(PyLong_FromUnsignedLong(each.thread));
        PyObject *const row = thread ? PyTuple_Pack(4, each.index.get(), each.saying.get(), each.site.get(), thread.get()) : nullptr;
        if (row) ++self->next;
        return row;
    }

    static Py_ssize_t length(PyObject *object) {
        const Locked locked(object);
        return static_cast<Py_ssize_t>(of(object)->calls.size() - of(object)->next);
    }

    // What the next call says, or None.
    static PyObject *next_said(PyObject *object, void *) {
        const Locked locked(object);
        const WaitingCalls *const self = of(object);
        return Py_NewRef(self->next < self->calls.size() ? self->calls[self->next].saying.get() : Py_None);
    }

    // repeated(command buffer, changes, state or None, line_of, FlatPlans or None, sets or None) -> (numbers as 64-bit
    // integers, lines, plans, state): of the calls from the next one on that record what is known into this command buffer,
    // or what has a flat plan, or bind sets. They wait no more.
    static PyObject *repeated(WaitingCalls *self, PyObject *const *arguments) {
        const long long changes = PyLong_AsLongLong(arguments[1]);
        if (changes == -1 && PyErr_Occurred()) return nullptr;
        Ref state = Ref::share(arguments[2]);
        const bool flat = Py_TYPE(arguments[4]) == FlatPlans::type;
        BoundSets *const sets = Py_TYPE(arguments[5]) == BoundSets::type ? reinterpret_cast<BoundSets *>(arguments[5]) : nullptr;
        const Ref id = flat || sets ? Ref::take(PyObject_GetAttrString(arguments[0], "id")) : Ref();
        if ((flat || sets) && !id) return nullptr;
        std::vector<long long> numbers;
        std::vector<Ref> lines, plans;
        std::size_t at = self->next;
        for (; at < self->calls.size(); ++at) {
            const WaitingCall &each = self->calls[at];
            if (sets && PyDict_Check(state.get()) && has_bound(said(each), sets, arguments[0], id.get())) continue;
            if (flat && !PyErr_Occurred() && said(each)->kept == Py_None) find_flat(said(each), arguments, changes, id.get());
            Ref plan = PyErr_Occurred() ? Ref() : known_plan(Ref::share(said(each)->kept), arguments[0], changes, state);
            if (plan && PyDict_Check(plan.get())) plan = sets && sets->is_table(plan.get()) ? sets->plan(plan, arguments[0]) : Ref();
            if (!plan) break;
            if (plan.get() == Py_None) continue;
            Ref line = said(each)->line_at(each.site, arguments[3]);
            const long long number = line ? PyLong_AsLongLong(each.index.get()) : -1;
            if (!line || PyErr_Occurred()) return nullptr;
            numbers.push_back(number);
            lines.push_back(std::move(line));
            plans.push_back(std::move(plan));
        }
        if (PyErr_Occurred()) return nullptr;
        const Ref bytes = Ref::take(PyBytes_FromStringAndSize(reinterpret_cast<const char *>(numbers.data()),
                                                              static_cast<Py_ssize_t>(numbers.size() * sizeof(long long))));
        const Ref all_lines = list_of(lines), all_plans = list_of(plans);
        PyObject *const found = bytes && all_lines && all_plans
                                    ? PyTuple_Pack(4, bytes.get(), all_lines.get(), all_plans.get(), state.get())
                                    : nullptr;
        if (found && at > self->next) self->next = at;
        return found;
    }

  private:
    static WaitingCalls *of(PyObject *object) { return reinterpret_cast<WaitingCalls *>(object); }
    static Saying *said(const WaitingCall &call) { return reinterpret_cast<Saying *>(call.saying.get()); }

    // The plan of a command of which this is kept, None where it has no effects; none where it is not known, or with an
    // exception. `state` becomes the state after it.
    static Ref known_plan(const Ref &kept, PyObject *buffer, long long changes, Ref &state) {
        if (PyTuple_Check(kept.get())) {
            if (PyTuple_GET_SIZE(kept.get()) != 3 || PyTuple_GET_ITEM(kept.get(), 1) != buffer) return Ref();
            const bool holds = PyLong_AsLongLong(PyTuple_GET_ITEM(kept.get(), 0)) == changes && !PyErr_Occurred();
            return holds ? Ref::share(PyTuple_GET_ITEM(kept.get(), 2)) : Ref();
        }
        if (kept.get() == Py_None || !PyDict_Check(state.get())) return Ref();
        const Ref found = Ref::share(PyDict_GetItemWithError(state.get(), kept.get()));
        if (!found || !PyTuple_Check(found.get()) || PyTuple_GET_SIZE(found.get()) != 2) return Ref();
        state = Ref::share(PyTuple_GET_ITEM(found.get(), 1));
        return Ref::share(PyTuple_GET_ITEM(found.get(), 0));
    }

    // Whether a call binds descriptor sets and does nothing else, which it has done then. It may set an exception.
    static bool has_bound(Saying *said, BoundSets *sets, PyObject *buffer, PyObject *id) {
        Ref kept = Ref::share(said->kept);
        if (kept.get() == Py_None ? PyUnicode_CompareWithASCIIString(said->name, BoundSets::NAME) != 0 : !sets->is_bind(kept.get())) {
            return false;
        }
        kept = sets->bind(buffer, id, std::move(kept), said->name, said->args);
        if (!kept) return false;
        const Ref old = Ref::take(std::exchange(said->kept, kept.release()));
        return true;
    }

    // Keeps what a command does that says this, if that is a flat plan. It may set an exception.
    static void find_flat(Saying *said, PyObject *const *arguments, long long changes, PyObject *id) {
        FlatPlans *const plans = reinterpret_cast<FlatPlans *>(arguments[4]);
        Ref kept = plans->record(arguments[0], id, changes, said->name, said->args);
        if (kept) const Ref old = Ref::take(std::exchange(said->kept, kept.release()));
    }

    static Ref list_of(std::vector<Ref> &items) {
        Ref list = Ref::take(PyList_New(static_cast<Py_ssize_t>(items.size())));
        for (std::size_t at = 0; list && at < items.size(); ++at) {
            PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(at), items[at].release());
        }
        return list;
    }
};

PyTypeObject *WaitingCalls::type = nullptr;

}  // namespace vkharness

#endif
