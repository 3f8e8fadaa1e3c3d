// The call stack of each call, as return addresses.
//
// Theory of operation
// ===================
//
// The unwinder takes about a microsecond a frame. What it finds is nearly always known: a function keeps its return
// address at a fixed distance from that of the function that it called at one place. So it is asked once a place, and
// `steps` keeps, for each return address, how far the next one lies up the stack. A known stack is then read frame by
// frame: one word of memory and one look into a table each. A frame whose size may vary (an array of variable length) is
// addressed by its base register, and so its return address is found by that. What callers' bases are is followed as
// far as functions in between keep them or are addressed by theirs. Stale return addresses lie on the stack as well: a
// word that looks like one proves nothing. Of a place whose distance is found to differ or whose return address is not kept on the stack beside the frame (leaf
// frames of aarch64) the unwinder is asked each time.
//
// A stack is numbered when it is first seen. The stream says which addresses it has, and before that which files are
// mapped where.

#ifndef VKHARNESS_MIRROR_STACKS_HPP
#define VKHARNESS_MIRROR_STACKS_HPP

#include "readable.hpp"
#include "stream.hpp"

#include <elf.h>
#include <link.h>
#include <unordered_map>
#include <unwind.h>
#include <vector>

namespace vkharness::mirror {

// Where a call of the program came in.
struct Entry {
    std::uint64_t address;  // to which the layer's function returns
    std::uint64_t frame;  // its canonical frame address: the return address lies just below
    std::uint64_t base;  // the caller's base register
};

struct Frames {
    static constexpr unsigned MOST = 64;
    unsigned count = 0;
    std::uint64_t addresses[MOST];
};

class Steps {
  public:
    // Others: bytes up to the next return address, a multiple of 8, and KEEPS where the caller has the same base.
    static constexpr std::int64_t UNKNOWN = 0, VARIES = 1, LAST = 2, BY_BASE = 3, KEEPS = 4;

    std::int64_t after(std::uint64_t address) const {
        for (std::uint64_t at = place(address), tries = 0; tries < TRIES; ++tries, at = (at + 1) % PLACES) {
            const std::uint64_t found = rows_[at].address.load(std::memory_order_acquire);
            if (found == address) return rows_[at].step.load(std::memory_order_relaxed);
            if (!found) return UNKNOWN;
        }
        return VARIES;  // nothing can be kept of it
    }

    // The stream's lock is held.
    void learn(std::uint64_t address, std::int64_t step) {
        for (std::uint64_t at = place(address), tries = 0; tries < TRIES; ++tries, at = (at + 1) % PLACES) {
            const std::uint64_t found = rows_[at].address.load(std::memory_order_relaxed);
            if (found && found != address) continue;
            const std::int64_t known = rows_[at].step.load(std::memory_order_relaxed);
            rows_[at].step.store(known && known != step ? VARIES : step, std::memory_order_relaxed);
            rows_[at].address.store(address, std::memory_order_release);
            return;
        }
    }

    void forget() {
        for (std::uint64_t at = 0; at < PLACES; ++at) rows_[at].address.store(0), rows_[at].step.store(UNKNOWN);
    }

    // Takes no memory before it is written.
    bool open() { return (rows_ = static_cast<Row *>(std::calloc(PLACES, sizeof(Row)))) != nullptr; }

  private:
    static constexpr std::uint64_t PLACES = 1 << 15, TRIES = 16;
    struct Row {
        std::atomic<std::uint64_t> address;
        std::atomic<std::int64_t> step;
    };
    Row *rows_ = nullptr;

    static std::uint64_t place(std::uint64_t address) { return (address * 0x9E3779B97F4A7C15u) >> 49; }
};

class Stacks {
  public:
    static constexpr unsigned DEFAULT = 16;  // costs less than the record of a call

    void configure() {
        const char *const asked = std::getenv("VKHARNESS_STACKS");
        depth_ = asked ? static_cast<unsigned>(std::min(std::strtoul(asked, nullptr, 10), static_cast<unsigned long>(Frames::MOST))) : DEFAULT;
        if (!steps_.open()) depth_ = 0;
    }

    unsigned depth() const { return depth_; }

    // The return addresses of a call, innermost first. No lock is held.
    void take(const Entry &entry, Frames &frames, std::mutex &lock) {
        if (!depth_) return;
        const std::uint64_t page = entry.frame / PAGE;
        std::uint64_t address = entry.address, slot = entry.frame - 8, base = entry.base;
        for (;;) {
            frames.addresses[frames.count++] = address;
            if (frames.count == depth_) return;
            const std::int64_t step = steps_.after(address);
            if (step == Steps::LAST) return;
            if (step == Steps::UNKNOWN || step == Steps::VARIES) break;
            const bool by_base = step == Steps::BY_BASE;
            if (by_base && base <= slot) break;
            slot = by_base ? base + 8 : slot + static_cast<std::uint64_t>(step & ~std::int64_t(7));
            if (slot / PAGE != page && !(Readable::there(slot, 8) && Readable::there(slot - 8, 8))) break;
            if (by_base) base = *reinterpret_cast<const std::uint64_t *>(slot - 8);
            else if (!(step & Steps::KEEPS)) base = 0;
            address = *reinterpret_cast<const std::uint64_t *>(slot);
        }
        unwind(entry, frames, lock);
    }

