// The states of `harness/vkharness/syncval/state.py` as small numbers, with what operations made of them.
//
// No rule stands here. What an access or a change makes of a state is asked of Python once, and remembered. States are
// interned there, so that one object is one number. The number of a state that no slot holds, and all that is remembered,
// are given up when there are more than `limit` states, or sixteen times as many answers (`reclaim`). That happens
// between two operations of a store, when nothing but slots has numbers. Numbers are then used again.

#ifndef VKHARNESS_AUTOMATON_HPP
#define VKHARNESS_AUTOMATON_HPP

#include <atomic>
#include <unordered_map>
#include <vector>

#include "number_table.hpp"
#include "python.hpp"

namespace vkharness {

using StateNumber = std::uint32_t;

// The result of an access: `AccessOutcome`.
struct Outcome {
    StateNumber after;
    std::int32_t position;
    std::int32_t gone;  // which of `gone_`, or -1
    bool hazard;
};

// An object of Python that says something of a state, and the number that stands for it.
struct Asking {
    Ref object;
    std::uint32_t number = 0;
};

// Reads a `Change` or a `Question`. False with an exception set.
inline bool read_asking(PyObject *given, Asking &asking) {
    const Ref number = Ref::take(PyObject_GetAttrString(given, "number"));
    if (!number) return false;
    const unsigned long long value = PyLong_AsUnsignedLongLong(number.get());
    if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return false;
    asking.object = Ref::share(given);
    asking.number = static_cast<std::uint32_t>(value);
    return true;
}

class Automaton {
  public:
    // `rules` has the functions of Python that are asked: after_access(state, request).
    Automaton(PyObject *after_access, std::size_t limit) : after_access_(Ref::share(after_access)), limit_(limit) {
        requests_of_ = Ref::take(PyDict_New());
    }

    bool good() const { return static_cast<bool>(requests_of_); }

    // Numbers of states and requests are good for as long as this is the same; no other automaton has the same.
    std::uint64_t numbering() const { return numbering_; }

    ~Automaton() {
        for (const State &each : states_) Py_XDECREF(each.object);
        for (PyObject *each : requests_) Py_DECREF(each);
    }

    // -- numbers ----------------------------------------------------------------------------------------------------

    // False with an exception set.
    bool number(PyObject *object, StateNumber &found) {
        const auto known = numbers_.find(object);
        if (known != numbers_.end()) {
            found = known->second;
            return true;
        }
        State made;
        if (!positions(object, "over", made.over)) return false;
        if (const auto meanwhile = numbers_.find(object); meanwhile != numbers_.end()) {  // Python ran
            found = meanwhile->second;
            return true;
        }
        if (free_.empty()) {
            found = static_cast<StateNumber>(states_.size());
            states_.emplace_back();
        } else {
            found = free_.back();
            free_.pop_back();
        }
        made.object = Py_NewRef(object);
        states_[found] = std::move(made);
        numbers_[object] = found;
        return true;
    }

    PyObject *object(StateNumber state) const { return states_[state].object; }
    const std::vector<std::uint32_t> &over(StateNumber state) const { return states_[state].over; }
    void take(StateNumber state) { ++states_[state].holders; }
    void give(StateNumber state) { --states_[state].holders; }

    // The number of a request, which is equal to others that are one. False with an exception set.
    bool request(PyObject *object, std::uint32_t &found) {
        PyObject *const known = PyDict_GetItemWithError(requests_of_.get(), object);
        if (known) {
            found = static_cast<std::uint32_t>(PyLong_AsUnsignedLong(known));
            return true;
        }
        if (PyErr_Occurred()) return false;
        found = static_cast<std::uint32_t>(requests_.size());
        requests_.push_back(Py_NewRef(object));  // before Python runs, which may ask for a number, too
        const Ref number = Ref::take(PyLong_FromUnsignedLong(found));
        return number && PyDict_SetItem(requests_of_.get(), object, number.get()) == 0;
    }

    // -- what operations make of states -----------------------------------------------------------------------------

