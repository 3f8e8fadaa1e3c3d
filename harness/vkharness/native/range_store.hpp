// The states of all ranges of a context: `RangeStore` of harness/vkharness/syncval/range_store.py as a native type.
//
// A range has an `Entry`: a slot, and place numbers. `RangePieces` holds them, `BatchOrder` what is known of the batches
// whose accesses they are. What a rule of Vulkan decides is asked of Python (`Automaton`). While that runs, and while
// Python's objects are made, nothing else may use the store: that is an error (`Busy`).

#ifndef VKHARNESS_RANGE_STORE_HPP
#define VKHARNESS_RANGE_STORE_HPP

#include "batch_order.hpp"
#include "range_pieces.hpp"

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
    struct Span {
        Address begin, end;
    };

    // The types of Python that a store makes objects of, and the state of what was never accessed.
    struct Types {
        PyObject *entry, *sizes, *run, *nothing;
    };

    RangeStore(AutomatonObject *automaton, const Types &types, const SlotLimits &limits)
        : slots(*automaton->automaton, limits), pieces(slots), automaton_(*automaton->automaton),
          entry_type_(Ref::share(types.entry)), sizes_type_(Ref::share(types.sizes)), run_type_(Ref::share(types.run)),
          nothing_(Ref::share(types.nothing)) {}

    // Nullptr where there is no memory.
    static RangeStore *make(AutomatonObject *automaton, const Types &types, const SlotLimits &limits) noexcept {
        try {
            return new RangeStore(automaton, types, limits);
        } catch (const std::bad_alloc &) {
            return nullptr;
        }
    }

    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(entry_type_.get());
        Py_VISIT(sizes_type_.get());
        Py_VISIT(run_type_.get());
        Py_VISIT(nothing_.get());
        return slots.traverse(visit, arg);
    }

    Slots slots;
    RangePieces pieces;
    BatchOrder batches;
    bool reads_are_over = false;

    // Forgets the ranges of a space of which all accesses are over, those with a write only if `writes`. Whether any is
    // left.
    bool forget_over(Address space, bool writes) {
        return pieces.forget(space, [&](const Entry &entry) {
            return is_over(entry) && (writes || entry.write == NO_PLACE);
        });
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
        if (!batches.is_any_over() && !reads_are_over) return true;
        if (!entry.reads.count) return !batches.is_over_at(now.write) || automaton_.finished(now.state, now.state);
        std::vector<std::uint32_t> done;
        for (std::uint32_t at = 0; at < entry.reads.count; ++at) {
            if (batches.is_finished(entry.reads[at])) done.push_back(at);
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
        return !batches.is_over_at(now.write) || automaton_.finished(now.state, now.state);
    }

    // -- accesses ---------------------------------------------------------------------------------------------------

    // How races of an access are found: it has none; it races with the last write and the reads that are later than the
    // clock, or with the write alone; or Python decides. Of one that is NEVER_MET, Python need not look at anything.
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
               RangePieces::Hint *hint = nullptr) {
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
    bool apply(Address space, const Span *span, const Span *end, const Asked &asked, std::vector<Met> &met,
               RangePieces::Hint *hint);

    // The pieces that an access would meet, or of which a question is true; nothing changes. False with an exception set.
    bool check(Address space, Address begin, Address end, const Asked &asked, const Asking *question,
               std::vector<Met> &met, RangePieces::Hint *hint);

    // -- what synchronizes ------------------------------------------------------------------------------------------

    // Effect of a command that synchronizes on a range: a change of each state there, or, without one, a write of all
    // addresses, with the state that these have then.
    struct Cover {
        Address space, begin, end;
        Asking change;
        StateNumber state;
        mutable RangePieces::Hint hint;
    };

    // Maps the states of everything, unless there is no such change, and of ranges, all as they were before. False with
    // an exception set.
    bool synchronize(const Asking &everything, PlaceNumber place, const std::vector<Cover> &covers);

    // Changes the states of a range, also of what is over there. False with an exception set.
    bool show(Address space, Address begin, Address end, const Asking &change);

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
                          const Reads &reads, const Cover *of);

    // Computes the pieces that a cover makes of its ranges. With `left_out` those are left out that stay as they are as
    // long as these slots do.
    bool read_cover(const Cover &cover, ChangedPieces &changed, Few<SlotNumber, 4> *left_out);

    // Whether an entry, of which the slot was met, has a slot of its own with this state, and all of these reads.
    bool is_precisely(const Entry &entry, const Live &after) const;

    // Makes the ranges of a cover what they were changed to. Where the first piece behind them is.
    ChangedPiece *put_changed(const Cover &cover, ChangedPiece *piece, ChangedPiece *end);

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
        const auto is_finished = [this](PlaceNumber each) { return batches.is_finished(each); };
        return (entry.write == NO_PLACE || is_finished(entry.write)) &&
               std::all_of(entry.reads.begin(), entry.reads.end(), is_finished);
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

    // Entry before and after the last access that met nothing: equal entries come in a row, and change alike. Reads are
    // its own. Slots are not: it would keep them in use. A slot that is free again is none of those of entries that
    // come.
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
            before.reads = Reads::of(entry.reads.begin(), entry.reads.count);
            after.reads = Reads::of(made.reads.begin(), made.reads.count);
            before.slot = entry.slot, before.write = entry.write;
            after.slot = made.slot, after.write = made.write;
            is_known = true;
        }
    };

    // Applies an access to a span, and to those behind it as long as one begins in the piece in which the last one ended.
    // `span` is then the first one behind them. False with an exception set.
    bool apply_across(RangeTree &tree, const Span *&span, const Span *end, const Asked &asked, std::vector<Met> &met);

    // Adds what an access makes of a span. False with an exception set; then nothing is put anywhere.
    bool add_accessed(RangePieces::Rewriting &all, const Span &span, const Asked &asked, std::vector<Met> &met,
                      Last &last);

    bool after_nothing(Address begin, Address end, const Asked &asked, std::vector<Met> &met, Entry &after);

    // Whether an access meets a piece, or a question is true of it. False with an exception set.
    bool meets(const Entry &entry, const Asked &asked, const Asking *question, Live &now, bool &is_met);

    // Computes the entry of a range after an access; `after` is unchanged where that is not known. False with an
    // exception set.
    bool after_access(const Entry &entry, Address begin, Address end, const Asked &asked, std::vector<Met> &met,
                      Entry &after, Last &last);

    bool after_live(Live &now, Address begin, Address end, const Asked &asked, std::vector<Met> &met, Entry &after);

    // False with an exception set.
    bool may_race(const Live &now, const Asked &asked, bool &races);

    bool is_beyond(const Live &now) const {
        const auto is_beyond = [this](PlaceNumber place) { return batches.is_beyond(place); };
        return (now.write != NO_PLACE && is_beyond(now.write)) ||
               std::any_of(now.reads.begin(), now.reads.end(), is_beyond);
    }

    Automaton &automaton_;
    const Ref entry_type_, sizes_type_, run_type_, nothing_;
    Live scratch_;
    std::uint64_t numbering_ = 0;  // of the automaton, where that of `nothing_` is known
    StateNumber number_of_nothing_ = 0;
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
