// Flat plans: what commands do that differ from others of their kind in numbers only, as those numbers.
//
// A program that streams copies other bytes in each frame, so that nobody has said before what it says. What such a
// command does is an access of one or two buffers by known stages. So a `FlatPlan` has the numbers of its command, and
// an origin that it shares with other commands over the same buffers. Effects, and what else `EffectPlan` of
// harness/vkharness/trace/effects.py has, are made by Python when somebody asks for them.
//
// A command has a flat plan only where its ranges lie in their buffers, hold something, and cannot touch one another:
// what anything else means is Python's to say. Shaders make the same accesses to memory of given sizes wherever that
// lies (harness/vkharness/commands/drawing/shader_memory.py). So the flat plan of a dispatch or draw has the places of
// all memory that it accesses, and a `FlatReach` in the place of the origin. So has that of a barrier of one range of a buffer.

#ifndef VKHARNESS_FLAT_PLANS_HPP
#define VKHARNESS_FLAT_PLANS_HPP

#include "flat_kinds.hpp"

#include <cstring>
#include <vector>

namespace vkharness {

struct FlatSpan {
    long long begin, end;
    bool operator<(const FlatSpan &other) const { return begin != other.begin ? begin < other.begin : end < other.end; }
    bool operator==(const FlatSpan &other) const { return begin == other.begin && end == other.end; }
};

// Accesses of shaders to memory that may lie anywhere.
struct FlatReach {
    static constexpr std::size_t MOST = 16;  // accesses, which are held against one another
    // Numbers of a memory in a plan: the id of its resource, the space, where it begins, and how many bytes more than `Part::bytes`
    // say the last range has of each access of it.
    enum Word { RESOURCE, SPACE, BEGIN, EXTRA, WORDS };
    // Of an image Python says where that lies. ORDERS: no access, but a barrier of that range.
    enum Writes : std::uint8_t { NOTHING, MEMORY, IMAGE, ORDERS };
    struct Part {
        Ref access;  // one of its kind
        std::size_t memory;
        Writes writes;
        std::vector<FlatSpan> bytes;  // from the begin of the memory: sorted, and apart
    };

    PyObject_HEAD
    Ref unfold, given;     // Python: numbers to (effects, writes); the parts
    std::size_t memories;
    bool writes;           // any memory
    bool orders;           // whether anything of it does
    bool are_apart;        // whether it makes accesses alone, and no two of these can touch one address, but for reads of two memories, which need no order
    std::vector<Part> parts;

    static PyTypeObject *type;
    static FlatReach *of(PyObject *object) { return reinterpret_cast<FlatReach *>(object); }
    static bool is_one(PyObject *object) { return Py_TYPE(object) == type; }

    // FlatReach(unfold, number of memories, ((access, which memory, what it writes, bytes), ...))
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *unfold, *parts;
        Py_ssize_t memories;
        if (!PyArg_ParseTuple(arguments, "OnO!", &unfold, &memories, &PyTuple_Type, &parts)) return nullptr;
        const Py_ssize_t count = PyTuple_GET_SIZE(parts);
        if (!count || count > static_cast<Py_ssize_t>(MOST) || memories < 1 || memories > count) return FlatKind::fault();
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        FlatReach *const reach = of(self.get());
        new (&reach->unfold) Ref(Ref::share(unfold));
        new (&reach->given) Ref(Ref::share(parts));
        new (&reach->parts) std::vector<Part>();
        reach->memories = static_cast<std::size_t>(memories);
        reach->writes = reach->orders = false;
        reach->are_apart = true;
        for (Py_ssize_t at = 0; at < count; ++at) {
            if (!reach->add(PyTuple_GET_ITEM(parts, at))) return PyErr_Occurred() ? nullptr : FlatKind::fault();
        }
        return self.release();
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        of(object)->unfold.~Ref();
        of(object)->given.~Ref();
        of(object)->parts.~vector();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(of(object)->unfold.get());
        Py_VISIT(of(object)->given.get());
        for (const Part &each : of(object)->parts) Py_VISIT(each.access.get());
        return 0;
    }

    static int clear(PyObject *) { return 0; }  // nothing, as of a kind

