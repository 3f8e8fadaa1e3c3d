// Plans of commands that differ from others in numbers that move what they access, or make it longer.
//
// What one of them does was found in Python, and which number moves what (harness/vkharness/commands/buffer_transfers.py and
// harness/vkharness/commands/drawing/numbered_draws.py). A `MovedPlan` is that, and makes the plans of those with other numbers.

#ifndef VKHARNESS_MOVED_PLANS_HPP
#define VKHARNESS_MOVED_PLANS_HPP

#include "flat_plans.hpp"

namespace vkharness {

struct MovedPlan {
    static constexpr std::uint64_t MOST_STEP = 1 << 28, MOST_STEPS = 1ull << 32;  // their product is near
    // What the command said whose plan is known, and between which numbers others do the same elsewhere.
    struct Number {
        std::uint64_t said, least, most;
    };
    // By how many bytes 1 more of a number moves the begin of a memory, and the end of what is accessed of it.
    struct Term {
        std::size_t memory, number;
        std::uint64_t begin, end;
    };
    struct Limit {
        std::size_t memory;
        std::uint64_t end;  // of the buffer
    };

    // A memory that is a buffer of which a number is the id, and where the buffer begins that was said.
    struct Place {
        std::size_t memory, number;
        std::uint64_t begin;
    };
    enum Name { SIZE, SPACE, OFFSET, NAMES };  // members of a buffer

    PyObject_HEAD
    Ref reach;                         // a FlatReach
    Ref by_id, kind;                   // Python: a dictionary of objects by id, and the type of buffers
    Ref opened;                        // a tuple: what has the last numbers, which the state leaves open (`OpenNumbers`)
    std::vector<std::uint64_t> words;  // of the plan that is known
    std::vector<Number> numbers;
    std::vector<Term> terms;
    std::vector<Limit> limits;
    std::vector<Place> places;

    static PyObject *names[NAMES];
    static PyTypeObject *type;
    static MovedPlan *of(PyObject *object) { return reinterpret_cast<MovedPlan *>(object); }
    static bool is_one(PyObject *object) { return Py_TYPE(object) == type; }

    // MovedPlan(reach, ((resource, space, begin, extra), ...) of memories, ((said, least, most), ...), ((memory, number, begin, end), ...),
    // ((memory, end), ...), opened, objects by id, type of buffers, ((memory, number, begin), ...) of buffers): what is accessed of a memory that gets longer is one range.
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *reach, *opened, *by_id, *kind, *given[5];
        if (!PyArg_ParseTuple(arguments, "O!O!O!O!O!O!O!O!O!", FlatReach::type, &reach, &PyTuple_Type, &given[0], &PyTuple_Type, &given[1],
                              &PyTuple_Type, &given[2], &PyTuple_Type, &given[3], &PyTuple_Type, &opened, &PyDict_Type, &by_id,
                              &PyType_Type, &kind, &PyTuple_Type, &given[4])) {
            return nullptr;
        }
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        MovedPlan *const plan = of(self.get());
        new (&plan->reach) Ref(Ref::share(reach));
        new (&plan->opened) Ref(Ref::share(opened));
        new (&plan->by_id) Ref(Ref::share(by_id));
        new (&plan->kind) Ref(Ref::share(kind));
        new (&plan->words) std::vector<std::uint64_t>();
        new (&plan->numbers) std::vector<Number>();
        new (&plan->terms) std::vector<Term>();
        new (&plan->limits) std::vector<Limit>();
        new (&plan->places) std::vector<Place>();
        bool good = true;
        std::uint64_t row[FlatReach::WORDS] = {};
        for (Py_ssize_t at = 0; good && at < PyTuple_GET_SIZE(given[0]); ++at) {
            good = read(PyTuple_GET_ITEM(given[0], at), row, FlatReach::WORDS);
            plan->words.insert(plan->words.end(), row, row + FlatReach::WORDS);
        }
        good = good && plan->words.size() == FlatReach::WORDS * FlatReach::of(reach)->memories;
        for (Py_ssize_t at = 0; good && at < PyTuple_GET_SIZE(given[1]); ++at) {
            good = read(PyTuple_GET_ITEM(given[1], at), row, 3);
            plan->numbers.push_back({row[0], row[1], row[2]});
        }
        for (Py_ssize_t at = 0; good && at < PyTuple_GET_SIZE(given[2]); ++at) {
            good = read(PyTuple_GET_ITEM(given[2], at), row, 4) && plan->add({row[0], row[1], row[2], row[3]});
        }
        for (Py_ssize_t at = 0; good && at < PyTuple_GET_SIZE(given[3]); ++at) {
            good = read(PyTuple_GET_ITEM(given[3], at), row, 2) && row[0] < FlatReach::of(reach)->memories;
            plan->limits.push_back({row[0], row[1]});
        }
        for (Py_ssize_t at = 0; good && at < PyTuple_GET_SIZE(given[4]); ++at) {
            good = read(PyTuple_GET_ITEM(given[4], at), row, 3) && row[0] < FlatReach::of(reach)->memories && row[1] < plan->numbers.size();
            plan->places.push_back({row[0], row[1], row[2]});
        }
        return good ? self.release() : FlatKind::fault();
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        of(object)->places.~vector();
        of(object)->limits.~vector();
        of(object)->terms.~vector();
        of(object)->numbers.~vector();
        of(object)->words.~vector();
        for (Ref *each : {&of(object)->kind, &of(object)->by_id, &of(object)->opened, &of(object)->reach}) each->~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        for (const Ref *each : {&of(object)->kind, &of(object)->by_id, &of(object)->opened, &of(object)->reach}) Py_VISIT(each->get());
        return 0;
    }

