// Replacements of the package's functions and of those of its `lib`: two types.
//
// Both outlive sessions, since programs keep them. A session gives them a `Command` ("arms" them) when they are first
// called, and takes it away when it ends. Without one they do what they stand in for.

#ifndef VKHARNESS_FRONT_FUNCTION_HPP
#define VKHARNESS_FRONT_FUNCTION_HPP

#include "front_command.hpp"

#include <unordered_map>

namespace vkharness {

// The part that both types share.
struct Armed {
    Ref command;  // none while there is no session
    Ref arm;      // Python: gives the session's command; None where the call goes the Python way
    Ref real;     // what is called then; none for a Target, whose pointer can be called

    // The command, owned, so that it lives as long as the call; none, also with an exception.
    Ref current(PyObject *self) {
        {
            const Locked locked(self);
            if (command) return Ref::share(command.get());
        }
        const CriticalSection section;
        const Ref made = Ref::take(PyObject_CallNoArgs(arm.get()));
        if (!made || made.get() == Py_None) return Ref();
        if (Py_TYPE(made.get()) != Command::type) {
            PyErr_SetString(PyExc_TypeError, "arms with a Command or None");
            return Ref();
        }
        return Ref::share(made.get());
    }

    // set(command): by the session, under its own lock.
    void set(PyObject *self, PyObject *made) {
        Ref old;
        const Locked locked(self);
        old = std::exchange(command, made == Py_None ? Ref() : Ref::share(made));
    }

    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(command.get());
        Py_VISIT(arm.get());
        Py_VISIT(real.get());
        return 0;
    }
};

// In place of a function of the package. Every attribute but `__class__` is that of the function.
struct Function {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *weak;
    Armed armed;

    static PyTypeObject *type;

    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *real, *arm;
        if (!PyArg_ParseTuple(arguments, "OO", &real, &arm)) return nullptr;
        PyObject *const self = made->tp_alloc(made, 0);
        if (!self) return nullptr;
        Function *const function = reinterpret_cast<Function *>(self);
        function->call = called;
        new (&function->armed) Armed{Ref(), Ref::share(arm), Ref::share(real)};
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        Function *const function = reinterpret_cast<Function *>(object);
        if (function->weak) PyObject_ClearWeakRefs(object);
        function->armed.~Armed();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        return reinterpret_cast<Function *>(object)->armed.traverse(visit, arg);
    }

    // For the garbage collector: takes the command away. The function can be called as long as somebody has it.
    static int clear(PyObject *object) {
        reinterpret_cast<Function *>(object)->armed.set(object, Py_None);
        return 0;
    }

    static PyObject *called(PyObject *self, PyObject *const *arguments, std::size_t flags, PyObject *names) noexcept {
        Armed &armed = reinterpret_cast<Function *>(self)->armed;
        try {
            const Ref made = armed.current(self);
            PyObject *placed[MOST_PARAMETERS];
            if (made) {
                const Command *const command = reinterpret_cast<const Command *>(made.get());
                const std::size_t count = static_cast<std::size_t>(PyVectorcall_NARGS(flags));
                PyObject *const *given = arguments;
                bool fits = count == command->parameters.size() && !names;
                if (!fits && (fits = command->place(arguments, count, names, placed))) given = placed;
                const auto outcome = fits ? command->call(given, Command::Way::PACKAGE) : Command::Outcome::REFUSED;
                if (outcome == Command::Outcome::DONE) Py_RETURN_NONE;
                if (outcome == Command::Outcome::RAISED) return nullptr;
            } else if (PyErr_Occurred()) {
                return nullptr;
            }
        } catch (const std::bad_alloc &) {
            return PyErr_NoMemory();
        }
        return PyObject_Vectorcall(armed.real.get(), arguments, flags, names);
    }

    static PyObject *get(PyObject *self, PyObject *owner, PyObject *) {
        return owner && owner != Py_None ? PyMethod_New(self, owner) : Py_NewRef(self);
    }

    static PyObject *attribute(PyObject *self, PyObject *name) {
        if (PyUnicode_Check(name)) {
            for (const char *own : {"__class__", "__reduce__", "__reduce_ex__"}) {
                if (PyUnicode_CompareWithASCIIString(name, own) == 0) return PyObject_GenericGetAttr(self, name);
            }
            if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
                return Py_NewRef(reinterpret_cast<Function *>(self)->armed.real.get());
            }
        }
        return PyObject_GetAttr(reinterpret_cast<Function *>(self)->armed.real.get(), name);
    }

    static int set_attribute(PyObject *self, PyObject *name, PyObject *value) {
        return PyObject_SetAttr(reinterpret_cast<Function *>(self)->armed.real.get(), name, value);
    }

    static PyObject *text(PyObject *self) { return PyObject_Repr(reinterpret_cast<Function *>(self)->armed.real.get()); }

    // Copies and pickles go by the name in the module, as those of Python's functions do.
    static PyObject *reduce(PyObject *self, PyObject *) {
        return PyObject_GetAttrString(reinterpret_cast<Function *>(self)->armed.real.get(), "__qualname__");
    }
};