    // Whether memory that lies there has an owner, or is an image, and is near, and accesses of different memories cannot touch
    // one another, but for reads: what one of these meets does not depend on the others.
    bool fits(const std::uint64_t *numbers) const {
        for (const Part &part : parts) {
            const std::uint64_t *const place = numbers + WORDS * part.memory;
            if (place[BEGIN] >= static_cast<std::uint64_t>(FAR_ADDRESS) || place[EXTRA] >= static_cast<std::uint64_t>(FAR_ADDRESS)) return false;
            if ((place[SPACE] == place[RESOURCE]) != (part.writes == IMAGE) && part.writes != ORDERS) return false;
        }
        return !can_touch(numbers, false);
    }

    // Whether accesses of different memories that lie there can touch one address, where one of them writes, or any two.
    bool can_touch(const std::uint64_t *numbers, bool of_reads) const {
        FlatSpan hulls[MOST];
        for (std::size_t at = 0; at < parts.size(); ++at) {
            const std::uint64_t *const place = numbers + WORDS * parts[at].memory;
            const long long begin = static_cast<long long>(place[BEGIN]);
            hulls[at] = {begin + parts[at].bytes.front().begin, begin + parts[at].bytes.back().end + static_cast<long long>(place[EXTRA])};
            for (std::size_t before = 0; before < at; ++before) {
                const bool are_reads = parts[before].writes == NOTHING && parts[at].writes == NOTHING;
                if (parts[before].memory == parts[at].memory || (are_reads && !of_reads)) continue;
                const bool is_there = numbers[WORDS * parts[before].memory + SPACE] == place[SPACE];
                if (is_there && hulls[before].begin < hulls[at].end && hulls[at].begin < hulls[before].end) return true;
            }
        }
        return false;
    }

  private:
    bool add(PyObject *given) {
        PyObject *access, *bytes;
        Py_ssize_t memory, what;
        if (!PyTuple_Check(given) || !PyArg_ParseTuple(given, "OnnO!", &access, &memory, &what, &PyTuple_Type, &bytes)) return false;
        if (what < NOTHING || what > ORDERS || memory < 0 || static_cast<std::size_t>(memory) >= memories || !PyTuple_GET_SIZE(bytes)) return false;
        Part part{Ref::share(access), static_cast<std::size_t>(memory), static_cast<Writes>(what), {}};
        long long end = -1;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(bytes); ++at) {
            PyObject *const each = PyTuple_GET_ITEM(bytes, at);
            FlatSpan span;
            if (!PyTuple_Check(each) || PyTuple_GET_SIZE(each) != 2 || !near_number(PyTuple_GET_ITEM(each, 0), span.begin) ||
                !near_number(PyTuple_GET_ITEM(each, 1), span.end) || span.begin <= end || span.end <= span.begin) {
                return false;
            }
            end = span.end;
            part.bytes.push_back(span);
        }
        writes = writes || part.writes == MEMORY;
        orders = orders || part.writes == ORDERS;
        are_apart = are_apart && !orders;
        for (const Part &other : parts) {
            const bool touch = other.bytes.front().begin < end && part.bytes.front().begin < other.bytes.back().end;
            are_apart = are_apart && !(other.memory == part.memory && touch);
        }
        parts.push_back(std::move(part));
        return true;
    }
};

PyTypeObject *FlatReach::type = nullptr;

// A plan: the numbers of each region, or those of one and data, or where memory lies. It has an `EffectPlan`'s attributes.
struct FlatPlan {
    PyObject_VAR_HEAD
    PyObject *origin, *owners;  // origin: a FlatOrigin or a FlatReach; owners: syncval's, see `EffectPlan.owners`; none at first
    std::uint64_t words[1];

    static constexpr std::size_t MOST_REGIONS = 64;  // they are sorted whenever such a command is executed
    static constexpr std::size_t MOST_WORDS = 1 << 14;

    static PyTypeObject *type;
    static FlatPlan *of(PyObject *object) { return reinterpret_cast<FlatPlan *>(object); }
    static bool is_one(PyObject *object) { return Py_TYPE(object) == type; }
    bool is_of_shaders() const { return FlatReach::is_one(origin); }
    std::size_t size() const { return static_cast<std::size_t>(Py_SIZE(this)); }
    bool says(PyObject *given, const std::uint64_t *numbers, std::size_t count) const {
        return origin == given && size() == count && !std::memcmp(words, numbers, count * sizeof *words);
    }

