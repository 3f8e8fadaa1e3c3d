// What changes in mapped memory, for the stream: each mapping has a copy of what was sent of it.
//
// The copy begins with zeros, and so does the judge's. What the kernel says was written (`DirtyPages`) is compared with
// the copy, and the runs of words that differ are sent and taken over. Who wrote them, the host or the device, is the
// judge's to find out: it knows which work is pending.

#ifndef VKHARNESS_MIRROR_MAPPED_HPP
#define VKHARNESS_MIRROR_MAPPED_HPP

#include "changed_words.hpp"
#include "dirty_pages.hpp"
#include "stream.hpp"

#include <map>

namespace vkharness::mirror {

class MappedMemory {
  public:
    using Key = std::pair<std::uint64_t, std::uint64_t>;  // device and memory object

    // Before anything of the process is followed: its lock is taken inside the stream's.
    static void prepare() { DirtyPages::of_process().why_not(); }

    // Of what is `shared`, others may write the same bytes through other mappings.
    void allocated(const Key &memory, std::uint64_t size, bool shared) { allocations_[memory] = {size, shared}; }

    // Memory was mapped at an address. What it holds is sent.
    void mapped(const Key &memory, std::uint64_t offset, std::uint64_t size, std::uint64_t address, Stream &out, std::uint32_t thread) {
        unmapped(memory);
        const auto known = allocations_.find(memory);
        const bool is_known = known != allocations_.end();
        if (size == WHOLE) {
            if (!is_known || known->second.size < offset) return;
            size = known->second.size - offset;
        }
        if (!size || !address) return;
        void *const copy = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (copy == MAP_FAILED) return;
        Mapping &made = mappings_[memory] = Mapping{offset, size, reinterpret_cast<const char *>(address), static_cast<char *>(copy), 0};
        if (!is_known || known->second.is_shared || size < SMALL) {
            (size < SMALL ? small_ : whole_).insert(memory);
            compare(memory, made, {{0, size}}, out, thread);
        } else {
            compare(memory, made, follow(memory, made), out, thread);
        }
    }

    // Sends what was written in mapped memory since the last time. A small mapping is followed when it lasts: to begin
    // that costs more than to compare it.
    void look(Stream &out, std::uint32_t thread) {
        if (mappings_.empty()) return;
        for (const Key &each : whole_) compare(each, mappings_[each], {{0, mappings_[each].size}}, out, thread);
        for (const Key &each : small_) {
            const auto known = allocations_.find(each);
            if (known == allocations_.end() || known->second.is_shared) whole_.insert(each);
            else follow(each, mappings_[each]);
            compare(each, mappings_[each], {{0, mappings_[each].size}}, out, thread);
        }
        small_.clear();
        if (followed_.empty()) return;
        for (const DirtyPages::Id id : pages().look()) {
            const auto found = followed_.find(id);
            if (found != followed_.end()) compare(found->second, mappings_[found->second], pages().take(id), out, thread);
        }
    }

    void unmapped(const Key &memory) {
        const auto found = mappings_.find(memory);
        if (found != mappings_.end()) drop(found);
    }

    void freed(const Key &memory) {
        unmapped(memory);
        allocations_.erase(memory);
    }

    void device_destroyed(std::uint64_t device) {
        const Key first{device, 0};
        for (auto each = mappings_.lower_bound(first); each != mappings_.end() && each->first.first == device;) each = drop(each);
        const auto start = allocations_.lower_bound(first);
        allocations_.erase(start, std::find_if(start, allocations_.end(), [&](const auto &each) { return each.first.first != device; }));
    }

    // In a child of fork: the stream begins anew, and so do the copies.
    void born_again() {
        for (auto &[memory, mapping] : mappings_) munmap(mapping.copy, mapping.size);
        mappings_.clear(), followed_.clear(), whole_.clear(), small_.clear();
    }

  private:
    static constexpr std::uint64_t WHOLE = ~std::uint64_t(0), NEAR = 64, PIECE = 4 << 20, SMALL = 64 << 10;
    static constexpr std::size_t MOST_RUNS = 4096;

    struct Mapping {
        std::uint64_t offset, size;
        const char *now;
        char *copy;
        DirtyPages::Id id;  // 0: not followed
    };
    struct Allocation {
        std::uint64_t size;
        bool is_shared;
    };

    std::map<Key, Allocation> allocations_;
    std::map<Key, Mapping> mappings_;
    std::unordered_map<DirtyPages::Id, Key> followed_;
    std::set<Key> whole_, small_;  // compared whole at each look, or at the next one

    static DirtyPages &pages() { return DirtyPages::of_process(); }

    std::map<Key, Mapping>::iterator drop(std::map<Key, Mapping>::iterator which) {
        if (which->second.id) pages().forget(which->second.id), followed_.erase(which->second.id);
        whole_.erase(which->first), small_.erase(which->first);
        munmap(which->second.copy, which->second.size);
        return mappings_.erase(which);
    }

    // Follows the pages of a mapping. Gives the parts outside of which all is zero.
    Spans follow(const Key &memory, Mapping &mapping) {
        const DirtyPages::Followed made = pages().follow(reinterpret_cast<std::uint64_t>(mapping.now), mapping.size, false);
        mapping.id = made.id;
        followed_[made.id] = memory;
        return made.held;
    }

    static void compare(const Key &memory, Mapping &mapping, const Spans &written, Stream &out, std::uint32_t thread) {
        Spans runs;
        for (const Span &each : written) {
            const std::uint64_t start = each.start / WORD * WORD, end = std::min(mapping.size, (each.end + WORD - 1) / WORD * WORD);
            changed_words(mapping.now, mapping.copy, {start, end}, runs);
        }
        for (std::uint64_t near = NEAR; ; near *= 4) {
            join(runs, near);
            if (runs.size() <= MOST_RUNS) break;
        }
        for (const Span &run : runs) {
            for (std::uint64_t at = run.start; at < run.end; at += PIECE) send(memory, mapping, {at, std::min(at + PIECE, run.end)}, out, thread);
        }
    }

    static void join(Spans &runs, std::uint64_t near) {
        std::size_t kept = 0;
        for (std::size_t at = 1; at < runs.size(); ++at) {
            if (runs[at].start - runs[kept].end <= near) runs[kept].end = runs[at].end;
            else runs[++kept] = runs[at];
        }
        if (!runs.empty()) runs.resize(kept + 1);
    }

    // The bytes are read once: others may write them meanwhile.
    static void send(const Key &memory, Mapping &mapping, const Span &run, Stream &out, std::uint32_t thread) {
        const std::uint64_t size = run.end - run.start;
        const char *sent = nullptr;
        const std::uint64_t written = out.write(DATA, 0, thread, 0, [&] {
            const std::uint64_t head[] = {memory.first, memory.second, mapping.offset + run.start, size};
            char *const to = out.room(sizeof head + size);
            if (!to) return;
            std::memcpy(to, head, sizeof head);
            sent = static_cast<const char *>(std::memcpy(to + sizeof head, mapping.now + run.start, size));
        });
        if (written) std::memcpy(mapping.copy + run.start, sent, size);
    }
};

}  // namespace vkharness::mirror

#endif
