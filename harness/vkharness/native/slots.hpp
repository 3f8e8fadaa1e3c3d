// Slots as in `harness/vkharness/syncval/slots.py`, which has the theory: the states that ranges share, those awake and those
// asleep. A slot goes when no range points to it, no slot is joined to it and it is not awake.

#ifndef VKHARNESS_SLOTS_HPP
#define VKHARNESS_SLOTS_HPP

#include <deque>
#include <unordered_map>
#include <vector>

#include "automaton.hpp"
#include "range_entries.hpp"

namespace vkharness {

// The constants of slots.py.
struct SlotLimits {
    std::size_t awake, steps, new_step, kept;
};

// Slots in order, found by the states that they hold, of which no two are equal.
class SlotList {
  public:
    std::size_t size() const { return slots_.size(); }
    SlotNumber operator[](std::size_t at) const { return slots_[at]; }
    const std::vector<SlotNumber> &slots() const { return slots_; }

    // Where the slot with a state is, or nullptr.
    SlotNumber *find(StateNumber state) {
        if (slots_.size() <= FEW) {
            const auto found = std::find(states_.begin(), states_.end(), state);
            return found == states_.end() ? nullptr : &slots_[static_cast<std::size_t>(found - states_.begin())];
        }
        for (; indexed_ < slots_.size(); ++indexed_) by_state_.put(states_[indexed_], static_cast<std::uint32_t>(indexed_));
        const std::uint32_t *const found = by_state_.find(state);
        return found ? &slots_[*found] : nullptr;
    }

    void push(SlotNumber slot, StateNumber state) {
        slots_.push_back(slot);
        states_.push_back(state);
    }

    // The same without the first ones.
    void cut(std::size_t count) {
        slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(count));
        states_.erase(states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(count));
        forget_index();
    }

    void clear() {
        slots_.clear();
        states_.clear();
        forget_index();
    }

  private:
    static constexpr std::size_t FEW = 48;  // beyond them a table is quicker
    void forget_index() {
        if (indexed_) by_state_.clear();
        indexed_ = 0;
    }

    std::vector<SlotNumber> slots_;
    std::vector<StateNumber> states_;
    NumberTable<std::uint32_t> by_state_;  // of the first `indexed_`: places
    std::size_t indexed_ = 0;
};

class Slots {
  public:
    Slots(Automaton &automaton, const SlotLimits &limits) : automaton_(automaton), limits_(limits), limit_(limits.kept) {}

    ~Slots() {
        for (const Slot &each : slots_) {
            if (each.is == AWAKE || each.is == ASLEEP) automaton_.give(each.state);
        }
        for (auto &each : kinds_) Py_DECREF(each.second);
    }

    int traverse(visitproc visit, void *arg) const {
        for (const auto &each : kinds_) Py_VISIT(each.second);
        return 0;
    }

    const SlotLimits &limits() const { return limits_; }
    const std::vector<SlotNumber> &awake() const { return awake_.slots(); }
    std::size_t kept() const { return changes_.size(); }
    unsigned long long steps() const { return steps_; }

    std::size_t sleeping() const {
        return static_cast<std::size_t>(
            std::count_if(asleep_.begin(), asleep_.end(), [this](const Sleeper &each) { return is_asleep(each); }));
    }

    // One pointer to a slot more, or less.
    void share(SlotNumber slot) { ++slots_[slot].pointers; }
    void leave(SlotNumber slot) {
        while (--slots_[slot].pointers == 0) {
            Slot &gone = slots_[slot];
            const bool joined = gone.is == JOINED;
            if (!joined) automaton_.give(gone.state);
            gone.is = FREE;
            ++gone.generation;
            free_.push_back(slot);
            if (!joined) return;
            slot = gone.other;
        }
    }

    StateNumber state(SlotNumber awake) const { return slots_[awake].state; }

    bool sleeps(SlotNumber slot) const {
        while (slots_[slot].is == JOINED) slot = slots_[slot].other;
        return slots_[slot].is == ASLEEP;
    }

    // The slot that holds a state.
    SlotNumber of(StateNumber state) {
        if (const SlotNumber *const known = awake_.find(state)) return *known;
        SlotNumber made = static_cast<SlotNumber>(slots_.size());
        if (free_.empty()) {
            slots_.emplace_back(), free_.reserve(slots_.capacity());  // so that to leave one takes no memory
        } else {
            made = free_.back();
            free_.pop_back();
        }
        Slot &slot = slots_[made];
        slot.state = state;
        slot.pointers = 0;
        automaton_.take(state);
        add_awake(made);
        return made;
    }

    // The slot that this one was joined to, or itself; awake. False with an exception set.
    bool find(SlotNumber slot, SlotNumber &root) {
        root = slot;
        return slots_[slot].is == AWAKE || find_awake(slot, root);
    }

