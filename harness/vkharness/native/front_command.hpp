// One command, from a Python call to the driver and to the recorder.

#ifndef VKHARNESS_FRONT_COMMAND_HPP
#define VKHARNESS_FRONT_COMMAND_HPP

#include "front_cffi.hpp"
#include "front_critical.hpp"
#include "front_log.hpp"
#include "front_shape.hpp"
#include "front_signatures.hpp"
#include "front_sites.hpp"

#include <memory>
#include <string>

namespace vkharness {

struct Command {
    // A parameter with the types of its values, as cffi has them.
    struct Parameter {
        Ref name, type, item;
        bool is_pointer, holds_structs, holds_pointers;
        Ref array;        // the type of arrays of which it takes the address; None where there is none
        bool is_integer;  // of 32 bits at least

        // Whether cffi passes the address that a value has.
        bool takes(PyObject *kind) const { return kind == type.get() || kind == array.get(); }
    };
    static constexpr std::size_t MOST_UNTOLD = 1 << 16;  // bytes as which counts what is not written
    enum class Way { PACKAGE, LIBRARY };
    enum class Outcome { DONE, RAISED, REFUSED };

    // Memory for arrays that live as long as a call.
    class Arrays {
      public:
        char *make(std::size_t size) {
            if (size <= sizeof inline_ - used_) {
                char *const at = inline_ + used_;
                used_ += (size + 15) & ~std::size_t(15);
                std::memset(at, 0, size);
                return at;
            }
            more_.emplace_back(new char[size]());
            return more_.back().get();
        }

      private:
        alignas(16) char inline_[1024];
        std::size_t used_ = 0;
        std::vector<std::unique_ptr<char[]>> more_;
    };

    PyObject_HEAD
    Ref name, shape, sites, record, lost, log;  // log: none where each call is recorded at once
    Ref says;                                   // (name, form of the bytes by which a call is known)
    std::vector<Parameter> parameters;
    const Signature *signature;
    void *driver;

    static PyTypeObject *type;