    // None with an exception. The garbage collector looks at it when it has `owners`: before it is in no cycle.
    static Ref make(PyObject *origin, const std::uint64_t *numbers, std::size_t count) {
        FlatPlan *const plan = PyObject_GC_NewVar(FlatPlan, type, static_cast<Py_ssize_t>(count));
        if (!plan) return Ref();
        plan->origin = Py_NewRef(origin);
        plan->owners = nullptr;
        std::memcpy(plan->words, numbers, count * sizeof *numbers);
        return Ref::take(reinterpret_cast<PyObject *>(plan));
    }

    // Whether a command with these numbers has a flat plan.
    static bool fits(const FlatOrigin &origin, const std::uint64_t *numbers, std::size_t count) {
        const FlatKind &kind = origin.of_kind();
        const std::size_t end = kind.has_data ? kind.words : count;
        if (end > count || !end || end % kind.words || end > MOST_REGIONS * kind.words || count > MOST_WORDS) return false;
        FlatSpan whole[FlatKind::MOST];
        for (std::size_t at = 0; at < kind.count; ++at) {
            const FlatKind::Part &part = kind.parts[at];
            const FlatOrigin::Place &place = origin.place[part.buffer];
            FlatSpan &hull = whole[at] = {FAR_ADDRESS, 0};
            for (std::size_t region = 0; region < end; region += kind.words) {
                const std::uint64_t offset = numbers[region + part.offset], size = numbers[region + part.size];
                const std::uint64_t room = static_cast<std::uint64_t>(place.size);
                if (!size || offset > room || size > room - offset || size % static_cast<std::uint64_t>(kind.unit)) return false;
                hull.begin = std::min(hull.begin, static_cast<long long>(offset));
                hull.end = std::max(hull.end, static_cast<long long>(offset + size));
            }
        }
        if (kind.count < 2) return true;
        const FlatOrigin::Place &one = origin.place[kind.parts[0].buffer], &other = origin.place[kind.parts[1].buffer];
        return one.space != other.space || one.offset + whole[0].end <= other.offset + whole[1].begin ||
               other.offset + whole[1].end <= one.offset + whole[0].begin;
    }

    // The part that it shares with other plans: all but the ranges that it accesses. A FlatKind or a FlatReach.
    PyObject *likeness() const { return is_of_shaders() ? origin : of_origin().kind.get(); }
    bool has_data() const { return !is_of_shaders() && kind().has_data; }
    bool are_apart(bool reads_too = false) const { return !is_of_shaders() || (reach().are_apart && !(reads_too && reach().can_touch(words, true))); }
    bool does_write() const { return !is_of_shaders() || reach().writes; }

    std::size_t accesses() const { return is_of_shaders() ? reach().parts.size() : kind().count; }
    PyObject *access(std::size_t at) const { return is_of_shaders() ? reach().parts[at].access.get() : kind().parts[at].access.get(); }
    FlatReach::Writes writes(std::size_t at) const {
        if (is_of_shaders()) return reach().parts[at].writes;
        return kind().parts[at].writes ? FlatReach::MEMORY : FlatReach::NOTHING;
    }
    long long space(std::size_t at) const {
        if (is_of_shaders()) return static_cast<long long>(place_of(reach().parts[at])[FlatReach::SPACE]);
        return of_origin().place[kind().parts[at].buffer].space;
    }
    // That of a memory that shaders access.
    long long space_of(std::size_t memory) const { return static_cast<long long>(words[FlatReach::WORDS * memory + FlatReach::SPACE]); }

    // Calls a function with each range of an access, in order: sorted and joined where there are several. True where the
    // function always says that.
    template <typename Function>
    bool each_span(std::size_t at, Function function) const {
        return is_of_shaders() ? each_span(reach().parts[at], function) : each_span(kind().parts[at], function);
    }

    // The same of bytes from the begin of a memory that shaders access.
    template <typename Function>
    bool each_span(std::size_t memory, const FlatSpan *bytes, std::size_t count, Function function) const {
        const std::uint64_t *const place = words + FlatReach::WORDS * memory;
        const long long begin = static_cast<long long>(place[FlatReach::BEGIN]);
        for (std::size_t at = 0; at < count; ++at) {
            const long long more = at + 1 < count ? 0 : static_cast<long long>(place[FlatReach::EXTRA]);
            if (!function(FlatSpan{begin + bytes[at].begin, begin + bytes[at].end + more})) return false;
        }
        return true;
    }

