// Draws and dispatches that differ in numbers alone, with what contents of memory decide of each: the native form of `outcome`
// in harness/vkharness/commands/drawing/by_contents.py, for several of them at once.
//
// The numbers of a draw are said by its command, or lie in memory where its command says that they are. Most indices of a draw mean
// vertices without a gap. So what it reads of each vertex buffer is one range, and its plan is one behind the flat plan with
// which it was recorded. Python does the rest: bytes that are not known or lie in several pieces, indices that leave gaps or are
// many, several draws of one command, and those that draw nothing.

#ifndef VKHARNESS_CONTENT_DRAWS_HPP
#define VKHARNESS_CONTENT_DRAWS_HPP

#include "known_pieces.hpp"
#include "moved_plans.hpp"
#include "vertex_reads.hpp"

#include <array>

namespace vkharness {

struct ContentDraws {
    using Buffer = VertexReads::Buffer;
    using Source = VertexReads::Source;
    static constexpr std::uint64_t MOST_STEP = 1 << 28, MOST_VERTEX = 1ull << 34;  // their product is near
    static constexpr std::size_t MOST_REACHES = 8, MOST_SOURCES = FlatReach::MOST;
    // Where the numbers of a draw are: what its command says, or a structure in memory.
    enum Layout { SAID, DRAW, INDEXED, DISPATCH, LAYOUTS };
    // What a command says, in the order of `NUMBERED` of harness/vkharness/commands/drawing/numbered_draws.py. Behind it, where the
    // index buffer begins, if the state leaves that open.
    enum Number { COUNT, INSTANCES, FIRST, FIRST_INSTANCE, OFFSET, SAID_NUMBERS };
    enum Place { PARAMETERS, COUNTER };
    // Contents that decide: a number of draws, the numbers of draws, indices.
    enum Memory { COUNTS, STRUCTURES, INDEX_BUFFER, MEMORIES };
    using Pieces = std::array<KnownPieces, MEMORIES>;
    // The accesses of a draw beside those of its plan: of numbers, of indices, of vertices and instances.
    struct Reads {
        std::size_t numbers = 0, indices = 0, vertices = 0;
        bool operator==(const Reads &other) const {
            return numbers == other.numbers && indices == other.indices && vertices == other.vertices;
        }
    };
    // What draws do whose flat plans have one origin, with such reads.
    struct Behind {
        Ref origin, reach;  // reach: None where there is none
        Reads reads;
    };
    struct Draw {
        std::uint64_t count, instances, first, first_instance, offset, bound, at;  // at: where its numbers lie
    };
    enum Found { UNKNOWN, IDLE, RUNS };

    PyObject_HEAD
    Ref behind;  // Python: (plan, reads of numbers, of indices, of vertices) to a `FlatReach`, or None
    Layout layout;
    Buffer parameters, counter, indices;  // where they lie if commands say 0
    std::uint64_t index_size;
    bool restart;
    std::vector<Source> sources;
    std::vector<Behind> reaches;
    std::size_t width;  // numbers of a command
    bool is_open;       // whether the last one says where the index buffer begins

    static PyTypeObject *type;
    static ContentDraws *of(PyObject *object) { return reinterpret_cast<ContentDraws *>(object); }

    // ContentDraws(behind, layout, parameters, counter, indices, (size of an index, whether the largest restarts), ((resource, space, base,
    // limit, stride, low, high, divisor, whether it is of instances), ...), whether the state leaves open where the index buffer begins):
    // buffers are (resource, space, base, limit), or () for none.
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *behind, *parameters, *counter, *indices, *index, *sources;
        Py_ssize_t layout;
        int is_open;
        if (!PyArg_ParseTuple(arguments, "OnO!O!O!O!O!p", &behind, &layout, &PyTuple_Type, &parameters, &PyTuple_Type, &counter, &PyTuple_Type,
                              &indices, &PyTuple_Type, &index, &PyTuple_Type, &sources, &is_open)) {
            return nullptr;
        }
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        ContentDraws *const draws = of(self.get());
        new (&draws->behind) Ref(Ref::share(behind));
        new (&draws->sources) std::vector<Source>();
        new (&draws->reaches) std::vector<Behind>();
        std::array<std::uint64_t, 9> row;
        bool good = layout >= 0 && layout < LAYOUTS && VertexReads::read(parameters, draws->parameters) && VertexReads::read(counter, draws->counter);
        good = good && VertexReads::read(indices, draws->indices) && VertexReads::read(index, row.data(), 2) && (row[0] == 1 || row[0] == 2 || row[0] == 4);
        if (good) draws->layout = static_cast<Layout>(layout), draws->index_size = row[0], draws->restart = row[1] != 0;
        good = good && (draws->layout == SAID) != draws->parameters.is_there && (draws->layout != SAID || !draws->counter.is_there);
        good = good && PyTuple_GET_SIZE(sources) <= static_cast<Py_ssize_t>(MOST_SOURCES);
        for (Py_ssize_t at = 0; good && at < PyTuple_GET_SIZE(sources); ++at) {
            good = VertexReads::read(PyTuple_GET_ITEM(sources, at), row.data(), row.size()) && row[4] < MOST_STEP;
            draws->sources.push_back({{row[0], row[1], row[2], row[3], true}, row[4], row[5], row[6], row[7], row[8] != 0});
        }
        if (!good) return FlatKind::fault();
        draws->is_open = is_open;
        draws->width = (draws->layout == SAID ? SAID_NUMBERS : draws->counter.is_there ? 2 : 1) + (is_open ? 1 : 0);
        return self.release();
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