    // Maps every state: those awake at once, the others when they are met. False with an exception set.
    bool map(PyObject *change, std::uint32_t number) {
        drop_unused();
        steps_ += awake_.size();
        if (!map_several(awake_, change, number)) return false;
        if (!asleep_.empty()) {
            const auto made = kinds_.emplace(number, change);
            if (made.second) Py_INCREF(change);
            changes_.push_back(number);
            if (changes_.size() >= limit_ && !catch_up()) return false;
        }
        if (awake_.size() > limits_.awake) to_sleep(awake_.size() - limits_.awake / 2);
        return true;
    }

    // Whether a slot is awake and has this state.
    bool holds(SlotNumber slot, StateNumber state) const { return slots_[slot].is == AWAKE && slots_[slot].state == state; }

    // Whether a slot that is awake is so with the same state, and no other one is joined with it, when everything was
    // mapped. False with an exception set.
    bool stays(SlotNumber root, PyObject *change, std::uint32_t number, bool &yes) {
        yes = awake_.size() <= limits_.awake;
        for (std::size_t at = 0; yes && at < awake_.size(); ++at) {
            StateNumber after;
            if (!is_used(awake_[at])) continue;
            if (!automaton_.changed(slots_[awake_[at]].state, change, number, after)) return false;
            yes = (after == slots_[root].state) == (awake_[at] == root);
        }
        return true;
    }

    // Nothing, or what is broken, where so many ranges point to the first slots, and none to the others.
    const char *broken(std::vector<std::uint32_t> pointers) const {
        pointers.resize(slots_.size());
        for (const SlotNumber each : awake()) {
            const Slot &slot = slots_[each];
            if (slot.is != AWAKE) return "a slot that is not awake among those that are";
            ++pointers[each];
        }
        for (const Slot &each : slots_) {
            if (each.is == JOINED) ++pointers[each.other];
        }
        for (std::size_t at = 0; at < slots_.size(); ++at) {
            if (slots_[at].pointers != pointers[at]) return "a slot that counts what does not point to it";
        }
        std::uint64_t before = first_;
        for (const Sleeper &each : asleep_) {
            if (each.at < before || each.at > next()) return "sleeping slots out of order, or changes that are not kept";
            before = each.at;
        }
        return asleep_.empty() && !changes_.empty() ? "changes that nobody misses" : nullptr;
    }

    // Whether changes reach a slot.
    bool is_reached(SlotNumber slot) {
        while (slots_[slot].is == JOINED) slot = slots_[slot].other;
        if (slots_[slot].is == AWAKE) {
            const SlotNumber *const known = awake_.find(slots_[slot].state);
            return known && *known == slot;
        }
        return slots_[slot].is == ASLEEP && std::any_of(asleep_.begin(), asleep_.end(), [&](const Sleeper &each) {
                   return each.slot == slot && is_asleep(each);
               });
    }

  private:
    enum Kind : std::uint8_t { FREE, AWAKE, JOINED, ASLEEP };
    struct Slot {
        StateNumber state = 0;
        std::uint32_t pointers = 0;
        std::uint32_t generation = 0;
        SlotNumber other = 0;   // of one that is joined
        std::uint64_t at = 0;   // of one that sleeps: the number of the change up to which its state goes
        Kind is = FREE;
    };
    struct Sleeper {
        std::uint64_t at;
        SlotNumber slot;
        std::uint32_t generation;
    };

    // The same for a slot that is not awake.
    bool find_awake(SlotNumber slot, SlotNumber &root) {
        while (slots_[root].is == JOINED) root = slots_[root].other;
        if (slots_[root].is == ASLEEP && !wake(root)) return false;
        while (slot != root && slots_[slot].is == JOINED && slots_[slot].other != root) {
            const SlotNumber next = slots_[slot].other;
            slots_[slot].other = root;
            share(root);
            const bool last = slots_[next].pointers == 1;
            const SlotNumber beyond = slots_[next].is == JOINED ? slots_[next].other : root;
            leave(next);
            slot = last ? beyond : next;
        }
        return true;
    }

    std::uint64_t next() const { return first_ + changes_.size(); }

    bool is_asleep(const Sleeper &each) const {
        const Slot &slot = slots_[each.slot];
        return slot.generation == each.generation && slot.is == ASLEEP && slot.at == each.at;
    }

    void add_awake(SlotNumber slot) {
        slots_[slot].is = AWAKE;
        share(slot);
        awake_.push(slot, slots_[slot].state);
    }

    // Whether anything points to a slot that is awake.
    bool is_used(SlotNumber awake) const { return slots_[awake].pointers > 1; }

    // Forgets those awake to which nothing points.
    void drop_unused() {
        if (std::all_of(awake().begin(), awake().end(), [this](SlotNumber each) { return is_used(each); })) return;
        kept_.clear();
        for (const SlotNumber each : awake()) {
            if (is_used(each)) kept_.push(each, slots_[each].state);
            else leave(each);
        }
        std::swap(awake_, kept_);
    }

    void set_state(SlotNumber slot, StateNumber state) {
        if (slots_[slot].state == state) return;
        automaton_.take(state);
        automaton_.give(slots_[slot].state);
        slots_[slot].state = state;
    }

    void join(SlotNumber slot, SlotNumber other) {
        automaton_.give(slots_[slot].state);
        slots_[slot].is = JOINED;
        slots_[slot].other = other;
        share(other);
    }

