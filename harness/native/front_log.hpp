// Where native commands leave their calls, each with its arguments by value.
//
// What a call says is found by its bytes: no dictionary is made for a call that was met before. Python takes what has come
// together when it needs it: with the next call that is recorded the Python way.

#ifndef VKHARNESS_FRONT_LOG_HPP
#define VKHARNESS_FRONT_LOG_HPP

#include "front_waiting.hpp"
#include "key_bytes.hpp"

namespace vkharness {

// Sayings by their bytes. They are only added, and forgotten all at once.
class SayingTable {
  public:
    std::size_t size() const { return size_; }

    Ref find(std::string_view key, std::size_t hash) const {
        for (std::size_t at = hash; !slots_.empty(); ++at) {
            const Slot &slot = slots_[at & (slots_.size() - 1)];
            if (!slot.saying) break;
            if (slot.hash == hash && Saying::of(slot.saying.get())->key() == key) return Ref::share(slot.saying.get());
        }
        return Ref();
    }

    // One that was not found.
    void add(const Ref &saying, std::size_t hash) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        put({hash, Ref::share(saying.get())});
        ++size_;
    }

    // Forgets all, which are given: to let one go may run Python. The memory stays, since as many come again.
    std::vector<Ref> forget() {
        std::vector<Ref> gone;
        gone.reserve(size_);
        for (Slot &each : slots_) {
            if (each.saying) gone.push_back(std::move(each.saying));
        }
        size_ = 0;
        return gone;
    }

    // What `tp_traverse` is asked for.
    int traverse(visitproc visit, void *arg) const {
        for (const Slot &each : slots_) Py_VISIT(each.saying.get());
        return 0;
    }

  private:
    struct Slot {
        std::size_t hash = 0;
        Ref saying;
    };

    void put(Slot &&slot) {
        std::size_t at = slot.hash & (slots_.size() - 1);
        while (slots_[at].saying) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = std::move(slot);
    }

    void grow() {
        std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
        old.swap(slots_);
        for (Slot &each : old) {
            if (each.saying) put(std::move(each));
        }
    }

    std::vector<Slot> slots_;
    std::size_t size_ = 0;
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

    // What was said by these bytes before, or none. `is_new`: nobody has said it lately.
    Ref find(std::string_view key, std::size_t hash, bool &is_new) {
        const Locked locked(reinterpret_cast<PyObject *>(this));
        Ref found = known.find(key, hash);
        is_new = !found && !once.exchange(hash);
        return found;
    }

    // Remembers one for calls that say the same, if there is none; the one that is remembered then. Everything else is
    // forgotten first when that is too much.
    Ref remember(Ref &&saying, std::size_t hash) {
        std::vector<Ref> old;
        const Locked locked(reinterpret_cast<PyObject *>(this));
        Ref found = known.find(Saying::of(saying.get())->key(), hash);
        if (found) return found;
        if (known.size() >= most_known || known_bytes >= most_bytes) {
            old = known.forget();
            known_bytes = 0;
        }
        known_bytes += Saying::of(saying.get())->key().size();
        known.add(saying, hash);
        return std::move(saying);
    }

    // Numbers a call that says something of so many bytes, and adds it. `key` has what it says if `what` is no `Saying`.
    // False with an exception.
    bool add(Ref &&what, Ref &&site, std::size_t size, std::string_view key, std::size_t hash) {
        bool is_full;
        {
            const Locked locked(reinterpret_cast<PyObject *>(this));
            const long long index = static_cast<long long>(next_number++);
            const std::size_t at = bytes.size();
            const bool has_bytes = Py_TYPE(what.get()) != Saying::type;
            if (has_bytes) bytes.insert(bytes.end(), key.begin(), key.end());
            entries.push_back({std::move(what), std::move(site), index, PyThread_get_thread_ident(), at, key.size(), hash});
            waiting_bytes += size;
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
        SayingTable old;
        {
            const Locked locked(self);
            std::swap(old, log->known);
            log->known_bytes = 0;
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
    Ref taken(long long *number) {
        std::vector<WaitingCall> all;
        std::vector<char> said;
        {
            const Locked locked(reinterpret_cast<PyObject *>(this));
            if (number) *number = static_cast<long long>(next_number++);
            all.swap(entries);
            said.swap(bytes);
            waiting_bytes = 0;
        }
        return WaitingCalls::make(reinterpret_cast<PyObject *>(this), std::move(all), std::move(said));
    }
};

PyTypeObject *CallLog::type = nullptr;

inline Ref remembered_saying(PyObject *log, Ref &&saying, std::size_t hash) {
    return reinterpret_cast<CallLog *>(log)->remember(std::move(saying), hash);
}

}  // namespace vkharness

#endif
