// `Automaton` for Python, and the object of a store, which uses one.

#ifndef VKHARNESS_AUTOMATON_TYPE_HPP
#define VKHARNESS_AUTOMATON_TYPE_HPP

#include "access_forms.hpp"

namespace vkharness {

struct AutomatonType {
    static PyTypeObject *type;

    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *after_access, *access_type = nullptr;
        Py_ssize_t limit;
        if (!PyArg_ParseTuple(arguments, "On|O!", &after_access, &limit, &PyType_Type, &access_type)) return nullptr;
        const Ref object = Ref::take(made->tp_alloc(made, 0));
        AutomatonObject *const self = reinterpret_cast<AutomatonObject *>(object.get());
        if (!self) return nullptr;
        try {
            self->automaton = new Automaton(after_access, static_cast<std::size_t>(std::max<Py_ssize_t>(limit, 1)));
            if (access_type) self->reader = new AccessReader();
        } catch (const std::bad_alloc &) {
            return PyErr_NoMemory();
        }
        const bool good = self->automaton->good() && (!access_type || self->reader->learn(access_type));
        return good ? Py_NewRef(object.get()) : nullptr;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        delete reinterpret_cast<AutomatonObject *>(object)->reader;
        delete reinterpret_cast<AutomatonObject *>(object)->automaton;
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        const AutomatonObject *const self = reinterpret_cast<AutomatonObject *>(object);
        const int stop = self->reader ? self->reader->traverse(visit, arg) : 0;
        return stop || !self->automaton ? stop : self->automaton->traverse(visit, arg);
    }

    // Nothing while a store uses it. A store in use is no garbage, and neither is its automaton.
    static int clear(PyObject *object) noexcept {
        AutomatonObject *const self = reinterpret_cast<AutomatonObject *>(object);
        if (self->automaton) self->automaton->let_go();
        if (self->reader) self->reader->forget();
        reclaim(self);
        return 0;
    }

    // Lets it give up what it has too much, unless a store uses it. Python may run.
    static void reclaim(AutomatonObject *self) noexcept {
        if (!self->automaton || self->users) return;
        ++self->users;
        self->automaton->reclaim();
        --self->users;
    }

    // (states, answers, questions): how many are held, and how often Python was asked.
    static PyObject *sizes(AutomatonObject *self, PyObject *const *) {
        const Automaton &held = *self->automaton;
        return Py_BuildValue("nnn", static_cast<Py_ssize_t>(held.states()), static_cast<Py_ssize_t>(held.answers()),
                             static_cast<Py_ssize_t>(held.asked()));
    }
};

inline PyTypeObject *AutomatonType::type = nullptr;

struct RangeStoreObject {
    PyObject_HEAD
    AutomatonObject *automaton;
    RangeStore *store;
    bool busy;
    bool broken;  // there was no memory in the middle of an operation: nobody knows what the store holds
};

// Says that a store is in use, and gives up what its automaton has too much before. A store whose operation C++ leaves by an
// exception is used no more, and its memory is not given back: two entries may have the same.
class Busy {
  public:
    explicit Busy(RangeStoreObject *self) : self_(self), exceptions_(std::uncaught_exceptions()), good_(claim(self)) {}
    ~Busy() {
        if (!good_) return;
        self_->busy = false;
        if (std::uncaught_exceptions() > exceptions_) self_->broken = true;
        --self_->automaton->users;
    }
    bool good() const { return good_; }

  private:
    static bool claim(RangeStoreObject *self) {
        AutomatonType::reclaim(self->automaton);  // first: Python may run
        if (self->busy) {
            PyErr_SetString(PyExc_RuntimeError, "the store is in use");
            return false;
        }
        if (self->broken) {
            PyErr_NoMemory();
            return false;
        }
        self->busy = true;
        ++self->automaton->users;
        return true;
    }

    RangeStoreObject *const self_;
    const int exceptions_;
    const bool good_;
};

}  // namespace vkharness

#endif
