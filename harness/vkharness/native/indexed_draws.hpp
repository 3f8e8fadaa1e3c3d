// The vertices of indexed draws that differ in numbers alone: the native form of `IndexedDraw.outcome` in
// harness/vkharness/commands/drawing/by_contents.py, for several draws at once.
//
// Most indices of a draw mean vertices without a gap. So what it reads of each vertex buffer is one range, and its plan is
// one behind the flat plan with which it was recorded. Python does the rest: indices that are not known, lie in several
// pieces, leave gaps or are many, of which it remembers what they mean.

#ifndef VKHARNESS_INDEXED_DRAWS_HPP
#define VKHARNESS_INDEXED_DRAWS_HPP

#include "moved_plans.hpp"

#include <array>

namespace vkharness {

struct IndexedDraws {
    static constexpr std::uint64_t MOST_LOOKED = 1 << 12;                     // indices of a draw
    static constexpr std::uint64_t MOST_STEP = 1 << 28, MOST_VERTEX = 1ull << 34;  // their product is near
    static constexpr std::size_t MOST_REACHES = 8, MOST_SOURCES = FlatReach::MOST;
    // The numbers of a draw, in the order of `NUMBERED` of harness/vkharness/commands/drawing/numbered_draws.py.
    enum Number { COUNT, INSTANCES, FIRST, FIRST_INSTANCE, OFFSET, NUMBERS };
    struct Indices {
        std::uint64_t space, base, limit, size;
        bool restart;
    };
    // A vertex buffer as bound: stride, and the first and last byte that is read of a vertex.
    struct Source {
        std::uint64_t resource, space, base, limit, stride, low, high;
    };
    struct Piece {
        std::uint64_t begin, end;
        Ref data;             // bytes
        std::uint64_t skips;  // of them lie before `begin`
    };
    // What draws do whose flat plans have one origin, with so many reads of vertices.
    struct Behind {
        Ref origin, reach;  // reach: None where there is none
        std::size_t reads;
    };

    PyObject_HEAD
    Ref behind;  // Python: (plan, number of reads of vertices) to a `FlatReach`, or None
    Indices indices;
    std::vector<Source> sources;
    std::vector<Behind> reaches;

    static PyTypeObject *type;
    static IndexedDraws *of(PyObject *object) { return reinterpret_cast<IndexedDraws *>(object); }

    // IndexedDraws(behind, (space, base, limit, size of an index, whether the largest restarts), ((resource, space, base, limit, stride,
    // low, high), ...))
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *behind, *indices, *sources;
        if (!PyArg_ParseTuple(arguments, "OO!O!", &behind, &PyTuple_Type, &indices, &PyTuple_Type, &sources)) return nullptr;
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        IndexedDraws *const draws = of(self.get());
        new (&draws->behind) Ref(Ref::share(behind));
        new (&draws->sources) std::vector<Source>();
        new (&draws->reaches) std::vector<Behind>();
        std::array<std::uint64_t, 7> row;
        bool good = read(indices, row.data(), 5) && (row[3] == 1 || row[3] == 2 || row[3] == 4);
        if (good) draws->indices = {row[0], row[1], row[2], row[3], row[4] != 0};
        good = good && PyTuple_GET_SIZE(sources) <= static_cast<Py_ssize_t>(MOST_SOURCES);
        for (Py_ssize_t at = 0; good && at < PyTuple_GET_SIZE(sources); ++at) {
            good = read(PyTuple_GET_ITEM(sources, at), row.data(), row.size()) && row[4] < MOST_STEP;
            draws->sources.push_back({row[0], row[1], row[2], row[3], row[4], row[5], row[6]});
        }
        return good ? self.release() : FlatKind::fault();
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        of(object)->reaches.~vector();
        of(object)->sources.~vector();
        of(object)->behind.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(of(object)->behind.get());
        for (const Behind &each : of(object)->reaches) {
            Py_VISIT(each.origin.get());
            Py_VISIT(each.reach.get());
        }
        return 0;
    }

