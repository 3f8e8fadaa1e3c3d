// Where native commands leave their calls, each with its arguments by value.
//
// The name and arguments of a call are found by their bytes: no dictionary is made for a call that was met before.
// Python takes what has come together when it needs it: with the next call that is recorded the Python way.

#ifndef VKHARNESS_FRONT_LOG_HPP
#define VKHARNESS_FRONT_LOG_HPP

#include "front_waiting.hpp"
#include "key_bytes.hpp"

#include <algorithm>

namespace vkharness {

// Sayings by their bytes. They are only added, and forgotten all at once.
//
// A frame says what the frame before it said, in the same order. So what came behind a saying the last time is looked at
// first, and the bytes of all lie side by side: no object is touched then, which lie anywhere in memory.
class SayingTable {
  public:
    static constexpr std::uint32_t NONE = ~std::uint32_t(0);

    std::size_t size() const { return known_.size(); }
    std::uint64_t era() const { return era_; }  // places are good as long as it is the same
    const Ref &at(std::size_t place) const { return known_[place].saying; }

    // The place of what came behind the last one that was found, if it has these bytes; or NONE.
    std::uint32_t find_next(std::string_view key) {
        const std::uint32_t next = last_ == NONE ? NONE : known_[last_].next;
        if (next == NONE || key_of(known_[next]) != key) return NONE;
        return last_ = next;
    }

    // The place of one with these bytes, or NONE.
    std::uint32_t find(std::string_view key, std::size_t hash) {
        for (std::size_t at = hash; !slots_.empty(); ++at) {
            const std::uint32_t place = slots_[at & (slots_.size() - 1)];
            if (place == NONE) break;
            if (known_[place].hash == hash && key_of(known_[place]) == key) return follow(place);
        }
        return NONE;
    }

    // One that was not found.
    void add(const Ref &saying, std::size_t hash) {
        if (2 * (known_.size() + 1) > slots_.size()) grow();
        const std::string_view key = Saying::of(saying.get())->key();
        if (known_.size() == known_.capacity()) known_.reserve(std::max<std::size_t>(64, 2 * known_.size()));
        const std::size_t at = keys_.size();
        keys_.insert(keys_.end(), key.begin(), key.end());
        known_.push_back({Ref::share(saying.get()), hash, at, key.size(), NONE});
        put(static_cast<std::uint32_t>(known_.size() - 1));
        follow(static_cast<std::uint32_t>(known_.size() - 1));
    }

    // Forgets all, which are given: to let one go may run Python. Most of the memory stays, since as many come again.
    std::vector<Ref> forget() {
        std::vector<Ref> gone;
        gone.reserve(known_.size());
        for (Known &each : known_) gone.push_back(std::move(each.saying));
        known_.clear();
        keys_.clear();
        std::fill(slots_.begin(), slots_.end(), NONE);
        last_ = NONE;
        ++era_;
        return gone;
    }

    // Visits the objects that it holds, for `tp_traverse`.
    int traverse(visitproc visit, void *arg) const {
        for (const Known &each : known_) Py_VISIT(each.saying.get());
        return 0;
    }

  private:
    struct Known {
        Ref saying;
        std::size_t hash, at, size;  // at, size: of the bytes
        std::uint32_t next;          // the place of what came behind it
    };

    std::string_view key_of(const Known &known) const { return {keys_.data() + known.at, known.size}; }

    std::uint32_t follow(std::uint32_t place) {
        if (last_ != NONE) known_[last_].next = place;
        return last_ = place;
    }

    void put(std::uint32_t place) {
        std::size_t at = known_[place].hash & (slots_.size() - 1);
        while (slots_[at] != NONE) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = place;
    }

    void grow() {
        std::vector<std::uint32_t> more(slots_.empty() ? 64 : 2 * slots_.size(), NONE);
        more.swap(slots_);
        for (std::size_t place = 0; place < known_.size(); ++place) put(static_cast<std::uint32_t>(place));
    }

    std::vector<Known> known_;
    std::vector<char> keys_;
    std::vector<std::uint32_t> slots_;
    std::uint32_t last_ = NONE;
    std::uint64_t era_ = 0;
};

// Marks of what was said, by hashes: whoever says it next finds that somebody said it before.
class SaidOnce {
  public:
    // Whether there is the mark of a hash, which there is from now on.
    bool exchange(std::size_t hash) {
        if (marks_.empty()) marks_.resize(COUNT);
        const std::uint32_t mark = static_cast<std::uint32_t>(hash >> 32) | 1;
        return std::exchange(marks_[hash % COUNT], mark) == mark;
    }

