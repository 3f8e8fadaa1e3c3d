// Accesses of shaders to memory that may lie anywhere, moved to where it lies: the native form of `ReachedAnywhere.at`
// in harness/vkharness/commands/drawing/shader_memory.py, whose words these are.
//
// It leaves to Python what is rare: ranges that a dynamic offset clips, descriptors that share a resource.

#ifndef VKHARNESS_MOVED_ACCESSES_HPP
#define VKHARNESS_MOVED_ACCESSES_HPP

#include "flat_plans.hpp"
#include "numbered_contents.hpp"
#include "slotted.hpp"

#include <algorithm>

namespace vkharness {

class MovedAccesses {
  public:
    static constexpr long long FAR = 1ll << 61;  // no memory lies there: sums stay in 64 bits

    // The descriptor set at a set index: what it refers to (a MovedContents or a SetContents), and its dynamic offsets.
    struct Held {
        long long index;
        Ref contents, dynamic;
    };
    using AllHeld = Few<Held, 4>;

    // An access, of which others are made. False with an exception.
    bool learn(PyObject *access) {
        Py_ssize_t found[6];
        if (!access_.learn(access, {"access_kind", "space", "spans", "resource", "atomic", "certainty"}, found)) return false;
        kind_ = found[0], space_ = found[1], spans_ = found[2], resource_ = found[3], atomic_ = found[4], certainty_ = found[5];
        return true;
    }

    PyObject *like() const { return access_.like(); }

    // The flat plan (flat_plans.hpp) of the accesses; none where there is none, or with an exception.
    static Ref flat(PyObject *reached, const AllHeld &held) {
        if (!can_move(reached, held)) return Ref();
        const Ref given = Ref::share(PyTuple_GET_ITEM(reached, FLAT));
        if (!PyTuple_CheckExact(given.get()) || PyTuple_GET_SIZE(given.get()) != 2) return Ref();
        PyObject *const kept = PyTuple_GET_ITEM(given.get(), 0), *const places = PyTuple_GET_ITEM(given.get(), 1);
        if (!FlatReach::is_one(kept) || !PyTuple_CheckExact(places)) return Ref();
        const FlatReach &reach = *FlatReach::of(kept);
        if (static_cast<std::size_t>(PyTuple_GET_SIZE(places)) != reach.memories) return Ref();
        Few<std::uint64_t, FlatReach::WORDS * 4> words;
        Few<long long, 8> resources;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(places); ++at) {
            PyObject *const each = PyTuple_GET_ITEM(places, at);
            long long where[FlatReach::WORDS] = {};
            if (!is_fixed(each, where)) {
                Numbers place;
                if (!read(each, held, place) || place.is_whole || place.offset < 0) return Ref();
                where[FlatReach::RESOURCE] = place.where.resource;
                where[FlatReach::SPACE] = place.where.space;
                where[FlatReach::BEGIN] = place.where.begin + place.offset;
                const long long id = where[FlatReach::RESOURCE];
                if (std::find(resources.begin(), resources.end(), id) != resources.end()) return Ref();
                resources.push(std::move(where[FlatReach::RESOURCE]));
            }
            for (const long long word : where) words.push(static_cast<std::uint64_t>(word));
        }
        return reach.fits(words.begin()) ? FlatPlan::make(kept, words.begin(), words.size()) : Ref();
    }

    // The effects; none where Python must find them, or with an exception. `reached` is a ReachedAnywhere.
    Ref at(PyObject *reached, const AllHeld &held) const {
        if (!can_move(reached, held)) return Ref();
        PyObject *const others = PyTuple_GET_ITEM(reached, BEFORE), *const accesses = PyTuple_GET_ITEM(reached, ACCESSES);
        PyObject *const behind = PyTuple_GET_ITEM(reached, BEHIND);
        if (!PyTuple_CheckExact(others) || !PyTuple_CheckExact(accesses) || !PyTuple_CheckExact(behind)) return Ref();
        const Py_ssize_t first = PyTuple_GET_SIZE(others), count = PyTuple_GET_SIZE(accesses), more = PyTuple_GET_SIZE(behind);
        Ref effects = Ref::take(PyTuple_New(first + count + more));
        Few<long long, 8> resources;
        for (Py_ssize_t at = 0; effects && at < first; ++at) {
            PyTuple_SET_ITEM(effects.get(), at, Py_NewRef(PyTuple_GET_ITEM(others, at)));
        }
        for (Py_ssize_t at = 0; effects && at < more; ++at) {
            PyTuple_SET_ITEM(effects.get(), first + count + at, Py_NewRef(PyTuple_GET_ITEM(behind, at)));
        }
        for (Py_ssize_t at = 0; effects && at < count; ++at) {
            Ref access = moved(PyTuple_GET_ITEM(accesses, at), held, resources);
            if (!access) return access;
            PyTuple_SET_ITEM(effects.get(), first + at, access.release());
        }
        long long number;
        if (!effects || !integer(PyTuple_GET_ITEM(reached, NUMBER), number)) return Ref();
        const bool apart = static_cast<long long>(resources.size()) >= number;
        return apart ? (first || more ? std::move(effects) : left_out(std::move(effects))) : Ref();
    }

