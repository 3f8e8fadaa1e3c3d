// Layout of the bytes by which a call is known, and the reading of them: as the dictionary that `Shape::read` gives.
//
// `Shape::write` writes the bytes: ids in place of handles, and what pointers lead to in place of the pointers. So a call
// that is kept as its bytes can be read long after its memory is gone. A form holds names alone and is in no cycle.

#ifndef VKHARNESS_KEY_FORM_HPP
#define VKHARNESS_KEY_FORM_HPP

#include "python.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

namespace vkharness {

template <typename T>
T load(std::uint64_t address) {
    T value;
    std::memcpy(&value, reinterpret_cast<const void *>(address), sizeof value);
    return value;
}

// An integer in C memory. `code` is as in Python's module struct.
inline std::uint64_t load_integer(char code, std::uint64_t address) {
    switch (code) {
        case 'B': return load<std::uint8_t>(address);
        case 'b': return static_cast<std::uint64_t>(load<std::int8_t>(address));
        case 'H': return load<std::uint16_t>(address);
        case 'h': return static_cast<std::uint64_t>(load<std::int16_t>(address));
        case 'I': return load<std::uint32_t>(address);
        case 'i': return static_cast<std::uint64_t>(load<std::int32_t>(address));
        default: return load<std::uint64_t>(address);
    }
}

inline PyObject *load_number(char code, std::uint64_t address) {
    switch (code) {
        case 'f': return PyFloat_FromDouble(load<float>(address));
        case 'd': return PyFloat_FromDouble(load<double>(address));
        case 'b':
        case 'h':
        case 'i':
        case 'q': return PyLong_FromLongLong(static_cast<long long>(load_integer(code, address)));
        default: return PyLong_FromUnsignedLongLong(load_integer(code, address));
    }
}

inline std::uint64_t size_of_number(char code) {
    return std::strchr("Bb", code) ? 1 : std::strchr("Hh", code) ? 2 : std::strchr("Iif", code) ? 4 : 8;
}

struct KeyForm {
    // The letters are those of `vkharness.record.native_shapes.ShapeField`.
    struct Field {
        Ref name, part;  // part: the form of a struct
        std::uint64_t size;
        char form, kind, code;
    };
    static constexpr std::size_t NUMBER = sizeof(std::uint64_t);  // bytes of ids, of bits and of how many there are

    PyObject_HEAD
    Ref empty;  // a dictionary of all names
    std::vector<Field> fields;

    static PyTypeObject *type;
    static KeyForm *of(PyObject *object) { return reinterpret_cast<KeyForm *>(object); }

    // None with an exception.
    static Ref make(PyObject *empty) {
        Ref self = Ref::take(type->tp_alloc(type, 0));
        if (!self) return self;
        new (&of(self.get())->empty) Ref(Ref::share(empty));
        new (&of(self.get())->fields) std::vector<Field>();
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        of(object)->fields.~vector();
        of(object)->empty.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    // Calls `visit(field, place of its bytes)` for each member that bytes say, from a place on, which is behind them then.
    template <typename Visit>
    void walk(const char *&at, Visit visit) const {
        for (const Field &field : fields) {
            visit(field, at);
            pass(field, at);
        }
    }

    // A number or an id of a member. None with an exception.
    static Ref value(const Field &field, const char *at) {
        return Ref::take(field.kind == 'n' ? load_number(field.code, place(at)) : PyLong_FromUnsignedLongLong(load<std::uint64_t>(place(at))));
    }

    // The elements of a list of a member, and where they begin; none where its pointer leads nowhere.
    static std::uint64_t elements(const Field &field, const char *&at) { return field.form == '+' && *at++ ? number(at) : 0; }

    // Reads the dictionary from bytes at a place, and moves the place behind them. None with an exception.
    Ref read(const char *&at) const {
        Ref made = Ref::take(PyDict_Copy(empty.get()));
        for (const Field &field : fields) {
            if (!made) break;
            const Ref value = read(field, at);
            if (!value || PyDict_SetItem(made.get(), field.name.get(), value.get()) < 0) made = Ref();
        }
        return left_out(std::move(made));
    }

  private:
    static std::uint64_t place(const char *at) { return reinterpret_cast<std::uintptr_t>(at); }

    static std::uint64_t number(const char *&at) {
        const std::uint64_t found = load<std::uint64_t>(place(at));
        at += NUMBER;
        return found;
    }

    // Goes behind a member.
    static void pass(const Field &field, const char *&at) {
        std::uint64_t count = 1;
        if (field.form != 'v' && field.form != 'a' && !*at++) return;
        if (field.form == 'a' || field.form == '+') count = number(at);
        switch (field.kind) {
            case 'n':
            case 'B': at += count * field.size; return;
            case 'b':
            case 'h': at += count * NUMBER; return;
            case 's':
                for (; count; --count) {
                    of(field.part.get())->walk(at, [](const Field &, const char *) {});
                }
                return;
            default: return;
        }
    }

    static Ref read(const Field &field, const char *&at) {
        if (field.form == 'v') return element(field, at);
        if (field.form != 'a' && !*at++) return Ref::share(Py_None);
        if (field.form == '*') return element(field, at);
        const Py_ssize_t count = static_cast<Py_ssize_t>(number(at));
        if (field.kind == 'B') {
            at += count;
            return Ref::take(PyBytes_FromStringAndSize(at - count, count));
        }
        Ref list = Ref::take(PyList_New(count));
        for (Py_ssize_t index = 0; list && index < count; ++index) {
            Ref each = element(field, at);
            if (!each) return Ref();
            PyList_SET_ITEM(list.get(), index, each.release());
        }
        return left_out(std::move(list));
    }

    static Ref element(const Field &field, const char *&at) {
        switch (field.kind) {
            case 'n': at += field.size; return Ref::take(load_number(field.code, place(at - field.size)));
            case 'b':
            case 'h': return Ref::take(PyLong_FromUnsignedLongLong(number(at)));
            case 's': return of(field.part.get())->read(at);
            default: return Ref::share(Py_None);  // of a chain and of what is not read there are no bytes
        }
    }
};

PyTypeObject *KeyForm::type = nullptr;

}  // namespace vkharness

#endif