PyTypeObject *Function::type = nullptr;

// A function that is called in place of a C function of `lib` when Python calls the pointer of that function. The
// pointer stays a value of cffi, to a callback that leads to the session: everybody else calls that.
//
// All pointers of cffi share one type, and cffi knows its types by address. So while a session lasts, that type's call
// looks first whether the pointer is one of these.
struct Target {
    PyObject_HEAD
    Ref kind;  // the ctype of the pointer: whoever casts it to another one calls the callback
    Armed armed;

    static PyTypeObject *type;

    // Target(pointer, arm): as long as the process lives.
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *pointer, *arm;
        if (!PyArg_ParseTuple(arguments, "OO", &pointer, &arm)) return nullptr;
        if (!Cffi::base || !Cffi::is_cdata(pointer)) {
            PyErr_SetString(PyExc_TypeError, "takes a function pointer of cffi");
            return nullptr;
        }
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        Target *const target = reinterpret_cast<Target *>(self.get());
        new (&target->kind) Ref(Ref::share(Cffi::cdata(pointer)->type));
        new (&target->armed) Armed{Ref(), Ref::share(arm), Ref()};
        const Locked locked(reinterpret_cast<PyObject *>(Cffi::base));
        known().insert_or_assign(Cffi::cdata(pointer)->data, Ref::share(self.get()));
        return self.release();
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        Target *const target = reinterpret_cast<Target *>(object);
        target->armed.~Armed();
        target->kind.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        return reinterpret_cast<Target *>(object)->armed.traverse(visit, arg);
    }

    static int clear(PyObject *) { return 0; }

    // direct_calls(on): whether pointers are looked at when they are called.
    static PyObject *direct_calls(PyObject *, PyObject *on) {
        if (!Cffi::base) {
            PyErr_SetString(PyExc_RuntimeError, "cffi is not known yet");
            return nullptr;
        }
        if (Cffi::base->tp_call != called) cffi_call() = Cffi::base->tp_call;
        Cffi::base->tp_call = on == Py_True ? called : cffi_call();
        Py_RETURN_NONE;
    }

  private:
    // By the address of the pointer. Never destroyed: calls may come while the process ends.
    static std::unordered_map<char *, Ref> &known() {
        static auto *const targets = new std::unordered_map<char *, Ref>();
        return *targets;
    }

    static ternaryfunc &cffi_call() {
        static ternaryfunc call = nullptr;
        return call;
    }

    static Ref find(PyObject *pointer) {
        const Locked locked(reinterpret_cast<PyObject *>(Cffi::base));
        const auto found = known().find(Cffi::cdata(pointer)->data);
        return found == known().end() ? Ref() : Ref::share(found->second.get());
    }

    static PyObject *called(PyObject *pointer, PyObject *arguments, PyObject *names) noexcept {
        try {
            const Ref found = find(pointer);
            Target *const target = reinterpret_cast<Target *>(found.get());
            if (target && target->kind.get() == Cffi::cdata(pointer)->type && (!names || PyDict_GET_SIZE(names) == 0)) {
                const Ref made = target->armed.current(found.get());
                const Command *const command = reinterpret_cast<const Command *>(made.get());
                if (command && static_cast<std::size_t>(PyTuple_GET_SIZE(arguments)) == command->parameters.size()) {
                    PyObject *const *const given = reinterpret_cast<PyTupleObject *>(arguments)->ob_item;
                    if (command->call(given, Command::Way::LIBRARY) == Command::Outcome::DONE) Py_RETURN_NONE;
                    return nullptr;
                }
                if (PyErr_Occurred()) return nullptr;
            }
        } catch (const std::bad_alloc &) {
            return PyErr_NoMemory();
        }
        return cffi_call()(pointer, arguments, names);
    }
};

PyTypeObject *Target::type = nullptr;

// arm(function or target, command or None)
inline PyObject *arm(PyObject *, PyObject *arguments) {
    PyObject *armed, *command;
    if (!PyArg_ParseTuple(arguments, "OO", &armed, &command)) return nullptr;
    if (command != Py_None && Py_TYPE(command) != Command::type) {
        PyErr_SetString(PyExc_TypeError, "arms with a Command or None");
    } else if (Py_TYPE(armed) == Function::type) {
        reinterpret_cast<Function *>(armed)->armed.set(armed, command);
        Py_RETURN_NONE;
    } else if (Py_TYPE(armed) == Target::type) {
        reinterpret_cast<Target *>(armed)->armed.set(armed, command);
        Py_RETURN_NONE;
    } else {
        PyErr_SetString(PyExc_TypeError, "arms a Function or a Target");
    }
    return nullptr;
}

}  // namespace vkharness

#endif
