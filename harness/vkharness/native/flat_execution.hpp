// Executes flat plans (flat_plans.hpp) without a form: their numbers say which ranges, and what their accesses ask of
// states follows from the standpoint and from their kind alone.

#ifndef VKHARNESS_FLAT_EXECUTION_HPP
#define VKHARNESS_FLAT_EXECUTION_HPP

#include "access_forms.hpp"
#include "flat_plans.hpp"

namespace vkharness {

// The flat plans of one run of a store, in which numbers of requests stay good.
class FlatExecution {
  public:
    // Executes a plan at a standpoint, by the command with a place number. False with an exception set; and without one
    // where the core cannot tell what accesses ask of states, before anything is done.
    bool execute(RangeStore &store, AccessReader *reader, const FlatPlan &plan, PyObject *standpoint, PlaceNumber place,
                 std::vector<RangeStore::Met> &met) {
        const Asked *const asked = find(store.automaton(), reader, plan, standpoint);
        if (!asked) return false;
        for (std::size_t at = 0; at < plan.accesses(); ++at) {
            const FormStep &step = asked->steps[at];
            const RangeStore::Asked what{step.request, place, step.racing, at, step.race.object ? &step.race : nullptr};
            const Address space = plan.space(at);
            const bool good = plan.each_span(at, [&](const FlatSpan &span) {
                return store.apply(space, span.begin, span.end, what, met);
            });
            if (!good) return false;
        }
        return true;
    }

  private:
    static constexpr std::size_t MOST = 64;
    struct Asked {
        Ref likeness, standpoint;
        std::vector<FormStep> steps;
    };

    const Asked *find(Automaton &automaton, AccessReader *reader, const FlatPlan &plan, PyObject *standpoint) {
        for (const auto &each : known_) {
            if (each->likeness.get() == plan.likeness() && each->standpoint.get() == standpoint) return each.get();
        }
        auto made = std::make_unique<Asked>();
        made->likeness = Ref::share(plan.likeness());
        made->standpoint = Ref::share(standpoint);
        for (std::size_t at = 0; at < plan.accesses(); ++at) {
            PyObject *const access = plan.access(at);
            bool is_plain = false;
            FormStep step;
            if (!reader || !reader->is_access(access)) return nullptr;
            if (!reader->read(automaton, access, standpoint, step, is_plain) || !is_plain) return nullptr;
            made->steps.push_back(std::move(step));
        }
        if (known_.size() >= MOST) known_.clear();
        known_.push_back(std::move(made));
        return known_.back().get();
    }

    std::vector<std::unique_ptr<Asked>> known_;
};

}  // namespace vkharness

#endif