    // hull(numbers of commands, which memory, pieces of the memories before it): the addresses of all that they may ask of it, or None.
    static PyObject *hull_method(ContentDraws *self, PyObject *const *arguments) {
        std::vector<std::uint64_t> numbers;
        Pieces pieces;
        const Py_ssize_t which = PyLong_AsSsize_t(arguments[1]);
        if (PyErr_Occurred()) return nullptr;
        const bool good = which >= 0 && which < MEMORIES && self->read_numbers(arguments[0], numbers);
        if (!good || !read_several(arguments[2], pieces)) return PyErr_Occurred() ? nullptr : FlatKind::fault();
        std::uint64_t begin = static_cast<std::uint64_t>(FAR_ADDRESS), end = 0;
        for (std::size_t at = 0; at < numbers.size(); at += self->width) {
            const auto [low, high] = self->asked(&numbers[at], static_cast<Memory>(which), pieces);
            if (low < high) begin = std::min(begin, low), end = std::max(end, high);
        }
        if (begin >= end) Py_RETURN_NONE;
        return Py_BuildValue("KK", static_cast<unsigned long long>(begin), static_cast<unsigned long long>(end));
    }

    // idles(numbers of commands, pieces of the memories): whether one of them is known to run nothing.
    static PyObject *idles_method(ContentDraws *self, PyObject *const *arguments) {
        std::vector<std::uint64_t> numbers;
        Pieces pieces;
        if (!self->read_numbers(arguments[0], numbers) || !read_several(arguments[1], pieces)) {
            return PyErr_Occurred() ? nullptr : FlatKind::fault();
        }
        Draw draw;
        for (std::size_t at = 0; at < numbers.size(); at += self->width) {
            if (self->read_draw(&numbers[at], pieces, draw) == IDLE) Py_RETURN_TRUE;
        }
        Py_RETURN_FALSE;
    }

    // plans(plans, first place, numbers, pieces of the memories): the plans of commands that have these numbers and, from a place on,
    // these flat plans beside the reads, where memory has these pieces: (begin, end, (chunk, address of its first byte)), ... None in
    // the place of one that Python must find.
    static PyObject *plans_method(ContentDraws *self, PyObject *const *arguments) {
        std::vector<std::uint64_t> numbers;
        Pieces pieces;
        const Py_ssize_t first = PyList_Check(arguments[0]) ? PyLong_AsSsize_t(arguments[1]) : -1;
        if (PyErr_Occurred()) return nullptr;
        if (first < 0 || !self->read_numbers(arguments[2], numbers) || !read_several(arguments[3], pieces)) {
            return PyErr_Occurred() ? nullptr : FlatKind::fault();
        }
        const Py_ssize_t count = static_cast<Py_ssize_t>(numbers.size() / self->width);
        Ref found = Ref::take(PyList_New(count));
        for (Py_ssize_t at = 0; found && at < count; ++at) {
            Ref plan;
            if (at < PyList_GET_SIZE(arguments[0]) - first) {
                const Ref recorded = Ref::share(PyList_GET_ITEM(arguments[0], first + at));
                plan = self->plan(recorded, &numbers[static_cast<std::size_t>(at) * self->width], pieces);
            }
            if (PyErr_Occurred()) return nullptr;
            PyList_SET_ITEM(found.get(), at, plan ? plan.release() : Py_NewRef(Py_None));
        }
        return found.release();
    }

