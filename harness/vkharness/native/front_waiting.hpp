// Calls that were made and that nobody has looked at yet, in order, and what they say.
//
// A frame makes the same calls as the frame before it. So what a call says (its name and its arguments, with ids in place
// of handles) is one object for all calls that say the same. Whoever judges it keeps with it what such a command does
// (`RepeatedCommand` of harness/vkharness/commands/interpret.py): then it need not be asked again, and no code of Python runs.
//
// A program that says something new each time says it once. So a call that says what nobody has said lately is kept as its
// bytes, and gets such an object when Python looks at it.

#ifndef VKHARNESS_FRONT_WAITING_HPP
#define VKHARNESS_FRONT_WAITING_HPP

#include "bound_sets.hpp"
#include "flat_table.hpp"
#include "open_numbers.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace vkharness {

// The name and arguments of a call (a *saying*). `kept` is for whoever judges it: results that were computed from it
// once.
//
// It has the bytes by which it is found, or its arguments, or both: they are read when somebody asks. The garbage collector
// looks at it when it has anything that may be in a cycle.
struct Saying {
    static constexpr std::size_t BEGIN = sizeof(PyObject *);  // where arguments begin in the bytes, behind the name

    PyObject_VAR_HEAD
    PyObject *name, *form;  // form: the `KeyForm` of the bytes; none where there are none
    PyObject *args, *kept;  // none at first
    bool was_met;           // whether anybody asked what such a command does
    long long met_in;       // the last recording of its command buffer in which it was said (`comes_each_time`); -1 before
    char bytes[1];

    static PyTypeObject *type;
    static Saying *of(PyObject *object) { return reinterpret_cast<Saying *>(object); }
    std::string_view key() const { return {bytes, static_cast<std::size_t>(Py_SIZE(this))}; }

    // By bytes of a form. None with an exception.
    static Ref make(PyObject *name, PyObject *form, std::string_view key, bool was_met = false) {
        Saying *const saying = PyObject_GC_NewVar(Saying, type, static_cast<Py_ssize_t>(key.size()));
        if (!saying) return Ref();
        saying->name = Py_NewRef(name);
        saying->form = Py_XNewRef(form);
        saying->args = saying->kept = nullptr;
        saying->was_met = was_met;
        saying->met_in = -1;
        std::memcpy(saying->bytes, key.data(), key.size());
        return Ref::take(reinterpret_cast<PyObject *>(saying));
    }

    // By its arguments.
    static Ref make(PyObject *name, Ref &&args) {
        Ref self = make(name, nullptr, "");
        if (!self) return self;
        of(self.get())->args = args.release();
        PyObject_GC_Track(self.get());
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        Saying *const saying = of(object);
        for (PyObject **each : {&saying->name, &saying->form, &saying->args, &saying->kept}) Py_CLEAR(*each);
        PyObject_GC_Del(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(of(object)->args);
        Py_VISIT(of(object)->kept);
        return 0;
    }

    // For the garbage collector: drops the results that were kept. The name and arguments stay, for whoever still has
    // it.
    static int clear(PyObject *object) {
        const Ref kept = Ref::take(std::exchange(of(object)->kept, nullptr));
        return 0;
    }

    // None with an exception.
    Ref arguments() {
        if (args || !form) return Ref::share(args);
        const char *at = bytes + BEGIN;
        Ref made = KeyForm::of(form)->read(at);
        if (made && !args) {
            args = Py_NewRef(made.get());
            track();
        }
        return made ? Ref::share(args) : Ref();
    }

    // The same for who forgets them at once. None with an exception.
    Ref passing_arguments() const {
        const char *at = bytes + BEGIN;
        return args || !form ? Ref::share(args) : KeyForm::of(form)->read(at);
    }

    Ref known() const { return Ref::share(kept ? kept : Py_None); }

    void keep(Ref &&found) {
        const Ref old = Ref::take(std::exchange(kept, found.release()));
        track();
    }

    static PyObject *get_args(PyObject *object, void *) {
        const Locked locked(object);
        return of(object)->arguments().release();
    }

    static PyObject *get_kept(PyObject *object, void *) {
        const Locked locked(object);
        return of(object)->known().release();
    }

    static int set_kept(PyObject *object, PyObject *given, void *) {
        const Locked locked(object);
        of(object)->keep(given == Py_None ? Ref() : Ref::share(given));
        return 0;
    }

  private:
    void track() {
        PyObject *const self = reinterpret_cast<PyObject *>(this);
        if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
    }
};

PyTypeObject *Saying::type = nullptr;

inline bool read_saying(PyObject *object, SaidBytes &said) {
    if (Py_TYPE(object) != Saying::type || !Saying::of(object)->form) return false;
    const std::string_view key = Saying::of(object)->key();
    said = {Saying::of(object)->name, Saying::of(object)->form, key.data() + Saying::BEGIN, key.size() - Saying::BEGIN};
    return true;
}

// The lines of Python for commands and sites, each asked for once (`line_of`), as long as they do not stand in each
// other's way.
class Lines {
  public:
    explicit Lines(PyObject *line_of) : line_of_(line_of) {}