  private:
    static constexpr std::size_t COUNT = 1 << 14;
    std::vector<std::uint32_t> marks_;
};

struct CallLog {
    PyObject_HEAD
    Ref full;  // Python: what is called when many entries have come together
    std::vector<WaitingCall> entries;
    std::vector<char> bytes;  // of entries that have no `Saying`
    SayingTable known;
    SaidOnce once;
    std::size_t most_entries, most_known, most_bytes;
    std::size_t waiting_bytes, known_bytes;  // of what is said, as it is written to be found by
    std::uint64_t next_number;               // of the next block

    static PyTypeObject *type;

    // CallLog(number of the next block, full, most entries, most sayings that are remembered, most bytes of either)
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *full;
        Py_ssize_t most_entries, most_known, most_bytes;
        unsigned long long next_number;
        if (!PyArg_ParseTuple(arguments, "KOnnn", &next_number, &full, &most_entries, &most_known, &most_bytes)) return nullptr;
        PyObject *const self = made->tp_alloc(made, 0);
        if (!self) return nullptr;
        CallLog *const log = reinterpret_cast<CallLog *>(self);
        new (&log->full) Ref(Ref::share(full));
        new (&log->entries) std::vector<WaitingCall>();
        new (&log->bytes) std::vector<char>();
        new (&log->known) SayingTable();
        new (&log->once) SaidOnce();
        log->most_entries = static_cast<std::size_t>(most_entries);
        log->most_known = static_cast<std::size_t>(most_known);
        log->most_bytes = static_cast<std::size_t>(most_bytes);
        log->next_number = next_number;
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        CallLog *const log = reinterpret_cast<CallLog *>(object);
        log->once.~SaidOnce();
        log->known.~SayingTable();
        log->bytes.~vector();
        log->entries.~vector();
        log->full.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        const CallLog *const log = reinterpret_cast<CallLog *>(object);
        Py_VISIT(log->full.get());
        for (const WaitingCall &entry : log->entries) Py_VISIT(entry.what.get());
        return log->known.traverse(visit, arg);
    }

    static int clear(PyObject *object) {
        CallLog *const log = reinterpret_cast<CallLog *>(object);
        std::vector<WaitingCall> entries;
        SayingTable known;
        entries.swap(log->entries);
        std::swap(known, log->known);
        return 0;
    }

    // The name and arguments of a call that is not in the log yet.
    struct Told {
        std::string_view key;  // the bytes; none where there is a `Saying` that has arguments alone
        std::size_t size;      // as many bytes as it counts for
        std::size_t hash = 0;
        Ref what;                                   // as of a `WaitingCall`
        std::uint32_t place = SayingTable::NONE;    // in the table, in this era
        std::uint64_t era = 0;
    };

    // Finds what was said by these bytes before. `is_new`: nobody has said it lately.
    bool find(Told &told, bool &is_new) {
        const Locked locked(reinterpret_cast<PyObject *>(this));
        told.era = known.era();
        told.place = known.find_next(told.key);
        if (told.place != SayingTable::NONE) return true;
        told.hash = hash_of_bytes(told.key);
        told.place = known.find(told.key, told.hash);
        is_new = told.place == SayingTable::NONE && !once.exchange(told.hash);
        return told.place != SayingTable::NONE;
    }

    // Remembers one for calls that say the same, if there is none; the one that is remembered then. Everything else is
    // forgotten first when that is too much.
    Ref remember(Ref &&saying, std::size_t hash) {
        std::vector<Ref> old;
        const Locked locked(reinterpret_cast<PyObject *>(this));
        const std::uint32_t found = known.find(Saying::of(saying.get())->key(), hash);
        if (found != SayingTable::NONE) return Ref::share(known.at(found).get());
        if (known.size() >= most_known || known_bytes >= most_bytes) old = forgotten();
        known_bytes += Saying::of(saying.get())->key().size();
        known.add(saying, hash);
        return std::move(saying);
    }