  private:
    enum Reached { BEFORE, ACCESSES, BEHIND, MOVING, NUMBER, FLAT, FIELDS };  // the fields of a ReachedAnywhere
    struct Place {
        Ref part;              // a MemoryPart
        long long offset = 0;  // the dynamic offset
        PyObject *field(MovedContents::Part at) const { return PyTuple_GET_ITEM(part.get(), at); }
    };
    // The same in numbers.
    struct Numbers {
        MovedContents::Where where{};
        long long offset = 0;
        bool is_whole = false;
    };

    // Reads a number that is no address behind all memory. False where it is none, and no exception.
    static bool integer(PyObject *value, long long &found) {
        if (!PyLong_CheckExact(value)) return false;
        int overflow = 0;
        found = PyLong_AsLongLongAndOverflow(value, &overflow);
        return !overflow && found > -FAR && found < FAR;
    }

    // Finds the set that is bound where a (set index, place, number of its dynamic offset) is used, and that offset.
    // None where Python must find it.
    static const Held *bound(PyObject *used, const AllHeld &held, long long &offset) {
        long long index, number;
        if (!PyTuple_CheckExact(used) || PyTuple_GET_SIZE(used) != 3 || !integer(PyTuple_GET_ITEM(used, 0), index) ||
            !integer(PyTuple_GET_ITEM(used, 2), number)) {
            return nullptr;
        }
        for (const Held &each : held) {
            if (each.index != index) continue;
            const bool has_offset = number >= 0 && number < PyTuple_GET_SIZE(each.dynamic.get());
            return !has_offset || integer(PyTuple_GET_ITEM(each.dynamic.get(), number), offset) ? &each : nullptr;
        }
        return nullptr;
    }

    // Where that lies. It has no part where Python must find that.
    static Place find(PyObject *used, const AllHeld &held) {
        Place place;
        const Held *const each = bound(used, held, place.offset);
        const Ref memories = each ? MovedContents::field(each->contents, MovedContents::MEMORIES) : Ref();
        if (!memories || !PyDict_CheckExact(memories.get())) return place;
        Ref part = Ref::share(PyDict_GetItemWithError(memories.get(), PyTuple_GET_ITEM(used, 1)));
        if (part && PyTuple_Check(part.get()) && PyTuple_GET_SIZE(part.get()) == MovedContents::PARTS) place.part = std::move(part);
        return place;
    }

    // The same in numbers. False where Python must find that.
    static bool read(PyObject *used, const AllHeld &held, Numbers &found) {
        const Held *const each = bound(used, held, found.offset);
        PyObject *const place = each ? PyTuple_GET_ITEM(used, 1) : nullptr;
        if (!each || !MovedContents::is_one(each->contents.get())) return each && read_part(find(used, held), found);
        long long binding, element;
        if (!PyTuple_CheckExact(place) || PyTuple_GET_SIZE(place) != 2 || !integer(PyTuple_GET_ITEM(place, 0), binding) ||
            !integer(PyTuple_GET_ITEM(place, 1), element)) {
            return false;
        }
        const MovedContents::Where *const where = MovedContents::of(each->contents.get())->find(binding, element, found.is_whole);
        if (where) found.where = *where;
        return where != nullptr;
    }

    static bool read_part(const Place &place, Numbers &found) {
        MovedContents::Where &where = found.where;
        if (!place.part) return false;
        found.is_whole = place.field(MovedContents::WHOLE) != Py_None;
        return near_number(place.field(MovedContents::RESOURCE), where.resource) &&
               near_number(place.field(MovedContents::SPACE), where.space) && near_number(place.field(MovedContents::BEGIN), where.begin) &&
               near_number(place.field(MovedContents::END), where.end) && near_number(place.field(MovedContents::LIMIT), where.limit);
    }

