// Makes flat plans (flat_plans.hpp) of what calls say: harness/vkharness/commands/buffer_transfers.py has the table of such commands.
//
// Equal commands that follow one another before long share a plan, from the second one on. Origins are found by the ids of
// buffers for as long as Python says that nothing has changed of which calls speak (`ObjectState.changes`), and made anew
// after that.

#ifndef VKHARNESS_FLAT_TABLE_HPP
#define VKHARNESS_FLAT_TABLE_HPP

#include "flat_moves.hpp"

#include <array>

namespace vkharness {

class FlatTable {
  public:
    static constexpr std::size_t MOST_ORIGINS = 1 << 14;
    static constexpr std::size_t SEEN = 1 << 13;            // of commands that came once, marks are
    static constexpr std::size_t SETS = 1 << 12, WAYS = 2;  // plans that are remembered, by their hash
    static constexpr std::size_t LONGEST = 40;              // numbers at most of one that is

    // The origin of commands of a kind over buffers, which lie there. None with an exception.
    Ref origin(PyObject *kind, const FlatOrigin::Place *place, PyObject *places) {
        const Key key{kind, place[0].id, place[1].id};
        const auto found = origins_.find(key);
        if (found != origins_.end() && std::equal(place, place + FlatKind::MOST, origin_at(found).place)) {
            return Ref::share(found->second.origin.get());
        }
        Ref made = FlatOrigin::make(kind, place, Ref::share(places));
        if (!made) return made;
        Origins gone;
        if (origins_.size() >= MOST_ORIGINS) {
            gone.swap(origins_);
            of_buffers_.clear();
        }
        const auto [known, is_new] = origins_.try_emplace(key);
        if (is_new) {
            of_buffers_[key.one].push_back(key);
            if (key.other != key.one) of_buffers_[key.other].push_back(key);
        }
        const Ref old = std::exchange(known->second.origin, Ref::share(made.get()));
        known->second.said_at = NEVER_SAID;
        return made;
    }

    // A buffer goes, or lies elsewhere from now on: there is no origin of it any more.
    void forget(long long buffer) {
        const auto found = of_buffers_.find(buffer);
        if (found == of_buffers_.end()) return;
        const std::vector<Key> keys = std::move(found->second);
        of_buffers_.erase(found);
        std::vector<Ref> gone;
        for (const Key &key : keys) {
            const auto origin = origins_.find(key);
            if (origin == origins_.end()) continue;
            gone.push_back(std::move(origin->second.origin));
            origins_.erase(origin);
            drop(key.one == buffer ? key.other : key.one, key);
        }
    }

    // That which was `said` when there had been so many changes. None where there is none.
    Ref said_origin(PyObject *kind, long long one, long long other, long long changes) const {
        const auto found = origins_.find({kind, one, other});
        const bool is_said = found != origins_.end() && found->second.said_at == changes;
        return is_said ? Ref::share(found->second.origin.get()) : Ref();
    }

    // Any change of its buffers is one of those that are counted, from so many changes on.
    void say(const Ref &origin, long long changes) {
        const FlatOrigin &of = *FlatOrigin::of(origin.get());
        const auto found = origins_.find({of.kind.get(), of.place[0].id, of.place[1].id});
        if (found != origins_.end() && found->second.origin.get() == origin.get()) found->second.said_at = changes;
    }

    // The plan of a command with these numbers. None where it has no flat one, or with an exception.
    Ref plan(const Ref &origin, const std::uint64_t *numbers, std::size_t count) {
        if (!FlatPlan::fits(*FlatOrigin::of(origin.get()), numbers, count)) return Ref();
        if (count > LONGEST) return FlatPlan::make(origin.get(), numbers, count);
        if (seen_.empty()) {
            last_.resize(SETS);
            seen_.resize(SEEN);
        }
        const std::uint64_t mixed = hash(*FlatOrigin::of(origin.get()), numbers, count);
        std::uint32_t &seen = seen_[mixed % SEEN];
        const std::uint32_t mark = static_cast<std::uint32_t>(mixed >> 32) | 1;
        if (seen != mark) {  // most commands of a program that says something new each time come once
            seen = mark;
            return FlatPlan::make(origin.get(), numbers, count);
        }
        return remembered(last_[mixed % SETS], origin, numbers, count);
    }

    void clear() {
        Origins origins;
        std::vector<Set> last;
        of_buffers_.clear();
        seen_.clear();  // and room for `last_` is made anew
        origins.swap(origins_);
        last.swap(last_);
    }