    static int clear(PyObject *object) {
        std::vector<Behind> gone;
        gone.swap(of(object)->reaches);
        return 0;
    }

    // hull(numbers of draws): the addresses of all their indices, or None without any.
    static PyObject *hull_method(IndexedDraws *self, PyObject *const *arguments) {
        std::vector<std::uint64_t> numbers;
        if (!read_numbers(arguments[0], numbers)) return FlatKind::fault();
        std::uint64_t begin = self->indices.limit, end = 0;
        for (std::size_t at = 0; at < numbers.size(); at += NUMBERS) {
            const auto [low, high] = self->window(&numbers[at]);
            if (low < high) begin = std::min(begin, low), end = std::max(end, high);
        }
        if (begin >= end) Py_RETURN_NONE;
        return Py_BuildValue("KK", static_cast<unsigned long long>(begin), static_cast<unsigned long long>(end));
    }

    // plans(plans, first place, numbers, pieces): the plans of draws that have these numbers and, from a place on, these flat plans
    // beside the reads of vertices, where memory has these pieces: (begin, end, (chunk, address of its first byte)), ... None in the
    // place of one that Python must find.
    static PyObject *plans_method(IndexedDraws *self, PyObject *const *arguments) {
        std::vector<std::uint64_t> numbers;
        std::vector<Piece> pieces;
        const Py_ssize_t first = PyList_Check(arguments[0]) ? PyLong_AsSsize_t(arguments[1]) : -1;
        if (PyErr_Occurred()) return nullptr;
        if (first < 0 || !read_numbers(arguments[2], numbers) || !read_pieces(arguments[3], pieces)) {
            return PyErr_Occurred() ? nullptr : FlatKind::fault();
        }
        const Py_ssize_t count = static_cast<Py_ssize_t>(numbers.size() / NUMBERS);
        Ref found = Ref::take(PyList_New(count));
        for (Py_ssize_t at = 0; found && at < count; ++at) {
            Ref plan;
            if (at < PyList_GET_SIZE(arguments[0]) - first) {
                const Ref recorded = Ref::share(PyList_GET_ITEM(arguments[0], first + at));
                plan = self->plan(recorded.get(), &numbers[static_cast<std::size_t>(at) * NUMBERS], pieces);
            }
            if (PyErr_Occurred()) return nullptr;
            PyList_SET_ITEM(found.get(), at, plan ? plan.release() : Py_NewRef(Py_None));
        }
        return found.release();
    }

