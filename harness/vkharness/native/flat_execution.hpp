// Executes flat plans (flat_plans.hpp) without a form: their numbers say which ranges, and what their accesses ask of
// states follows from the standpoint and from their kind alone.
//
// Where accesses of a plan can touch one address, more than one step belongs to each (`Execution._access` in
// harness/vkharness/syncval/execution.py). They do so in memory that moves as one, so that Python says the steps once for
// the begin of each memory (`Standpoint.beside`). So it does of a barrier.

#ifndef VKHARNESS_FLAT_EXECUTION_HPP
#define VKHARNESS_FLAT_EXECUTION_HPP

#include "access_forms.hpp"
#include "flat_plans.hpp"
#include "range_values.hpp"

namespace vkharness {

// What plans of one likeness do at a standpoint.
struct FlatSteps {
    struct Step {
        FormStep asked;               // without spans
        std::size_t which = 0;        // access of the plan; or memory, where there are `bytes`
        std::vector<FlatSpan> bytes;  // from the begin of the memory
        // Of a barrier, with one for each of `bytes`: the memory, and where that lies this time.
        std::vector<std::size_t> memories;
        mutable std::vector<RangeStore::Cover> covers;
        bool takes_place() const { return asked.kind == FormStep::APPLY || asked.kind == FormStep::QUIET; }
    };
    Ref likeness, standpoint;
    std::vector<Step> steps;
    std::uint32_t notes = 0;  // ranges that the journal takes note of

    // Calls a function with each range of a step, in order. True where the function always says that.
    template <typename Function>
    static bool each_span(const FlatPlan &plan, const Step &step, Function function) {
        return step.bytes.empty() ? plan.each_span(step.which, function)
                                  : plan.each_span(step.which, step.bytes.data(), step.bytes.size(), function);
    }
    static Address space(const FlatPlan &plan, const Step &step) {
        return step.bytes.empty() ? plan.space(step.which) : plan.space_of(step.which);
    }
};

// The flat plans of one run of a store, in which numbers of requests stay good.
class FlatExecution {
  public:
    // Executes a plan at a standpoint, by the command with a place number: its steps. None with an exception set; and without
    // one where the core cannot tell what accesses ask of states, before anything is done.
    std::shared_ptr<const FlatSteps> execute(RangeStore &store, AccessReader *reader, const FlatPlan &plan, PyObject *standpoint,
                                             PlaceNumber place, std::vector<RangeStore::Met> &met) {
        const std::shared_ptr<const FlatSteps> found = find(store, reader, plan, standpoint);
        for (std::size_t at = 0; found && at < found->steps.size(); ++at) {
            const FlatSteps::Step &step = found->steps[at];
            const FormStep &asked = step.asked;
            if (asked.kind == FormStep::SYNCHRONIZE) {
                if (!synchronize(store, plan, step, place)) return nullptr;
                continue;
            }
            const RangeStore::Asked what{asked.request, place, asked.kind == FormStep::QUIET ? RangeStore::NEVER_MET : asked.racing, at,
                                         asked.race.object ? &asked.race : nullptr};
            const Address space = FlatSteps::space(plan, step);
            const bool good = FlatSteps::each_span(plan, step, [&](const FlatSpan &span) {
                return step.takes_place() ? store.apply(space, span.begin, span.end, what, met)
                                          : store.check(space, span.begin, span.end, what, nullptr, met, nullptr);
            });
            if (!good) return nullptr;
        }
        return found;
    }

  private:
    static constexpr std::size_t MOST = 64;

    static bool synchronize(RangeStore &store, const FlatPlan &plan, const FlatSteps::Step &step, PlaceNumber place) {
        for (std::size_t at = 0; at < step.covers.size(); ++at) {
            RangeStore::Cover &cover = step.covers[at];
            cover.space = plan.space_of(step.memories[at]);
            plan.each_span(step.memories[at], &step.bytes[at], 1, [&](const FlatSpan &span) {
                cover.begin = span.begin;
                cover.end = span.end;
                return true;
            });
        }
        return store.synchronize(step.asked.rule, place, step.covers);
    }

