// Calls of another process, from its records to the log of the calls (`front_log.hpp`): those of the commands that have a
// native form. The other ones, and all that is no call, are Python's (`vkharness.live.record_session`).

#ifndef VKHARNESS_RECORD_CALLS_HPP
#define VKHARNESS_RECORD_CALLS_HPP

#include "front_log.hpp"
#include "front_shape.hpp"

#include <unordered_map>

namespace vkharness {

struct RecordCalls {
    // How a record begins, as `vkharness.live.records` says.
    struct Head {
        std::uint32_t size;
        std::uint16_t kind, command;
        std::uint32_t thread, stack;
        std::uint64_t serial, result;
        std::uint32_t arguments, zero;
    };
    static_assert(sizeof(Head) == 40);
    static constexpr std::uint16_t CALL = 1;
    static constexpr std::size_t MOST_SITES = 1 << 16;

    struct Known {
        Ref says, shape;  // (name, form of the bytes by which a call is known); none of a command that is Python's
        std::uint32_t arguments;
    };

    PyObject_HEAD
    Ref log, site_of;  // site_of(number of a stack): Python; the call site or None
    std::vector<Known> commands;
    std::unordered_map<std::uint32_t, Ref> sites;
    std::vector<std::uint64_t> record;  // the one that is read: the program may change it meanwhile

    static PyTypeObject *type;

    // RecordCalls(log, site_of)
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *log, *site_of;
        if (!PyArg_ParseTuple(arguments, "O!O", CallLog::type, &log, &site_of)) return nullptr;
        PyObject *const self = made->tp_alloc(made, 0);
        if (!self) return nullptr;
        RecordCalls *const calls = of(self);
        new (&calls->log) Ref(Ref::share(log));
        new (&calls->site_of) Ref(Ref::share(site_of));
        new (&calls->commands) std::vector<Known>();
        new (&calls->sites) std::unordered_map<std::uint32_t, Ref>();
        new (&calls->record) std::vector<std::uint64_t>();
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        RecordCalls *const self = of(object);
        self->record.~vector();
        self->sites.~unordered_map();
        self->commands.~vector();
        self->site_of.~Ref();
        self->log.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(of(object)->log.get());
        Py_VISIT(of(object)->site_of.get());
        for (const Known &each : of(object)->commands) Py_VISIT(each.shape.get());
        return 0;
    }

    // Nothing: the log and the function break cycles.
    static int clear(PyObject *) { return 0; }

    // know(number, name, shape or None, count of arguments): the stream names a command.
    static PyObject *know(PyObject *object, PyObject *arguments) {
        PyObject *name, *shape;
        unsigned short number;
        unsigned count;
        if (!PyArg_ParseTuple(arguments, "HUOI", &number, &name, &shape, &count)) return nullptr;
        std::vector<Known> &commands = of(object)->commands;
        if (commands.size() <= number) commands.resize(number + std::size_t(1));
        commands[number] = Known();
        if (shape == Py_None) Py_RETURN_NONE;
        if (Py_TYPE(shape) != Shape::type) return PyErr_Format(PyExc_TypeError, "a command has a Shape");
        PyObject *named = Py_NewRef(name);
        PyUnicode_InternInPlace(&named);  // its address stands for it in a CallLog
        const Ref held = Ref::take(named);
        commands[number] = {Ref::take(PyTuple_Pack(2, named, reinterpret_cast<Shape *>(shape)->key.get())), Ref::share(shape), count};
        if (!commands[number].says) return nullptr;
        Py_RETURN_NONE;
    }

    // take(buffer, place, most) -> (place behind, calls that were taken, serial number of the last one): takes calls from this
    // place of the buffer on, as long as they are in a native form.
    static PyObject *take(PyObject *object, PyObject *arguments) {
        Py_buffer buffer;
        unsigned long long at, most;
        if (!PyArg_ParseTuple(arguments, "y*KK", &buffer, &at, &most)) return nullptr;
        unsigned long long taken = 0, serial = 0;
        bool failed = false;
        {
            KeyBytes bytes;
            const auto size = static_cast<std::uint64_t>(buffer.len);
            while (taken < most && !failed) {
                const std::uint64_t length = of(object)->load(static_cast<const char *>(buffer.buf), at, size);
                if (!length || !of(object)->add(length, bytes, failed)) break;
                at += length;
                ++taken;
                serial = of(object)->head().serial;
            }
        }
        PyBuffer_Release(&buffer);
        return failed ? nullptr : Py_BuildValue("KKK", at, taken, serial);
    }

  private:
    static RecordCalls *of(PyObject *object) { return reinterpret_cast<RecordCalls *>(object); }

    const Head &head() const { return *reinterpret_cast<const Head *>(record.data()); }

    // Copies the record at a place: its bytes; 0 where there is none, or none that is taken here.
    std::uint64_t load(const char *buffer, std::uint64_t at, std::uint64_t size) {
        if (at % 8 || at > size || size - at < sizeof(Head)) return 0;
        const std::uint32_t length = __atomic_load_n(reinterpret_cast<const std::uint32_t *>(buffer + at), __ATOMIC_ACQUIRE);
        if (length % 8 || length < sizeof(Head) || length > size - at || length > MOST_BYTES) return 0;
        if (record.size() < length / 8) record.resize(length / 8);
        std::memcpy(record.data(), buffer + at, length);
        const Head &now = head();
        if (now.kind != CALL || now.command >= commands.size() || !commands[now.command].shape) return 0;
        const std::uint32_t wanted = commands[now.command].arguments;
        return now.arguments == wanted && length >= sizeof(Head) + 8 * std::uint64_t(wanted) ? length : 0;
    }

    // Adds the call to the log. False where its bytes do not say all, or with an exception (`failed`).
    bool add(std::uint64_t length, KeyBytes &bytes, bool &failed) {
        const Head &now = head();
        const Known &command = commands[now.command];
        const std::uint64_t base = reinterpret_cast<std::uintptr_t>(record.data());
        bytes.clear();
        bytes.add(reinterpret_cast<std::uintptr_t>(PyTuple_GET_ITEM(command.says.get(), 0)));
        {
            const Addressed::Record space(base, sizeof(Head) + 8 * std::uint64_t(now.arguments), length);
            if (!reinterpret_cast<const Shape *>(command.shape.get())->write(base + sizeof(Head), bytes)) {
                PyErr_Clear();  // Python says what is wrong
                return false;
            }
        }
        CallLog *const calls = reinterpret_cast<CallLog *>(log.get());
        CallLog::Told told{};
        Ref site = found_site(now.stack);
        failed = !site || !calls->tell(told, bytes.view(), command.says) ||
                 !calls->add(std::move(told), std::move(site), command.says, now.thread);
        return !failed;
    }

    // None with an exception.
    Ref found_site(std::uint32_t stack) {
        const auto known = sites.find(stack);
        if (known != sites.end()) return Ref::share(known->second.get());
        Ref found = Ref::take(PyObject_CallFunction(site_of.get(), "I", static_cast<unsigned>(stack)));
        if (sites.size() >= MOST_SITES) sites.clear();
        if (found) sites.emplace(stack, Ref::share(found.get()));
        return found;
    }

    static constexpr std::uint32_t MOST_BYTES = 1 << 20;  // of a record
};

PyTypeObject *RecordCalls::type = nullptr;

}  // namespace vkharness

#endif