  private:
    bool read_numbers(PyObject *given, std::vector<std::uint64_t> &numbers) const {
        const std::size_t row = width * sizeof(std::uint64_t);
        if (!PyBytes_Check(given) || static_cast<std::size_t>(PyBytes_GET_SIZE(given)) % row) return false;
        numbers.resize(static_cast<std::size_t>(PyBytes_GET_SIZE(given)) / sizeof(std::uint64_t));
        if (!numbers.empty()) std::memcpy(numbers.data(), PyBytes_AS_STRING(given), numbers.size() * sizeof(std::uint64_t));
        return std::all_of(numbers.begin(), numbers.end(), [](std::uint64_t each) { return each < MOST_VERTEX; });
    }

    // Those of the first memories.
    static bool read_several(PyObject *given, Pieces &pieces) {
        if (!PyList_Check(given)) return false;
        for (std::size_t at = 0; at < MEMORIES && static_cast<Py_ssize_t>(at) < PyList_GET_SIZE(given); ++at) {
            const Ref each = Ref::share(PyList_GET_ITEM(given, static_cast<Py_ssize_t>(at)));
            if (!pieces[at].read(each.get())) return false;
        }
        return true;
    }

    // The addresses that a command asks of a memory.
    std::pair<std::uint64_t, std::uint64_t> asked(const std::uint64_t *numbers, Memory which, const Pieces &pieces) const {
        Draw draw;
        if (which == COUNTS) {
            const std::uint64_t at = counter.is_there ? counter.base + numbers[COUNTER] : 0;
            return {at, counter.is_there ? at + sizeof(std::uint32_t) : 0};
        }
        if (which == STRUCTURES) {
            const std::uint64_t at = parameters.is_there ? parameters.base + numbers[PARAMETERS] : 0;
            return {at, parameters.is_there ? at + size_of_structure() : 0};
        }
        if (!has_vertices_by_index() || read_draw(numbers, pieces, draw) != RUNS) return {0, 0};
        return window(draw);
    }

    std::uint64_t size_of_structure() const { return layout == DRAW ? 16 : layout == INDEXED ? 20 : 12; }
    bool is_indexed() const { return layout == SAID || layout == INDEXED; }
    bool has_vertices_by_index() const {
        return is_indexed() && indices.is_there && std::any_of(sources.begin(), sources.end(), [](const Source &each) { return !each.per_instance; });
    }

    // Reads what a command draws.
    Found read_draw(const std::uint64_t *numbers, const Pieces &pieces, Draw &draw) const {
        draw = {};
        if (is_open) draw.bound = numbers[width - 1];
        if (layout == SAID) {
            draw.count = numbers[COUNT], draw.instances = numbers[INSTANCES], draw.first = numbers[FIRST];
            draw.first_instance = numbers[FIRST_INSTANCE], draw.offset = numbers[OFFSET];
            return RUNS;
        }
        if (counter.is_there) {
            std::uint32_t number;
            const std::uint64_t at = counter.base + numbers[COUNTER];
            if (!pieces[COUNTS].words(at, &number, 1)) return UNKNOWN;
            if (!number) return IDLE;
        }
        std::uint32_t words[5] = {};
        draw.at = parameters.base + numbers[PARAMETERS];
        const std::uint64_t size = size_of_structure();
        if (draw.at + size > parameters.limit || !pieces[STRUCTURES].words(draw.at, words, size / sizeof *words)) return UNKNOWN;
        if (!words[0] || !words[1] || (layout == DISPATCH && !words[2])) return IDLE;
        if (layout == DISPATCH) return RUNS;
        draw.count = words[0], draw.instances = words[1], draw.first = words[2];
        draw.first_instance = layout == INDEXED ? words[4] : words[3];
        if (layout == INDEXED && words[3] >> 31) return UNKNOWN;  // a vertex offset below zero
        if (layout == INDEXED) draw.offset = words[3];
        return RUNS;
    }

    // The addresses of indices from one on.
    std::pair<std::uint64_t, std::uint64_t> bytes_of_indices(const Draw &draw) const {
        const std::uint64_t base = indices.base + draw.bound;
        return {std::min(base + draw.first * index_size, indices.limit), std::min(base + (draw.first + draw.count) * index_size, indices.limit)};
    }

