// Commands that differ from others in numbers alone, by what they say beside these, and what such a command does
// (moved_plans.hpp). What depends on the state of a command buffer as well lies in that state (`SaidState`).

#ifndef VKHARNESS_FLAT_MOVES_HPP
#define VKHARNESS_FLAT_MOVES_HPP

#include "flat_keys.hpp"
#include "moved_plans.hpp"

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

class FlatMoves {
  public:
    static constexpr std::size_t MOST = 1 << 12;

    // The plan of a call that says this beside its numbers. None where Python must find it, or with an exception.
    Ref find(const std::string &others, const FlatKey::Values &values, long long changes) const {
        const auto known = known_.find(others);
        if (known == known_.end() || known->second.changes != changes) return Ref();
        const Ref moved = Ref::share(known->second.moved.get());  // a finalizer that runs meanwhile may learn, and forget this
        return MovedPlan::of(moved.get())->at(values.numbers);
    }

    // `FlatPlans.learn` of what a call says, by (changes, MovedPlan).
    PyObject *learn(const FlatKey &key, const SaidBytes &said, PyObject *const *arguments) {
        const long long changes = PyLong_AsLongLong(arguments[0]);
        if (PyErr_Occurred()) return nullptr;
        if (!MovedPlan::is_one(arguments[1])) return FlatKind::fault();
        FlatKey::Values values;
        std::string known;
        if (!key.read_around(said.bytes, values, known) || known.size() != said.size) Py_RETURN_FALSE;
        std::unordered_map<std::string, Moved> gone;
        if (known_.size() >= MOST || std::exchange(changes_, changes) != changes) gone.swap(known_);  // what is older holds no more
        known_.insert_or_assign(std::move(known), Moved{Ref::share(arguments[1]), changes});
        Py_RETURN_TRUE;
    }

    void clear() {
        std::unordered_map<std::string, Moved> gone;
        gone.swap(known_);
    }

    int traverse(visitproc visit, void *arg) const {
        for (const auto &each : known_) Py_VISIT(each.second.moved.get());
        return 0;
    }

  private:
    struct Moved {
        Ref moved;  // a MovedPlan
        long long changes;
    };

    long long changes_ = 0;                         // when something was learned last
    std::unordered_map<std::string, Moved> known_;  // by what calls say beside the numbers
};

}  // namespace vkharness

#endif