    // The plan of a command that accesses memory with these numbers before it does what this one does. None where it has no flat
    // one, or with an exception.
    Ref behind(PyObject *reach, std::vector<std::uint64_t> &&there) const {
        there.insert(there.end(), words, words + size());
        const FlatReach &of = *FlatReach::of(reach);
        const bool fits = is_of_shaders() && there.size() == FlatReach::WORDS * of.memories && of.fits(there.data());
        return fits ? make(reach, there.data(), there.size()) : Ref();
    }

    // As `merge` of harness/vkharness/spans.py, of ranges that hold something.
    static void join(std::vector<FlatSpan> &spans) {
        std::sort(spans.begin(), spans.end());
        std::size_t kept = 0;
        for (const FlatSpan &each : spans) {
            if (kept && each.begin <= spans[kept - 1].end) {
                spans[kept - 1].end = std::max(spans[kept - 1].end, each.end);
            } else {
                spans[kept++] = each;
            }
        }
        spans.resize(kept);
    }

  private:
    const FlatReach &reach() const { return *FlatReach::of(origin); }
    const FlatOrigin &of_origin() const { return *FlatOrigin::of(origin); }
    const FlatKind &kind() const { return of_origin().of_kind(); }
    std::size_t regions() const { return kind().has_data ? 1 : size() / kind().words; }
    const std::uint64_t *place_of(const FlatReach::Part &part) const { return words + FlatReach::WORDS * part.memory; }

    // The range that an access of a region is of.
    FlatSpan span(const FlatKind::Part &part, std::size_t region) const {
        const std::uint64_t *const numbers = words + region * kind().words;
        const long long begin = of_origin().place[part.buffer].offset + static_cast<long long>(numbers[part.offset]);
        return {begin, begin + static_cast<long long>(numbers[part.size])};
    }

    long long resource(std::size_t at) const {
        if (is_of_shaders()) return static_cast<long long>(place_of(reach().parts[at])[FlatReach::RESOURCE]);
        return of_origin().place[kind().parts[at].buffer].id;
    }

    // Whether the effects of a plan of the same likeness are equal: accesses of the same ranges. Data are no effect.
    bool does_as(const FlatPlan &other) const {
        if (says(other.origin, other.words, other.size())) return true;
        const auto spans_of = [](const FlatPlan &plan, std::size_t at) {
            std::vector<FlatSpan> spans;
            plan.each_span(at, [&](const FlatSpan &each) { return spans.push_back(each), true; });
            return spans;
        };
        for (std::size_t at = 0; at < accesses(); ++at) {
            if (space(at) != other.space(at) || resource(at) != other.resource(at)) return false;
            if (spans_of(*this, at) != spans_of(other, at)) return false;
        }
        return true;
    }

    template <typename Function>
    bool each_span(const FlatKind::Part &part, Function function) const {
        const std::size_t count = regions();
        if (count == 1) return function(span(part, 0));
        std::vector<FlatSpan> several;
        for (std::size_t at = 0; at < count; ++at) several.push_back(span(part, at));
        join(several);
        return std::all_of(several.begin(), several.end(), function);
    }

    template <typename Function>
    bool each_span(const FlatReach::Part &part, Function function) const {
        return each_span(part.memory, part.bytes.data(), part.bytes.size(), function);
    }

  public:
    // -- for Python -------------------------------------------------------------------------------------------------

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        Py_CLEAR(of(object)->owners);
        Py_CLEAR(of(object)->origin);
        PyObject_GC_Del(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(of(object)->origin);
        Py_VISIT(of(object)->owners);
        return 0;
    }

    static int clear(PyObject *object) {
        const Ref old = Ref::take(std::exchange(of(object)->owners, nullptr));
        return 0;
    }

    // (effects, writes), or none with an exception.
    static Ref unfolded(PyObject *object) {
        const FlatPlan &plan = *of(object);
        Ref made = plan.is_of_shaders() ? plan.unfolded_of_shaders() : plan.unfolded_of_kind();
        if (made && (!PyTuple_Check(made.get()) || PyTuple_GET_SIZE(made.get()) != 2)) {
            PyErr_SetString(PyExc_TypeError, "a plan is its effects and what they write");
            return Ref();
        }
        return made;
    }

    template <int WHICH>
    static PyObject *part_of(PyObject *object, void *) {
        const Ref made = unfolded(object);
        return made ? Py_NewRef(PyTuple_GET_ITEM(made.get(), WHICH)) : nullptr;
    }

