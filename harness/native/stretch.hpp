// A stretch of a tree of ranges that is made anew: what was there is read from left to right, and what comes in its place
// is added in the same order. It takes its place at the end, in one go.
//
// A piece that is added is joined to an equal one before it where that is allowed: at the addresses of the last `join`.
// Entries that are added become the stretch's, and then the tree's. No Python runs in here.

#ifndef VKHARNESS_STRETCH_HPP
#define VKHARNESS_STRETCH_HPP

#include "slots.hpp"

namespace vkharness {

inline Entry copied(Slots &slots, const Entry &entry) {
    Entry made = entry;
    made.reads = Reads::of(entry.reads.begin(), entry.reads.count);
    slots.share(made.slot);
    return made;
}

inline void release(Slots &slots, Entry &entry) {
    slots.leave(entry.slot);
    entry.reads.release();
}

class Stretch {
  public:
    // Begins with the first piece that ends at an address or behind it.
    Stretch(Slots &slots, RangeTree &tree, Address begin) : slots_(slots), tree_(tree), first_(tree.before(begin)) {
        if (first_.end() || first_->end < begin) first_ = tree.at_or_after(begin);
        at_ = first_;
        from_ = at_.end() ? 0 : at_->begin;
    }
    Stretch(const Stretch &) = delete;
    Stretch &operator=(const Stretch &) = delete;

    // What was there at an address is read next, or nothing was: then `next_begin` says where something is again.
    bool holds(Address at) const { return !at_.end() && from_ <= at; }
    Address next_begin(Address end) const { return at_.end() ? end : std::min(from_, end); }
    Address next_end(Address end) const { return std::min(at_->end, end); }
    const Entry &held() const { return at_->value; }
    bool is_exact(Address begin, Address end) const { return !at_.end() && at_->begin == begin && at_->end == end; }

    void join(Address begin, Address end) {
        joins_from_ = begin;
        joins_to_ = end;
    }

    void add(Address begin, Address end, Entry entry) {
        const bool joins = made_.size() && made_.back().end == begin && joins_from_ <= begin && begin <= joins_to_;
        if (joins && made_.back().value == entry) {
            made_.back().end = end;
            release(slots_, entry);
        } else {
            made_.push({begin, end, entry});
        }
    }

    // What was there before an address stays.
    void keep_to(Address end) {
        while (!at_.end() && from_ < end) {
            const Address stop = next_end(end);
            add(from_, stop, copied(slots_, at_->value));
            skip_to(stop);
        }
    }

    // What was there before an address is read.
    void skip_to(Address end) {
        for (; !at_.end() && at_->end <= end; ++old_) {
            at_ = at_.next();
            if (!at_.end()) from_ = at_->begin;
        }
        if (!at_.end()) from_ = std::max(from_, end);
    }

    // Makes the tree hold it, with what is left of the last piece that was read, or with one that begins there.
    void take_place(Address end) {
        if (!at_.end() && (from_ > at_->begin || from_ == end)) keep_to(at_->end);
        auto gone = first_;
        for (std::size_t each = 0; each < old_; ++each, gone = gone.next()) release(slots_, gone->value);
        tree_.splice(first_, old_, made_.begin(), made_.size());
    }

    // The tree holds what it held.
    void drop() {
        for (RangePiece &each : made_) release(slots_, each.value);
    }

  private:
    Slots &slots_;
    RangeTree &tree_;
    RangeTree::Place first_, at_ = first_;
    Address from_ = 0;  // where what was not read yet of `at_` begins
    std::size_t old_ = 0;  // pieces that were read
    Address joins_from_ = 1, joins_to_ = 0;
    Few<RangePiece, 24> made_;
};

}  // namespace vkharness

#endif
