// What shaders access of memory that may lie anywhere, moved to where it lies: the native form of `ReachedAnywhere.at` in
// harness/commands/drawing/shader_memory.py, whose words these are.
//
// It leaves to Python what is rare: ranges that a dynamic offset clips, descriptors that share a resource.

#ifndef VKHARNESS_MOVED_ACCESSES_HPP
#define VKHARNESS_MOVED_ACCESSES_HPP

#include "flat_plans.hpp"
#include "slotted.hpp"

#include <algorithm>

namespace vkharness {

class MovedAccesses {
  public:
    static constexpr long long FAR = 1ll << 61;  // no memory lies there: sums stay in 64 bits

    // What is bound at a set index: the memory behind its descriptors by place, and its dynamic offsets.
    struct Held {
        long long index;
        Ref memories, dynamic;
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
    static Ref flat(PyObject *reached, AllHeld &held) {
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
            long long where[FlatReach::WORDS];
            if (!is_fixed(each, where)) {
                const Place place = find(each, held);
                if (!place.part || place.field(WHOLE) != Py_None || place.offset < 0) return Ref();
                for (const auto &[field, word] : {std::pair(RESOURCE, FlatReach::RESOURCE), std::pair(SPACE, FlatReach::SPACE),
                                                  std::pair(BEGIN, FlatReach::BEGIN)}) {
                    if (!near_number(place.field(field), where[word])) return Ref();
                }
                where[FlatReach::BEGIN] += place.offset;
                const long long id = where[FlatReach::RESOURCE];
                if (std::find(resources.begin(), resources.end(), id) != resources.end()) return Ref();
                resources.push(std::move(where[FlatReach::RESOURCE]));
            }
            for (const long long word : where) words.push(static_cast<std::uint64_t>(word));
        }
        return reach.fits(words.begin()) ? FlatPlan::make(kept, words.begin(), words.size()) : Ref();
    }

    // The effects; none where Python must find them, or with an exception. `reached` is a ReachedAnywhere.
    Ref at(PyObject *reached, AllHeld &held) const {
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
    // A part of memory: its fields are those of a MemoryPart.
    enum Part { RESOURCE, SPACE, BEGIN, END, LIMIT, READ, WHOLE, PARTS };

    struct Place {
        Ref part;
        long long offset = 0;  // the dynamic offset
        bool has_offset = false;
        PyObject *field(Part at) const { return PyTuple_GET_ITEM(part.get(), at); }
    };

    // Reads a number that is no address behind all memory. False where it is none, and no exception.
    static bool integer(PyObject *value, long long &found) {
        if (!PyLong_CheckExact(value)) return false;
        int overflow = 0;
        found = PyLong_AsLongLongAndOverflow(value, &overflow);
        return !overflow && found > -FAR && found < FAR;
    }

    // Where a (set index, place, number of its dynamic offset) lies. It has no part where Python must find that.
    static Place find(PyObject *used, AllHeld &held) {
        Place place;
        long long index, number;
        if (!PyTuple_CheckExact(used) || PyTuple_GET_SIZE(used) != 3 || !integer(PyTuple_GET_ITEM(used, 0), index) ||
            !integer(PyTuple_GET_ITEM(used, 2), number)) {
            return place;
        }
        for (Held &each : held) {
            if (each.index != index) continue;
            Ref part = Ref::share(PyDict_GetItemWithError(each.memories.get(), PyTuple_GET_ITEM(used, 1)));
            if (!part || !PyTuple_Check(part.get()) || PyTuple_GET_SIZE(part.get()) != PARTS) return place;
            place.has_offset = number >= 0 && number < PyTuple_GET_SIZE(each.dynamic.get());
            if (place.has_offset && !integer(PyTuple_GET_ITEM(each.dynamic.get(), number), place.offset)) return place;
            place.part = std::move(part);
            return place;
        }
        return place;
    }

    // Whether this is memory that lies in one place: (resource, space, first address).
    static bool is_fixed(PyObject *given, long long *where) {
        if (!PyTuple_CheckExact(given) || PyTuple_GET_SIZE(given) != FlatReach::WORDS) return false;
        for (Py_ssize_t at = 0; at < FlatReach::WORDS; ++at) {
            if (!near_number(PyTuple_GET_ITEM(given, at), where[at])) return false;
        }
        return true;
    }

    // Whether no dynamic offset clips memory. False also where this is no ReachedAnywhere.
    static bool can_move(PyObject *reached, AllHeld &held) {
        if (!PyTuple_Check(reached) || PyTuple_GET_SIZE(reached) != FIELDS) return false;
        PyObject *const moving = PyTuple_GET_ITEM(reached, MOVING);
        for (Py_ssize_t at = 0; PyTuple_CheckExact(moving) && at < PyTuple_GET_SIZE(moving); ++at) {
            if (!stays_inside(PyTuple_GET_ITEM(moving, at), held)) return false;
        }
        return PyTuple_CheckExact(moving);
    }

    static bool stays_inside(PyObject *used, AllHeld &held) {
        const Place place = find(used, held);
        if (!place.part) return false;
        if (!place.offset) return true;
        long long end, limit;
        return place.field(WHOLE) == Py_None && integer(place.field(END), end) && integer(place.field(LIMIT), limit) &&
               end + place.offset <= limit;
    }

    Ref moved(PyObject *access, AllHeld &held, Few<long long, 8> &resources) const {
        if (!PyTuple_CheckExact(access) || PyTuple_GET_SIZE(access) != 5) return Ref();
        const Place place = find(PyTuple_GET_ITEM(access, 1), held);
        if (!place.part) return Ref();
        long long id, begin;
        if (!integer(place.field(RESOURCE), id) || !integer(place.field(BEGIN), begin)) return Ref();
        if (std::find(resources.begin(), resources.end(), id) == resources.end()) resources.push(std::move(id));
        const Ref spans = place.field(WHOLE) != Py_None ? Ref::share(place.field(WHOLE))
                                                        : spans_from(PyTuple_GET_ITEM(access, 2), begin + place.offset);
        const Ref made = spans ? access_.copy() : Ref();
        if (!made) return Ref();
        Slotted::set(made, kind_, PyTuple_GET_ITEM(access, 0));
        Slotted::set(made, space_, place.field(SPACE));
        Slotted::set(made, spans_, spans.get());
        Slotted::set(made, resource_, place.field(RESOURCE));
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