    // The number of a stack; new ones are told to the stream. Its lock is held.
    std::uint32_t number(const Frames &frames, Stream &out, std::uint32_t thread) {
        if (!frames.count) return 0;
        if (generation_ != out.generation()) begin(out.generation());
        std::uint64_t hash = 0;
        for (unsigned at = 0; at < frames.count; ++at) hash = (hash ^ frames.addresses[at]) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
        std::vector<Known> &same = known_[hash];
        for (const Known &each : same) {
            if (each.addresses.size() == frames.count && std::equal(each.addresses.begin(), each.addresses.end(), frames.addresses)) return each.number;
        }
        if (last_ == MOST_STACKS) return 0;
        if (modules(out, thread)) return number(frames, out, thread);
        return told(frames, out, thread, same);
    }

  private:
    static constexpr std::uint64_t PAGE = 4096;
#ifdef __aarch64__
    static constexpr int BASE = 29;
#else
    static constexpr int BASE = 6;  // as DWARF counts registers
#endif
    static constexpr std::uint32_t MOST_STACKS = 1 << 20;

    struct Known {
        std::vector<std::uint64_t> addresses;
        std::uint32_t number;
    };
    struct Module {
        std::uint64_t base, start, end;
        std::string path;
        std::vector<unsigned char> build;
    };

    unsigned depth_ = DEFAULT;
    Steps steps_;
    std::unordered_map<std::uint64_t, std::vector<Known>> known_;
    std::vector<Module> modules_;
    std::uint32_t last_ = 0, generation_ = 0;
    unsigned long long added_ = 0, removed_ = 0;

    void begin(std::uint32_t generation) {
        generation_ = generation;
        known_.clear(), modules_.clear();
        last_ = 0, added_ = removed_ = 0;
    }

    struct Walk {
        const Entry &entry;
        Frames &frames;
        unsigned depth;
        std::uint64_t slots[Frames::MOST], bases[Frames::MOST];
        bool is_complete;
    };

    static _Unwind_Reason_Code frame(_Unwind_Context *context, void *given) {
        Walk &walk = *static_cast<Walk *>(given);
        const std::uint64_t above = _Unwind_GetCFA(context), address = _Unwind_GetIP(context);
        if (!walk.frames.count && above < walk.entry.frame) return _URC_NO_REASON;  // still the layer
        if (!address) return _URC_END_OF_STACK;
        walk.slots[walk.frames.count] = above - 8;
        walk.bases[walk.frames.count] = _Unwind_GetGR(context, BASE);
        walk.frames.addresses[walk.frames.count++] = address;
        if (walk.frames.count == walk.depth) {
            walk.is_complete = false;
            return _URC_NORMAL_STOP;
        }
        return _URC_NO_REASON;
    }

    void unwind(const Entry &entry, Frames &frames, std::mutex &lock) {
        frames.count = 0;
        Walk walk{entry, frames, depth_, {}, {}, true};
        _Unwind_Backtrace(frame, &walk);
        if (!frames.count) frames.addresses[frames.count++] = entry.address;
        const std::lock_guard<std::mutex> locked(lock);
        for (unsigned at = 0; at + 1 < frames.count; ++at) {
            steps_.learn(frames.addresses[at], is_kept(walk, at) && is_kept(walk, at + 1) ? step(walk, at) : Steps::VARIES);
        }
        if (walk.is_complete) steps_.learn(frames.addresses[frames.count - 1], Steps::LAST);
    }

    // From one frame to the next. One that keeps its caller's base where its own points to is addressed by it, in an unknown
    // way unless the return address lies beside.
    static std::int64_t step(const Walk &walk, unsigned at) {
        const std::uint64_t slot = walk.slots[at + 1], base = walk.bases[at];
        if (slot <= walk.slots[at]) return Steps::VARIES;
        if (walk.slots[at] < base && base < slot) {
            const bool is_kept = base % 8 == 0 && *reinterpret_cast<const std::uint64_t *>(base) == walk.bases[at + 1];
            if (is_kept) return base == slot - 8 ? Steps::BY_BASE : Steps::VARIES;
        }
        const auto size = static_cast<std::int64_t>(slot - walk.slots[at]);
        return size % 8 ? Steps::VARIES : size + (base == walk.bases[at + 1] ? Steps::KEEPS : 0);
    }

    // Whether the return address lies where x86-64 has it.
    static bool is_kept(const Walk &walk, unsigned at) {
        return Readable::there(walk.slots[at], 8) && *reinterpret_cast<const std::uint64_t *>(walk.slots[at]) == walk.frames.addresses[at];
    }

