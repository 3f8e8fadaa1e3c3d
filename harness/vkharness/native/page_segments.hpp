// Whose pages are followed, and how they are scanned. No Python here.
//
// Theory of operation
// ===================
//
// *Segments* are whole pages that the same ranges follow, in order and disjoint. A page is protected when its first
// range comes and released when its last one goes. A run of segments that touch is scanned at once: a run costs a call of
// the kernel, and divides the process's address space (`vm.max_map_count`: 65,530). Small ranges take pages before and
// behind along, the more the more runs there are, so that those of a heap make few runs; what else lies there costs a
// fault when it is written. Ranges beyond `MOST_RUNS` stay unprotected.
//
// A *block* is what one page table is for, 2 MiB. Blocks of large private memory are *cold* until a sparse scan finds
// something there; all others are *hot*, and scanned densely (page_protection.hpp says what that means). So what nobody
// ever touched costs nothing, and what is there costs little.

#ifndef VKHARNESS_PAGE_SEGMENTS_HPP
#define VKHARNESS_PAGE_SEGMENTS_HPP

#include "page_protection.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace vkharness {

class PageSegments {
  public:
    using Id = std::uint64_t;  // of a range
    static constexpr std::uint64_t PAGE = PageProtection::PAGE, BLOCK = 512 * PAGE;
    static constexpr int MOST_RUNS = 16384;
    static constexpr std::uint64_t MOST_MARGIN = 16 * PAGE;

    explicit PageSegments(PageProtection &protection) : protection_(protection) {}

    // Makes `id` one of those that follow some pages; false where some refuse. `shared` were followed before.
    bool guard(Id id, const Span &pages, Spans &shared) {
        if (runs_ >= MOST_RUNS) return false;
        split(pages.start);
        split(pages.end);
        std::uint64_t at = pages.start;
        for (auto next = segments_.lower_bound(at); at < pages.end; ++next) {
            const std::uint64_t gap = next == segments_.end() ? pages.end : std::min(next->first, pages.end);
            if (at < gap) {
                if (!protection_.protect({at, gap})) {
                    unguard(id, {pages.start, at});
                    return false;
                }
                next = segments_.emplace(at, Segment{gap, {id}}).first;
                runs_ += apart(next);
            } else {
                const Span known{next->first, next->second.end};
                if (!protection_.protect(known)) {  // other memory may be there by now
                    unguard(id, {pages.start, at});
                    return false;
                }
                next->second.ids.push_back(id);
                shared.push_back(known);
            }
            at = next->second.end;
        }
        plan_holds_ = false;
        return true;
    }

    void unguard(Id id, const Span &pages) {
        plan_holds_ = false;
        for (auto each = segments_.lower_bound(pages.start); each != segments_.end() && each->first < pages.end;) {
            std::vector<Id> &ids = each->second.ids;
            ids.erase(std::remove(ids.begin(), ids.end(), id), ids.end());
            if (ids.empty()) {
                protection_.release({each->first, each->second.end});
                runs_ -= apart(each);
                each = segments_.erase(each);
            } else {
                ++each;
            }
        }
    }

    // Protects everything anew. The ranges whose pages refuse.
    std::set<Id> protect_again() {
        std::set<Id> refused;
        for (const auto &[start, segment] : segments_) {
            if (!protection_.protect({start, segment.end})) refused.insert(segment.ids.begin(), segment.ids.end());
        }
        return refused;
    }

    // Which parts of the runs of segments are hot, and which are cold.
    void plan() {
        if (plan_holds_) return;
        plan_holds_ = true;
        hot_parts_.clear();
        cold_parts_.clear();
        Span run{0, 0};
        for (const auto &[start, segment] : segments_) {
            if (start != run.end) {
                divide(run);
                run.start = start;
            }
            run.end = segment.end;
        }
        divide(run);
    }

    void heat(const Span &pages) {
        for (std::uint64_t block = pages.start / BLOCK; block * BLOCK < pages.end; ++block) {
            if (hot_.insert(block).second) plan_holds_ = false;
        }
    }

    // Takes back what is known of memory that was at these addresses before.
    void cool(const Span &pages) {
        hot_.erase(hot_.lower_bound((pages.start + BLOCK - 1) / BLOCK), hot_.lower_bound(pages.end / BLOCK));
    }

    // Bytes that a small range takes along on either side.
    std::uint64_t margin() const { return std::min(PAGE + static_cast<std::uint64_t>(runs_) / 64 * PAGE, MOST_MARGIN); }

    const Spans &hot_parts() const { return hot_parts_; }
    const Spans &cold_parts() const { return cold_parts_; }

    // Tells `follower` who follows which part of some pages.
    template <typename Follower>
    void followers(const Span &pages, const Follower &follower) const {
        auto each = segments_.upper_bound(pages.start);
        if (each != segments_.begin()) --each;
        for (; each != segments_.end() && each->first < pages.end; ++each) {
            const Span inside{std::max(pages.start, each->first), std::min(pages.end, each->second.end)};
            if (inside.start >= inside.end) continue;
            for (const Id id : each->second.ids) follower(id, inside);
        }
    }

  private:
    struct Segment {
        std::uint64_t end;
        std::vector<Id> ids;
    };
    using Segments = std::map<std::uint64_t, Segment>;  // by start

    PageProtection &protection_;
    Segments segments_;
    int runs_ = 0;  // of segments that touch
    std::set<std::uint64_t> hot_;  // blocks, by their number
    Spans hot_parts_, cold_parts_;
    bool plan_holds_ = true;

    // How much the number of runs grows by a segment: 1 where it stands apart, -1 where it joins two.
    int apart(Segments::iterator segment) {
        const auto next = std::next(segment);
        const bool before = segment != segments_.begin() && std::prev(segment)->second.end == segment->first;
        return 1 - before - (next != segments_.end() && next->first == segment->second.end);
    }

    // A segment ends at an address, if one goes across it.
    void split(std::uint64_t at) {
        const auto next = segments_.upper_bound(at);
        if (next == segments_.begin()) return;
        const auto across = std::prev(next);
        if (across->first == at || across->second.end <= at) return;
        segments_.emplace_hint(next, at, Segment{across->second.end, across->second.ids});
        across->second.end = at;
    }

    void divide(const Span &run) {
        std::uint64_t at = run.start;
        for (auto hot = hot_.lower_bound(at / BLOCK); hot != hot_.end() && *hot * BLOCK < run.end; ++hot) {
            const Span part{std::max(*hot * BLOCK, run.start), std::min((*hot + 1) * BLOCK, run.end)};
            if (at < part.start) cold_parts_.push_back({at, part.start});
            if (!hot_parts_.empty() && hot_parts_.back().end == part.start) hot_parts_.back().end = part.end;
            else hot_parts_.push_back(part);
            at = part.end;
        }
        if (at < run.end) cold_parts_.push_back({at, run.end});
    }
};

}  // namespace vkharness

#endif
