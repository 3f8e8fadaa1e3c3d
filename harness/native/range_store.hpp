// The states of all ranges of a context: `RangeStore` of harness/syncval/range_store.py as a native type.
//
// A range has an `Entry`: a slot, and place numbers. What a rule of Vulkan decides is asked of Python (`Automaton`). While
// that runs, and while Python's objects are made, nothing else may use the store: that is an error (`Busy`).

#ifndef VKHARNESS_RANGE_STORE_HPP
#define VKHARNESS_RANGE_STORE_HPP

#include <memory>
#include <string>

#include "slots.hpp"

namespace vkharness {

class AccessReader;

// The automaton as an object of Python, which several stores share.
struct AutomatonObject {
    PyObject_HEAD
    Automaton *automaton;
    AccessReader *reader;  // none where Python makes all forms
    int users;  // operations of stores that are going on
};

class RangeStore {
  public:
    using Pieces = std::vector<RangePiece>;
    struct Tag {
        long long submit, batch;
        bool operator>(const Tag &other) const {
            return submit != other.submit ? submit > other.submit : batch > other.batch;
        }
    };

    // The types of Python that a store makes objects of, and the state of what was never accessed.
    struct Types {
        PyObject *entry, *sizes, *run, *nothing;
    };

    RangeStore(AutomatonObject *automaton, const Types &types, const SlotLimits &limits)
        : slots(*automaton->automaton, limits), automaton_(*automaton->automaton), entry_type_(Ref::share(types.entry)),
          sizes_type_(Ref::share(types.sizes)), run_type_(Ref::share(types.run)), nothing_(Ref::share(types.nothing)) {}

    // Nullptr where there is no memory.
    static RangeStore *make(AutomatonObject *automaton, const Types &types, const SlotLimits &limits) noexcept {
        try {
            return new RangeStore(automaton, types, limits);
        } catch (const std::bad_alloc &) {
            return nullptr;
        }
    }

    ~RangeStore() {
        for (auto &each : spaces_) release(*each.second);
    }

    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(entry_type_.get());
        Py_VISIT(sizes_type_.get());
        Py_VISIT(run_type_.get());
        Py_VISIT(nothing_.get());
        return slots.traverse(visit, arg);
    }

    Slots slots;
    bool reads_are_over = false;

    std::size_t ranges() const { return ranges_; }

    // -- batches ----------------------------------------------------------------------------------------------------

    struct Batch {
        Address queue;
        Tag tag;
        bool over;
    };

    void add_batch(std::uint32_t number, const Batch &batch) {
        batches_[number] = batch;
        any_over_ = any_over_ || batch.over;
    }
    void finish_batch(std::uint32_t number) {
        const auto found = batches_.find(number);
        if (found == batches_.end()) return;
        found->second.over = any_over_ = true;
    }
    bool is_finished(PlaceNumber place) const {
        const Batch *const found = batch(place);
        return found && found->over;
    }
    template <typename Function>
    void keep_batches(Function is_kept) {
        any_over_ = false;
        known_batch_ = nullptr;
        for (auto at = batches_.begin(); at != batches_.end();) {
            if (is_kept(at->first)) {
                any_over_ = any_over_ || at->second.over;
                ++at;
            } else {
                at = batches_.erase(at);
            }
        }
    }

    // The work that is ordered before what follows: by queue up to a tag. What `own` did races with nothing.
    void set_clock(Address own, std::unordered_map<Address, Tag, AddressHash> &&clock) {
        own_ = own;
        clock_ = std::move(clock);
    }

    // -- ranges -----------------------------------------------------------------------------------------------------

    RangeTree *tree(Address space) const {
        const auto found = spaces_.find(space);
        return found == spaces_.end() ? nullptr : found->second.get();
    }

    template <typename Function>
    void each_space(Function function) const {
        for (const auto &each : spaces_) function(each.first, *each.second);
    }

