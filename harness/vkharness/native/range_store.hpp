// The states of all ranges of a context: `RangeStore` of harness/vkharness/syncval/range_store.py as a native type.
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
    struct Span {
        Address begin, end;
    };
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
        for (auto &each : spaces_) release(each.second);
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
        set_over(number, batch.over);
    }
    void finish_batch(std::uint32_t number) {
        const auto found = batches_.find(number);
        if (found == batches_.end()) return;
        found->second.over = true;
        set_over(number, true);
    }
    bool is_finished(PlaceNumber place) const {
        const auto number = static_cast<std::uint32_t>(place >> 32);
        if (number < MOST_BITS) return number / 64 < over_.size() && over_[number / 64] >> number % 64 & 1;
        const Batch *const found = batch(place);
        return found && found->over;
    }
    template <typename Function>
    void keep_batches(Function is_kept) {
        any_over_ = false;
        for (KnownBatch &each : known_batches_) each = {};
        for (auto at = batches_.begin(); at != batches_.end();) {
            if (is_kept(at->first)) {
                any_over_ = any_over_ || at->second.over;
                ++at;
            } else {
                set_over(at->first, false);
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
        KnownTree &known = known_trees_[AddressHash()(space) % KNOWN_TREES];
        if (known.tree && known.space == space) return known.tree;
        const auto found = spaces_.find(space);
        if (found == spaces_.end()) return nullptr;
        known = {space, &found->second};
        return known.tree;
    }

    RangeTree &made_tree(Address space) {
        return spaces_.try_emplace(space).first->second;
    }

    template <typename Function>
    void each_space(Function function) const {
        for (const auto &each : spaces_) function(each.first, each.second);
    }

    // Forgets the ranges of a space of which all accesses are over, those with a write only if `writes`. Whether any is
    // left.
    bool forget_over(Address space, bool writes) {
        RangeTree *const held = tree(space);
        if (!held) return false;
        std::vector<Address> gone;
        for (auto at = held->first(); !at.end(); at = at.next()) {
            if (is_over(at->value) && (writes || at->value.write == NO_PLACE)) gone.push_back(at->begin);
        }
        for (const Address each : gone) {
            release(held->find(each)->value);
            held->erase(each);
        }
        ranges_ -= gone.size();
        return held->size() != 0;
    }

    void drop(Address space) {
        const auto found = spaces_.find(space);
        if (found == spaces_.end()) return;
        ranges_ -= found->second.size();
        release(found->second);
        known_trees_[AddressHash()(space) % KNOWN_TREES] = {};
        spaces_.erase(found);
        trees_are_ = next_number();
    }

    // Where a piece was that begins at an address of a space: it is looked for there first.
    struct Hint {
        std::uint64_t trees = 0, version = 0;  // of which store, and of which tree
        RangeTree *tree = nullptr;
        RangeTree::Place place = RangeTree::nowhere();
    };

    // The hint of a form. Without a lock of the interpreter several threads may use one: then it is none.
    static Hint *shared(Hint &hint) {
#ifdef Py_GIL_DISABLED
        static_cast<void>(hint);
        return nullptr;
#else
        return &hint;
#endif
    }

    // The piece that begins at an address, or the end; and the tree of the space, or nullptr.
    RangeTree::Place find(Address space, Address begin, Hint *hint, RangeTree *&tree) {
        const bool is_good = hint && hint->trees == trees_are_ && hint->version == hint->tree->version();
        if (is_good && hint->place.begins(begin)) {
            tree = hint->tree;
            return hint->place;
        }
        tree = this->tree(space);
        const auto found = tree ? tree->find(begin) : RangeTree::nowhere();
        if (hint && !found.end()) *hint = {trees_are_, tree->version(), tree, found};
        return found;
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

    // Makes an entry, which becomes the store's, that of [begin, end).
    void put(Address space, Address begin, Address end, Entry entry, Hint *hint = nullptr) {
        if (begin >= end) return release(entry);
        RangeTree *tree;
        const auto held = find(space, begin, hint, tree);
        if (!held.end() && held->end == end) return release(std::exchange(held.value(), entry));
        replace(tree ? *tree : made_tree(space), begin, end, &entry);
    }

    void assign(Address space, Address begin, Address end, Entry entry) {
        if (begin >= end) return release(entry);
        replace(made_tree(space), begin, end, &entry);
    }

    void erase(Address space, Address begin, Address end) {
        RangeTree *const held = tree(space);
        if (held && begin < end) replace(*held, begin, end, nullptr);
    }

    void release(Entry entry) {
        slots.leave(entry.slot);
        entry.reads.release();
    }

    // One more of an entry.
    Entry copied(const Entry &entry) {
        Entry made = entry;
        made.reads = Reads::of(entry.reads.begin(), entry.reads.count);
        slots.share(made.slot);
        return made;
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
        if (!entry.reads.count) return !is_over_at(now.write) || automaton_.finished(now.state, now.state);
        std::vector<std::uint32_t> done;
        for (std::uint32_t at = 0; at < entry.reads.count; ++at) {
            if (is_finished(entry.reads[at])) done.push_back(at);
        }
        if (reads_are_over) {
            const auto &over = automaton_.over(now.state);
            done.insert(done.end(), over.begin(), over.end());
            std::sort(done.begin(), done.end());
            done.erase(std::unique(done.begin(), done.end()), done.end());
        }
        if (!done.empty()) {
            if (!automaton_.without(now.state, done.data(), done.size(), now.state)) return false;
            leave_out(now.reads, done);
        }
        return !is_over_at(now.write) || automaton_.finished(now.state, now.state);
    }

    // Takes note of which of the batches that are held are over.
    void set_over(std::uint32_t number, bool is_over) {
        any_over_ = any_over_ || is_over;
        if (number >= MOST_BITS) return;
        if (is_over && over_.size() <= number / 64) over_.resize(number / 64 + 1);
        const std::uint64_t bit = std::uint64_t(1) << number % 64;
        if (is_over) over_[number / 64] |= bit;
        else if (number / 64 < over_.size()) over_[number / 64] &= ~bit;
    }

    // Whether there is a place, of an access that is over.
    bool is_over_at(PlaceNumber place) const { return place != NO_PLACE && is_finished(place); }

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
        const Span span{begin, end};
        return begin >= end || apply(space, &span, &span + 1, asked, met, nullptr);
    }

    using Spans = Few<Span, 1>;

    // The same for several spans.
    bool apply(Address space, const Spans &spans, bool are_apart, const Asked &asked, std::vector<Met> &met,
               Hint *hint = nullptr) {
        if (are_apart) return apply(space, spans.begin(), spans.end(), asked, met, hint);
        return std::all_of(spans.begin(), spans.end(), [&](const Span &each) {
            return apply(space, each.begin, each.end, asked, met);
        });
    }

    // Whether there are spans, in order, and none is empty or touches another one.
    static bool are_apart(const Spans &spans) {
        const auto touches = [](const Span &one, const Span &next) { return one.end >= next.begin; };
        const auto is_empty = [](const Span &each) { return each.begin >= each.end; };
        return spans.size() && std::none_of(spans.begin(), spans.end(), is_empty) &&
               std::adjacent_find(spans.begin(), spans.end(), touches) == spans.end();
    }

    // The same for spans that are apart, so that none is precisely a piece because of one before it. There are two ways:
    // where a span is precisely a piece, that gets another value; any other is put in the place of all that it meets.
    bool apply(Address space, const Span *span, const Span *end, const Asked &asked, std::vector<Met> &met, Hint *hint) {
        RangeTree *tree;
        auto held = find(space, span->begin, hint, tree);
        if (!tree) tree = &made_tree(space);
        Last last;
        for (;;) {
            const bool is_piece = !held.end() && held->end == span->end;
            if (is_piece) {
                const Entry before = held->value;
                if (!after_access(before, span->begin, span->end, asked, met, held.value(), last)) return false;
                release(before);
                ++span;
            } else if (!apply_across(*tree, span, end, asked, met)) {
                return false;
            }
            if (span == end) return true;
            held = is_piece ? follow(*tree, held, span->begin) : tree->find(span->begin);
        }
    }

    // The pieces that an access would meet, or of which a question is true; nothing changes. False with an exception set.
    bool check(Address space, Address begin, Address end, const Asked &asked, const Asking *question,
               std::vector<Met> &met, Hint *hint) {
        const Entry *last = nullptr;
        bool is_met = false;
        Live &now = scratch_;
        for (auto at = first_behind(space, begin, hint); !at.end() && at->begin < end; at = at.next()) {
            if (!last || (is_met ? !(at->value == *last) : !are_alike(at->value, *last))) {
                if (!meets(at->value, asked, question, now, is_met)) return false;
                last = &at->value;
            }
            if (is_met) met.push_back({asked.step, std::max(at->begin, begin), std::min(at->end, end), now});
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
        mutable Hint hint;
    };

    // Maps the states of everything, unless there is no such change, and of ranges, all as they were before. False with
    // an exception set.
    bool synchronize(const Asking &everything, PlaceNumber place, const std::vector<Cover> &covers) {
        ChangedPieces some, all;
        Few<SlotNumber, 4> left_out;  // of several covers, a later one takes the place of an earlier one
        bool good = true, they_stay = true;
        for (const Cover &cover : covers) good = good && read_cover(cover, some, covers.size() == 1 ? &left_out : nullptr);
        for (const SlotNumber each : left_out) {
            if (!everything.object || !good || !they_stay) break;
            good = slots.stays(each, everything.object.get(), everything.number, they_stay);
        }
        for (const Cover &cover : covers) good = good && (they_stay || read_cover(cover, all, nullptr));
        ChangedPieces &changed = they_stay ? some : all, &unused = they_stay ? all : some;
        for (ChangedPiece &each : unused) each.reads.release();
        good = good && (!everything.object || slots.map(everything.object.get(), everything.number));
        ChangedPiece *at = changed.begin();
        for (const Cover &cover : covers) {
            if (!good) break;
            if (cover.change.object) at = put_changed(cover, at, changed.end());
            else put(cover.space, cover.begin, cover.end, entry_of(cover.state, place, Reads()), shared(cover.hint));
        }
        for (; at != changed.end(); ++at) at->reads.release();
        return good;
    }

    // Changes the states of a range, also of what is over there. False with an exception set.
    bool show(Address space, Address begin, Address end, const Asking &change) {
        ChangedPieces shown;
        bool good = true;
        for (auto at = first_behind(space, begin, nullptr); !at.end() && at->begin < end; at = at.next()) {
            SlotNumber root;
            good = slots.find(at->value.slot, root);
            if (!good) break;
            const Reads reads = Reads::of(at->value.reads.begin(), at->value.reads.count);
            add_piece(shown, *at, begin, end, slots.state(root), reads, nullptr);
        }
        for (ChangedPiece &each : shown) {
            StateNumber after;
            good = good && automaton_.changed(each.state, change.object.get(), change.number, after);
            if (good) put(space, each.begin, each.end, entry_of(after, each.write, each.reads));
            else each.reads.release();
        }
        return good;
    }

    // -- the tree ---------------------------------------------------------------------------------------------------

    // Nothing, or what is broken.
    const char *broken() {
        std::size_t counted = 0;
        std::vector<std::uint32_t> pointers;
        for (const auto &each : spaces_) {
            if (const char *const what = each.second.broken()) return what;
            counted += each.second.size();
            for (auto at = each.second.first(); !at.end(); at = at.next()) {
                const SlotNumber slot = at->value.slot;
                if (!slots.is_reached(slot)) return "a range points to a slot that changes do not reach";
                if (pointers.size() <= slot) pointers.resize(slot + 1);
                ++pointers[slot];
            }
        }
        return counted == ranges_ ? slots.broken(pointers) : "the number of ranges is wrong";
    }

    Types types() const { return {entry_type_.get(), sizes_type_.get(), run_type_.get(), nothing_.get()}; }
    Automaton &automaton() { return automaton_; }

  private:
    struct ChangedPiece {
        Address begin, end;
        StateNumber state;
        PlaceNumber write;
        Reads reads;
        const Cover *of;
    };
    using ChangedPieces = Few<ChangedPiece, 16>;

    // Adds a piece clipped to [begin, end), with another state, and reads of its own.
    static void add_piece(ChangedPieces &several, const RangePiece &held, Address begin, Address end, StateNumber state,
                          const Reads &reads, const Cover *of) {
        several.emplace(std::max(held.begin, begin), std::min(held.end, end), state, held.value.write, reads, of);
    }

    // What a cover makes of its ranges. With `left_out` those are left out that stay as they are as long as these slots do.
    bool read_cover(const Cover &cover, ChangedPieces &changed, Few<SlotNumber, 4> *left_out) {
        if (!cover.change.object) return true;
        Live &now = scratch_;
        const Entry *last = nullptr;             // without reads
        bool is_over = false, is_same = false;  // its write; and what becomes of it
        bool is_joined = false;  // maybe, when its turn comes: behind a piece that is cut, as far as pieces touch
        Address end = 0;         // of the piece before
        auto at = first_behind(cover.space, cover.begin, shared(cover.hint));
        for (; !at.end() && at->begin < cover.end; at = at.next()) {
            const Entry &entry = at->value;
            const bool is_alike = last && entry.slot == last->slot && !entry.reads.count && is_over_at(entry.write) == is_over;
            if (!is_alike) {
                if (!live(entry, now)) return false;
                if (!automaton_.changed(now.state, cover.change.object.get(), cover.change.number, now.state)) return false;
                is_same = left_out && is_precisely(entry, now);
                if (is_same) left_out->push(SlotNumber(entry.slot));
                last = entry.reads.count ? nullptr : &entry;
                is_over = is_over_at(entry.write);
            }
            is_joined = at->begin < cover.begin || at->end > cover.end || (is_joined && at->begin == end);
            end = at->end;
            if (is_same && !is_joined) continue;
            const Reads reads = Reads::of(now.reads.data(), now.reads.size());
            add_piece(changed, *at, cover.begin, cover.end, now.state, reads, &cover);
        }
        return true;
    }

    // Whether an entry, of which the slot was met, has a slot of its own with this state, and all of these reads.
    bool is_precisely(const Entry &entry, const Live &after) const {
        return slots.holds(entry.slot, after.state) && entry.reads.count == after.reads.size();
    }

    // Makes the ranges of a cover what they were changed to. Where the first piece behind them is.
    ChangedPiece *put_changed(const Cover &cover, ChangedPiece *piece, ChangedPiece *end) {
        RangeTree *tree = nullptr;
        auto held = RangeTree::nowhere();
        for (; piece != end && piece->of == &cover; ++piece) {
            const bool is_first = held.end();
            held = is_first ? find(cover.space, piece->begin, shared(cover.hint), tree) : follow(*tree, held, piece->begin);
            if (!held.end() && held->end == piece->end) {
                const Entry before = held->value;
                set(held.value(), piece->state, piece->write, piece->reads);
                release(before);
            } else {
                const Entry entry = entry_of(piece->state, piece->write, piece->reads);
                replace(*tree, piece->begin, piece->end, &entry);
                held = RangeTree::nowhere();
            }
        }
        return piece;
    }

    // An entry that points to the slot of a state. The reads become its own.
    Entry entry_of(StateNumber state, PlaceNumber write, Reads reads) {
        Entry made;
        set(made, state, write, reads);
        return made;
    }

    // Makes an entry point to the slot of a state, and gives up nothing.
    void set(Entry &entry, StateNumber state, PlaceNumber write, Reads reads) {
        entry.slot = slots.of(state);
        slots.share(entry.slot);
        entry.write = write;
        entry.reads = reads;
    }

    bool is_over(const Entry &entry) const {
        return (entry.write == NO_PLACE || is_finished(entry.write)) &&
               std::all_of(entry.reads.begin(), entry.reads.end(), [this](PlaceNumber each) { return is_finished(each); });
    }

    // The batch of a place number, or nullptr. Most places are of the last few batches.
    const Batch *batch(PlaceNumber place) const {
        const auto number = static_cast<std::uint32_t>(place >> 32);
        KnownBatch &known = known_batches_[number % KNOWN_BATCHES];
        if (!known.batch || known.number != number) {
            const auto found = batches_.find(number);
            if (found == batches_.end()) return nullptr;
            known = {number, &found->second};
        }
        return known.batch;
    }

    void release(RangeTree &tree) {
        for (auto at = tree.first(); !at.end(); at = at.next()) release(at->value);
    }

    // Whether all rules say the same of two entries: their places may differ, but not in what is over of them.
    static bool are_alike(const Entry &one, const Entry &two) {
        const auto is_of_batch = [](PlaceNumber place, PlaceNumber other) { return place >> 32 == other >> 32; };
        return one.slot == two.slot && is_of_batch(one.write, two.write) && one.reads.count == two.reads.count &&
               std::equal(one.reads.begin(), one.reads.end(), two.reads.begin(), is_of_batch);
    }

    // Whether an access that made `after` of one entry makes the same of another one.
    static bool becomes(const Entry &entry, const Entry &before, const Entry &after, const Asked &asked) {
        return after.write == asked.place && !after.reads.count ? are_alike(entry, before) : entry == before;
    }

    // What an access made of an entry, if it met nothing there: entries of which it makes the same come in a row. Reads are
    // its own. Slots are not: it would keep them in use. A slot that is free again is none of those of entries that come.
    struct Last {
        Entry before, after;
        bool is_known = false;

        ~Last() { forget(); }
        void forget() {
            before.reads.release();
            after.reads.release();
            is_known = false;
        }
        void keep(const Entry &entry, const Entry &made) {
            before = entry;
            after = made;
            before.reads = Reads::of(entry.reads.begin(), entry.reads.count);
            after.reads = Reads::of(made.reads.begin(), made.reads.count);
            is_known = true;
        }
    };

    // Pieces in order, of which no two that touch are equal, that are to be put in the place of those that are held from an
    // address on: of `old` ones, of which the first may begin before that. `held` is the first one behind them.
    struct Rewriting {
        RangeTree &tree;
        const Address begin;
        const RangeTree::Place first;
        RangeTree::Place held = first;
        std::size_t old = 0;
        Few<RangePiece> made;

        Rewriting(RangeTree &of, Address from) : tree(of), begin(from), first(first_behind(of, from)) {}
    };

    // Applies an access to a span, and to those behind it as long as one begins in the piece in which the last one ended.
    // `span` is then the first one behind them. False with an exception set.
    bool apply_across(RangeTree &tree, const Span *&span, const Span *end, const Asked &asked, std::vector<Met> &met) {
        Rewriting all(tree, span->begin);
        Last last;
        for (;;) {
            if (!add_accessed(all, *span, asked, met, last)) return false;
            const Address done = span++->end;
            const bool is_cut = !all.held.end() && all.held->begin < done;
            if (span == end || !is_cut || all.held->end <= span->begin) {
                finish(all, done);
                return true;
            }
            add(all, done, span->begin, copied(all.held->value));
        }
    }

    // Adds what an access makes of a span. False with an exception set; then nothing is put anywhere.
    bool add_accessed(Rewriting &all, const Span &span, const Asked &asked, std::vector<Met> &met, Last &last) {
        for (Address at = span.begin, stop; at < span.end; at = stop) {
            const auto &held = all.held;
            const bool is_gap = held.end() || held->begin > at;
            stop = held.end() ? span.end : std::min(is_gap ? held->begin : held->end, span.end);
            Entry after;
            const bool good = is_gap ? after_nothing(at, stop, asked, met, after)
                                     : after_access(held->value, at, stop, asked, met, after, last);
            if (!good) {
                for (const RangePiece &each : all.made) release(each.value);
                return false;
            }
            add(all, at, stop, after);
            if (!is_gap) pass(all, stop);
        }
        return true;
    }

    // Makes an entry, or nothing, that of a range. The entry becomes the tree's.
    void replace(RangeTree &tree, Address begin, Address end, const Entry *entry) {
        Rewriting all(tree, begin);
        if (entry) add(all, begin, end, *entry);
        pass(all, end);
        finish(all, end);
    }

    // -- the tree is changed by these alone -------------------------------------------------------------------------

    // Adds a piece behind the others. The entry becomes its own.
    void add(Rewriting &all, Address begin, Address end, const Entry &entry) {
        if (all.made.size() && all.made.back().end == begin && all.made.back().value == entry) {
            all.made.back().end = end;
            release(entry);
        } else {
            all.made.emplace(begin, end, entry);
        }
    }

    // Leaves behind the pieces that end up to an address.
    static void pass(Rewriting &all, Address end) {
        for (; !all.held.end() && all.held->end <= end; all.held = all.held.next()) ++all.old;
    }

    // Puts what was made in its place. Of pieces that are cut what lies outside stays. Neighbours that touch what was made,
    // and are equal to it, are joined to it.
    void finish(Rewriting &all, Address end) {
        auto &made = all.made;
        const auto behind = all.held;
        if (!behind.end() && behind->begin < end) {
            add(all, end, behind->end, copied(behind->value));
            ++all.old;
        } else if (!behind.end() && made.size() && made.back().end == behind->begin && made.back().value == behind->value) {
            made.back().end = behind->end;
            ++all.old;
        }
        auto first = all.first;
        const bool is_cut = !first.end() && first->begin < all.begin;
        const auto left = is_cut ? first : first.end() ? all.tree.last() : first.previous();
        const bool touches = is_cut || (!left.end() && left->end == all.begin);
        if (touches && made.size() && made[0].begin == all.begin && made[0].value == left->value) {
            made[0].begin = left->begin;
            first = left;
            all.old += !is_cut;
        } else if (is_cut) {
            RangeTree::shorten(first, all.begin);
            first = first.next();
            --all.old;
        }
        auto gone = first;
        for (std::size_t each = 0; each < all.old; ++each, gone = gone.next()) release(gone->value);
        ranges_ -= all.tree.size();
        all.tree.splice(first, all.old, made.begin(), made.size());
        ranges_ += all.tree.size();
    }

    bool after_nothing(Address begin, Address end, const Asked &asked, std::vector<Met> &met, Entry &after) {
        if (numbering_ != automaton_.numbering()) {
            if (!automaton_.number(nothing_.get(), number_of_nothing_)) return false;
            numbering_ = automaton_.numbering();
        }
        Live &now = scratch_;
        now.state = number_of_nothing_;
        now.write = NO_PLACE;
        now.reads.clear();
        return after_live(now, begin, end, asked, met, after);
    }

    // Whether an access meets a piece, or a question is true of it. False with an exception set.
    bool meets(const Entry &entry, const Asked &asked, const Asking *question, Live &now, bool &is_met) {
        bool races = false;
        if (!live(entry, now) || !may_race(now, asked, races)) return false;
        if (question) {
            if (!automaton_.answer(now.state, *question, is_met)) return false;
        } else {
            Outcome outcome;
            if (!automaton_.outcome(now.state, asked.request, outcome)) return false;
            is_met = outcome.hazard;
        }
        is_met = is_met || races;
        return true;
    }

    // The first piece that ends behind an address.
    RangeTree::Place first_behind(Address space, Address begin, Hint *hint) {
        RangeTree *tree;
        const auto found = find(space, begin, hint, tree);
        return found.end() && tree ? first_behind(*tree, begin) : found;
    }
    static RangeTree::Place first_behind(const RangeTree &tree, Address begin) {
        const auto found = tree.at_or_after(begin);
        if (!found.end() && found->begin == begin) return found;
        const auto before = found.end() ? tree.last() : found.previous();
        return !before.end() && before->end > begin ? before : found;
    }

    // The piece that begins at an address, which is often one of the next two: rows of an image lie side by side.
    static RangeTree::Place follow(const RangeTree &tree, RangeTree::Place held, Address begin) {
        for (int tries = 0; tries < 2; ++tries) {
            held = held.next();
            if (held.end() || held->begin == begin) return held;
        }
        return tree.find(begin);
    }

    // What a range points to after an access; it is not changed where that is not known. False with an exception set.
    bool after_access(const Entry &entry, Address begin, Address end, const Asked &asked, std::vector<Met> &met,
                      Entry &after, Last &last) {
        if (last.is_known && becomes(entry, last.before, last.after, asked)) {
            after = copied(last.after);
            return true;
        }
        const std::size_t met_before = met.size();
        if (!live(entry, scratch_) || !after_live(scratch_, begin, end, asked, met, after)) return false;
        last.forget();
        if (met.size() == met_before) last.keep(entry, after);
        return true;
    }

    bool after_live(Live &now, Address begin, Address end, const Asked &asked, std::vector<Met> &met, Entry &after) {
        Outcome outcome;
        if (!automaton_.outcome(now.state, asked.request, outcome)) return false;
        bool races = false;
        if (!may_race(now, asked, races)) return false;
        if (asked.racing != NEVER_MET && (outcome.hazard || races)) {
            met.push_back({asked.step, begin, end, now});
        }
        Reads reads;
        if (outcome.position >= 0) {
            if (outcome.gone >= 0) leave_out(now.reads, automaton_.gone(outcome));
            const auto position = static_cast<std::size_t>(outcome.position);
            if (position < now.reads.size()) now.reads[position] = asked.place;
            else now.reads.push_back(asked.place);
            reads = Reads::of(now.reads.data(), now.reads.size());
        }
        set(after, outcome.after, outcome.position < 0 ? asked.place : now.write, reads);
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

    static std::uint64_t next_number() {
        static std::atomic<std::uint64_t> last{0};
        return ++last;
    }

    // Trees that were found lately, each in the place of its space.
    struct KnownTree {
        Address space = 0;
        RangeTree *tree = nullptr;
    };
    static constexpr std::size_t KNOWN_TREES = 256;
    // Batches that were found lately, each in the place of its number.
    struct KnownBatch {
        std::uint32_t number = 0;
        const Batch *batch = nullptr;
    };
    static constexpr std::size_t KNOWN_BATCHES = 8;
    static constexpr std::uint32_t MOST_BITS = 1 << 22;  // a program that submits more often pays for a look-up

    Automaton &automaton_;
    const Ref entry_type_, sizes_type_, run_type_, nothing_;
    mutable std::unordered_map<Address, RangeTree, AddressHash> spaces_;
    std::unordered_map<std::uint32_t, Batch> batches_;
    std::vector<std::uint64_t> over_;  // a bit for each of the first numbers: whether such a batch is held, and over
    std::unordered_map<Address, Tag, AddressHash> clock_;
    Address own_ = 0;
    Live scratch_;
    std::uint64_t numbering_ = 0;  // of the automaton, where that of `nothing_` is known
    StateNumber number_of_nothing_ = 0;
    mutable KnownTree known_trees_[KNOWN_TREES];
    mutable KnownBatch known_batches_[KNOWN_BATCHES];
    std::size_t ranges_ = 0;
    std::uint64_t trees_are_ = next_number();  // as long as it is the same, all trees are there that were
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
