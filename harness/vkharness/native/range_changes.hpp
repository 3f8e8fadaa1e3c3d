// Changes of the ranges of a store by commands that synchronize.

#ifndef VKHARNESS_RANGE_CHANGES_HPP
#define VKHARNESS_RANGE_CHANGES_HPP

#include <algorithm>

#include "range_store.hpp"

namespace vkharness {

inline bool RangeStore::synchronize(const Asking &everything, PlaceNumber place, const std::vector<Cover> &covers) {
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
        RangePieces::Hint *const hint = RangePieces::shared(cover.hint);
        if (cover.change.object) at = put_changed(cover, at, changed.end());
        else pieces.put(cover.space, cover.begin, cover.end, entry_of(cover.state, place, Reads()), hint);
    }
    for (; at != changed.end(); ++at) at->reads.release();
    return good;
}

inline bool RangeStore::show(Address space, Address begin, Address end, const Asking &change) {
    ChangedPieces shown;
    bool good = true;
    for (auto at = pieces.first_behind(space, begin, nullptr); !at.end() && at->begin < end; at = at.next()) {
        SlotNumber root;
        good = slots.find(at->value.slot, root);
        if (!good) break;
        const Reads reads = Reads::of(at->value.reads.begin(), at->value.reads.count);
        add_piece(shown, *at, begin, end, slots.state(root), reads, nullptr);
    }
    for (ChangedPiece &each : shown) {
        StateNumber after;
        good = good && automaton_.changed(each.state, change.object.get(), change.number, after);
        if (good) pieces.put(space, each.begin, each.end, entry_of(after, each.write, each.reads));
        else each.reads.release();
    }
    return good;
}

inline void RangeStore::add_piece(ChangedPieces &several, const RangePiece &held, Address begin, Address end,
                                  StateNumber state, const Reads &reads, const Cover *of) {
    several.emplace(std::max(held.begin, begin), std::min(held.end, end), state, held.value.write, reads, of);
}

inline bool RangeStore::read_cover(const Cover &cover, ChangedPieces &changed, Few<SlotNumber, 4> *left_out) {
    if (!cover.change.object) return true;
    Live &now = scratch_;
    const Entry *last = nullptr;             // without reads
    bool is_over = false, is_same = false;  // its write; and what becomes of it
    bool is_joined = false;  // maybe, when its turn comes: behind a piece that is cut, as far as pieces touch
    Address end = 0;         // of the piece before
    auto at = pieces.first_behind(cover.space, cover.begin, RangePieces::shared(cover.hint));
    for (; !at.end() && at->begin < cover.end; at = at.next()) {
        const Entry &entry = at->value;
        const bool is_alike =
            last && entry.slot == last->slot && !entry.reads.count && batches.is_over_at(entry.write) == is_over;
        if (!is_alike) {
            if (!live(entry, now)) return false;
            if (!automaton_.changed(now.state, cover.change.object.get(), cover.change.number, now.state)) return false;
            is_same = left_out && is_precisely(entry, now);
            if (is_same) left_out->push(SlotNumber(entry.slot));
            last = entry.reads.count ? nullptr : &entry;
            is_over = batches.is_over_at(entry.write);
        }
        is_joined = at->begin < cover.begin || at->end > cover.end || (is_joined && at->begin == end);
        end = at->end;
        if (is_same && !is_joined) continue;
        const Reads reads = Reads::of(now.reads.data(), now.reads.size());
        add_piece(changed, *at, cover.begin, cover.end, now.state, reads, &cover);
    }
    return true;
}

inline bool RangeStore::is_precisely(const Entry &entry, const Live &after) const {
    return slots.holds(entry.slot, after.state) && entry.reads.count == after.reads.size();
}

inline RangeStore::ChangedPiece *RangeStore::put_changed(const Cover &cover, ChangedPiece *piece, ChangedPiece *end) {
    RangeTree *tree = nullptr;
    auto held = RangeTree::nowhere();
    for (; piece != end && piece->of == &cover; ++piece) {
        const Address begin = piece->begin;
        held = held.end() ? pieces.find(cover.space, begin, RangePieces::shared(cover.hint), tree)
                          : RangePieces::follow(*tree, held, begin);
        if (!held.end() && held->end == piece->end) {
            const Entry before = held->value;
            set(held.value(), piece->state, piece->write, piece->reads);
            pieces.release(before);
        } else {
            const Entry entry = entry_of(piece->state, piece->write, piece->reads);
            pieces.replace(*tree, piece->begin, piece->end, &entry);
            held = RangeTree::nowhere();
        }
    }
    return piece;
}

}  // namespace vkharness

#endif