    // None with an exception.
    Ref find(PyObject *name, const Ref &site) {
        const std::uintptr_t mixed = reinterpret_cast<std::uintptr_t>(name) >> 4 ^ reinterpret_cast<std::uintptr_t>(site.get()) >> 3;
        Known &known = known_[mixed % COUNT];
        if (known.line && known.name.get() == name && known.site.get() == site.get()) return Ref::share(known.line.get());
        PyObject *const given[] = {nullptr, name, site.get()};
        Ref found = Ref::take(PyObject_Vectorcall(line_of_, given + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
        if (found) {
            Known made{Ref::share(name), Ref::share(site.get()), Ref::share(found.get())};
            std::swap(known, made);  // the old one goes when the new one is in its place
        }
        return found;
    }

  private:
    static constexpr std::size_t COUNT = 64;
    struct Known {
        Ref name, site, line;
    };

    PyObject *const line_of_;
    Known known_[COUNT];
};

// Remembers a saying for calls that say the same, if there is none, in the log of the calls; the one that is remembered then.
// None with an exception. (front_log.hpp)
Ref remembered_saying(PyObject *log, Ref &&saying, std::size_t hash);

// What contents decide of plans at some places; with numbers, of that at a place and of some behind it.
class DeferredPlans {
  public:
    void add(std::size_t place, Ref &&what, const std::vector<std::uint64_t> &numbers) {
        Row *const last = rows_.empty() ? nullptr : &rows_.back();
        if (last && !numbers.empty() && last->what.get() == what.get() && last->place + last->count == place) {
            last->numbers.insert(last->numbers.end(), numbers.begin(), numbers.end());
            ++last->count;
        } else {
            rows_.push_back({place, std::move(what), numbers, 1});
        }
    }

    // A list for Python, or none with an exception.
    Ref list() const {
        Ref made = Ref::take(PyList_New(static_cast<Py_ssize_t>(rows_.size())));
        for (std::size_t at = 0; made && at < rows_.size(); ++at) {
            const Row &each = rows_[at];
            const char *const bytes = reinterpret_cast<const char *>(each.numbers.data());
            const Ref numbers = Ref::take(PyBytes_FromStringAndSize(bytes, static_cast<Py_ssize_t>(each.numbers.size() * sizeof(std::uint64_t))));
            PyObject *const row = numbers ? Py_BuildValue("nOO", static_cast<Py_ssize_t>(each.place), each.what.get(), numbers.get()) : nullptr;
            if (!row) return Ref();
            PyList_SET_ITEM(made.get(), static_cast<Py_ssize_t>(at), row);
        }
        return made;
    }

  private:
    struct Row {
        std::size_t place;
        Ref what;
        std::vector<std::uint64_t> numbers;
        std::size_t count;
    };

    std::vector<Row> rows_;
};

struct WaitingCall {
    Ref what;  // a `Saying`; or (name, form), where there are bytes alone
    Ref site;
    long long index;
    unsigned long thread;
    std::size_t at, size, hash;  // of the bytes
};

// Calls that were taken out of the log: an iterator over (number, saying, site, thread).
// Lets the log of the calls use their memory for other ones: a frame has as many as the frame before it. (front_log.hpp)
void use_again(PyObject *log, std::vector<WaitingCall> &&calls, std::vector<char> &&bytes);

struct WaitingCalls {
    PyObject_HEAD
    std::vector<WaitingCall> calls;
    std::vector<char> bytes;  // what calls say that have no `Saying`
    Ref log;
    std::size_t next;

    static PyTypeObject *type;

    // None with an exception.
    static Ref make(PyObject *log, std::vector<WaitingCall> &&calls, std::vector<char> &&bytes) {
        Ref self = Ref::take(type->tp_alloc(type, 0));
        if (!self) return self;
        new (&of(self.get())->calls) std::vector<WaitingCall>(std::move(calls));
        new (&of(self.get())->bytes) std::vector<char>(std::move(bytes));
        new (&of(self.get())->log) Ref(Ref::share(log));
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        if (of(object)->log) use_again(of(object)->log.get(), std::move(of(object)->calls), std::move(of(object)->bytes));
        of(object)->log.~Ref();
        of(object)->bytes.~vector();
        of(object)->calls.~vector();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(of(object)->log.get());
        for (const WaitingCall &each : of(object)->calls) Py_VISIT(each.what.get());
        return 0;
    }

    static int clear(PyObject *object) {
        std::vector<WaitingCall> calls;
        calls.swap(of(object)->calls);
        const Ref log = std::move(of(object)->log);
        return 0;
    }

    static PyObject *next_row(PyObject *object) {
        const Locked locked(object);
        WaitingCalls *const self = of(object);
        if (self->next >= self->calls.size()) return nullptr;
        const Ref saying = self->saying_of(self->next);
        if (!saying) return nullptr;
        const WaitingCall &each = self->calls[self->next];
        PyObject *const row = Py_BuildValue("LOOk", each.index, saying.get(), each.site.get(), each.thread);
        if (row) ++self->next;
        return row;
    }

    static Py_ssize_t length(PyObject *object) {
        const Locked locked(object);
        return static_cast<Py_ssize_t>(of(object)->calls.size() - of(object)->next);
    }

    // The saying of the next call, or None.
    static PyObject *next_said(PyObject *object, void *) {
        const Locked locked(object);
        WaitingCalls *const self = of(object);
        return self->next < self->calls.size() ? self->saying_of(self->next).release() : Py_NewRef(Py_None);
    }

    // repeated(command buffer, changes, state or None, line_of, FlatPlans or None, sets or None) -> (numbers as 64-bit
    // integers, lines, plans, state, [(place, what contents decide of the plan there, numbers of the plans from there on of which they decide the
    // same; none of one plan)]): of the calls from the next one on that
    // record what is known into this command buffer, or what has a flat plan, or bind sets. They wait no more.
    static PyObject *repeated(WaitingCalls *self, PyObject *const *arguments) {
        const long long changes = PyLong_AsLongLong(arguments[1]);
        if (changes == -1 && PyErr_Occurred()) return nullptr;
        Ref state = Ref::share(arguments[2]);
        const bool flat = Py_TYPE(arguments[4]) == FlatPlans::type;
        BoundSets *const sets = Py_TYPE(arguments[5]) == BoundSets::type ? reinterpret_cast<BoundSets *>(arguments[5]) : nullptr;
        const Ref id = flat || sets ? Ref::take(PyObject_GetAttrString(arguments[0], "id")) : Ref();
        if ((flat || sets) && !id) return nullptr;
        const Ref times = id ? Ref::take(PyObject_GetAttrString(arguments[0], "recordings")) : Ref();
        const long long recording = times ? PyLong_AsLongLong(times.get()) : -1;
        if (PyErr_Occurred()) return nullptr;
        std::vector<long long> numbers;
        std::vector<Ref> lines, plans;
        DeferredPlans deferred;
        for (std::vector<Ref> *const each : {&lines, &plans}) each->reserve(self->calls.size() - self->next);
        numbers.reserve(self->calls.size() - self->next);
        FlatKey::Values values;  // of a call that differs from others in numbers alone
        Lines known_lines(arguments[3]);
        std::size_t at = self->next;
        for (; at < self->calls.size(); ++at) {
            const WaitingCall &each = self->calls[at];
            const Said said = self->said(each);
            if (sets && PyDict_Check(state.get()) && has_bound(said, sets, arguments[0], id.get())) continue;
            Ref plan, open;
            values.numbers.clear();
            if (flat && !PyErr_Occurred() && !said.kept()) plan = flat_plan(said, arguments, changes, id.get());
            if (!plan && !PyErr_Occurred()) plan = known_plan(said.known(), arguments[0], changes, state);
            if (!plan && flat && !PyErr_Occurred()) plan = moved_plan(said, arguments, state, id.get(), recording, open, values);
            if (plan && PyTuple_Check(plan.get()) && PyTuple_GET_SIZE(plan.get()) == 2) {
                open = Ref::share(PyTuple_GET_ITEM(plan.get(), 1));
                plan = Ref::share(PyTuple_GET_ITEM(plan.get(), 0));
            }
            if (plan && PyDict_Check(plan.get())) plan = sets && sets->is_table(plan.get()) ? sets->plan(plan, arguments[0]) : Ref();
            if (!plan) break;
            if (plan.get() == Py_None) continue;
            Ref line = known_lines.find(said.name, each.site);
            if (!line || PyErr_Occurred()) return nullptr;
            if (open) deferred.add(plans.size(), std::move(open), values.numbers);
            numbers.push_back(each.index);
            lines.push_back(std::move(line));
            plans.push_back(std::move(plan));
        }
        if (PyErr_Occurred()) return nullptr;
        const Ref bytes = Ref::take(PyBytes_FromStringAndSize(reinterpret_cast<const char *>(numbers.data()),
                                                              static_cast<Py_ssize_t>(numbers.size() * sizeof(long long))));
        const Ref all_lines = list_of(lines), all_plans = list_of(plans), all_deferred = deferred.list();
        PyObject *const found = bytes && all_lines && all_plans && all_deferred
                                    ? PyTuple_Pack(5, bytes.get(), all_lines.get(), all_plans.get(), state.get(), all_deferred.get())
                                    : nullptr;
        if (found && at > self->next) self->next = at;
        return found;
    }

  private:
    // The name and arguments of a call, in whatever form they are there; valid as long as this is held.
    struct Said {
        Ref held;
        Saying *saying;          // none where there are bytes alone
        PyObject *name, *form;   // form: none where there are arguments alone
        const char *bytes;       // of the arguments

        PyObject *kept() const { return saying ? saying->kept : nullptr; }
        Ref known() const { return saying ? saying->known() : Ref::share(Py_None); }
        Ref args() const { return Ref::share(saying ? saying->args : nullptr); }
        // The arguments, of who forgets them at once. None with an exception.
        Ref passing_arguments() const {
            if (saying) return saying->passing_arguments();
            const char *at = bytes;
            return KeyForm::of(form)->read(at);
        }
        // Whether the recording before this one said that, too: Python, which is asked then, keeps what such a command does. Of
        // bytes alone nobody keeps that.
        bool comes_each_time(long long recording) const {
            if (saying && recording > 0 && saying->met_in == recording - 1) return true;
            if (saying) saying->met_in = recording;
            return false;
        }
        // Whether anybody asked before what such a command does. Of bytes alone nobody keeps that.
        bool was_met() const { return saying && std::exchange(saying->was_met, true); }
    };

    static WaitingCalls *of(PyObject *object) { return reinterpret_cast<WaitingCalls *>(object); }

    std::string_view key_of(const WaitingCall &call) const { return {bytes.data() + call.at, call.size}; }

    Said said(const WaitingCall &call) const {
        Ref held = Ref::share(call.what.get());
        if (Py_TYPE(held.get()) == Saying::type) {
            Saying *const saying = Saying::of(held.get());
            return {std::move(held), saying, saying->name, saying->form, saying->bytes + Saying::BEGIN};
        }
        PyObject *const name = PyTuple_GET_ITEM(held.get(), 0), *const form = PyTuple_GET_ITEM(held.get(), 1);
        return {std::move(held), nullptr, name, form, key_of(call).data() + Saying::BEGIN};
    }

    // The saying of a call as an object for Python. None with an exception.
    Ref saying_of(std::size_t at) {
        const Said found = said(calls[at]);
        if (found.saying) return Ref::share(found.held.get());
        Ref made = Saying::make(found.name, found.form, key_of(calls[at]));
        if (made && log) made = remembered_saying(log.get(), std::move(made), calls[at].hash);
        if (made && at < calls.size()) calls[at].what = Ref::share(made.get());
        return made;
    }

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

    // The plan of a command that differs from others in numbers alone, if it is known what these do in this state: it becomes the
    // one after it, and `open` what contents decide of plans with such numbers, if they decide anything. It may set an exception.
    static Ref moved_plan(const Said &said, PyObject *const *arguments, Ref &state, PyObject *id, long long recording, Ref &open,
                          FlatKey::Values &values) {
        if (!said.form || !PyDict_Check(state.get())) return Ref();
        const SaidBytes bytes{said.name, said.form, said.bytes};
        FlatRow::Sets sets = FlatRow::NOTHING;
        const Ref item = reinterpret_cast<FlatPlans *>(arguments[4])->item_of(bytes, state.get(), id, values, sets);
        if (item && sets == FlatRow::ONCE && (said.kept() || said.comes_each_time(recording))) return Ref();
        if (item && sets) return has_left_open(arguments[0], item.get(), values, state) ? Ref::share(Py_None) : Ref();
        Ref does = item ? Ref::share(PyTuple_GET_ITEM(item.get(), 0)) : Ref(), opens;
        if (does && PyTuple_Check(does.get()) && PyTuple_GET_SIZE(does.get()) == 2) {
            opens = Ref::share(PyTuple_GET_ITEM(does.get(), 1));
            does = Ref::share(PyTuple_GET_ITEM(does.get(), 0));
        }
        if (does && PyDict_Check(does.get())) {
            const bool is_table = Py_TYPE(arguments[5]) == BoundSets::type && reinterpret_cast<BoundSets *>(arguments[5])->is_table(does.get());
            does = is_table ? reinterpret_cast<BoundSets *>(arguments[5])->plan(does, arguments[0]) : Ref();
        }
        if (!does || !MovedPlan::is_one(does.get()) || !add_open(arguments[0], MovedPlan::of(does.get())->opened.get(), values)) return Ref();
        Ref plan = MovedPlan::of(does.get())->at(values.numbers);
        if (plan && opens && FlatPlan::of(plan.get())->does_write()) {  // others may depend on what it writes
            // What it writes is looked at each time, and Python keeps that with the plan of one that each recording says.
            if (said.kept() || said.comes_each_time(recording)) return Ref();
            const Ref numbers = numbers_of(values.numbers);
            opens = numbers ? Ref::take(PyObject_CallOneArg(opens.get(), numbers.get())) : Ref();
            if (!opens) return opens;
            values.numbers.clear();
        }
        if (plan) open = std::move(opens);
        if (plan) state = Ref::share(PyTuple_GET_ITEM(item.get(), 1));
        return plan;
    }

    // Whether a call binds or writes descriptor sets and does nothing else, which it has done then. It may set an exception.
    static bool has_bound(const Said &said, BoundSets *sets, PyObject *buffer, PyObject *id) {
        Ref kept = said.known();
        if (kept.get() == Py_None && PyUnicode_CompareWithASCIIString(said.name, SetWrites::NAME) == 0) {
            SetWrites &writes = *reinterpret_cast<SetWrites *>(sets->writes.get());
            return said.form ? writes.write(said.form, said.bytes) : writes.write(said.args().get());
        }
        if (kept.get() == Py_None ? PyUnicode_CompareWithASCIIString(said.name, BoundSets::NAME) != 0 : !sets->is_bind(kept.get())) {
            return false;
        }
        if (kept.get() == Py_None && said.form && !said.was_met()) return sets->bind_once(buffer, id, said.form, said.bytes);
        const Ref args = kept.get() == Py_None ? said.passing_arguments() : Ref::share(Py_None);
        kept = args ? sets->bind(buffer, id, std::move(kept), said.name, args.get()) : Ref();
        if (!kept) return false;
        said.saying->keep(std::move(kept));
        return true;
    }

    // The plan of a command that says this, if that is a flat one. It is kept from the second time on: most commands of a
    // program that says something new each time say it once. It may set an exception.
    static Ref flat_plan(const Said &said, PyObject *const *arguments, long long changes, PyObject *id) {
        FlatPlans &plans = *reinterpret_cast<FlatPlans *>(arguments[4]);
        Ref plan = said.form ? plans.of_bytes({said.name, said.form, said.bytes, 0}, changes, id)
                             : plans.of_arguments(said.name, said.args().get(), changes, id);
        if (plan && said.was_met()) {
            Ref kept = plans.kept(arguments[0], changes, plan);
            if (!kept) return kept;
            said.saying->keep(std::move(kept));
        }
        return plan;
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