    void drop(Address space) {
        const auto found = spaces_.find(space);
        if (found == spaces_.end()) return;
        ranges_ -= found->second->size();
        release(*found->second);
        spaces_.erase(found);
    }

    // The held parts of [begin, end), clipped to it, with entries that are the tree's own.
    void find(const RangeTree &tree, Address begin, Address end, Pieces &found) const {
        if (begin >= end) return;
        auto at = tree.before(begin);
        if (at.end()) at = tree.first();
        for (; !at.end() && at->begin < end; at = at.next()) {
            if (at->end <= begin) continue;
            found.push_back({std::max(at->begin, begin), std::min(at->end, end), at->value});
        }
    }

    Entry copy(const Entry &entry) {
        Entry made = entry;
        made.reads = Reads::of(entry.reads.begin(), entry.reads.count);
        slots.share(made.slot);
        return made;
    }

    // Makes an entry, which becomes the store's, that of [begin, end).
    void put(Address space, Address begin, Address end, Entry entry) {
        if (begin >= end) return release(entry);
        RangeTree &tree = made_tree(space);
        const auto held = tree.find(begin);
        if (!held.end() && held->end == end) {
            std::swap(held->value, entry);
            return release(entry);
        }
        Pieces made{{begin, end, entry}};
        replace(tree, begin, end, made);
    }

    void assign(Address space, Address begin, Address end, Entry entry) {
        if (begin >= end) return release(entry);
        Pieces made{{begin, end, entry}};
        replace(made_tree(space), begin, end, made);
    }

    void erase(Address space, Address begin, Address end) {
        Pieces none;
        RangeTree *const held = tree(space);
        if (held && begin < end) replace(*held, begin, end, none);
    }

    void release(Entry &entry) {
        slots.leave(entry.slot);
        entry.reads.release();
    }

    // -- what is known of a range now -------------------------------------------------------------------------------

    // An entry without what is over: its state as a number, and place numbers.
    struct Live {
        StateNumber state;
        PlaceNumber write;
        std::vector<PlaceNumber> reads;
    };

    // False with an exception set.
    bool live(const Entry &entry, Live &now) {
        SlotNumber root;
        if (!slots.find(entry.slot, root)) return false;
        now.state = slots.state(root);
        now.write = entry.write;
        now.reads.assign(entry.reads.begin(), entry.reads.end());
        if (!any_over_ && !reads_are_over) return true;
        std::vector<std::uint32_t> done;
        for (std::uint32_t at = 0; at < entry.reads.count; ++at) {
            if (is_finished(entry.reads[at])) done.push_back(at);
        }
        if (reads_are_over && entry.reads.count) {
            const auto &over = automaton_.over(now.state);
            done.insert(done.end(), over.begin(), over.end());
            std::sort(done.begin(), done.end());
            done.erase(std::unique(done.begin(), done.end()), done.end());
        }
        if (!done.empty()) {
            if (!automaton_.without(now.state, done.data(), done.size(), now.state)) return false;
            leave_out(now.reads, done);
        } else if (now.write != NO_PLACE && is_finished(now.write)) {
            return automaton_.finished(now.state, now.state);
        }
        return true;
    }

    static void leave_out(std::vector<PlaceNumber> &reads, const std::vector<std::uint32_t> &positions) {
        std::size_t kept = 0, gone = 0;
        for (std::size_t at = 0; at < reads.size(); ++at) {
            while (gone < positions.size() && positions[gone] < at) ++gone;
            if (gone < positions.size() && positions[gone] == at) continue;
            reads[kept++] = reads[at];
        }
        reads.resize(kept);
    }

    bool is_beyond(PlaceNumber place) const {
        const Batch *const found = batch(place);
        if (!found || found->queue == own_) return false;
        const auto ordered = clock_.find(found->queue);
        return ordered == clock_.end() || found->tag > ordered->second;
    }

    // -- accesses ---------------------------------------------------------------------------------------------------

