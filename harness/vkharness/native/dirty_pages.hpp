// Which parts of followed ranges of memory were written since somebody last asked. No Python here.
//
// Theory of operation
// ===================
//
// A *range* is memory that somebody follows, by a number; it may start and end within pages. Ranges share pages: small
// mappings lie beside each other in a heap. What the kernel says of a page it says once, so that one scan is for all
// ranges: `look` scans everything, and writes down for each range what was written in it. `take` hands that out, range
// by range, whenever its owner comes.
//
// A range whose pages the kernel does not protect is *unprotected*: at each look all of it counts as written. So do all
// ranges where there is no protection at all. Who compares what counts as written with a copy, compares everything then.
//
// After fork, the child's pages are not protected. Its first call protects them again, and all of all ranges counts as
// written.

#ifndef VKHARNESS_DIRTY_PAGES_HPP
#define VKHARNESS_DIRTY_PAGES_HPP

#include "page_segments.hpp"

#include <mutex>
#include <pthread.h>
#include <unordered_map>

namespace vkharness {

class DirtyPages {
  public:
    using Id = PageSegments::Id;
    static constexpr std::uint64_t PAGE = PageProtection::PAGE;
    static constexpr std::uint64_t LARGE = 1 << 24;  // bytes from which on it pays to ask what is there at all
    static constexpr std::uint64_t NEAR = 4 * PAGE;  // written parts that lie so close are one
    static constexpr std::size_t MOST_PARTS = 1 << 16;  // of one range, before all of it counts as written

    struct Followed {
        Id id;
        bool is_protected;
        Spans held;  // bytes of the range outside of which all is zero, or, of fresh ranges, nobody has looked
    };

    // That of the process: a page has one protection.
    static DirtyPages &of_process() {
        static DirtyPages *const made = new DirtyPages();  // never destroyed: ranges may outlive it otherwise
        return *made;
    }

    // Follows writes from now on. What a `fresh` range holds was written by nobody.
    Followed follow(std::uint64_t start, std::uint64_t size, bool fresh) {
        const std::lock_guard<std::mutex> locked(mutex_);
        ready();
        const Id id = ++last_;
        const Span bytes{start, start + size};
        Range &range = ranges_[id] = Range{bytes, false, {}};
        const Span pages = pages_of(bytes);
        Spans shared;
        if (!size || why_not_ || !segments_.guard(id, pages, shared)) return unprotected(id);
        range.is_protected = true;
        if (size < PageSegments::BLOCK) take_along(id, pages);
        Spans held = shared;
        if (size >= LARGE && is_private_anonymous(pages)) {
            if (held.empty()) segments_.cool(pages);
            scan_cold(pages);
            held.insert(held.end(), range.written.begin(), range.written.end());
        } else {
            segments_.heat(pages);
            scan_hot(pages);
            if (!covered(range, std::move(shared))) return unprotected(id);
            if (size < LARGE || !fresh || !resident(pages, held)) held = {bytes};
        }
        range.written.clear();
        touched_.erase(id);
        for (Span &each : held) each = {std::max(each.start, bytes.start), std::min(each.end, bytes.end)};
        return {id, true, joined(std::move(held), bytes.start, NEAR)};
    }

    void forget(Id id) {
        const std::lock_guard<std::mutex> locked(mutex_);
        ready();
        const auto found = ranges_.find(id);
        if (found == ranges_.end()) return;
        if (found->second.is_protected) segments_.unguard(id, around(pages_of(found->second.bytes)));
        unprotected_.erase(id);
        touched_.erase(id);
        ranges_.erase(found);
    }

    // Whether the memory of a range is what it was when the range came.
    bool holds(Id id) {
        const std::lock_guard<std::mutex> locked(mutex_);
        ready();
        const auto found = ranges_.find(id);
        return found != ranges_.end() && found->second.is_protected && protection_.holds(pages_of(found->second.bytes));
    }

    // The ranges in which something is to be taken, in the order in which they came.
    std::vector<Id> look() {
        const std::lock_guard<std::mutex> locked(mutex_);
        ready();
        segments_.plan();
        for (const Span &each : segments_.hot_parts()) scan_hot(each);
        for (const Span &each : segments_.cold_parts()) scan_cold(each);
        for (const Id id : unprotected_) add(id, ranges_[id].bytes);
        return {touched_.begin(), touched_.end()};
    }

    // Takes the written parts of a range, in bytes from its start: in order, disjoint, with what lies between close
    // ones.
    Spans take(Id id) {
        const std::lock_guard<std::mutex> locked(mutex_);
        ready();
        const auto found = ranges_.find(id);
        if (found == ranges_.end()) return {};
        touched_.erase(id);
        Spans written;
        written.swap(found->second.written);
        return joined(std::move(written), found->second.bytes.start, NEAR);
    }