    static int clear(PyObject *) { return 0; }  // nothing, as of a kind

    // plan((number, ...)): the plan of a command that says these numbers, or None.
    static PyObject *plan_method(MovedPlan *self, PyObject *const *arguments) {
        std::vector<std::uint64_t> said;
        for (Py_ssize_t at = 0; PyTuple_Check(arguments[0]) && at < PyTuple_GET_SIZE(arguments[0]); ++at) {
            long long number;
            if (!near_number(PyTuple_GET_ITEM(arguments[0], at), number)) Py_RETURN_NONE;
            said.push_back(static_cast<std::uint64_t>(number));
        }
        Ref found = self->at(said);
        return found || PyErr_Occurred() ? found.release() : Py_NewRef(Py_None);
    }

    // The plan of a command that says these numbers. None where Python must find it, or with an exception.
    Ref at(const std::vector<std::uint64_t> &said) const {
        if (said.size() != numbers.size()) return Ref();
        for (std::size_t at = 0; at < said.size(); ++at) {
            if (said[at] < numbers[at].least || said[at] > numbers[at].most) return Ref();
        }
        std::vector<std::uint64_t> there = words;
        for (const Term &each : terms) {
            const std::uint64_t more = said[each.number] - numbers[each.number].said;
            there[FlatReach::WORDS * each.memory + FlatReach::BEGIN] += more * each.begin;
            there[FlatReach::WORDS * each.memory + FlatReach::EXTRA] += more * (each.end - each.begin);
        }
        const FlatReach &of = *FlatReach::of(reach.get());
        std::vector<Limit> ends = limits;
        for (const Place &each : places) {
            if (!lies(each, said[each.number], there.data() + FlatReach::WORDS * each.memory, ends)) return Ref();
        }
        if (!of.fits(there.data()) || (!places.empty() && !are_several(there, ends))) return Ref();
        for (const Limit &limit : ends) {
            const std::uint64_t *const place = there.data() + FlatReach::WORDS * limit.memory;
            const std::uint64_t begin = place[FlatReach::BEGIN] + place[FlatReach::EXTRA];
            for (const FlatReach::Part &each : of.parts) {
                if (each.memory == limit.memory && begin + static_cast<std::uint64_t>(each.bytes.back().end) > limit.end) return Ref();
            }
        }
        const Ref held = Ref::share(reach.get());  // a finalizer that runs meanwhile may forget this
        return FlatPlan::make(held.get(), there.data(), there.size());
    }