    // Whether this is memory that lies in one place: (resource, space, first address).
    static bool is_fixed(PyObject *given, long long *where) {
        if (!PyTuple_CheckExact(given) || PyTuple_GET_SIZE(given) != FlatReach::EXTRA) return false;
        for (Py_ssize_t at = 0; at < FlatReach::EXTRA; ++at) {
            if (!near_number(PyTuple_GET_ITEM(given, at), where[at])) return false;
        }
        return true;
    }

    // Whether no dynamic offset clips memory. False also where this is no ReachedAnywhere.
    static bool can_move(PyObject *reached, const AllHeld &held) {
        if (!PyTuple_Check(reached) || PyTuple_GET_SIZE(reached) != FIELDS) return false;
        PyObject *const moving = PyTuple_GET_ITEM(reached, MOVING);
        for (Py_ssize_t at = 0; PyTuple_CheckExact(moving) && at < PyTuple_GET_SIZE(moving); ++at) {
            if (!stays_inside(PyTuple_GET_ITEM(moving, at), held)) return false;
        }
        return PyTuple_CheckExact(moving);
    }

    static bool stays_inside(PyObject *used, const AllHeld &held) {
        Numbers place;
        if (!read(used, held, place)) return false;
        return !place.offset || (!place.is_whole && place.where.end + place.offset <= place.where.limit);
    }

    Ref moved(PyObject *access, const AllHeld &held, Few<long long, 8> &resources) const {
        if (!PyTuple_CheckExact(access) || PyTuple_GET_SIZE(access) != 5) return Ref();
        const Place place = find(PyTuple_GET_ITEM(access, 1), held);
        if (!place.part) return Ref();
        long long id, begin;
        if (!integer(place.field(MovedContents::RESOURCE), id) || !integer(place.field(MovedContents::BEGIN), begin)) return Ref();
        if (std::find(resources.begin(), resources.end(), id) == resources.end()) resources.push(std::move(id));
        const Ref spans = place.field(MovedContents::WHOLE) != Py_None ? Ref::share(place.field(MovedContents::WHOLE))
                                                        : spans_from(PyTuple_GET_ITEM(access, 2), begin + place.offset);
        const Ref made = spans ? access_.copy() : Ref();
        if (!made) return Ref();
        Slotted::set(made, kind_, PyTuple_GET_ITEM(access, 0));
        Slotted::set(made, space_, place.field(MovedContents::SPACE));
        Slotted::set(made, spans_, spans.get());
        Slotted::set(made, resource_, place.field(MovedContents::RESOURCE));
        Slotted::set(made, atomic_, PyTuple_GET_ITEM(access, 3));
        Slotted::set(made, certainty_, PyTuple_GET_ITEM(access, 4));
        return left_out(Ref::share(made.get()));
    }

    static Ref spans_from(PyObject *bytes, long long begin) {
        if (!PyTuple_CheckExact(bytes)) return Ref();
        const Py_ssize_t count = PyTuple_GET_SIZE(bytes);
        Ref spans = Ref::take(PyTuple_New(count));
        for (Py_ssize_t at = 0; spans && at < count; ++at) {
            PyObject *const each = PyTuple_GET_ITEM(bytes, at);
            long long low, high;
            if (!PyTuple_CheckExact(each) || PyTuple_GET_SIZE(each) != 2 || !integer(PyTuple_GET_ITEM(each, 0), low) ||
                !integer(PyTuple_GET_ITEM(each, 1), high)) {
                return Ref();
            }
            const Ref first = Ref::take(PyLong_FromLongLong(begin + low)), last = Ref::take(PyLong_FromLongLong(begin + high));
            Ref span = first && last ? left_out(Ref::take(PyTuple_Pack(2, first.get(), last.get()))) : Ref();
            if (!span) return span;
            PyTuple_SET_ITEM(spans.get(), at, span.release());
        }
        return left_out(std::move(spans));
    }

    Slotted access_;
    Py_ssize_t kind_ = 0, space_ = 0, spans_ = 0, resource_ = 0, atomic_ = 0, certainty_ = 0;
};

}  // namespace vkharness

#endif