    bool outcome(StateNumber state, std::uint32_t request, Outcome &found) {
        const std::uint64_t key = key_of(state, request);
        if (const Outcome *const known = outcomes_.find(key)) {
            found = *known;
            return true;
        }
        ++asked_;
        PyObject *const arguments[] = {object(state), requests_[request]};
        const Ref made = Ref::take(PyObject_Vectorcall(after_access_.get(), arguments, 2, nullptr));
        if (!made || !read(made.get(), found)) return false;
        outcomes_.put(key, found);
        return true;
    }

    const std::vector<std::uint32_t> &gone(const Outcome &outcome) const { return gone_[outcome.gone]; }

    // Finds the state after a `Change` with this number. False with an exception set.
    bool changed(StateNumber state, PyObject *change, std::uint32_t number, StateNumber &after) {
        const std::uint64_t key = key_of(state, number);
        if (const StateNumber *const known = changes_.find(key)) {
            after = *known;
            return true;
        }
        ++asked_;
        const Ref made = Ref::take(PyObject_CallOneArg(change, object(state)));
        if (!made || !this->number(made.get(), after)) return false;
        changes_.put(key, after);
        return true;
    }

    bool knows(StateNumber state, std::uint32_t number) { return changes_.find(key_of(state, number)) != nullptr; }

    // Whether a question is true of a state. False with an exception set.
    bool answer(StateNumber state, const Asking &question, bool &yes) {
        const std::uint64_t key = key_of(state, question.number);
        if (const std::uint8_t *const known = answers_.find(key)) {
            yes = *known;
            return true;
        }
        ++asked_;
        const Ref made = Ref::take(PyObject_CallOneArg(question.object.get(), object(state)));
        const int truth = made ? PyObject_IsTrue(made.get()) : -1;
        if (truth < 0) return false;
        answers_.put(key, static_cast<std::uint8_t>(yes = truth));
        return true;
    }

    // A state whose write is complete: `State.finished`.
    bool finished(StateNumber state, StateNumber &after) { return without(state, nullptr, 0, after); }

    // A state without the reads at some positions: `State.without_reads`. No position stands for `finished`.
    bool without(StateNumber state, const std::uint32_t *positions, std::size_t count, StateNumber &after) {
        std::uint32_t bits = 0;
        for (std::size_t at = 0; at < count; ++at) bits = positions[at] < 32 && ~bits ? bits | 1u << positions[at] : ~0u;
        const std::uint64_t key = key_of(state, bits);
        const bool remembered = bits != ~0u;
        if (const StateNumber *const known = remembered ? completed_.find(key) : nullptr) {
            after = *known;
            return true;
        }
        ++asked_;
        Ref made;
        if (count) {
            const Ref several = tuple_of(positions, count);
            made = several ? Ref::take(PyObject_CallMethod(object(state), "without_reads", "(O)", several.get())) : Ref();
        } else {
            made = Ref::take(PyObject_CallMethod(object(state), "finished", nullptr));
        }
        if (!made || !number(made.get(), after)) return false;
        if (remembered) completed_.put(key, after);
        return true;
    }

    // -- bounds -----------------------------------------------------------------------------------------------------

    std::size_t states() const { return states_.size() - free_.size(); }
    std::size_t answers() const { return outcomes_.size() + changes_.size() + completed_.size() + answers_.size(); }
    std::size_t asked() const { return asked_; }

    // Whether `reclaim` would give anything up.
    bool is_full() const { return states() > limit_ || answers() > 16 * limit_ || requests_.size() > limit_; }

    // Gives up what is not held where there is too much. Python may run. No number but those of slots may be in use.
    // Where there is no memory for that, everything stays.
    void reclaim() noexcept {
        if (!is_full() && !is_garbage_) return;
        std::vector<PyObject *> dropped;
        try {
            dropped.reserve(states() + requests_.size());
            free_.reserve(states_.size());
        } catch (const std::bad_alloc &) {
            return;
        }
        numbering_ = next_numbering();
        outcomes_.clear();
        changes_.clear();
        completed_.clear();
        answers_.clear();
        gone_.clear();
        for (StateNumber at = 0; at < states_.size(); ++at) {
            State &each = states_[at];
            if (!each.object || each.holders) continue;
            numbers_.erase(each.object);
            dropped.push_back(each.object);
            each.object = nullptr;
            each.over.clear();
            free_.push_back(at);
        }
        if (requests_.size() > limit_ || is_garbage_) {
            dropped.insert(dropped.end(), requests_.begin(), requests_.end());
            requests_.clear();
            PyDict_Clear(requests_of_.get());
        }
        // More may be held than the limit allows: then it is looked at again when there is twice as much.
        limit_ = std::max(limit_, 2 * states());
        for (PyObject *each : dropped) Py_DECREF(each);
    }

