// The batches whose accesses a store holds: which of them are over, and what is ordered before the work that follows.

#ifndef VKHARNESS_BATCH_ORDER_HPP
#define VKHARNESS_BATCH_ORDER_HPP

#include <unordered_map>

#include "range_entries.hpp"

namespace vkharness {

class BatchOrder {
  public:
    struct Tag {
        long long submit, batch;
        bool operator>(const Tag &other) const {
            return submit != other.submit ? submit > other.submit : batch > other.batch;
        }
    };

    struct Batch {
        Address queue;
        Tag tag;
        bool over;
    };

    void add(std::uint32_t number, const Batch &batch) {
        batches_[number] = batch;
        set_over(number, batch.over);
    }
    void finish(std::uint32_t number) {
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
    void keep(Function is_kept) {
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

    // Whether any batch that is held is over.
    bool is_any_over() const { return any_over_; }

    // Whether there is a place, of an access that is over.
    bool is_over_at(PlaceNumber place) const { return place != NO_PLACE && is_finished(place); }

    // Whether the access at a place may go on while what follows runs.
    bool is_beyond(PlaceNumber place) const {
        const Batch *const found = batch(place);
        if (!found || found->queue == own_) return false;
        const auto ordered = clock_.find(found->queue);
        return ordered == clock_.end() || found->tag > ordered->second;
    }

  private:
    // Takes note of which of the batches that are held are over.
    void set_over(std::uint32_t number, bool is_over) {
        any_over_ = any_over_ || is_over;
        if (number >= MOST_BITS) return;
        if (is_over && over_.size() <= number / 64) over_.resize(number / 64 + 1);
        const std::uint64_t bit = std::uint64_t(1) << number % 64;
        if (is_over) over_[number / 64] |= bit;
        else if (number / 64 < over_.size()) over_[number / 64] &= ~bit;
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

    // Batches that were found lately, each in the place of its number.
    struct KnownBatch {
        std::uint32_t number = 0;
        const Batch *batch = nullptr;
    };
    static constexpr std::size_t KNOWN_BATCHES = 8;
    static constexpr std::uint32_t MOST_BITS = 1 << 22;  // a program that submits more often pays for a look-up

    std::unordered_map<std::uint32_t, Batch> batches_;
    std::vector<std::uint64_t> over_;  // a bit for each of the first numbers: whether such a batch is held, and over
    std::unordered_map<Address, Tag, AddressHash> clock_;
    Address own_ = 0;
    mutable KnownBatch known_batches_[KNOWN_BATCHES];
    bool any_over_ = false;
};

}  // namespace vkharness

#endif
