// Known bytes of a memory, in pieces: as `KnownMemory.pieces` of harness/vkharness/commands/contents/known_memory.py has them.

#ifndef VKHARNESS_KNOWN_PIECES_HPP
#define VKHARNESS_KNOWN_PIECES_HPP

#include "flat_plans.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace vkharness {

class KnownPieces {
  public:
    static constexpr std::uint64_t MOST_LOOKED = 1 << 12;  // indices of a draw

    // Pieces in order; those that repeat a word are left out.
    bool read(PyObject *given) {
        for (Py_ssize_t at = 0; PyList_Check(given) && at < PyList_GET_SIZE(given); ++at) {
            long long begin, end, base;
            PyObject *chunk;
            const Ref row = Ref::share(PyList_GET_ITEM(given, at));
            if (!PyTuple_Check(row.get()) || !PyArg_ParseTuple(row.get(), "LL(OL)", &begin, &end, &chunk, &base)) return false;
            const Ref held = Ref::share(chunk), repeats = Ref::take(PyObject_GetAttrString(chunk, "repeats"));
            Ref data = repeats ? Ref::take(PyObject_GetAttrString(chunk, "data")) : Ref();
            if (!data || !PyBytes_Check(data.get())) return false;
            const bool fits = begin >= 0 && base <= begin && begin <= end && end < FAR_ADDRESS && end - base <= PyBytes_GET_SIZE(data.get());
            const auto whole = [](long long number) { return static_cast<std::uint64_t>(number); };
            if (repeats.get() == Py_False && fits) pieces_.push_back({whole(begin), whole(end), std::move(data), whole(begin - base)});
        }
        return PyList_Check(given);
    }

    // The words from an address on. False where they are not known.
    bool words(std::uint64_t at, std::uint32_t *words, std::size_t count) const {
        const char *const from = bytes(at, at + count * sizeof *words);
        if (from) std::memcpy(words, from, count * sizeof *words);
        return from;
    }

    // Where these bytes are, or nullptr.
    const char *bytes(std::uint64_t begin, std::uint64_t end) const {
        const auto behind = std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                                             [](std::uint64_t at, const Piece &piece) { return at < piece.begin; });
        if (behind == pieces_.begin()) return nullptr;
        const Piece &piece = *(behind - 1);
        if (piece.begin > begin || piece.end < end) return nullptr;
        return PyBytes_AS_STRING(piece.data.get()) + piece.skips + (begin - piece.begin);
    }

    // The vertices that so many indices of a size mean, if these have no gap.
    static bool vertices(const char *bytes, std::uint64_t count, std::uint64_t size, bool restart, FlatSpan &found) {
        if (size == 1) return vertices<std::uint8_t>(bytes, count, restart, found);
        if (size == 2) return vertices<std::uint16_t>(bytes, count, restart, found);
        return vertices<std::uint32_t>(bytes, count, restart, found);
    }

  private:
    struct Piece {
        std::uint64_t begin, end;
        Ref data;             // bytes
        std::uint64_t skips;  // of them lie before `begin`
    };

    // The vertices that indices mean, if these have no gap.
    template <typename Index>
    static bool vertices(const char *bytes, std::uint64_t count, bool restart, FlatSpan &found) {
        constexpr Index LARGEST = static_cast<Index>(-1);
        Index low = LARGEST, high = 0;
        std::uint64_t number = 0;
        const auto at = [&](std::uint64_t which) {
            Index index;
            std::memcpy(&index, bytes + which * sizeof index, sizeof index);
            return index;
        };
        for (std::uint64_t which = 0; which < count; ++which) {
            const Index each = at(which);
            if (restart && each == LARGEST) continue;
            low = std::min(low, each), high = std::max(high, each), ++number;
        }
        const std::uint64_t range = static_cast<std::uint64_t>(high) - low + 1;
        if (!number || range > number) return false;
        bool met[MOST_LOOKED];
        std::memset(met, 0, range * sizeof *met);
        std::uint64_t apart = 0;
        for (std::uint64_t which = 0; which < count; ++which) {
            const Index each = at(which);
            if (restart && each == LARGEST) continue;
            bool &is_met = met[each - low];
            apart += !is_met;
            is_met = true;
        }
        found = {low, static_cast<long long>(high) + 1};
        return apart == range;
    }

    std::vector<Piece> pieces_;
};

}  // namespace vkharness

#endif