    // behind(reach, numbers): the plan of a command that accesses memory with these numbers before it does what this one does, with what
    // it has in common with others like it; None where it has no flat one.
    static PyObject *behind_method(FlatPlan *self, PyObject *const *arguments) {
        if (!FlatReach::is_one(arguments[0]) || !PyTuple_Check(arguments[1])) return FlatKind::fault();
        std::vector<std::uint64_t> there;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(arguments[1]); ++at) {
            long long number;
            if (!near_number(PyTuple_GET_ITEM(arguments[1], at), number)) Py_RETURN_NONE;
            there.push_back(static_cast<std::uint64_t>(number));
        }
        Ref made = self->behind(arguments[0], std::move(there));
        return made || PyErr_Occurred() ? made.release() : Py_NewRef(Py_None);
    }

    // The parts of its FlatReach, or None.
    static PyObject *parts(PyObject *object, void *) {
        const FlatPlan &plan = *of(object);
        return Py_NewRef(plan.is_of_shaders() ? plan.reach().given.get() : Py_None);
    }

    static PyObject *apart(PyObject *object, void *) { return of(object)->are_apart(true) ? part_of<0>(object, nullptr) : Py_NewRef(Py_False); }

    // How many bytes of data it holds.
    static PyObject *held_bytes(PyObject *object, void *) {
        const FlatPlan &plan = *of(object);
        return PyLong_FromUnsignedLongLong(plan.has_data() ? plan.words[plan.kind().words - 1] : 0);
    }

    // Does to known memory what `writes` says.
    static PyObject *apply(PyObject *object, PyObject *memory) {
        const Ref writes = Ref::take(part_of<1>(object, nullptr));
        return writes ? PyObject_CallMethod(writes.get(), "apply", "O", memory) : nullptr;
    }

    static PyObject *yes(PyObject *, void *) { Py_RETURN_TRUE; }
    static PyObject *no(PyObject *, void *) { Py_RETURN_FALSE; }
    static PyObject *acts(PyObject *object, void *) {
        const FlatPlan &plan = *of(object);
        return plan.is_of_shaders() && plan.reach().orders ? part_of<0>(object, nullptr) : PyTuple_New(0);
    }

    static PyObject *get_owners(PyObject *object, void *) {
        const Locked locked(object);
        PyObject *const held = of(object)->owners;
        return Py_NewRef(held ? held : Py_None);
    }

    static int set_owners(PyObject *object, PyObject *given, void *) {
        Ref old;
        const Locked locked(object);
        old = Ref::take(std::exchange(of(object)->owners, Py_XNewRef(given)));
        if (given && !PyObject_GC_IsTracked(object)) PyObject_GC_Track(object);
        return 0;
    }

    static PyObject *iterate(PyObject *object) {
        const Ref effects = Ref::take(part_of<0>(object, nullptr));
        return effects ? PyObject_GetIter(effects.get()) : nullptr;
    }

    static Py_hash_t hash(PyObject *object) {
        const Ref effects = Ref::take(part_of<0>(object, nullptr));
        return effects ? PyObject_Hash(effects.get()) : -1;
    }

    static PyObject *text(PyObject *object) {
        const Ref effects = Ref::take(part_of<0>(object, nullptr));
        return effects ? PyUnicode_FromFormat("EffectPlan(%R)", effects.get()) : nullptr;
    }

    // Plans are equal if their effects are. Of other types the other one says it.
    static PyObject *compare(PyObject *one, PyObject *other, int how) {
        if ((how != Py_EQ && how != Py_NE) || !is_one(one) || !is_one(other)) Py_RETURN_NOTIMPLEMENTED;
        const FlatPlan &mine = *of(one);
        if (mine.likeness() == of(other)->likeness()) return PyBool_FromLong(mine.does_as(*of(other)) == (how == Py_EQ));
        const Ref effects = Ref::take(part_of<0>(one, nullptr));
        const Ref others = effects ? Ref::take(part_of<0>(other, nullptr)) : Ref();
        return others ? PyObject_RichCompare(effects.get(), others.get(), how) : nullptr;
    }

  private:
    Ref unfolded_of_shaders() const {
        const Ref given = numbers_of(words, size());
        return given ? Ref::take(PyObject_CallOneArg(reach().unfold.get(), given.get())) : Ref();
    }

    Ref unfolded_of_kind() const {
        const std::size_t count = kind().has_data ? kind().words : size();
        const Ref said = numbers_of(words, count);
        const std::uint64_t bytes = kind().has_data ? words[count - 1] : 0;
        const Ref data = said ? Ref::take(PyBytes_FromStringAndSize(reinterpret_cast<const char *>(words + count),
                                                                    static_cast<Py_ssize_t>(bytes)))
                              : Ref();
        if (!data) return Ref();
        PyObject *const given[] = {nullptr, of_origin().places.get(), said.get(), data.get()};
        return Ref::take(PyObject_Vectorcall(kind().unfold.get(), given + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    }
};

PyTypeObject *FlatPlan::type = nullptr;

inline bool add_flat_plans(PyObject *module) {
    static PyType_Slot kind_slots[] = {
        slot(Py_tp_new, caught<FlatKind::make>), slot(Py_tp_dealloc, FlatKind::unmake),
        slot(Py_tp_traverse, FlatKind::traverse), slot(Py_tp_clear, FlatKind::clear), {0, nullptr},
    };
    static PyType_Slot reach_slots[] = {
        slot(Py_tp_new, caught<FlatReach::make>), slot(Py_tp_dealloc, FlatReach::unmake),
        slot(Py_tp_traverse, FlatReach::traverse), slot(Py_tp_clear, FlatReach::clear), {0, nullptr},
    };
    static PyType_Slot origin_slots[] = {
        slot(Py_tp_dealloc, FlatOrigin::unmake), slot(Py_tp_traverse, FlatOrigin::traverse),
        slot(Py_tp_clear, FlatOrigin::clear), {0, nullptr},
    };
    static PyGetSetDef plan_values[] = {
        {"effects", FlatPlan::part_of<0>, nullptr, nullptr, nullptr},
        {"writes", FlatPlan::part_of<1>, nullptr, nullptr, nullptr},
        {"held_bytes", caught<FlatPlan::held_bytes>, nullptr, nullptr, nullptr},
        {"acts", FlatPlan::acts, nullptr, nullptr, nullptr},
        {"apart", FlatPlan::apart, nullptr, nullptr, nullptr},
        {"parts", FlatPlan::parts, nullptr, nullptr, nullptr},
        {"is_plain", caught<FlatPlan::yes>, nullptr, nullptr, nullptr},
        {"is_simple", caught<FlatPlan::yes>, nullptr, nullptr, nullptr},
        {"engine", caught<FlatPlan::no>, nullptr, nullptr, nullptr},
        {"owners", caught<FlatPlan::get_owners>, caught<FlatPlan::set_owners>, nullptr, nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    static PyMethodDef plan_methods[] = {
        {"apply", caught<FlatPlan::apply>, METH_O, "Does to known memory what `writes` says."},
        method<FlatPlan, FlatPlan::behind_method, 2>("behind"),
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot plan_slots[] = {
        slot(Py_tp_methods, plan_methods), slot(Py_tp_dealloc, FlatPlan::unmake), slot(Py_tp_traverse, FlatPlan::traverse),
        slot(Py_tp_clear, FlatPlan::clear), slot(Py_tp_getset, plan_values), slot(Py_tp_iter, FlatPlan::iterate),
        slot(Py_tp_hash, FlatPlan::hash), slot(Py_tp_richcompare, FlatPlan::compare), slot(Py_tp_repr, FlatPlan::text),
        {0, nullptr},
    };
    const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE;
    struct Made {
        PyTypeObject **type;
        PyType_Spec spec;
    } made[] = {
        {&FlatKind::type, {"vkharness.native._core.FlatKind", sizeof(FlatKind), 0, flags, kind_slots}},
        {&FlatReach::type, {"vkharness.native._core.FlatReach", sizeof(FlatReach), 0, flags, reach_slots}},
        {&FlatOrigin::type,
         {"vkharness.native._core.FlatOrigin", sizeof(FlatOrigin), 0, flags | Py_TPFLAGS_DISALLOW_INSTANTIATION, origin_slots}},
        {&FlatPlan::type,
         {"vkharness.native._core.FlatPlan", offsetof(FlatPlan, words), sizeof(std::uint64_t),
          flags | Py_TPFLAGS_DISALLOW_INSTANTIATION, plan_slots}},
    };
    for (Made &each : made) {
        *each.type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &each.spec, nullptr));
        if (!*each.type || PyModule_AddType(module, *each.type) < 0) return false;
    }
    return true;
}

}  // namespace vkharness

#endif