    int traverse(visitproc visit, void *arg) const {
        for (const auto &each : origins_) Py_VISIT(each.second.origin.get());
        for (const Set &set : last_) {
            for (const Ref &each : set) Py_VISIT(each.get());
        }
        return 0;
    }

  private:
    struct Key {
        PyObject *kind;
        long long one, other;
        bool operator==(const Key &key) const { return kind == key.kind && one == key.one && other == key.other; }
    };
    struct KeyHash {
        std::size_t operator()(const Key &key) const {
            const std::uint64_t ids = static_cast<std::uint64_t>(key.one) * MIXER ^ static_cast<std::uint64_t>(key.other);
            return static_cast<std::size_t>((ids ^ reinterpret_cast<std::uintptr_t>(key.kind) >> 4) * MIXER >> 16);
        }
    };
    struct Known {
        Ref origin;
        long long said_at = NEVER_SAID;
    };
    using Origins = std::unordered_map<Key, Known, KeyHash>;
    using Set = std::array<Ref, WAYS>;
    static constexpr long long NEVER_SAID = LLONG_MIN;
    static constexpr std::uint64_t MIXER = 0x9E3779B97F4A7C15u;

    // An origin of this buffer is gone.
    void drop(long long buffer, const Key &key) {
        const auto found = of_buffers_.find(buffer);
        if (found == of_buffers_.end()) return;
        std::vector<Key> &keys = found->second;
        const auto at = std::find(keys.begin(), keys.end(), key);
        if (at != keys.end()) {
            *at = keys.back();
            keys.pop_back();
        }
        if (keys.empty()) of_buffers_.erase(found);
    }

    static const FlatOrigin &origin_at(Origins::const_iterator at) { return *FlatOrigin::of(at->second.origin.get()); }

    static Ref remembered(Set &set, const Ref &origin, const std::uint64_t *numbers, std::size_t count) {
        for (const Ref &each : set) {
            if (each && FlatPlan::of(each.get())->says(origin.get(), numbers, count)) return Ref::share(each.get());
        }
        Ref made = FlatPlan::make(origin.get(), numbers, count);
        if (!made) return made;
        const Ref old = std::move(set.back());  // when it goes, everything is in its place
        std::move_backward(set.begin(), set.end() - 1, set.end());
        set.front() = Ref::share(made.get());
        return made;
    }

    // Of the ids of buffers, not of the origin's address: another one may lie there when that is gone.
    static std::uint64_t hash(const FlatOrigin &origin, const std::uint64_t *numbers, std::size_t count) {
        std::uint64_t mixed = KeyHash()({origin.kind.get(), origin.place[0].id, origin.place[1].id});
        for (std::size_t at = 0; at < count; ++at) mixed = ((mixed ^ numbers[at]) * MIXER) ^ mixed >> 29;
        mixed *= MIXER;
        return mixed ^ mixed >> 29;
    }

    Origins origins_;
    std::unordered_map<long long, std::vector<Key>> of_buffers_;  // the keys of `origins_`, by each buffer
    std::vector<std::uint32_t> seen_;
    std::vector<Set> last_;
};

// A command of the table.
struct FlatRow {
    enum Sets { NOTHING, OPEN, ONCE };  // as `Sets` of harness/vkharness/commands/buffer_transfers.py
    static constexpr std::size_t MOST_FORMS = 8;  // of calls of a command of which it is remembered where they have what
    Ref name, kind;
    FlatNames names;
    std::vector<FlatKey> keys;
    FlatMoves moves;  // of commands without a kind
    Sets sets;
    bool by_state;  // whether the state of the command buffer decides the rest
};

// Numbers of a command, with its data behind them.
struct FlatNumbers {
    std::vector<std::uint64_t> all;

    bool add(PyObject *value) {
        long long number;
        const bool good = near_number(value, number);
        if (good) all.push_back(static_cast<std::uint64_t>(number));
        return good;
    }