    // Tells the stream of what was loaded since the last time. Whether something was unloaded: what is known of
    // addresses is forgotten then.
    bool modules(Stream &out, std::uint32_t thread) {
        struct Look {
            Stacks *stacks;
            bool first, changed, unloaded;
            std::vector<Module> found;
        } look{this, true, false, false, {}};
        dl_iterate_phdr(
            [](dl_phdr_info *info, std::size_t, void *given) {
                Look &look = *static_cast<Look *>(given);
                if (look.first) {
                    look.first = false;
                    look.unloaded = look.stacks->removed_ != info->dlpi_subs && look.stacks->added_;
                    look.changed = look.stacks->added_ != info->dlpi_adds || look.unloaded;
                    look.stacks->added_ = info->dlpi_adds, look.stacks->removed_ = info->dlpi_subs;
                }
                if (!look.changed) return 1;
                look.found.push_back(described(*info));
                return 0;
            },
            &look);
        for (Module &each : look.found) {
            const auto same = [&](const Module &other) { return other.start == each.start && other.end == each.end && other.path == each.path; };
            if (std::none_of(modules_.begin(), modules_.end(), same)) tell(out, thread, each);
        }
        if (look.changed) modules_ = std::move(look.found);
        if (look.unloaded) steps_.forget(), known_.clear();
        return look.unloaded;
    }

    static Module described(const dl_phdr_info &info) {
        Module made{info.dlpi_addr, ~std::uint64_t(0), 0, info.dlpi_name ? info.dlpi_name : "", {}};
        for (unsigned at = 0; at < info.dlpi_phnum; ++at) {
            const ElfW(Phdr) &part = info.dlpi_phdr[at];
            const std::uint64_t start = info.dlpi_addr + part.p_vaddr;
            if (part.p_type == PT_NOTE) read_build(reinterpret_cast<const char *>(start), part.p_memsz, made.build);
            if (part.p_type != PT_LOAD) continue;
            made.start = std::min(made.start, start), made.end = std::max<std::uint64_t>(made.end, start + part.p_memsz);
        }
        if (made.path.empty()) {
            char path[4096];
            const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
            if (size > 0) made.path.assign(path, static_cast<std::size_t>(size));
        }
        return made;
    }

    static void read_build(const char *notes, std::uint64_t size, std::vector<unsigned char> &build) {
        for (std::uint64_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
            ElfW(Nhdr) note;
            std::memcpy(&note, notes + at, sizeof note);
            const std::uint64_t name = at + sizeof note, held = name + (note.n_namesz + 3) / 4 * 4;
            if (held + note.n_descsz > size) return;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !std::memcmp(notes + name, "GNU", 4)) {
                build.assign(notes + held, notes + held + note.n_descsz);
            }
            at = held + (note.n_descsz + 3) / 4 * 4;
        }
    }

    static void tell(Stream &out, std::uint32_t thread, const Module &module) {
        out.write(MODULE, 0, thread, 0, [&] {
            const std::uint64_t places[] = {module.base, module.start, module.end};
            const std::uint32_t sizes[] = {static_cast<std::uint32_t>(module.path.size()), static_cast<std::uint32_t>(module.build.size())};
            char *const to = out.room(sizeof places + sizeof sizes + sizes[0] + sizes[1]);
            if (!to) return;
            std::memcpy(to, places, sizeof places);
            std::memcpy(to + 24, sizes, sizeof sizes);
            std::memcpy(to + 32, module.path.data(), sizes[0]);
            std::memcpy(to + 32 + sizes[0], module.build.data(), sizes[1]);
        });
    }

    // The address right behind a call of the loader's own is not the program's.
    unsigned loaders(const Frames &frames) const {
        unsigned at = 0;
        const auto is_loader = [&](std::uint64_t address) {
            return std::any_of(modules_.begin(), modules_.end(), [&](const Module &each) {
                return each.start <= address && address < each.end && each.path.find("/libvulkan.so") != std::string::npos;
            });
        };
        while (at + 1 < frames.count && is_loader(frames.addresses[at])) ++at;
        return at;
    }

    std::uint32_t told(const Frames &frames, Stream &out, std::uint32_t thread, std::vector<Known> &same) {
        const unsigned first = loaders(frames);
        const std::uint32_t made = last_ + 1;
        const std::uint64_t count = frames.count - first;
        const std::uint64_t written = out.write(STACK, 0, thread, 0, [&] {
            const std::uint32_t head[] = {made, static_cast<std::uint32_t>(count)};
            char *const to = out.room(sizeof head + 8 * count);
            if (!to) return;
            std::memcpy(to, head, sizeof head);
            std::memcpy(to + sizeof head, frames.addresses + first, 8 * count);
        });
        if (!written) return 0;
        same.push_back({{frames.addresses, frames.addresses + frames.count}, made});
        return last_ = made;
    }
};

}  // namespace vkharness::mirror

#endif
