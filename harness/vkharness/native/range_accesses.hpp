// Changes of the ranges of a store by accesses.

#ifndef VKHARNESS_RANGE_ACCESSES_HPP
#define VKHARNESS_RANGE_ACCESSES_HPP

#include <algorithm>

#include "range_store.hpp"

namespace vkharness {

inline bool RangeStore::apply(Address space, const Span *span, const Span *end, const Asked &asked,
                              std::vector<Met> &met, RangePieces::Hint *hint) {
    RangeTree *tree;
    auto held = pieces.find(space, span->begin, hint, tree);
    if (!tree) tree = &pieces.made_tree(space);
    Last last;
    for (;;) {
        const bool is_piece = !held.end() && held->end == span->end;
        if (is_piece) {
            const Entry before = held->value;
            if (!after_access(before, span->begin, span->end, asked, met, held.value(), last)) return false;
            pieces.release(before);
            ++span;
        } else if (!apply_across(*tree, span, end, asked, met)) {
            return false;
        }
        if (span == end) return true;
        held = is_piece ? RangePieces::follow(*tree, held, span->begin) : tree->find(span->begin);
    }
}

inline bool RangeStore::check(Address space, Address begin, Address end, const Asked &asked, const Asking *question,
                              std::vector<Met> &met, RangePieces::Hint *hint) {
    const Entry *last = nullptr;
    bool is_met = false;
    Live &now = scratch_;
    for (auto at = pieces.first_behind(space, begin, hint); !at.end() && at->begin < end; at = at.next()) {
        if (!last || (is_met ? !(at->value == *last) : !are_alike(at->value, *last))) {
            if (!meets(at->value, asked, question, now, is_met)) return false;
            last = &at->value;
        }
        if (is_met) met.push_back({asked.step, std::max(at->begin, begin), std::min(at->end, end), now});
    }
    return true;
}

inline bool RangeStore::apply_across(RangeTree &tree, const Span *&span, const Span *end, const Asked &asked,
                                     std::vector<Met> &met) {
    RangePieces::Rewriting all(tree, span->begin);
    Last last;
    for (;;) {
        if (!add_accessed(all, *span, asked, met, last)) return false;
        const Address done = span++->end;
        const bool is_cut = !all.held.end() && all.held->begin < done;
        if (span == end || !is_cut || all.held->end <= span->begin) {
            pieces.finish(all, done);
            return true;
        }
        pieces.add(all, done, span->begin, pieces.copied(all.held->value));
    }
}

inline bool RangeStore::add_accessed(RangePieces::Rewriting &all, const Span &span, const Asked &asked,
                                     std::vector<Met> &met, Last &last) {
    for (Address at = span.begin, stop; at < span.end; at = stop) {
        const auto &held = all.held;
        const bool is_gap = held.end() || held->begin > at;
        stop = held.end() ? span.end : std::min(is_gap ? held->begin : held->end, span.end);
        Entry after;
        const bool good = is_gap ? after_nothing(at, stop, asked, met, after)
                                 : after_access(held->value, at, stop, asked, met, after, last);
        if (!good) {
            for (const RangePiece &each : all.made) pieces.release(each.value);
            return false;
        }
        pieces.add(all, at, stop, after);
        if (!is_gap) RangePieces::pass(all, stop);
    }
    return true;
}

inline bool RangeStore::after_nothing(Address begin, Address end, const Asked &asked, std::vector<Met> &met,
                                      Entry &after) {
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

inline bool RangeStore::meets(const Entry &entry, const Asked &asked, const Asking *question, Live &now,
                              bool &is_met) {
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

inline bool RangeStore::after_access(const Entry &entry, Address begin, Address end, const Asked &asked,
                                     std::vector<Met> &met, Entry &after, Last &last) {
    if (last.is_known && becomes(entry, last.before, last.after, asked)) {
        after = pieces.copied(last.after);
        return true;
    }
    const std::size_t met_before = met.size();
    if (!live(entry, scratch_) || !after_live(scratch_, begin, end, asked, met, after)) return false;
    last.forget();
    if (met.size() == met_before) last.keep(entry, after);
    return true;
}

inline bool RangeStore::after_live(Live &now, Address begin, Address end, const Asked &asked, std::vector<Met> &met,
                                   Entry &after) {
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

inline bool RangeStore::may_race(const Live &now, const Asked &asked, bool &races) {
    const bool known = now.write != NO_PLACE || !now.reads.empty();
    races = false;
    if (asked.racing == ALWAYS) races = known;
    if (asked.racing == BY_CLOCK) races = is_beyond(now);
    if (asked.racing == WRITES_BY_CLOCK) races = now.write != NO_PLACE && batches.is_beyond(now.write);
    return races || !known || !asked.race || automaton_.answer(now.state, *asked.race, races);
}

}  // namespace vkharness

#endif