    // What an access races with: nothing; what the clock leaves of the last write and of the reads, or of the write alone;
    // or somebody else has to say. Of one that is NEVER_MET, Python need not look at anything.
    enum Racing { NO_RACE, BY_CLOCK, ALWAYS, WRITES_BY_CLOCK, NEVER_MET };

    // Something that Python has to look at: a hazard, or what may race.
    struct Met {
        std::size_t step;
        Address begin, end;
        Live before;
    };

    struct Asked {
        std::uint32_t request;
        PlaceNumber place;
        Racing racing;
        std::size_t step;  // of a form
        const Asking *race = nullptr;  // whether a state may race, beside what `racing` says
    };

    // Makes an access the most recent one of its addresses. False with an exception set.
    bool apply(Address space, Address begin, Address end, const Asked &asked, std::vector<Met> &met) {
        RangeTree &tree = made_tree(space);
        const auto held = tree.find(begin);
        if (!held.end() && held->end == end) {
            Entry after;
            if (!after_access(held->value, begin, end, asked, met, after)) return false;
            std::swap(held->value, after);
            release(after);
            return true;
        }
        if (begin >= end) return true;
        const auto before = tree.before(begin), behind = tree.at_or_after(begin);
        if ((before.end() || before->end <= begin) && (behind.end() || behind->begin >= end)) {
            return apply_to_gap(tree, begin, end, asked, met);
        }
        const bool in_before = !before.end() && before->end >= end;
        if (in_before || (!behind.end() && behind->begin == begin && behind->end > end)) {
            return apply_to_part(tree, in_before ? before : behind, begin, end, asked, met);
        }
        Pieces old, made;
        find(tree, begin, end, old);
        Address at = begin;
        bool good = true;
        for (std::size_t each = 0; good && each <= old.size(); ++each) {
            const Address next = each < old.size() ? old[each].begin : end;
            if (at < next) good = after_nothing(at, next, asked, met, made);
            if (good && each < old.size()) {
                Entry after;
                good = after_access(old[each].entry, old[each].begin, old[each].end, asked, met, after);
                if (good) made.push_back({old[each].begin, old[each].end, after});
                at = old[each].end;
            }
        }
        if (good) {
            replace(tree, begin, end, made);
        } else {
            for (RangePiece &each : made) release(each.entry);
        }
        return good;
    }

    // The same where nothing was accessed.
    bool apply_to_gap(RangeTree &tree, Address begin, Address end, const Asked &asked, std::vector<Met> &met) {
        Pieces made;
        if (!after_nothing(begin, end, asked, met, made)) return false;
        const auto before = tree.before(begin), behind = tree.at_or_after(begin);
        const bool joins = (!before.end() && before->end == begin && before->value == made[0].entry) ||
                           (!behind.end() && behind->begin == end && behind->value == made[0].entry);
        if (joins) {
            replace(tree, begin, end, made);
        } else {
            tree.insert({begin, end, made[0].entry});
            ++ranges_;
        }
        return true;
    }

    // The same for a part of one range, which is not all of it.
    bool apply_to_part(RangeTree &tree, RangeTree::Place held, Address begin, Address end, const Asked &asked,
                       std::vector<Met> &met) {
        Entry after;
        if (!after_access(held->value, begin, end, asked, met, after)) return false;
        const bool is_first = held->begin == begin, is_last = held->end == end;
        bool joins = held->value == after;
        if (is_first) {
            const auto before = tree.before(begin);
            joins = joins || (!before.end() && before->end == begin && before->value == after);
        }
        if (is_last) {
            const auto behind = tree.at_or_after(end);
            joins = joins || (!behind.end() && behind->begin == end && behind->value == after);
        }
        if (joins) {
            Pieces made{{begin, end, after}};
            replace(tree, begin, end, made);
            return true;
        }
        const Address whole = held->end;
        Entry rest = is_last ? Entry() : is_first ? held->value : copy(held->value);
        if (is_first) held->value = after;
        held->end = is_first ? end : begin;
        if (!is_first) tree.insert({begin, end, after});
        if (!is_last) tree.insert({end, whole, rest});
        ranges_ += static_cast<std::size_t>(!is_first) + static_cast<std::size_t>(!is_last);
        return true;
    }

