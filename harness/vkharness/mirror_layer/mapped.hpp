// What changes in mapped memory, for the stream: each memory object that is mapped has a copy of what was sent of it.
//
// The copy begins with zeros, as the judge's does, and lasts as long as the object. What the kernel says was written
// (`DirtyPages`) is compared with the copy, and the runs of words that differ are sent and taken over. Who wrote them,
// the host or the device, is the judge's to find out: it knows which work is pending.

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

    // Before anything of the process is followed, since its lock is taken inside the stream's. The environment may ask
    // for comparison alone, as it may of the mirror of Python programs.
    void prepare() {
        const char *const asked = std::getenv("VKHARNESS_MAPPED_MEMORY");
        compares_ = asked && !std::strcmp(asked, "comparison");
        if (!compares_) pages().why_not();
    }

    // Of what is `shared`, others may write the same bytes through other mappings.
    void allocated(const Key &memory, std::uint64_t size, bool shared) {
        freed(memory);
        objects_[memory] = Object{size, shared, nullptr, {0, 0}};
    }

    // Memory was mapped at an address. What it holds is sent.
    void mapped(const Key &memory, std::uint64_t offset, std::uint64_t size, std::uint64_t address, Stream &out, std::uint32_t thread) {
        unmapped(memory);
        const bool is_known = objects_.count(memory) != 0;
        if (size == WHOLE) size = is_known ? objects_[memory].size - std::min(offset, objects_[memory].size) : 0;
        if (!size || !address || offset > WHOLE - size) return;
        if (!is_known) objects_[memory] = Object{offset + size, true, nullptr, {0, 0}};
        Object &object = objects_[memory];
        if (offset + size > object.size || !has_copy(object)) return;
        Mapping &made = mappings_[memory] = Mapping{offset, size, reinterpret_cast<const char *>(address), &object, 0};
        Spans first{{0, size}};
        if (object.is_shared || compares_) whole_.insert(memory);
        else if (size < SMALL) small_.insert(memory);
        else first = with_sent(made, follow(memory, made));
        compare(memory, made, first, out, thread);
    }

    // Sends what was written in mapped memory since the last time. A small mapping is followed when it lasts: to begin
    // that costs more than to compare it.
    void look(Stream &out, std::uint32_t thread) {
        if (mappings_.empty()) return;
        for (const Key &each : whole_) compare(each, mappings_[each], {{0, mappings_[each].size}}, out, thread);
        for (const Key &each : small_) {
            follow(each, mappings_[each]);
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
        const auto found = objects_.find(memory);
        if (found != objects_.end()) erase(found);
    }

    void device_destroyed(std::uint64_t device) {
        const Key first{device, 0};
        for (auto each = mappings_.lower_bound(first); each != mappings_.end() && each->first.first == device;) each = drop(each);
        for (auto each = objects_.lower_bound(first); each != objects_.end() && each->first.first == device;) each = erase(each);
    }

    // In a child of fork: the stream begins anew, and so do the copies.
    void born_again() {
        mappings_.clear(), followed_.clear(), whole_.clear(), small_.clear();
        while (!objects_.empty()) erase(objects_.begin());
    }

  private:
    static constexpr std::uint64_t WHOLE = ~std::uint64_t(0), NEAR = 64, PIECE = 4 << 20, SMALL = 64 << 10;
    static constexpr std::size_t MOST_RUNS = 4096;

    struct Object {
        std::uint64_t size;
        bool is_shared;
        char *copy;
        Span sent;  // outside of which the copy is zero
    };
    struct Mapping {
        std::uint64_t offset, size;
        const char *now;
        Object *object;
        DirtyPages::Id id;  // 0: not followed
    };

    bool compares_ = false;
    std::map<Key, Object> objects_;
    std::map<Key, Mapping> mappings_;
    std::unordered_map<DirtyPages::Id, Key> followed_;
    std::set<Key> whole_, small_;  // compared whole at each look, or at the next one

    static DirtyPages &pages() { return DirtyPages::of_process(); }

    std::map<Key, Mapping>::iterator drop(std::map<Key, Mapping>::iterator which) {
        if (which->second.id) pages().forget(which->second.id), followed_.erase(which->second.id);
        whole_.erase(which->first), small_.erase(which->first);
        return mappings_.erase(which);
    }

    std::map<Key, Object>::iterator erase(std::map<Key, Object>::iterator which) {
        if (which->second.copy) munmap(which->second.copy, which->second.size);
        return objects_.erase(which);
    }

    // The copy takes no memory before it is written.
    static bool has_copy(Object &object) {
        if (object.copy) return true;
        void *const made = mmap(nullptr, object.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED) return false;
        object.copy = static_cast<char *>(made);
        return true;
    }

    // The parts of a mapping that may differ from the copy, where `held` are those that may not be zero.
    static Spans with_sent(const Mapping &mapping, Spans held) {
        const Span &sent = mapping.object->sent;
        const std::uint64_t start = std::max(sent.start, mapping.offset), end = std::min(sent.end, mapping.offset + mapping.size);
        if (start < end) held.push_back({start - mapping.offset, end - mapping.offset});
        std::sort(held.begin(), held.end(), [](const Span &a, const Span &b) { return a.start < b.start; });
        return held;
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
        std::uint64_t done = 0;  // parts may overlap
        for (const Span &each : written) {
            const std::uint64_t start = std::max(done, each.start / WORD * WORD), end = std::min(mapping.size, (each.end + WORD - 1) / WORD * WORD);
            if (start < end) changed_words(mapping.now, mapping.object->copy + mapping.offset, {start, end}, runs);
            done = std::max(done, end);
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
        if (!written) return;
        Object &object = *mapping.object;
        const std::uint64_t at = mapping.offset + run.start;
        std::memcpy(object.copy + at, sent, size);
        object.sent = object.sent.end ? Span{std::min(object.sent.start, at), std::max(object.sent.end, at + size)} : Span{at, at + size};
    }
};

}  // namespace vkharness::mirror

#endif
