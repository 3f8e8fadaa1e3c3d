// Commands that differ from others in where a range of one buffer begins, which is a number that they say.
//
// Python finds the effects of one of them (`learn_moved` of harness/vkharness/commands/buffer_transfers.py). They are
// kept by the other arguments of the call, and moved for calls with another number.

#ifndef VKHARNESS_FLAT_MOVES_HPP
#define VKHARNESS_FLAT_MOVES_HPP

#include "flat_keys.hpp"

#include <string>
#include <unordered_map>

namespace vkharness {

// A call by its bytes: its name, their form, and where its arguments begin.
struct SaidBytes {
    PyObject *name, *form;
    const char *bytes;
    std::size_t size = 0;  // known of a `Saying`
};

// Those of a `Saying`. False where it is none, or has arguments alone. (front_waiting.hpp)
bool read_saying(PyObject *object, SaidBytes &said);

// Effects of a command that differs from others in where a range of one buffer begins: a number among its arguments.
struct FlatMoved {
    Ref reach;                         // a FlatReach
    std::vector<std::uint64_t> words;  // of its plan, by the command that was seen
    std::size_t memory = 0;            // which one of its memories moves
    std::uint64_t number = 0, limit = 0;  // what that command said; where the buffer ends
    long long changes = 0;

    // The plan of one that says another number. None where Python must find it, or with an exception.
    Ref at(std::uint64_t said) const {
        const FlatReach &of = *FlatReach::of(reach.get());
        std::vector<std::uint64_t> there = words;
        std::uint64_t &begin = there[FlatReach::WORDS * memory + FlatReach::BEGIN];
        begin += said - number;
        for (const FlatReach::Part &each : of.parts) {
            const bool is_inside = begin < limit && static_cast<std::uint64_t>(each.bytes.back().end) <= limit - begin;
            if (each.memory == memory && !is_inside) return Ref();
        }
        const Ref held = Ref::share(reach.get());  // a finalizer that runs meanwhile may learn, and forget this
        return of.fits(there.data()) ? FlatPlan::make(held.get(), there.data(), there.size()) : Ref();
    }
};

class FlatMoves {
  public:
    static constexpr std::size_t MOST = 1 << 12;

    // The plan of a call. None where Python must find it, or with an exception.
    Ref find(const FlatKey &key, const char *bytes, const FlatKey::Values &values, long long changes) const {
        const auto known = known_.find(key.without_numbers(bytes));
        return known != known_.end() && known->second.changes == changes ? known->second.at(values.numbers[0]) : Ref();
    }

    // `FlatPlans.learn` of what a call says, by (changes, reach, words, (which memory moves, where its buffer ends)).
    PyObject *learn(const FlatKey &key, const SaidBytes &said, PyObject *const *arguments) {
        FlatMoved made;
        unsigned long long limit;
        Py_ssize_t memory;
        made.changes = PyLong_AsLongLong(arguments[0]);
        if (PyErr_Occurred()) return nullptr;
        if (!FlatReach::is_one(arguments[1]) || !PyTuple_Check(arguments[2]) || !PyTuple_Check(arguments[3])) return FlatKind::fault();
        if (!PyArg_ParseTuple(arguments[3], "nK", &memory, &limit)) return nullptr;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(arguments[2]); ++at) {
            long long word;
            if (!near_number(PyTuple_GET_ITEM(arguments[2], at), word)) Py_RETURN_FALSE;
            made.words.push_back(static_cast<std::uint64_t>(word));
        }
        const std::size_t memories = FlatReach::of(arguments[1])->memories;
        made.memory = static_cast<std::size_t>(memory);
        if (made.words.size() != FlatReach::WORDS * memories || made.memory >= memories) return FlatKind::fault();
        FlatKey::Values values;
        std::string known = key.read(said.bytes, values) ? key.without_numbers(said.bytes) : std::string();
        if (known.empty() || known.size() != said.size) Py_RETURN_FALSE;  // it says more
        made.reach = Ref::share(arguments[1]);
        made.number = values.numbers[0];
        made.limit = limit;
        std::unordered_map<std::string, FlatMoved> gone;
        if (known_.size() >= MOST) gone.swap(known_);
        known_.insert_or_assign(std::move(known), std::move(made));
        Py_RETURN_TRUE;
    }

    void clear() {
        std::unordered_map<std::string, FlatMoved> gone;
        gone.swap(known_);
    }

    int traverse(visitproc visit, void *arg) const {
        for (const auto &each : known_) Py_VISIT(each.second.reach.get());
        return 0;
    }

  private:
    std::unordered_map<std::string, FlatMoved> known_;  // by what calls say beside the number
};

}  // namespace vkharness

#endif
