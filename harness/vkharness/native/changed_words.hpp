// Which words of memory differ from a copy of it. No Python here.
//
// Words are counted from where both begin. The last one may be cut short. Others may write the memory meanwhile: what
// they write is found now or the next time.

#ifndef VKHARNESS_CHANGED_WORDS_HPP
#define VKHARNESS_CHANGED_WORDS_HPP

#include "page_protection.hpp"

#include <algorithm>
#include <cstring>

namespace vkharness {

constexpr std::uint64_t WORD = 4, STRETCH = 1024;  // bytes; of equal memory, a stretch is passed over at once

// Adds the runs of words that differ in a part, which starts with a word.
inline void changed_words(const char *now, const char *then, const Span &part, Spans &runs) {
    for (std::uint64_t at = part.start; at < part.end;) {
        const std::uint64_t stretch = std::min(at + STRETCH, part.end);
        if (std::memcmp(now + at, then + at, stretch - at) == 0) {
            at = stretch;
            continue;
        }
        for (std::uint64_t end; at < stretch; at = end) {
            end = std::min(at + WORD, stretch);
            if (std::memcmp(now + at, then + at, end - at) == 0) continue;
            if (!runs.empty() && runs.back().end == at) runs.back().end = end;
            else runs.push_back({at, end});
        }
    }
}

}  // namespace vkharness

#endif