    // Maps the states of several slots; those that come to hold one state are joined to the first of them, and leave.
    bool map_several(SlotList &several, PyObject *change, std::uint32_t number) {
        after_.resize(several.size());
        bool is_same = true;
        for (std::size_t at = 0; at < several.size(); ++at) {
            const StateNumber before = slots_[several[at]].state;
            if (!automaton_.changed(before, change, number, after_[at])) return false;
            is_same = is_same && after_[at] == before;
        }
        if (is_same) return true;
        kept_.clear();
        for (std::size_t at = 0; at < several.size(); ++at) {
            const SlotNumber slot = several[at];
            if (const SlotNumber *const other = kept_.find(after_[at])) {
                const bool was_awake = slots_[slot].is == AWAKE;
                join(slot, *other);
                if (was_awake) leave(slot);
            } else {
                set_state(slot, after_[at]);
                kept_.push(slot, after_[at]);
            }
        }
        std::swap(several, kept_);
        return true;
    }

    void to_sleep(std::size_t count) {
        const std::uint64_t at = next();
        for (std::size_t each = 0; each < count; ++each) {
            Slot &slot = slots_[awake_[each]];
            slot.is = ASLEEP;
            slot.at = at;
            asleep_.push_back({at, awake_[each], slot.generation});
            leave(awake_[each]);
        }
        awake_.cut(count);
    }

    // Brings the state of a slot up to date; `slot` becomes another one that holds this state already.
    bool wake(SlotNumber &slot) {
        StateNumber state = slots_[slot].state;
        steps_ += next() - slots_[slot].at;
        for (std::uint64_t at = std::max(slots_[slot].at, first_); at < next(); ++at) {
            const std::uint32_t number = changes_[at - first_];
            if (!automaton_.changed(state, kinds_[number], number, state)) return false;
        }
        SlotNumber *const other = awake_.find(state);
        if (other && is_used(*other)) {
            join(slot, *other);
            slot = *other;
            return true;
        }
        set_state(slot, state);
        if (!other) {
            add_awake(slot);
            return true;
        }
        const SlotNumber gone = std::exchange(*other, slot);  // as if that had gone before
        slots_[slot].is = AWAKE;
        share(slot);
        leave(gone);
        return true;
    }

    // Brings those that sleep longest forward, together, as far as the changes since the last time pay for it. Lets go of
    // the changes that nobody misses any more. With an exception set it is false, and they are as far forward as they came.
    bool catch_up() {
        auto paid = static_cast<long long>(limits_.steps * (next() - caught_up_));
        std::deque<Sleeper> left;
        for (const Sleeper &each : asleep_) {
            if (is_asleep(each)) left.push_back(each);
        }
        SlotList together;
        std::uint64_t at = left.empty() ? next() : left.front().at;
        bool good = true;
        while (at < next()) {
            for (; !left.empty() && left.front().at == at; left.pop_front()) add_to(together, left.front().slot);
            if (paid < 0) break;
            const std::uint32_t number = changes_[at - first_];
            for (const SlotNumber each : together.slots()) {
                paid -= automaton_.knows(slots_[each].state, number) ? 1 : static_cast<long long>(limits_.new_step);
            }
            steps_ += together.size();
            good = map_several(together, kinds_[number], number);
            if (!good) break;
            ++at;
        }
        asleep_.clear();
        for (const SlotNumber each : together.slots()) {
            slots_[each].at = at;
            asleep_.push_back({at, each, slots_[each].generation});
        }
        asleep_.insert(asleep_.end(), left.begin(), left.end());
        changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(at - first_));
        forget_kinds();
        first_ = at;
        caught_up_ = at + changes_.size();
        limit_ = changes_.size() + std::max(limits_.kept, changes_.size());
        return good;
    }

    void add_to(SlotList &together, SlotNumber slot) {
        const StateNumber state = slots_[slot].state;
        if (const SlotNumber *const other = together.find(state)) join(slot, *other);
        else together.push(slot, state);
    }

    void forget_kinds() {
        std::unordered_map<std::uint32_t, PyObject *> kept;
        for (const std::uint32_t number : changes_) kept.emplace(number, kinds_[number]);
        for (const auto &each : kept) Py_INCREF(each.second);
        kinds_.swap(kept);
        for (const auto &each : kept) Py_DECREF(each.second);
    }

    Automaton &automaton_;
    const SlotLimits limits_;
    std::vector<Slot> slots_;
    std::vector<SlotNumber> free_;
    SlotList awake_;  // in the order in which they came or woke
    SlotList kept_;   // memory for what is made of a list
    std::vector<StateNumber> after_;
    std::deque<Sleeper> asleep_;  // some were woken since, or are gone
    std::deque<std::uint32_t> changes_;  // what those asleep have missed, from number `first_` on
    std::unordered_map<std::uint32_t, PyObject *> kinds_;
    std::uint64_t first_ = 0, caught_up_ = 0;
    std::size_t limit_;
    unsigned long long steps_ = 0;
};

}  // namespace vkharness

#endif
