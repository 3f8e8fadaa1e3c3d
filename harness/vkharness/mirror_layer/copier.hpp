// Deep copies of what pointers lead to, by the tables: each copy has C's layout, and each pointer in it that is followed
// is the offset of a copy in the record. 0 is null, and 1 says that there was no readable memory.
//
// Nothing is believed of the program's memory: a pointer that Vulkan ignores may lead to what was given back. So all is
// read by `Readable::copy`, counts are taken from the copy, and what a record holds is limited in bytes, depth and links.

#ifndef VKHARNESS_MIRROR_COPIER_HPP
#define VKHARNESS_MIRROR_COPIER_HPP

#include "readable.hpp"
#include "update_templates.hpp"

namespace vkharness::mirror {

constexpr std::uint64_t UNREADABLE = 1;

class Copier {
  public:
    Copier(Stream &out, const UpdateTemplates &templates) : out_(out), templates_(templates) {}

    // What pointer argument `p` becomes. `succeeded` says whether outputs hold anything.
    std::uint64_t argument(const Pointer &p, const std::uint64_t *arguments, bool succeeded) {
        const std::uint64_t address = arguments[p.at];
        if (!address || p.what == What::NOTHING || (p.is_output && !succeeded)) return 0;
        std::uint64_t count;
        if (!count_of_argument(p, arguments, count)) return UNREADABLE;
        switch (p.what) {
            case What::GEOMETRIES: return geometries(p, arguments, count);
            case What::STRIDED: return strided(address, count, p.element, arguments[p.number]);
            default: return lead(p, address, count);
        }
    }

  private:
    static constexpr unsigned LINKS = 64, DEPTH = 24;
    static constexpr std::uint64_t LONGEST_TEXT = 16 << 20, PAGE = 4096, PIECE = 256;  // of a text
    static constexpr std::int32_t LOADERS_OWN[] = {47, 48};

    Stream &out_;
    const UpdateTemplates &templates_;
    unsigned depth_ = 0;

    bool is_good() const { return out_.state == Stream::State::GOOD; }

    bool count_of_argument(const Pointer &p, const std::uint64_t *arguments, std::uint64_t &count) {
        const std::uint64_t given = arguments[p.count_at];
        switch (p.counted) {
            case Counted::THROUGH:
            case Counted::PATH: {
                const std::uint64_t at = given + (p.counted == Counted::PATH ? p.number : 0);
                count = 0;
                return given && Readable::copy(&count, at, p.count_size);
            }
            default: count = counted(p, given); return true;
        }
    }

    std::uint64_t counted(const Pointer &p, std::uint64_t given) const {
        switch (p.counted) {
            case Counted::ONE: return 1;
            case Counted::FIXED: return p.number;
            case Counted::CEIL: return given / p.number + (given % p.number != 0);
            default: return given;
        }
    }

    // The copy of plain memory; `made` is where it is, nullptr where there is none.
    std::uint64_t copy(std::uint64_t address, std::uint64_t count, std::uint64_t element, char *&made) {
        made = nullptr;
        const std::uint64_t size = count * element;
        if (element && count > Readable::SPACE / element) return UNREADABLE;
        // No room is asked for what is not there.
        char last;
        if (size > PAGE && !Readable::copy(&last, address + size - 1, 1)) return UNREADABLE;
        char *const to = out_.room(size);
        if (!to) return 0;
        if (!Readable::copy(to, address, size)) {
            out_.give_back(to);
            return UNREADABLE;
        }
        made = to;
        return out_.offset(made);
    }

    std::uint64_t lead(const Pointer &p, std::uint64_t address, std::uint64_t count) {
        char *made;
        switch (p.what) {
            case What::PLAIN: return copy(address, count, p.element, made);
            case What::STRUCTS: return structs(STRUCTS[p.element], address, count);
            case What::TEXT: return text(address);
            case What::CHAIN: return chain(address);
            case What::TEMPLATED: return templated(address, count);
            case What::TEXTS: return list(address, count, [&](std::uint64_t each) { return text(each); });
            case What::STRUCT_LIST:
                return list(address, count, [&](std::uint64_t each) { return structs(STRUCTS[p.element], each, 1); });
            default: return 0;
        }
    }

    template <class Each>
    std::uint64_t list(std::uint64_t address, std::uint64_t count, Each &&each) {
        char *made;
        const std::uint64_t found = copy(address, count, sizeof(std::uint64_t), made);
        for (std::uint64_t at = 0; made && at < count && is_good(); ++at) {
            const std::uint64_t element = number_at(made + 8 * at, 8), leads = element ? each(element) : 0;
            std::memcpy(made + 8 * at, &leads, 8);
        }
        return found;
    }

    // With what lies between them, as its reader takes them.
    std::uint64_t strided(std::uint64_t address, std::uint64_t count, std::uint64_t size, std::uint64_t stride) {
        char *made;
        return copy(address, count ? (count - 1) * std::max(stride, size) + size : 0, 1, made);
    }