  private:
    static bool read(PyObject *given, std::uint64_t *row, std::size_t count) {
        if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != static_cast<Py_ssize_t>(count)) return false;
        for (std::size_t at = 0; at < count; ++at) {
            long long number;
            if (!near_number(PyTuple_GET_ITEM(given, static_cast<Py_ssize_t>(at)), number)) return false;
            row[at] = static_cast<std::uint64_t>(number);
        }
        return true;
    }

    static bool read_numbers(PyObject *given, std::vector<std::uint64_t> &numbers) {
        constexpr std::size_t ROW = NUMBERS * sizeof(std::uint64_t);
        if (!PyBytes_Check(given) || static_cast<std::size_t>(PyBytes_GET_SIZE(given)) % ROW) return false;
        numbers.resize(static_cast<std::size_t>(PyBytes_GET_SIZE(given)) / sizeof(std::uint64_t));
        if (!numbers.empty()) std::memcpy(numbers.data(), PyBytes_AS_STRING(given), numbers.size() * sizeof(std::uint64_t));
        return std::all_of(numbers.begin(), numbers.end(), [](std::uint64_t each) { return each < MOST_VERTEX; });
    }

    // Pieces in order; those that repeat a word are left out.
    static bool read_pieces(PyObject *given, std::vector<Piece> &pieces) {
        for (Py_ssize_t at = 0; PyList_Check(given) && at < PyList_GET_SIZE(given); ++at) {
            long long begin, end, base;
            PyObject *chunk;
            const Ref row = Ref::share(PyList_GET_ITEM(given, at));
            if (!PyTuple_Check(row.get()) || !PyArg_ParseTuple(row.get(), "LL(OL)", &begin, &end, &chunk, &base)) return false;
            const Ref held = Ref::share(chunk), repeats = Ref::take(PyObject_GetAttrString(chunk, "repeats"));
            Ref data = repeats ? Ref::take(PyObject_GetAttrString(chunk, "data")) : Ref();
            if (!data || !PyBytes_Check(data.get())) return false;
            const bool fits = begin >= 0 && base <= begin && begin <= end && end < FAR_ADDRESS && end - base <= PyBytes_GET_SIZE(data.get());
            const auto whole = [](long long number) { return static_cast<std::uint64_t>(number); };
            if (repeats.get() == Py_False && fits) pieces.push_back({whole(begin), whole(end), std::move(data), whole(begin - base)});
        }
        return PyList_Check(given);
    }

    // The addresses of the indices of a draw: whole ones.
    std::pair<std::uint64_t, std::uint64_t> window(const std::uint64_t *numbers) const {
        const std::uint64_t begin = std::min(indices.base + numbers[FIRST] * indices.size, indices.limit);
        const std::uint64_t end = std::min(indices.base + (numbers[FIRST] + numbers[COUNT]) * indices.size, indices.limit);
        return {begin, end - (end - begin) % indices.size};
    }

    // Where these bytes are, or nullptr.
    static const char *bytes(const std::vector<Piece> &pieces, std::uint64_t begin, std::uint64_t end) {
        const auto behind = std::upper_bound(pieces.begin(), pieces.end(), begin,
                                             [](std::uint64_t at, const Piece &piece) { return at < piece.begin; });
        if (behind == pieces.begin()) return nullptr;
        const Piece &piece = *(behind - 1);
        if (piece.begin > begin || piece.end < end) return nullptr;
        return PyBytes_AS_STRING(piece.data.get()) + piece.skips + (begin - piece.begin);
    }

    // The vertices that indices mean, if these have no gap.
    template <typename Index>
    static bool vertices(const char *bytes, std::uint64_t count, bool restart, FlatSpan &found) {
        constexpr Index LARGEST = static_cast<Index>(-1);
        Index low = LARGEST, high = 0;
        std::uint64_t number = 0;
        const auto at = [&](std::uint64_t which) {
            Index index;
            std::memcpy(&index, bytes + which * sizeof index, sizeof index);
            return index;
        };
        for (std::uint64_t which = 0; which < count; ++which) {
            const Index each = at(which);
            if (restart && each == LARGEST) continue;
            low = std::min(low, each), high = std::max(high, each), ++number;
        }
        const std::uint64_t range = static_cast<std::uint64_t>(high) - low + 1;
        if (!number || range > number) return false;
        bool met[MOST_LOOKED];
        std::memset(met, 0, range * sizeof *met);
        std::uint64_t apart = 0;
        for (std::uint64_t which = 0; which < count; ++which) {
            const Index each = at(which);
            if (restart && each == LARGEST) continue;
            bool &is_met = met[each - low];
            apart += !is_met;
            is_met = true;
        }
        found = {low, static_cast<long long>(high) + 1};
        return apart == range;
    }

    bool vertices(const char *bytes, std::uint64_t count, FlatSpan &found) const {
        if (indices.size == 1) return vertices<std::uint8_t>(bytes, count, indices.restart, found);
        if (indices.size == 2) return vertices<std::uint16_t>(bytes, count, indices.restart, found);
        return vertices<std::uint32_t>(bytes, count, indices.restart, found);
    }

    // The plan of a draw. None where Python must find it, or with an exception.
    Ref plan(PyObject *recorded, const std::uint64_t *numbers, const std::vector<Piece> &pieces) {
        const auto [begin, end] = window(numbers);
        const std::uint64_t count = (end - begin) / indices.size;
        const char *const from = begin < end && count <= MOST_LOOKED ? bytes(pieces, begin, end) : nullptr;
        FlatSpan drawn;
        if (!from || !FlatPlan::is_one(recorded) || !vertices(from, count, drawn)) return Ref();
        drawn.begin += static_cast<long long>(numbers[OFFSET]), drawn.end += static_cast<long long>(numbers[OFFSET]);
        std::vector<std::uint64_t> words;
        if (!read_vertices(drawn, words)) return Ref();
        const std::size_t reads = words.size() / FlatReach::WORDS;
        const Ref reach = reads ? reach_behind(recorded, reads) : Ref();
        return reach && FlatReach::is_one(reach.get()) ? FlatPlan::of(recorded)->behind(reach.get(), std::move(words)) : Ref();
    }

    // The words of the reads of vertices, of each buffer one. False where one would have two ranges.
    bool read_vertices(const FlatSpan &drawn, std::vector<std::uint64_t> &words) const {
        for (const Source &each : sources) {
            const std::uint64_t low = each.stride * static_cast<std::uint64_t>(drawn.begin) + each.low;
            const std::uint64_t high = each.stride * static_cast<std::uint64_t>(drawn.end - 1) + each.high;
            const std::uint64_t begin = std::min(each.base + low, each.limit), end = std::min(each.base + high, each.limit);
            if (begin >= end) continue;
            std::uint64_t *same = nullptr;
            for (std::size_t at = 0; at < words.size(); at += FlatReach::WORDS) {
                if (words[at + FlatReach::RESOURCE] == each.resource && words[at + FlatReach::SPACE] == each.space) same = &words[at];
            }
            if (!same) {
                words.insert(words.end(), {each.resource, each.space, begin, end - begin - 1});
                continue;
            }
            const std::uint64_t first = same[FlatReach::BEGIN], last = first + same[FlatReach::EXTRA] + 1;
            if (begin > last || first > end) return false;
            same[FlatReach::BEGIN] = std::min(first, begin);
            same[FlatReach::EXTRA] = std::max(last, end) - std::min(first, begin) - 1;
        }
        return true;
    }

    Ref reach_behind(PyObject *recorded, std::size_t reads) {
        PyObject *const origin = FlatPlan::of(recorded)->origin;
        for (const Behind &each : reaches) {
            if (each.origin.get() == origin && each.reads == reads) return Ref::share(each.reach.get());
        }
        Ref found = Ref::take(PyObject_CallFunction(behind.get(), "On", recorded, static_cast<Py_ssize_t>(reads)));
        if (!found) return found;
        std::vector<Behind> gone;
        if (reaches.size() >= MOST_REACHES) gone.swap(reaches);
        reaches.push_back({Ref::share(origin), Ref::share(found.get()), reads});
        return found;
    }
};

PyTypeObject *IndexedDraws::type = nullptr;

inline bool add_indexed_draws(PyObject *module) {
    static PyMethodDef methods[] = {
        method<IndexedDraws, IndexedDraws::hull_method, 1>("hull"),
        method<IndexedDraws, IndexedDraws::plans_method, 4>("plans"),
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        slot(Py_tp_new, caught<IndexedDraws::make>), slot(Py_tp_dealloc, IndexedDraws::unmake), slot(Py_tp_traverse, IndexedDraws::traverse),
        slot(Py_tp_clear, IndexedDraws::clear), slot(Py_tp_methods, methods), {0, nullptr},
    };
    static PyType_Spec spec = {"vkharness.native._core.IndexedDraws", sizeof(IndexedDraws), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    IndexedDraws::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return IndexedDraws::type && PyModule_AddType(module, IndexedDraws::type) == 0;
}

}  // namespace vkharness

#endif