    // Finds out what a call says by these bytes: what others said, or the bytes alone, where nobody has said it lately. `says` is
    // its name and form. False with an exception.
    bool tell(Told &told, std::string_view key, const Ref &says) {
        told.key = key;
        told.size = key.size();
        bool is_new = false;
        if (find(told, is_new) || is_new) return true;
        Ref made = Saying::make(PyTuple_GET_ITEM(says.get(), 0), PyTuple_GET_ITEM(says.get(), 1), key, true);
        if (made) told.what = remember(std::move(made), told.hash);
        return static_cast<bool>(told.what);
    }

    // Numbers a call, and adds it. `says` is its name and form. False with an exception.
    bool add(Told &&told, Ref &&site, const Ref &says, unsigned long thread) {
        bool is_full;
        {
            const Locked locked(reinterpret_cast<PyObject *>(this));
            const bool is_known = told.place != SayingTable::NONE && told.era == known.era();
            if (!is_known && !told.what) told.what = Ref::share(says.get());
            const bool has_bytes = !is_known && Py_TYPE(told.what.get()) != Saying::type;
            const std::size_t at = is_known ? told.place : bytes.size();
            if (has_bytes) bytes.insert(bytes.end(), told.key.begin(), told.key.end());
            const long long index = static_cast<long long>(next_number++);
            entries.push_back({std::move(told.what), std::move(site), index, thread, at,
                               told.key.size(), told.hash});
            waiting_bytes += told.size;
            is_full = entries.size() >= most_entries || waiting_bytes >= most_bytes;
        }
        return !is_full || Ref::take(PyObject_CallNoArgs(full.get()));
    }

    // take() -> WaitingCalls: what has come together, which is in the log no more.
    static PyObject *take(PyObject *self, PyObject *) {
        return reinterpret_cast<CallLog *>(self)->taken(nullptr).release();
    }

    // forget(): nobody says any more what was said so far, since what it was said of is gone.
    static PyObject *forget(PyObject *self, PyObject *) {
        CallLog *const log = reinterpret_cast<CallLog *>(self);
        std::vector<Ref> old;
        {
            const Locked locked(self);
            old = log->forgotten();
        }
        Py_RETURN_NONE;
    }

    // take_and_number() -> (what `take` gives, the number of a block that comes after it)
    static PyObject *take_and_number(PyObject *self, PyObject *) {
        long long number;
        const Ref list = reinterpret_cast<CallLog *>(self)->taken(&number);
        return list ? Py_BuildValue("OL", list.get(), number) : nullptr;
    }

    static Py_ssize_t length(PyObject *self) {
        const Locked locked(self);
        return static_cast<Py_ssize_t>(reinterpret_cast<CallLog *>(self)->entries.size());
    }

  private:
    // Gives each entry what it says, which has only its place in the table so far.
    void resolve() {
        for (WaitingCall &each : entries) {
            if (!each.what) each.what = Ref::share(known.at(each.at).get());
        }
    }

    std::vector<Ref> forgotten() {
        resolve();
        known_bytes = 0;
        return known.forget();
    }

    Ref taken(long long *number) {
        std::vector<WaitingCall> all;
        std::vector<char> said;
        {
            const Locked locked(reinterpret_cast<PyObject *>(this));
            if (number) *number = static_cast<long long>(next_number++);
            resolve();
            all.swap(entries);
            said.swap(bytes);
            waiting_bytes = 0;
        }
        return WaitingCalls::make(reinterpret_cast<PyObject *>(this), std::move(all), std::move(said));
    }
};

PyTypeObject *CallLog::type = nullptr;

inline void use_again(PyObject *object, std::vector<WaitingCall> &&calls, std::vector<char> &&bytes) {
    CallLog *const log = reinterpret_cast<CallLog *>(object);
    calls.clear();
    bytes.clear();
    const Locked locked(object);
    if (log->entries.empty() && calls.capacity() > log->entries.capacity()) log->entries.swap(calls);
    if (log->bytes.empty() && bytes.capacity() > log->bytes.capacity()) log->bytes.swap(bytes);
}

inline Ref remembered_saying(PyObject *log, Ref &&saying, std::size_t hash) {
    return reinterpret_cast<CallLog *>(log)->remember(std::move(saying), hash);
}

}  // namespace vkharness

#endif