    std::uint64_t geometries(const Pointer &p, const std::uint64_t *arguments, std::uint64_t count) {
        std::uint64_t info = arguments[p.number];
        return list(arguments[p.at], count, [&](std::uint64_t each) -> std::uint64_t {
            const std::uint64_t place = info + GEOMETRY_COUNT;
            info += GEOMETRY_STRIDE;
            std::uint32_t pieces;
            if (!Readable::copy(&pieces, place, sizeof pieces)) return UNREADABLE;
            char *made;
            return copy(each, pieces, p.element, made);
        });
    }

    // The data of an update, by the handle of its template. Of one that was made before the stream nothing is known.
    std::uint64_t templated(std::uint64_t address, std::uint64_t handle) {
        static const UpdateTemplate none;
        const auto found = templates_.find(handle);
        const UpdateTemplate &made = found == templates_.end() ? none : found->second;
        char *const start = out_.room(made.size());
        char *to = start;
        for (const Pieces &each : made.pieces()) {
            if (!to) return 0;
            for (std::uint64_t at = 0; at < each.count && each.size; ++at) {
                const std::uint64_t from = address + each.offset + at * each.stride;
                if (!Readable::copy(to + at * each.size, from, each.size)) return out_.give_back(start), UNREADABLE;
            }
            const std::uint64_t size = each.size * each.count;
            std::memset(to + size, 0, UpdateTemplate::padded(each) - size);
            to += UpdateTemplate::padded(each);
        }
        return start ? out_.offset(start) : 0;
    }

    // No page is read behind the one where it ends.
    std::uint64_t text(std::uint64_t address) {
        char *start = nullptr;
        for (std::uint64_t size = 0; size < LONGEST_TEXT;) {
            const std::uint64_t piece = PIECE - (address + size) % PIECE;
            char *const made = out_.room(piece, 1);
            if (!made) return 0;
            if (!start) start = made;  // aligned or not: it is text
            if (!Readable::copy(made, address + size, piece)) break;
            if (char *const end = static_cast<char *>(std::memchr(made, 0, piece))) {
                out_.give_back(end + 1);
                return out_.offset(start);
            }
            size += piece;
        }
        if (start) out_.give_back(start);
        return UNREADABLE;
    }

    std::uint64_t structs(const Struct &kind, std::uint64_t address, std::uint64_t count) {
        char *made;
        const std::uint64_t found = copy(address, count, kind.size, made);
        for (std::uint64_t at = 0; made && kind.count && at < count && is_good(); ++at) follow(kind, made + at * kind.size);
        return found;
    }

    static bool is_meant(const Pointer &p, const char *place) {
        if (!p.guard) return true;
        const Guard &guard = GUARDS[p.guard];
        const std::int32_t value = static_cast<std::int32_t>(number_at(place + guard.at, 4));
        const std::int32_t *const first = GUARD_VALUES + guard.first;
        return std::find(first, first + guard.count, value) != first + guard.count;
    }

    // Replaces the pointers of a struct that was copied.
    void follow(const Struct &kind, char *place) {
        if (++depth_ > DEPTH) out_.state = Stream::State::TOO_DEEP;
        for (const Pointer *p = POINTERS + kind.first; p != POINTERS + kind.first + kind.count && is_good(); ++p) {
            const std::uint64_t address = number_at(place + p->at, 8);
            if (!address) continue;
            std::uint64_t leads = 0;
            if (!is_meant(*p, place)) {
                if (p->in_union) continue;
            } else if (p->what != What::NOTHING) {
                leads = lead(*p, address, counted(*p, p->count_size ? number_at(place + p->count_at, p->count_size) : 0));
            }
            std::memcpy(place + p->at, &leads, 8);
        }
        --depth_;
    }

    static const Struct *struct_of(std::int32_t type) {
        const StructType *const end = STRUCT_TYPES + sizeof STRUCT_TYPES / sizeof *STRUCT_TYPES;
        const auto *const found = std::lower_bound(STRUCT_TYPES, end, type, [](const StructType &each, std::int32_t wanted) { return each.type < wanted; });
        return found != end && found->type == type ? &STRUCTS[found->number] : nullptr;
    }

    // A chain of structs: those that the tables know whole, others as their heads, the loader's own left out.
    std::uint64_t chain(std::uint64_t address) {
        std::uint64_t first = 0;
        char *link = reinterpret_cast<char *>(&first);
        for (unsigned links = 0; address; ++links) {
            std::uint64_t leads = UNREADABLE, next = 0;
            char *made = nullptr;
            char head[16];
            if (links < LINKS && Readable::copy(head, address, sizeof head)) {
                const std::int32_t type = static_cast<std::int32_t>(number_at(head, 4));
                if (type == LOADERS_OWN[0] || type == LOADERS_OWN[1]) {
                    address = number_at(head + 8, 8);
                    continue;
                }
                const Struct *const kind = struct_of(type);
                leads = copy(address, 1, kind ? kind->size : 16, made);
                if (made) {
                    next = number_at(made + 8, 8);
                    std::memset(made + 8, 0, 8);
                    if (kind) follow(*kind, made);
                }
            }
            std::memcpy(link, &leads, 8);
            if (!made || !is_good()) break;
            link = made + 8, address = next;
        }
        return first;
    }
};

}  // namespace vkharness::mirror

#endif