    // -- the garbage collector --------------------------------------------------------------------------------------

    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(after_access_.get());
        Py_VISIT(requests_of_.get());
        for (const State &each : states_) Py_VISIT(each.object);
        for (PyObject *each : requests_) Py_VISIT(each);
        return 0;
    }

    // Garbage: `reclaim` gives up all that no slot holds from now on. What slots hold goes when their stores are cleared.
    void let_go() { is_garbage_ = true; }

  private:
    struct State {
        PyObject *object = nullptr;
        std::uint32_t holders = 0;  // slots
        std::vector<std::uint32_t> over;
    };

    static std::uint64_t next_numbering() {
        static std::atomic<std::uint64_t> last{0};
        return ++last;
    }

    static std::uint64_t key_of(StateNumber state, std::uint32_t number) {
        return static_cast<std::uint64_t>(state) << 32 | number;
    }

    static Ref tuple_of(const std::uint32_t *positions, std::size_t count) {
        Ref several = Ref::take(PyTuple_New(static_cast<Py_ssize_t>(count)));
        for (std::size_t at = 0; several && at < count; ++at) {
            PyObject *const one = PyLong_FromUnsignedLong(positions[at]);
            if (!one) return Ref();
            PyTuple_SET_ITEM(several.get(), static_cast<Py_ssize_t>(at), one);
        }
        return several;
    }

    // A tuple of positions.
    static bool read_positions(PyObject *several, std::vector<std::uint32_t> &found) {
        if (!PyTuple_Check(several)) return fault("positions are no tuple");
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(several); ++at) {
            const unsigned long one = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(several, at));
            if (one == static_cast<unsigned long>(-1) && PyErr_Occurred()) return false;
            found.push_back(static_cast<std::uint32_t>(one));
        }
        return true;
    }

    static bool positions(PyObject *object, const char *name, std::vector<std::uint32_t> &found) {
        const Ref several = Ref::take(PyObject_GetAttrString(object, name));
        return several && read_positions(several.get(), found);
    }

    static bool fault(const char *what) {
        PyErr_SetString(PyExc_TypeError, what);
        return false;
    }

    bool read(PyObject *made, Outcome &found) {
        if (!PyTuple_Check(made) || PyTuple_GET_SIZE(made) != 5) return fault("a rule gave no outcome");
        const long position = PyLong_AsLong(PyTuple_GET_ITEM(made, 3));
        if (position == -1 && PyErr_Occurred()) return false;
        std::vector<std::uint32_t> gone;
        if (!read_positions(PyTuple_GET_ITEM(made, 4), gone)) return false;
        if (!number(PyTuple_GET_ITEM(made, 2), found.after)) return false;
        found.hazard = PyTuple_GET_ITEM(made, 0) != Py_None;
        found.position = static_cast<std::int32_t>(position);
        found.gone = -1;
        if (!gone.empty()) {
            found.gone = static_cast<std::int32_t>(gone_.size());
            gone_.push_back(std::move(gone));
        }
        return true;
    }

    Ref after_access_, requests_of_;
    std::size_t limit_, asked_ = 0;
    bool is_garbage_ = false;
    std::uint64_t numbering_ = next_numbering();
    std::vector<State> states_;
    std::vector<StateNumber> free_;
    std::unordered_map<PyObject *, StateNumber> numbers_;
    std::vector<PyObject *> requests_;
    NumberTable<Outcome> outcomes_;
    NumberTable<StateNumber> changes_, completed_;
    NumberTable<std::uint8_t> answers_;
    std::vector<std::vector<std::uint32_t>> gone_;
};

}  // namespace vkharness

#endif