    std::shared_ptr<const FlatSteps> find(RangeStore &store, AccessReader *reader, const FlatPlan &plan, PyObject *standpoint) {
        for (const auto &each : known_) {
            if (each->likeness.get() == plan.likeness() && each->standpoint.get() == standpoint) return each;
        }
        const auto made = std::make_shared<FlatSteps>();
        made->likeness = Ref::share(plan.likeness());
        made->standpoint = Ref::share(standpoint);
        if (!reader || !(plan.are_apart() ? read_apart(store.automaton(), *reader, plan, *made) : read_beside(store, *made))) return nullptr;
        if (known_.size() >= MOST) known_.clear();
        known_.push_back(made);
        return made;
    }

    static bool read_apart(Automaton &automaton, AccessReader &reader, const FlatPlan &plan, FlatSteps &made) {
        for (std::size_t at = 0; at < plan.accesses(); ++at) {
            PyObject *const access = plan.access(at);
            bool is_plain = false;
            FlatSteps::Step step;
            if (!reader.is_access(access) || !reader.read(automaton, access, made.standpoint.get(), step.asked, is_plain)) return false;
            if (!is_plain) return false;
            step.which = at;
            made.steps.push_back(std::move(step));
        }
        made.notes = static_cast<std::uint32_t>(made.steps.size());
        return true;
    }

    static bool read_beside(RangeStore &store, FlatSteps &made) {
        const FlatReach &reach = *FlatReach::of(made.likeness.get());
        const Ref several = Ref::take(PyObject_CallMethod(made.standpoint.get(), "beside", "(O)", reach.given.get()));
        if (!several || several.get() == Py_None) return false;
        bool good = PyTuple_Check(several.get());
        for (Py_ssize_t at = 0; good && at < PyTuple_GET_SIZE(several.get()); ++at) {
            FlatSteps::Step step;
            good = read_step(store, reach, PyTuple_GET_ITEM(several.get(), at), step);
            made.notes += step.takes_place();
            made.steps.push_back(std::move(step));
        }
        if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a standpoint says the steps of accesses");
        return good;
    }

    // Reads a `FormStep` of Python: its space is the number of a memory.
    static bool read_step(RangeStore &store, const FlatReach &reach, PyObject *given, FlatSteps::Step &step) {
        if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 5) return false;
        PyObject *const *const values = &PyTuple_GET_ITEM(given, 0);
        const long kind = PyLong_AsLong(values[0]);
        long long memory;
        if (kind == FormStep::SYNCHRONIZE) return read_barrier(store, reach, values, step);
        if (kind < FormStep::APPLY || kind > FormStep::QUIET || !near_number(values[1], memory) || !PyTuple_Check(values[2])) return false;
        step.asked.kind = static_cast<FormStep::Kind>(kind);
        step.which = static_cast<std::size_t>(memory);
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(values[2]); ++at) {
            Address begin, end;
            if (!to_span(PyTuple_GET_ITEM(values[2], at), begin, end)) return false;
            step.bytes.push_back({static_cast<long long>(begin), static_cast<long long>(end)});
        }
        return !step.bytes.empty() && step.which < reach.memories && store.automaton().request(values[3], step.asked.request) &&
               read_racing(values[4], step.asked.racing, step.asked.race);
    }

    static bool read_barrier(RangeStore &store, const FlatReach &reach, PyObject *const *values, FlatSteps::Step &step) {
        step.asked.kind = FormStep::SYNCHRONIZE;
        if (!PyTuple_Check(values[2]) || (values[3] != Py_None && !read_asking(values[3], step.asked.rule))) return false;
        if (!read_covers(store, values[2], step.covers)) return false;
        for (const RangeStore::Cover &each : step.covers) {
            const bool is_near = each.begin >= 0 && each.end < FAR_ADDRESS && each.space >= 0 && each.space < static_cast<Address>(reach.memories);
            if (!is_near || !each.change.object) return false;
            step.memories.push_back(static_cast<std::size_t>(each.space));
            step.bytes.push_back({static_cast<long long>(each.begin), static_cast<long long>(each.end)});
        }
        return !step.bytes.empty();
    }

    std::vector<std::shared_ptr<const FlatSteps>> known_;
};

}  // namespace vkharness

#endif