    // Nullptr while pages are protected, or why they are not.
    const char *why_not() {
        const std::lock_guard<std::mutex> locked(mutex_);
        ready();
        return why_not_;
    }

  private:
    struct Range {
        Span bytes;
        bool is_protected;
        Spans written;  // addresses
    };

    std::mutex mutex_;
    PageProtection protection_;
    PageSegments segments_{protection_};
    const char *why_not_ = "nobody has asked yet";
    bool is_ready_ = false, forked_ = false;
    Id last_ = 0;
    std::unordered_map<Id, Range> ranges_;
    std::set<Id> unprotected_, touched_;

    DirtyPages() = default;

    static Span pages_of(const Span &bytes) { return {bytes.start / PAGE * PAGE, (bytes.end + PAGE - 1) / PAGE * PAGE}; }

    static Span around(const Span &pages, std::uint64_t margin = PageSegments::MOST_MARGIN) {
        return {pages.start - std::min(pages.start, margin), pages.end + margin};
    }

    // Opens the protection at the first call, and anew in a child.
    void ready() {
        if (!is_ready_) {
            is_ready_ = true;
            why_not_ = protection_.open();
            pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); },
                           [] {
                               of_process().forked_ = true;
                               of_process().protection_.close();  // before the child gives these numbers to its files
                               of_process().mutex_.unlock();
                           });
        }
        if (forked_) born_again();
    }

    void born_again() {
        forked_ = false;
        why_not_ = protection_.open();
        for (auto &[id, range] : ranges_) add(id, range.bytes);
        for (const Id id : segments_.protect_again()) unprotected(id);
    }

    // Has a range follow its neighbouring pages, if they can be.
    void take_along(Id id, const Span &pages) {
        const Span wide = around(pages, segments_.margin());
        Spans shared;
        segments_.guard(id, {wide.start, pages.start}, shared);
        segments_.guard(id, {pages.end, wide.end}, shared);
        segments_.heat(wide);
    }

    void scan_hot(const Span &where) {
        if (!protection_.scan_dense(where, [this](const Span &run) { add_all(run); })) add_all(where);
    }

    void scan_cold(const Span &where) {
        const auto found = [this](const Span &run) {
            add_all(run);
            segments_.heat(run);
        };
        if (!protection_.scan_sparse(where, found)) add_all(where);
    }

    // Some pages were written.
    void add_all(const Span &run) {
        segments_.followers(run, [this](Id id, const Span &inside) { add(id, inside); });
    }

    void add(Id id, const Span &run) {
        Range &range = ranges_[id];
        const Span inside{std::max(run.start, range.bytes.start), std::min(run.end, range.bytes.end)};
        if (inside.start >= inside.end) return;
        Spans &written = range.written;
        if (written.size() == 1 && written[0].start <= inside.start && inside.end <= written[0].end) return;
        if (!written.empty() && written.back().end == inside.start) written.back().end = inside.end;
        else if (written.size() == MOST_PARTS) written = {range.bytes};
        else written.push_back(inside);
        touched_.insert(id);
    }

    // In order and disjoint, from `base`, with those joined that lie close.
    static Spans joined(Spans spans, std::uint64_t base, std::uint64_t near) {
        std::sort(spans.begin(), spans.end(), [](const Span &a, const Span &b) { return a.start < b.start; });
        Spans found;
        for (const Span &each : spans) {
            const Span inside{each.start - base, each.end - base};
            if (!found.empty() && inside.start <= found.back().end + near) {
                found.back().end = std::max(found.back().end, inside.end);
            } else {
                found.push_back(inside);
            }
        }
        return found;
    }

    // Has all of a range count as written at each look.
    Followed unprotected(Id id) {
        Range &range = ranges_[id];
        if (range.is_protected) segments_.unguard(id, around(pages_of(range.bytes)));
        range.is_protected = false;
        unprotected_.insert(id);
        return {id, false, {{0, range.bytes.end - range.bytes.start}}};
    }

    // Whether a dense scan gave every page of a range, but for those that were scanned before.
    static bool covered(const Range &range, Spans before) {
        before.insert(before.end(), range.written.begin(), range.written.end());
        const Spans all = joined(std::move(before), 0, 0);
        const auto holds = [&](const Span &one) { return one.start <= range.bytes.start && range.bytes.end <= one.end; };
        return std::any_of(all.begin(), all.end(), holds);
    }
};

}  // namespace vkharness

#endif