    // The first of these bytes, of which the last number says how many there are. False where there are fewer.
    bool add_data(const FlatKind &kind, PyObject *data) {
        if (!kind.has_data) return true;
        if (all.size() != kind.words || !data || !PyBytes_CheckExact(data)) return false;
        return FlatKey::add_data(all, PyBytes_AS_STRING(data), static_cast<std::uint64_t>(PyBytes_GET_SIZE(data)));
    }
};

// Where a buffer is, as Python says it.
inline bool read_place(PyObject *given, FlatOrigin::Place &place) {
    return PyTuple_CheckExact(given) && PyTuple_GET_SIZE(given) == 4 && near_number(PyTuple_GET_ITEM(given, 0), place.id) &&
           near_number(PyTuple_GET_ITEM(given, 1), place.space) && near_number(PyTuple_GET_ITEM(given, 2), place.offset) &&
           near_number(PyTuple_GET_ITEM(given, 3), place.size);
}

// Whether a type is one of tuples that have nothing beside their items.
inline bool is_of_tuples(PyTypeObject *type) {
    return PyType_IsSubtype(type, &PyTuple_Type) && type->tp_basicsize == PyTuple_Type.tp_basicsize && !type->tp_dictoffset;
}

struct FlatPlans {
    using Row = FlatRow;
    PyObject_HEAD
    Ref places, said;  // Python: a dictionary by id of (id, space, first address, size); a set of ids
    Ref repeated;      // the type of what is kept, a kind of tuples
    std::vector<Row> rows;
    FlatTable table;
    FlatKey::Values last_values;  // of the last call

    static PyTypeObject *type;
    static PyObject *into;  // "commandBuffer"