  private:
    // Puts a buffer of this id in the place of the one that was said. False where there is none, or with an exception.
    bool lies(const Place &place, std::uint64_t id, std::uint64_t *words, std::vector<Limit> &ends) const {
        const Ref named = Ref::take(PyLong_FromUnsignedLongLong(id));
        const Ref held = named ? Ref::share(PyDict_GetItemWithError(by_id.get(), named.get())) : Ref();
        if (!held || Py_TYPE(held.get()) != reinterpret_cast<PyTypeObject *>(kind.get())) return false;
        long long found[NAMES];
        for (int at = 0; at < NAMES; ++at) {
            const Ref value = Ref::take(PyObject_GetAttr(held.get(), names[at]));
            if (!value) return false;
            if (at == SPACE && value.get() == Py_None) found[at] = static_cast<long long>(id);
            else if (!near_number(value.get(), found[at])) return false;
        }
        words[FlatReach::RESOURCE] = id;
        words[FlatReach::SPACE] = static_cast<std::uint64_t>(found[SPACE]);
        words[FlatReach::BEGIN] += static_cast<std::uint64_t>(found[OFFSET]) - place.begin;
        for (Limit &each : ends) {
            if (each.memory == place.memory) each.end = static_cast<std::uint64_t>(found[OFFSET] + found[SIZE]);
        }
        return true;
    }

    // Whether the memories with limits are several buffers: reads of one would be one access.
    static bool are_several(const std::vector<std::uint64_t> &there, const std::vector<Limit> &ends) {
        const auto resource = [&](const Limit &each) { return there[FlatReach::WORDS * each.memory + FlatReach::RESOURCE]; };
        for (std::size_t at = 0; at < ends.size(); ++at) {
            const auto is_it = [&](const Limit &each) { return resource(each) == resource(ends[at]); };
            if (std::any_of(ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(at), is_it)) return false;
        }
        return true;
    }

    static bool read(PyObject *given, std::uint64_t *row, Py_ssize_t count) {
        if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != count) return false;
        for (Py_ssize_t at = 0; at < count; ++at) {
            long long number;
            if (!near_number(PyTuple_GET_ITEM(given, at), number)) return false;
            row[at] = static_cast<std::uint64_t>(number);
        }
        return true;
    }

    bool add(const Term &term) {
        const FlatReach &of = *FlatReach::of(reach.get());
        if (term.memory >= of.memories || term.number >= numbers.size()) return false;
        const auto is_near = [&](std::uint64_t step) { return step <= 1 || (step < MOST_STEP && numbers[term.number].most < MOST_STEPS); };
        const auto is_its = [&](const FlatReach::Part &each) { return each.memory == term.memory; };
        const bool is_alone = std::count_if(of.parts.begin(), of.parts.end(), is_its) == 1 &&
                              std::find_if(of.parts.begin(), of.parts.end(), is_its)->bytes.size() == 1;
        terms.push_back(term);
        return is_near(term.begin) && is_near(term.end) && (term.begin == term.end || is_alone);
    }
};

PyTypeObject *MovedPlan::type = nullptr;
PyObject *MovedPlan::names[NAMES] = {};

inline bool add_moved_plans(PyObject *module) {
    static PyMethodDef methods[] = {method<MovedPlan, MovedPlan::plan_method, 1>("plan"), {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {
        slot(Py_tp_new, caught<MovedPlan::make>), slot(Py_tp_dealloc, MovedPlan::unmake), slot(Py_tp_traverse, MovedPlan::traverse),
        slot(Py_tp_clear, MovedPlan::clear), slot(Py_tp_methods, methods), {0, nullptr},
    };
    static PyType_Spec spec = {"vkharness.native._core.MovedPlan", sizeof(MovedPlan), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    const char *const texts[] = {"size", "memory", "offset"};
    for (int at = 0; at < MovedPlan::NAMES; ++at) {
        if (!(MovedPlan::names[at] = PyUnicode_InternFromString(texts[at]))) return false;
    }
    MovedPlan::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return MovedPlan::type && PyModule_AddType(module, MovedPlan::type) == 0;
}

}  // namespace vkharness

#endif