    // The pieces that an access would meet, or of which a question is true; nothing changes. False with an exception set.
    bool check(Address space, Address begin, Address end, const Asked &asked, const Asking *question,
               std::vector<Met> &met) {
        Pieces found;
        if (const RangeTree *const held = tree(space)) find(*held, begin, end, found);
        for (const RangePiece &each : found) {
            Live &now = scratch_;
            bool looked_at = false, races = false;
            if (!live(each.entry, now) || !may_race(now, asked, races)) return false;
            if (question) {
                if (!automaton_.answer(now.state, *question, looked_at)) return false;
            } else {
                Outcome outcome;
                if (!automaton_.outcome(now.state, asked.request, outcome)) return false;
                looked_at = outcome.hazard;
            }
            if (looked_at || races) met.push_back({asked.step, each.begin, each.end, now});
        }
        return true;
    }

    // -- what synchronizes ------------------------------------------------------------------------------------------

    // What a command that synchronizes makes of a range: a change of each state there, or, without one, a write of all
    // addresses, with the state that these have then.
    struct Cover {
        Address space, begin, end;
        Asking change;
        StateNumber state;
    };

    // Maps the states of everything, unless there is no such change, and of ranges, all as they were before. False with
    // an exception set.
    bool synchronize(const Asking &everything, PlaceNumber place, const std::vector<Cover> &covers) {
        std::vector<ChangedPiece> changed;
        std::vector<std::size_t> last;  // by cover: behind its pieces
        for (const Cover &cover : covers) {
            if (!read_cover(cover, changed)) return false;
            last.push_back(changed.size());
        }
        if (everything.object && !slots.map(everything.object.get(), everything.number)) return false;
        std::size_t at = 0;
        for (std::size_t each = 0; each < covers.size(); ++each) {
            const Cover &cover = covers[each];
            if (!cover.change.object) {
                write(cover, place, changed, at, last[each]);
                continue;
            }
            for (; at < last[each]; ++at) {
                const ChangedPiece &piece = changed[at];
                put(cover.space, piece.begin, piece.end,
                    entry_of(piece.state, piece.write, piece.reads.data(), piece.reads.size()));
            }
        }
        return true;
    }

    // Changes the states of a range, also of what is over there. False with an exception set.
    bool show(Address space, Address begin, Address end, const Asking &change) {
        Pieces found;
        if (const RangeTree *const held = tree(space)) find(*held, begin, end, found);
        std::vector<ChangedPiece> shown;
        for (const RangePiece &each : found) {
            SlotNumber root;
            if (!slots.find(each.entry.slot, root)) return false;
            std::vector<PlaceNumber> reads(each.entry.reads.begin(), each.entry.reads.end());
            shown.push_back({each.begin, each.end, slots.state(root), each.entry.write, std::move(reads)});
        }
        for (const ChangedPiece &each : shown) {
            StateNumber after;
            if (!automaton_.changed(each.state, change.object.get(), change.number, after)) return false;
            put(space, each.begin, each.end, entry_of(after, each.write, each.reads.data(), each.reads.size()));
        }
        return true;
    }

    // -- the tree ---------------------------------------------------------------------------------------------------

    const char *broken() {
        for (const auto &each : spaces_) {
            if (const char *const what = each.second->broken()) return what;
            for (auto at = each.second->first(); !at.end(); at = at.next()) {
                if (!slots.is_reached(at->value.slot)) return "a range points to a slot that changes do not reach";
            }
        }
        return slots.broken();
    }

