// Operations of commands on a range store in native form: the forms that harness/vkharness/syncval/command_forms.py
// makes.
//
// A form is that of one command for one standpoint: any object, compared by identity, that stands for all that its steps
// depend on beside the command. It holds numbers of one automaton, so it is good for one `numbering` of that.
// Steps never say what a hazard is. They find the pieces that Python has to look at, as `RangeStore.apply` does.

#ifndef VKHARNESS_STORE_FORMS_HPP
#define VKHARNESS_STORE_FORMS_HPP

#include <memory>

#include "range_store.hpp"

namespace vkharness {

struct FormStep {
    // APPLY: an access. CHECK: what an access would meet. QUIET: an access, whatever it meets. TRANSITION: the pieces of
    // which a question is true. SHOW: a change of the states of ranges. SYNCHRONIZE: that of everything and of `covers`.
    enum Kind : std::uint8_t { APPLY, CHECK, QUIET, TRANSITION, SHOW, SYNCHRONIZE };
    using Span = RangeStore::Span;

    Kind kind = APPLY;
    bool are_apart = false;  // see `RangeStore::are_apart`
    RangeStore::Racing racing = RangeStore::NO_RACE;
    std::uint32_t request = 0;
    Address space = 0;
    Asking rule;  // the question or the change; of SYNCHRONIZE that of everything, or none
    Asking race;  // the question whether a state may race, or none
    RangeStore::Spans spans;
    std::vector<RangeStore::Cover> covers;
    mutable RangePieces::Hint hint;  // of the first span
};

// Reads what an access races with: a number of `Racing`, or a `Question` beside the clock. False with an exception set.
inline bool read_racing(PyObject *given, RangeStore::Racing &racing, Asking &race) {
    racing = RangeStore::BY_CLOCK;
    return PyLong_Check(given) ? read_racing(given, racing) : read_asking(given, race);
}

struct Form {
    Ref standpoint, next;  // of this command, and of the one behind it
    std::uint64_t numbering = 0;
    bool is_left = false;       // to Python: it has no steps
    std::uint32_t notes = 0;    // ranges that the journal takes note of
    Few<FormStep, 2> steps;  // here, and not elsewhere: what is read of a form lies together

    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(standpoint.get());
        Py_VISIT(next.get());
        for (const FormStep &each : steps) {
            Py_VISIT(each.rule.object.get());
            Py_VISIT(each.race.object.get());
            for (const RangeStore::Cover &cover : each.covers) Py_VISIT(cover.change.object.get());
        }
        return 0;
    }
};

struct FlatSteps;

// A command that was executed and that the journal takes note of: by its form, or by its flat plan and what that does.
struct Noted {
    std::shared_ptr<const Form> form;
    Ref flat;
    std::shared_ptr<const FlatSteps> steps;
};

// The forms of one plan.
class Forms {
  public:
    static constexpr std::size_t MOST = 8;

    std::shared_ptr<const Form> find(PyObject *standpoint, std::uint64_t numbering) const {
        const auto is_it = [&](const std::shared_ptr<const Form> &each) {
            return each->standpoint.get() == standpoint && each->numbering == numbering;
        };
        if (!newest_ || is_it(newest_)) return newest_;
        const auto found = std::find_if(older_.rbegin(), older_.rend(), is_it);
        return found == older_.rend() ? nullptr : *found;
    }

    const Form *newest() const { return newest_.get(); }

    // Python may run.
    void add(std::shared_ptr<const Form> form) {
        std::vector<std::shared_ptr<const Form>> kept, gone;
        if (newest_) older_.push_back(newest_);
        for (auto &each : older_) {
            const bool stale = each->numbering != form->numbering || each->standpoint.get() == form->standpoint.get();
            (stale ? gone : kept).push_back(std::move(each));
        }
        if (kept.size() >= MOST) {
            gone.push_back(std::move(kept.front()));
            kept.erase(kept.begin());
        }
        newest_.swap(form);
        older_.swap(kept);
    }

    int traverse(visitproc visit, void *arg) const {
        if (const int stop = newest_ ? newest_->traverse(visit, arg) : 0) return stop;
        for (const auto &each : older_) {
            if (const int stop = each->traverse(visit, arg)) return stop;
        }
        return 0;
    }

    void clear() {
        std::shared_ptr<const Form> newest;
        std::vector<std::shared_ptr<const Form>> older;
        newest.swap(newest_);
        older.swap(older_);
    }

  private:
    std::shared_ptr<const Form> newest_;
    std::vector<std::shared_ptr<const Form>> older_;  // the oldest first
};

// Executes the steps of a form, by the command with a place number. False with an exception set; else `met` has what
// Python has to look at, each with the number of the step.
inline bool execute(RangeStore &store, const Form &form, PlaceNumber place, std::vector<RangeStore::Met> &met) {
    for (std::size_t at = 0; at < form.steps.size(); ++at) {
        const FormStep &step = form.steps[at];
        if (step.kind == FormStep::SYNCHRONIZE) {
            if (!store.synchronize(step.rule, place, step.covers)) return false;
            continue;
        }
        const bool quiet = step.kind == FormStep::QUIET;
        const RangeStore::Asked asked{step.request, place, quiet ? RangeStore::NEVER_MET : step.racing, at,
                                      step.race.object ? &step.race : nullptr};
        RangePieces::Hint *const hint = RangePieces::shared(step.hint);
        if (quiet || step.kind == FormStep::APPLY) {
            if (!store.apply(step.space, step.spans, step.are_apart, asked, met, hint)) return false;
            continue;
        }
        for (const FormStep::Span &span : step.spans) {
            RangePieces::Hint *const here = &span == step.spans.begin() ? hint : nullptr;
            bool good = true;
            switch (step.kind) {
                case FormStep::CHECK: good = store.check(step.space, span.begin, span.end, asked, nullptr, met, here); break;
                case FormStep::TRANSITION:
                    good = store.check(step.space, span.begin, span.end, asked, &step.rule, met, here);
                    break;
                default: good = store.show(step.space, span.begin, span.end, step.rule);
            }
            if (!good) return false;
        }
    }
    return true;
}

}  // namespace vkharness

#endif