    // Of whole ones.
    std::pair<std::uint64_t, std::uint64_t> window(const Draw &draw) const {
        const auto [begin, end] = bytes_of_indices(draw);
        return {begin, end - (end - begin) % index_size};
    }

    // The vertices of a draw. False where Python must find them.
    bool drawn_vertices(const Draw &draw, const Pieces &pieces, FlatSpan &drawn) const {
        if (!is_indexed()) {
            drawn = {static_cast<long long>(draw.first), static_cast<long long>(draw.first + draw.count)};
            return true;
        }
        const auto [begin, end] = window(draw);
        const std::uint64_t count = (end - begin) / index_size;
        const char *const from = begin < end && count <= KnownPieces::MOST_LOOKED ? pieces[INDEX_BUFFER].bytes(begin, end) : nullptr;
        if (!from || !KnownPieces::vertices(from, count, index_size, restart, drawn)) return false;
        drawn.begin += static_cast<long long>(draw.offset), drawn.end += static_cast<long long>(draw.offset);
        return true;
    }

    // The plan of a command. None where Python must find it, or with an exception.
    Ref plan(const Ref &recorded, const std::uint64_t *numbers, const Pieces &pieces) {
        Draw draw;
        if (!FlatPlan::is_one(recorded.get()) || read_draw(numbers, pieces, draw) != RUNS) return Ref();
        std::vector<std::uint64_t> words;
        Reads reads;
        if (counter.is_there) {
            VertexReads::add(parameters, draw.at, draw.at + size_of_structure(), words);
            reads.numbers = 1;
        }
        if (layout == INDEXED && indices.is_there) {
            const auto [begin, end] = bytes_of_indices(draw);
            if (begin < end) VertexReads::add(indices, begin, end, words);
            reads.indices = begin < end;
        }
        const std::size_t before = words.size();
        if (layout == DRAW || layout == INDEXED) {
            const FlatSpan instances{static_cast<long long>(draw.first_instance), static_cast<long long>(draw.first_instance + draw.instances)};
            if (!VertexReads::add(sources, instances, true, words)) return Ref();
        }
        if (layout == DRAW || has_vertices_by_index()) {
            FlatSpan drawn;
            if (!drawn_vertices(draw, pieces, drawn) || !VertexReads::add(sources, drawn, false, words)) return Ref();
        }
        reads.vertices = (words.size() - before) / FlatReach::WORDS;
        if (words.empty()) return Ref::share(recorded.get());
        const Ref reach = reach_behind(recorded.get(), reads);
        return reach && FlatReach::is_one(reach.get()) ? FlatPlan::of(recorded.get())->behind(reach.get(), std::move(words)) : Ref();
    }

    Ref reach_behind(PyObject *recorded, const Reads &reads) {
        PyObject *const origin = FlatPlan::of(recorded)->origin;
        for (const Behind &each : reaches) {
            if (each.origin.get() == origin && each.reads == reads) return Ref::share(each.reach.get());
        }
        Ref found = Ref::take(PyObject_CallFunction(behind.get(), "Onnn", recorded, static_cast<Py_ssize_t>(reads.numbers),
                                                    static_cast<Py_ssize_t>(reads.indices), static_cast<Py_ssize_t>(reads.vertices)));
        if (!found) return found;
        std::vector<Behind> gone;
        if (reaches.size() >= MOST_REACHES) gone.swap(reaches);
        reaches.push_back({Ref::share(origin), Ref::share(found.get()), reads});
        return found;
    }
};

PyTypeObject *ContentDraws::type = nullptr;

inline bool add_content_draws(PyObject *module) {
    static PyMethodDef methods[] = {
        method<ContentDraws, ContentDraws::hull_method, 3>("hull"),
        method<ContentDraws, ContentDraws::idles_method, 2>("idles"),
        method<ContentDraws, ContentDraws::plans_method, 4>("plans"),
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        slot(Py_tp_new, caught<ContentDraws::make>), slot(Py_tp_dealloc, ContentDraws::unmake), slot(Py_tp_traverse, ContentDraws::traverse),
        slot(Py_tp_clear, ContentDraws::clear), slot(Py_tp_methods, methods), {0, nullptr},
    };
    static PyType_Spec spec = {"vkharness.native._core.ContentDraws", sizeof(ContentDraws), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    ContentDraws::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return ContentDraws::type && PyModule_AddType(module, ContentDraws::type) == 0;
}

}  // namespace vkharness

#endif