    Types types() const { return {entry_type_.get(), sizes_type_.get(), run_type_.get(), nothing_.get()}; }
    Automaton &automaton() { return automaton_; }

  private:
    struct ChangedPiece {
        Address begin, end;
        StateNumber state;
        PlaceNumber write;
        std::vector<PlaceNumber> reads;
    };

    bool read_cover(const Cover &cover, std::vector<ChangedPiece> &changed) {
        Pieces found;
        if (const RangeTree *const held = tree(cover.space)) find(*held, cover.begin, cover.end, found);
        for (const RangePiece &each : found) {
            Live now{};
            if (cover.change.object) {
                if (!live(each.entry, now)) return false;
                if (!automaton_.changed(now.state, cover.change.object.get(), cover.change.number, now.state)) return false;
            }
            changed.push_back({each.begin, each.end, now.state, now.write, std::move(now.reads)});
        }
        return true;
    }

    // A write of all addresses, also of those that were never accessed: nothing that was known of them remains.
    void write(const Cover &cover, PlaceNumber place, const std::vector<ChangedPiece> &pieces, std::size_t &at,
               std::size_t last) {
        Address from = cover.begin;
        for (; at < last; ++at) {
            if (pieces[at].begin > from) {
                put(cover.space, from, pieces[at].begin, entry_of(cover.state, place, nullptr, 0));
            }
            put(cover.space, pieces[at].begin, pieces[at].end, entry_of(cover.state, place, nullptr, 0));
            from = pieces[at].end;
        }
        if (from < cover.end) put(cover.space, from, cover.end, entry_of(cover.state, place, nullptr, 0));
    }

    // An entry that points to the slot of a state.
    Entry entry_of(StateNumber state, PlaceNumber write, const PlaceNumber *reads, std::size_t count) {
        Entry made;
        made.slot = slots.of(state);
        slots.share(made.slot);
        made.write = write;
        made.reads = Reads::of(reads, count);
        return made;
    }

    // The batch of a place number, or nullptr. Neighbours mostly have one batch.
    const Batch *batch(PlaceNumber place) const {
        const auto number = static_cast<std::uint32_t>(place >> 32);
        if (!known_batch_ || known_number_ != number) {
            const auto found = batches_.find(number);
            if (found == batches_.end()) return nullptr;
            known_number_ = number;
            known_batch_ = &found->second;
        }
        return known_batch_;
    }

    RangeTree &made_tree(Address space) {
        std::unique_ptr<RangeTree> &held = spaces_[space];
        if (!held) held = std::make_unique<RangeTree>();
        return *held;
    }

    void release(RangeTree &tree) {
        for (auto at = tree.first(); !at.end(); at = at.next()) release(at->value);
    }

    bool after_nothing(Address begin, Address end, const Asked &asked, std::vector<Met> &met, Pieces &made) {
        Live &now = scratch_;
        now.write = NO_PLACE;
        now.reads.clear();
        Entry after;
        if (!automaton_.number(nothing_.get(), now.state) || !after_live(now, begin, end, asked, met, after)) return false;
        made.push_back({begin, end, after});
        return true;
    }

    bool after_access(const Entry &entry, Address begin, Address end, const Asked &asked, std::vector<Met> &met,
                      Entry &after) {
        return live(entry, scratch_) && after_live(scratch_, begin, end, asked, met, after);
    }

    // What a range points to after an access.
    bool after_live(Live &now, Address begin, Address end, const Asked &asked, std::vector<Met> &met, Entry &after) {
        Outcome outcome;
        if (!automaton_.outcome(now.state, asked.request, outcome)) return false;
        bool races = false;
        if (!may_race(now, asked, races)) return false;
        if (asked.racing != NEVER_MET && (outcome.hazard || races)) {
            met.push_back({asked.step, begin, end, now});
        }
        after.slot = slots.of(outcome.after);
        slots.share(after.slot);
        if (outcome.position < 0) {
            after.write = asked.place;
            return true;
        }
        after.write = now.write;
        if (outcome.gone >= 0) leave_out(now.reads, automaton_.gone(outcome));
        const auto position = static_cast<std::size_t>(outcome.position);
        if (position < now.reads.size()) now.reads[position] = asked.place;
        else now.reads.push_back(asked.place);
        after.reads = Reads::of(now.reads.data(), now.reads.size());
        return true;
    }