    // Command(name, parameters, shape, kinds, address, sites, record, lost, log or None)
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *name, *rows, *shape, *sites, *record, *lost, *log;
        const char *kinds;
        unsigned long long address;
        if (!PyArg_ParseTuple(arguments, "UO!O!sKO!OOO", &name, &PyTuple_Type, &rows, Shape::type, &shape, &kinds,
                              &address, Sites::type, &sites, &record, &lost, &log)) {
            return nullptr;
        }
        if (log != Py_None && Py_TYPE(log) != CallLog::type) {
            PyErr_SetString(PyExc_TypeError, "logs in a CallLog or not at all");
            return nullptr;
        }
        const Signature *const signature = find_signature(kinds);
        if (!signature || static_cast<std::size_t>(PyTuple_GET_SIZE(rows)) != std::strlen(kinds)) {
            return PyErr_Format(PyExc_LookupError, "no C signature %s", kinds);
        }
        const Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        Command *const command = reinterpret_cast<Command *>(self.get());
        PyObject *named = Py_NewRef(name);
        PyUnicode_InternInPlace(&named);  // its address stands for it in a CallLog
        new (&command->name) Ref(Ref::take(named));
        new (&command->shape) Ref(Ref::share(shape));
        new (&command->sites) Ref(Ref::share(sites));
        new (&command->record) Ref(Ref::share(record));
        new (&command->lost) Ref(Ref::share(lost));
        new (&command->log) Ref(log == Py_None ? Ref() : Ref::share(log));
        new (&command->says) Ref(Ref::take(PyTuple_Pack(2, named, reinterpret_cast<Shape *>(shape)->key.get())));
        new (&command->parameters) std::vector<Parameter>();
        command->signature = signature;
        command->driver = reinterpret_cast<void *>(static_cast<std::uintptr_t>(address));
        if (!command->says) return nullptr;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(rows); ++at) {
            PyObject *called, *kind, *item, *array;
            int is_pointer, holds_structs, holds_pointers;
            if (!PyArg_ParseTuple(PyTuple_GET_ITEM(rows, at), "UOpOppO", &called, &kind, &is_pointer, &item,
                                  &holds_structs, &holds_pointers, &array)) {
                return nullptr;
            }
            if (Py_TYPE(kind) != Cffi::kinds) {
                PyErr_SetString(PyExc_TypeError, "a parameter has a ctype");
                return nullptr;
            }
            PyObject *interned = Py_NewRef(called);
            PyUnicode_InternInPlace(&interned);
            command->parameters.push_back(Parameter{Ref::take(interned), Ref::share(kind), Ref::share(item),
                                                    is_pointer != 0, holds_structs != 0, holds_pointers != 0,
                                                    Ref::share(array), !is_pointer && std::strchr("IQ", kinds[at])});
        }
        return Py_NewRef(self.get());
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        Command *const command = reinterpret_cast<Command *>(object);
        command->parameters.~vector();
        for (Ref *each : {&command->name, &command->shape, &command->sites, &command->record, &command->lost, &command->log, &command->says}) {
            each->~Ref();
        }
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        const Command *const command = reinterpret_cast<Command *>(object);
        Py_VISIT(command->shape.get());
        Py_VISIT(command->sites.get());
        Py_VISIT(command->record.get());
        Py_VISIT(command->lost.get());
        Py_VISIT(command->log.get());
        return 0;
    }

    // Nothing: a command is whole as long as somebody may call it. Its shape and the recorder break cycles.
    static int clear(PyObject *) { return 0; }

    // Puts named arguments in their places. False where the call does not fit: then it is the package's to say so.
    bool place(PyObject *const *arguments, std::size_t count, PyObject *names, PyObject **placed) const {
        if (count > parameters.size()) return false;
        std::copy(arguments, arguments + count, placed);
        std::fill(placed + count, placed + parameters.size(), nullptr);
        const std::size_t named = names ? static_cast<std::size_t>(PyTuple_GET_SIZE(names)) : 0;
        for (std::size_t at = 0; at < named; ++at) {
            std::size_t place = 0;
            while (place < parameters.size() && parameters[place].name.get() != PyTuple_GET_ITEM(names, at)) ++place;
            if (place == parameters.size() || placed[place]) return false;
            placed[place] = arguments[count + at];
        }
        return count + named == parameters.size();
    }

    // Calls the driver and records the call. REFUSED: nothing happened, and the package's own way is to be taken. Code of the
    // program may run while arguments are converted, outside of sections.
    Outcome call(PyObject *const *arguments, Way way) const {
        Value values[MOST_PARAMETERS];
        std::memset(values, 0, parameters.size() * sizeof *values);
        Arrays arrays;
        for (std::size_t at = 0; at < parameters.size(); ++at) {
            if (way == Way::LIBRARY) {
                if (!as_library(parameters[at], arguments[at], values[at], arrays)) return Outcome::RAISED;
            } else if (!as_package(parameters[at], arguments[at], values[at], arrays)) {
                PyErr_Clear();
                return Outcome::REFUSED;
            }
        }
        const CriticalSection section;
        if (!section.begins()) return Outcome::RAISED;
        Key key;
        CallLog::Told told{};
        const Ref said = log ? Ref() : read(values);
        const bool is_said = log ? has_told(values, key.bytes, told) : static_cast<bool>(said);
        const Ref trouble = is_said ? Ref() : taken_error();
        {
            const Outside outside;
            Py_BEGIN_ALLOW_THREADS;
            Cffi::restore_errno();
            signature->call(driver, values);
            Cffi::save_errno();
            Py_END_ALLOW_THREADS;
        }
        if (trouble) return tell(trouble);
        try {
            if (Ref site = reinterpret_cast<Sites *>(sites.get())->caller()) {
                if (log ? logged()->add(std::move(told), std::move(site), says, PyThread_get_thread_ident()) : recorded(said, site)) return Outcome::DONE;
            }
        } catch (const std::bad_alloc &) {
            PyErr_NoMemory();
        }
        return tell(taken_error());
    }

  private:
    CallLog *logged() const { return reinterpret_cast<CallLog *>(log.get()); }

    Ref read(const Value *values) const {
        return reinterpret_cast<Shape *>(shape.get())->read(reinterpret_cast<std::uintptr_t>(values));
    }

    // The bytes by which a call is known. They keep their memory from call to call.
    struct Key {
        KeyBytes bytes = std::move(last());
        ~Key() { last() = std::move(bytes); }

        static KeyBytes &last() {
            thread_local KeyBytes bytes;
            return bytes;
        }
    };

    // Finds out what the call says: what others said; or the bytes alone, where nobody has said it lately and these say
    // all. False with an exception.
    bool has_told(const Value *values, KeyBytes &bytes, CallLog::Told &told) const {
        bytes.clear();
        bytes.add(reinterpret_cast<std::uintptr_t>(name.get()));
        if (!reinterpret_cast<Shape *>(shape.get())->write(reinterpret_cast<std::uintptr_t>(values), bytes)) {
            PyErr_Clear();  // reading says what is wrong
            Ref args = read(values);
            told.what = args ? Saying::make(name.get(), std::move(args)) : Ref();
            told.size = MOST_UNTOLD;
            return static_cast<bool>(told.what);
        }
        return logged()->tell(told, bytes.view(), says);
    }

    bool recorded(const Ref &args, const Ref &site) const {
        PyObject *const said[] = {nullptr, name.get(), args.get(), Py_None, site.get()};
        return bool(Ref::take(PyObject_Vectorcall(record.get(), said + 1, 4 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr)));
    }

    // Tells the recorder that the call is lost. It raises what the program raised.
    Outcome tell(const Ref &error) const {
        PyObject *const said[] = {nullptr, name.get(), error.get()};
        const Ref done = Ref::take(PyObject_Vectorcall(lost.get(), said + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
        return done ? Outcome::DONE : Outcome::RAISED;
    }

    // As cffi converts a number. False with its error.
    static bool as_number(const Parameter &parameter, PyObject *given, Value &value) {
        if (parameter.is_integer && PyLong_CheckExact(given)) {
            int overflow = 0;
            const long long number = PyLong_AsLongLongAndOverflow(given, &overflow);
            if (!overflow && number >= 0 && number <= INT32_MAX) {  // any type of integers has it
                value.wide = static_cast<std::uint64_t>(number);
                return true;
            }
        }
        return Cffi::convert(&value, parameter.type.get(), given);
    }

    // As cffi converts what a function of `lib` gets. False with its error.
    static bool as_library(const Parameter &parameter, PyObject *given, Value &value, Arrays &arrays) {
        if (!parameter.is_pointer) return as_number(parameter, given, value);
        if (Cffi::is_cdata(given) && parameter.takes(Cffi::cdata(given)->type)) {
            value.wide = reinterpret_cast<std::uintptr_t>(Cffi::cdata(given)->data);
            return true;
        }
        const Py_ssize_t size = Cffi::prepare(parameter.type.get(), given, &value);
        if (size <= 0) return size == 0;
        char *const array = arrays.make(static_cast<std::size_t>(size));
        value.wide = reinterpret_cast<std::uintptr_t>(array);
        return Cffi::fill(array, parameter.type.get(), given);
    }

    // As the package's `_auto_handle` and then cffi convert it. False for what those must do (or refuse) themselves. No
    // code of Python runs in here: otherwise it would run again then.
    static bool as_package(const Parameter &parameter, PyObject *given, Value &value, Arrays &arrays) {
        if (!parameter.is_pointer) return is_plain(given) && as_number(parameter, given, value);
        if (given == Py_None) return true;
        if (Cffi::is_cdata(given)) {
            PyObject *const kind = Cffi::cdata(given)->type;
            if (parameter.takes(kind) || (kind == parameter.item.get() && parameter.holds_structs)) {
                value.wide = reinterpret_cast<std::uintptr_t>(Cffi::cdata(given)->data);
                return true;
            }
            return kind != parameter.item.get() && Cffi::prepare(parameter.type.get(), given, &value) == 0;
        }
        if (PyLong_CheckExact(given)) {
            value.wide = PyLong_AsUnsignedLongLong(given);
            return !PyErr_Occurred();
        }
        if (!PyList_CheckExact(given) && !PyTuple_CheckExact(given)) return false;
        const Ref items = Ref::take(PySequence_Tuple(given));  // the list may change meanwhile
        if (!items) return false;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(items.get()); ++at) {
            if (!is_plain(PyTuple_GET_ITEM(items.get(), at))) return false;
        }
        return parameter.holds_pointers ? as_pointers(parameter, items.get(), value, arrays)
                                        : as_library(parameter, items.get(), value, arrays);
    }

    // Whether a value is converted without a question to it.
    static bool is_plain(PyObject *given) {
        return PyLong_CheckExact(given) || PyFloat_CheckExact(given) || PyBool_Check(given) || Cffi::is_cdata(given);
    }

    // A tuple of handles. False for one that holds anything but values of exactly that type.
    static bool as_pointers(const Parameter &parameter, PyObject *items, Value &value, Arrays &arrays) {
        const Py_ssize_t count = PyTuple_GET_SIZE(items);
        char *const array = arrays.make(static_cast<std::size_t>(count) * sizeof(void *) + 1);
        for (Py_ssize_t at = 0; at < count; ++at) {
            PyObject *const each = PyTuple_GET_ITEM(items, at);
            if (!Cffi::is_cdata(each) || Cffi::cdata(each)->type != parameter.item.get()) return false;
            std::memcpy(array + at * sizeof(void *), &Cffi::cdata(each)->data, sizeof(void *));
        }
        value.wide = reinterpret_cast<std::uintptr_t>(array);
        return true;
    }
};

PyTypeObject *Command::type = nullptr;

}  // namespace vkharness

#endif