    // FlatPlans(places, said, repeated, ((name, kind, info, buffers, regions, numbers, data, apart, sets, by_state), ...))
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *places, *said, *repeated, *rows;
        if (!PyArg_ParseTuple(arguments, "O!O!O!O!", &PyDict_Type, &places, &PySet_Type, &said, &PyType_Type, &repeated,
                              &PyTuple_Type, &rows)) {
            return nullptr;
        }
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        FlatPlans *const plans = of(self.get());
        new (&plans->places) Ref(Ref::share(places));
        new (&plans->said) Ref(Ref::share(said));
        new (&plans->repeated) Ref(Ref::share(repeated));
        new (&plans->rows) std::vector<Row>();
        new (&plans->table) FlatTable();
        new (&plans->last_values) FlatKey::Values();
        if (!is_of_tuples(reinterpret_cast<PyTypeObject *>(repeated))) {
            PyErr_SetString(PyExc_TypeError, "what is kept is a type of tuples");
            return nullptr;
        }
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(rows); ++at) {
            if (!plans->add(PyTuple_GET_ITEM(rows, at))) return nullptr;
        }
        return self.release();
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        FlatPlans *const plans = of(object);
        plans->last_values.~Values();
        plans->table.~FlatTable();
        plans->rows.~vector();
        for (Ref *each : {&plans->places, &plans->said, &plans->repeated}) each->~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        const FlatPlans *const plans = of(object);
        for (const Ref *each : {&plans->places, &plans->said, &plans->repeated}) Py_VISIT(each->get());
        for (const Row &each : plans->rows) {
            Py_VISIT(each.kind.get());
            if (const int stop = each.moves.traverse(visit, arg)) return stop;
        }
        return plans->table.traverse(visit, arg);
    }

    static int clear(PyObject *object) {
        of(object)->table.clear();
        for (Row &each : of(object)->rows) each.moves.clear();
        return 0;
    }

    // plan(kind, places, numbers, data): the flat plan of a command over buffers that lie there, or None.
    static PyObject *plan_method(FlatPlans *self, PyObject *const *arguments) {
        if (Py_TYPE(arguments[0]) != FlatKind::type || !PyTuple_Check(arguments[1]) || !PyTuple_Check(arguments[2]) ||
            !PyBytes_Check(arguments[3])) {
            PyErr_SetString(PyExc_TypeError, "takes a kind, two tuples and bytes");
            return nullptr;
        }
        FlatOrigin::Place place[FlatKind::MOST];
        const Py_ssize_t several = PyTuple_GET_SIZE(arguments[1]);
        bool fits = several >= 1 && several <= static_cast<Py_ssize_t>(FlatKind::MOST);
        for (Py_ssize_t at = 0; fits && at < several; ++at) fits = read_place(PyTuple_GET_ITEM(arguments[1], at), place[at]);
        FlatNumbers numbers;
        for (Py_ssize_t at = 0; fits && at < PyTuple_GET_SIZE(arguments[2]); ++at) {
            fits = numbers.add(PyTuple_GET_ITEM(arguments[2], at));
        }
        if (!fits || !numbers.add_data(*FlatKind::of(arguments[0]), arguments[3])) Py_RETURN_NONE;
        const Ref origin = self->table.origin(arguments[0], place, arguments[1]);
        Ref plan = origin ? self->table.plan(origin, numbers.all.data(), numbers.all.size()) : Ref();
        return plan || PyErr_Occurred() ? plan.release() : Py_NewRef(Py_None);
    }

    // record(command buffer, its id, changes, name, args): what is kept of a command into that command buffer that has a
    // flat plan, or None where Python must find what it does.
    static PyObject *record_method(FlatPlans *self, PyObject *const *arguments) {
        const long long changes = PyLong_AsLongLong(arguments[2]);
        if (changes == -1 && PyErr_Occurred()) return nullptr;
        Ref kept = self->record(arguments[0], arguments[1], changes, arguments[3], arguments[4]);
        return kept || PyErr_Occurred() ? kept.release() : Py_NewRef(Py_None);
    }

    // forget(id): a buffer goes, or lies elsewhere from now on.
    static PyObject *forget_method(FlatPlans *self, PyObject *const *arguments) {
        if (long long id; near_number(arguments[0], id)) self->table.forget(id);
        return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
    }

    // The plan of a command with the key to keep it by: (changes, command buffer, plan). None where Python must find
    // it, or with an exception.
    Ref record(PyObject *buffer, PyObject *id, long long changes, PyObject *name, PyObject *args) {
        const Ref plan = of_arguments(name, args, changes, id);
        return plan ? kept(buffer, changes, plan) : Ref();
    }

    // The plan of a command into the command buffer with this id; none where Python must find it, or with an exception.
    Ref of_arguments(PyObject *name, PyObject *args, long long changes, PyObject *id) {
        Row *const row = find(name);
        const Ref into = row && row->kind ? item(args, FlatPlans::into) : Ref();
        long long wanted, given;
        if (!into || !near_number(into.get(), wanted) || !near_number(id, given) || wanted != given) return Ref();
        return plan(*row, changes, args);
    }

    Ref of_bytes(const SaidBytes &said, long long changes, PyObject *id) {
        Row *const row = find(said.name);
        if (!row) return Ref();
        FlatKey::Values values = std::move(last_values);  // keeps its memory from call to call
        values.numbers.clear();
        long long into, ids[FlatKind::MOST];
        const FlatKey &key = key_of(*row, said.form);
        std::string others;
        const bool learns = !row->kind && !row->by_state;
        const bool fits = (learns ? key.read_around(said.bytes, values, others) : row->kind && key.read(said.bytes, values)) &&
                          near_number(id, into) && values.into == static_cast<std::uint64_t>(into);
        std::copy(values.buffers, values.buffers + FlatKind::MOST, ids);
        Ref found;
        if (fits) found = learns ? row->moves.find(others, values, changes) : plan(*row, changes, ids, values.numbers.data(), values.numbers.size());
        last_values = std::move(values);
        return found;
    }

    // The state's item of calls that differ from one in numbers or data alone: (MovedPlan or `PlansBySets` of such, the state after
    // it). Of calls that set state which leaves these open, (what stands for them, the state after it). None where there is none, or
    // with an exception.
    Ref item_of(const SaidBytes &said, PyObject *state, PyObject *id, FlatKey::Values &values, FlatRow::Sets &sets) {
        Row *const row = find(said.name);
        if (!row || !row->by_state) return Ref();
        sets = row->sets;
        long long into;
        std::string like_all;
        if (!near_number(id, into) || !read_like(*row, said, values, like_all) || values.into != static_cast<std::uint64_t>(into)) return Ref();
        const Ref like = likeness(*row, std::move(like_all));
        Ref found = like ? Ref::share(PyDict_GetItemWithError(state, like.get())) : Ref();
        return found && PyTuple_Check(found.get()) && PyTuple_GET_SIZE(found.get()) == 2 ? std::move(found) : Ref();
    }

    // like(said): what stands in states for all calls that differ from a `Saying` in numbers alone, and these numbers; or None.
    static PyObject *like_method(FlatPlans *self, PyObject *const *arguments) {
        SaidBytes said;
        Row *const row = read_saying(arguments[0], said) ? self->find(said.name) : nullptr;
        if (!row || !row->by_state) Py_RETURN_NONE;
        FlatKey::Values values;
        std::string like_all;
        if (!read_like(*row, said, values, like_all)) Py_RETURN_NONE;
        const Ref like = self->likeness(*row, std::move(like_all)), numbers = numbers_of(values.numbers);
        return like && numbers ? PyTuple_Pack(2, like.get(), numbers.get()) : PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
    }

    // learn(said, changes, moved plan): what differs from a `Saying` in its number alone does the same elsewhere. Whether that
    // was learned.
    static PyObject *learn_method(FlatPlans *self, PyObject *const *arguments) {
        SaidBytes said;
        Row *const row = read_saying(arguments[0], said) ? self->find(said.name) : nullptr;
        return row && !row->kind && !row->by_state ? row->moves.learn(key_of(*row, said.form), said, arguments + 1) : Py_NewRef(Py_False);
    }

    Ref kept(PyObject *buffer, long long changes, const Ref &plan) const {
        PyTypeObject *const kind = reinterpret_cast<PyTypeObject *>(repeated.get());
        Ref number = Ref::take(PyLong_FromLongLong(changes));
        Ref made = number ? tuple_to_fill(kind, 3) : Ref();
        if (!made) return made;
        PyTuple_SET_ITEM(made.get(), 0, number.release());
        PyTuple_SET_ITEM(made.get(), 1, Py_NewRef(buffer));
        PyTuple_SET_ITEM(made.get(), 2, Py_NewRef(plan.get()));
        return made;
    }

  private:
    static FlatPlans *of(PyObject *object) { return reinterpret_cast<FlatPlans *>(object); }

    bool add(PyObject *given) {
        PyObject *name, *kind, *info, *buffers, *regions, *numbers, *data, *apart;
        int sets, by_state;
        if (!PyTuple_Check(given) || !PyArg_ParseTuple(given, "UOUO!UO!UO!ip", &name, &kind, &info, &PyTuple_Type, &buffers, &regions,
                                                       &PyTuple_Type, &numbers, &data, &PyTuple_Type, &apart, &sets, &by_state)) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a row is a tuple");
            return false;
        }
        const auto named = [](PyObject *text) { return PyUnicode_GET_LENGTH(text) ? Ref::share(text) : Ref(); };
        const bool moves = kind == Py_None;  // what it does is learned of those that come
        if (!moves && Py_TYPE(kind) != FlatKind::type) return FlatKind::fault() != nullptr;
        Row row{Ref::share(name), moves ? Ref() : Ref::share(kind), {FlatPlans::into, named(info), named(regions), named(data), {}, {}, {}}, {}, {}, static_cast<FlatRow::Sets>(sets), by_state != 0};
        FlatNames &names = row.names;
        bool fits = names.take(buffers, numbers, apart) && names.buffers.size() <= FlatKind::MOST && sets >= FlatRow::NOTHING && sets <= FlatRow::ONCE;
        fits = fits && (moves ? !names.numbers.empty() || names.regions : !names.buffers.empty() && names.numbers.size() == FlatKind::of(kind)->words &&
                                    static_cast<bool>(names.data) == FlatKind::of(kind)->has_data);
        if (!fits) PyErr_SetString(PyExc_ValueError, "a row does not fit its kind");
        if (fits) rows.push_back(std::move(row));
        return fits;
    }

    // That of a command, or none. Names are interned, mostly.
    Row *find(PyObject *name) {
        for (Row &each : rows) {
            if (each.name.get() == name) return &each;
        }
        for (Row &each : rows) {
            if (PyUnicode_CheckExact(name) && PyUnicode_Compare(each.name.get(), name) == 0) return &each;
        }
        return nullptr;
    }

    // The numbers of a call of a row, and all that it says beside them. False where it has none that others may differ in.
    static bool read_like(Row &row, const SaidBytes &said, FlatKey::Values &values, std::string &like) {
        const FlatKey &key = key_of(row, said.form);
        if (row.names.regions) return key.read_around(said.bytes, values, like);
        if (!key.read(said.bytes, values)) return false;
        like = key.without_numbers(said.bytes);
        return true;
    }

    // What stands for calls of a row in states, or none.
    Ref likeness(const Row &row, std::string &&like) const {
        if (like.empty()) return Ref();
        like.push_back(static_cast<char>(&row - rows.data()));
        return Ref::take(PyBytes_FromStringAndSize(like.data(), static_cast<Py_ssize_t>(like.size())));
    }

    static const FlatKey &key_of(Row &row, PyObject *form) {
        for (const FlatKey &each : row.keys) {
            if (each.is_of(form)) return each;
        }
        if (row.keys.size() >= FlatRow::MOST_FORMS) row.keys.clear();
        row.keys.emplace_back(form, row.names);
        return row.keys.back();
    }

    // A value of a dictionary, or none.
    static Ref item(PyObject *from, PyObject *name) {
        return PyDict_CheckExact(from) ? Ref::share(PyDict_GetItemWithError(from, name)) : Ref();
    }

    // The plan of a command with these arguments; none where Python must find it, or with an exception.
    Ref plan(const Row &row, long long changes, PyObject *args) {
        const Ref info = row.names.info ? item(args, row.names.info.get()) : Ref::share(args);
        if (!info) return Ref();
        FlatNumbers numbers;
        if (!row.names.regions) {
            if (!read_numbers(row, info.get(), numbers)) return Ref();
        } else {
            const Ref regions = item(info.get(), row.names.regions.get());
            if (!regions || !PyList_CheckExact(regions.get())) return Ref();
            for (Py_ssize_t at = 0; at < PyList_GET_SIZE(regions.get()); ++at) {
                const Ref each = Ref::share(PyList_GET_ITEM(regions.get(), at));
                if (!read_numbers(row, each.get(), numbers)) return Ref();
            }
        }
        const Ref data = row.names.data ? item(info.get(), row.names.data.get()) : Ref();
        if (!numbers.add_data(*FlatKind::of(row.kind.get()), data.get())) return Ref();
        long long ids[FlatKind::MOST] = {};
        for (std::size_t at = 0; at < row.names.buffers.size(); ++at) {
            const Ref id = item(info.get(), row.names.buffers[at].get());
            if (!id || !near_number(id.get(), ids[at])) return Ref();
        }
        return plan(row, changes, ids, numbers.all.data(), numbers.all.size());
    }

    static bool read_numbers(const Row &row, PyObject *from, FlatNumbers &numbers) {
        const std::vector<Ref> &names = row.names.numbers;
        return std::all_of(names.begin(), names.end(), [&](const Ref &name) { return numbers.add(item(from, name.get()).get()); });
    }

    Ref plan(const Row &row, long long changes, const long long *ids, const std::uint64_t *numbers, std::size_t count) {
        Ref origin = table.said_origin(row.kind.get(), ids[0], ids[1], changes);
        if (!origin) origin = found_origin(row, ids, changes);
        return origin ? table.plan(origin, numbers, count) : Ref();
    }

    // The origin of commands over buffers of which Python knows where they are, and from now on that calls speak of them.
    Ref found_origin(const Row &row, const long long *ids, long long changes) {
        FlatOrigin::Place place[FlatKind::MOST];
        const Ref several = Ref::take(PyTuple_New(static_cast<Py_ssize_t>(row.names.buffers.size())));
        for (std::size_t at = 0; several && at < row.names.buffers.size(); ++at) {
            const Ref id = Ref::take(PyLong_FromLongLong(ids[at]));
            Ref held = id ? Ref::share(PyDict_GetItemWithError(places.get(), id.get())) : Ref();
            if (!held || !read_place(held.get(), place[at]) || place[at].id != ids[at]) return Ref();
            PyTuple_SET_ITEM(several.get(), static_cast<Py_ssize_t>(at), held.release());
            if (PySet_Add(said.get(), id.get()) < 0) return Ref();
        }
        Ref origin = several ? table.origin(row.kind.get(), place, several.get()) : Ref();
        if (origin) table.say(origin, changes);
        return origin;
    }
};

PyTypeObject *FlatPlans::type = nullptr;
PyObject *FlatPlans::into = nullptr;

inline bool add_flat_table(PyObject *module) {
    static PyMethodDef methods[] = {
        method<FlatPlans, FlatPlans::plan_method, 4>("plan"),
        method<FlatPlans, FlatPlans::record_method, 5>("record"),
        method<FlatPlans, FlatPlans::forget_method, 1>("forget"),
        method<FlatPlans, FlatPlans::learn_method, 3>("learn"),
        method<FlatPlans, FlatPlans::like_method, 1>("like"),
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        slot(Py_tp_new, caught<FlatPlans::make>), slot(Py_tp_dealloc, FlatPlans::unmake), slot(Py_tp_traverse, FlatPlans::traverse),
        slot(Py_tp_clear, FlatPlans::clear), slot(Py_tp_methods, methods), {0, nullptr},
    };
    static PyType_Spec spec = {"vkharness.native._core.FlatPlans", sizeof(FlatPlans), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    FlatPlans::into = PyUnicode_InternFromString("commandBuffer");
    FlatPlans::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return FlatPlans::into && FlatPlans::type && PyModule_AddType(module, FlatPlans::type) == 0;
}

}  // namespace vkharness

#endif