    // False with an exception set.
    bool may_race(const Live &now, const Asked &asked, bool &races) {
        const bool known = now.write != NO_PLACE || !now.reads.empty();
        races = false;
        if (asked.racing == ALWAYS) races = known;
        if (asked.racing == BY_CLOCK) races = is_beyond(now);
        if (asked.racing == WRITES_BY_CLOCK) races = now.write != NO_PLACE && is_beyond(now.write);
        return races || !known || !asked.race || automaton_.answer(now.state, *asked.race, races);
    }

    bool is_beyond(const Live &now) const {
        if (now.write != NO_PLACE && is_beyond(now.write)) return true;
        return std::any_of(now.reads.begin(), now.reads.end(), [this](PlaceNumber read) { return is_beyond(read); });
    }

    // Puts pieces, in order and inside of [begin, end), in the place of what that holds. Neighbours that touch it or reach
    // into it are put in again with the new ones, joined to those that are equal. The pieces' entries become the tree's.
    void replace(RangeTree &tree, Address begin, Address end, Pieces &made) {
        std::vector<Address> old;
        Pieces all, gone;
        auto at = tree.before(begin);
        if (!at.end() && at->end >= begin) {
            old.push_back(at->begin);
            gone.push_back({at->begin, at->end, at->value});
            all.push_back({at->begin, begin, copy(at->value)});
        }
        for (RangePiece &each : made) all.push_back(each);
        const auto last = tree.before(end);
        if (!last.end() && last->end > end) all.push_back({end, last->end, copy(last->value)});
        for (at = tree.at_or_after(begin); !at.end() && at->begin < end; at = at.next()) {
            old.push_back(at->begin);
            gone.push_back({at->begin, at->end, at->value});
        }
        if (!at.end() && at->begin == end) {
            old.push_back(end);
            gone.push_back({end, at->end, at->value});
            all.push_back({end, at->end, copy(at->value)});
        }
        Pieces kept;
        for (RangePiece &each : all) {
            if (!kept.empty() && kept.back().end == each.begin && kept.back().entry == each.entry) {
                kept.back().end = each.end;
                release(each.entry);
            } else {
                kept.push_back(each);
            }
        }
        ranges_ -= tree.size();
        for (const Address each : old) tree.erase(each);
        for (const RangePiece &each : kept) tree.insert({each.begin, each.end, each.entry});
        ranges_ += tree.size();
        for (RangePiece &each : gone) release(each.entry);
    }

    Automaton &automaton_;
    const Ref entry_type_, sizes_type_, run_type_, nothing_;
    std::unordered_map<Address, std::unique_ptr<RangeTree>, AddressHash> spaces_;
    std::unordered_map<std::uint32_t, Batch> batches_;
    std::unordered_map<Address, Tag, AddressHash> clock_;
    Address own_ = 0;
    Live scratch_;
    mutable const Batch *known_batch_ = nullptr;
    mutable std::uint32_t known_number_ = 0;
    std::size_t ranges_ = 0;
    bool any_over_ = false;
};

// False with an exception set where it is no number of `Racing`.
inline bool read_racing(PyObject *given, RangeStore::Racing &racing) {
    const long number = PyLong_AsLong(given);
    if (number < RangeStore::NO_RACE || number > RangeStore::NEVER_MET) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "races with nothing that is known");
        return false;
    }
    racing = static_cast<RangeStore::Racing>(number);
    return true;
}

}  // namespace vkharness

#endif
