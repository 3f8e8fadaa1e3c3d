// Entries of ranges of addresses in a native store: a slot, and the places of the accesses that its state holds.

#ifndef VKHARNESS_RANGE_ENTRIES_HPP
#define VKHARNESS_RANGE_ENTRIES_HPP

#include <algorithm>
#include <cstdint>
#include <vector>

#include "span_tree.hpp"

namespace vkharness {

using PlaceNumber = std::uint64_t;
using SlotNumber = std::uint32_t;
constexpr PlaceNumber NO_PLACE = ~static_cast<PlaceNumber>(0);

// The place numbers of reads in the state's order: one without an allocation, more with one. Moved by hand, as a tree
// moves its values: `release` gives up what it has.
struct Reads {
    std::uint32_t count = 0;
    union {
        PlaceNumber one;
        PlaceNumber *several;
    };

    Reads() : one(0) {}
    const PlaceNumber *begin() const { return count < 2 ? &one : several; }
    const PlaceNumber *end() const { return begin() + count; }
    PlaceNumber operator[](std::size_t at) const { return begin()[at]; }

    static Reads of(const PlaceNumber *from, std::size_t count) {
        Reads made;
        if (count == 1) made.one = *from;
        if (count > 1) {
            made.several = new PlaceNumber[count];
            std::copy(from, from + count, made.several);
        }
        made.count = static_cast<std::uint32_t>(count);
        return made;
    }
    void release() {
        if (count > 1) delete[] several;
        count = 0;
    }
    bool operator==(const Reads &other) const {
        return count == other.count && std::equal(begin(), end(), other.begin());
    }
};

struct Entry {
    SlotNumber slot = 0;
    Reads reads;
    PlaceNumber write = NO_PLACE;
    bool operator==(const Entry &other) const {
        return slot == other.slot && write == other.write && reads == other.reads;
    }
};

using RangeTree = SpanTree<Entry>;

using RangePiece = RangeTree::Held;

struct AddressHash {
    std::size_t operator()(Address address) const {
        const auto low = static_cast<std::uint64_t>(address), high = static_cast<std::uint64_t>(address >> 64);
        return static_cast<std::size_t>((low ^ high * 31) * 0x9E3779B97F4A7C15ull >> 7);
    }
};

}  // namespace vkharness

#endif
