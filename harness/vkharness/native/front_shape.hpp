// Reads C memory as Python values: the native form of `vkharness.record.decode`, whose words it gives.
//
// A `Shape` reads one struct, or the arguments of one command, which lie side by side as a struct does. What it has no
// field for is read by a Python function of the decoder: chains of `pNext`, rare structs.

#ifndef VKHARNESS_FRONT_SHAPE_HPP
#define VKHARNESS_FRONT_SHAPE_HPP

#include "addressed.hpp"
#include "key_bytes.hpp"
#include "key_form.hpp"

#include <algorithm>
#include <atomic>

namespace vkharness {

// The ids of handles that this thread looked up last. Python says when any handle means another object than before, or none
// (`vkharness.trace.handles`): then all are looked up again.
class KnownHandles {
  public:
    // The id of a handle in a table. False with an exception.
    static bool find(PyObject *table, std::uint64_t handle, std::uint64_t &id) {
        const std::uint64_t now = changes().load();
        Known &known = slot_of(table, handle);
        if (known.table == table && known.handle == handle && known.changes == now) {
            id = known.id;
            return true;
        }
        const Ref raw = Ref::take(PyLong_FromUnsignedLongLong(handle));
        const Ref found = raw ? Ref::take(PyObject_GetItem(table, raw.get())) : Ref();
        id = found ? PyLong_AsUnsignedLongLong(found.get()) : 0;
        if (!found || PyErr_Occurred()) return false;
        if (!PyDict_CheckExact(table) && PyDict_Check(table)) slot_of(table, handle) = {table, handle, id, now};
        return true;
    }

    // handles_changed()
    static PyObject *changed(PyObject *, PyObject *) {
        ++changes();
        Py_RETURN_NONE;
    }

  private:
    struct Known {
        PyObject *table;  // never looked at
        std::uint64_t handle, id, changes;
    };
    static std::atomic<std::uint64_t> &changes() {
        static std::atomic<std::uint64_t> count{1};
        return count;
    }
    static Known &slot_of(PyObject *table, std::uint64_t handle) {
        static constexpr std::size_t COUNT = 1 << 10;
        thread_local Known known[COUNT] = {};
        const std::uint64_t mixed = (handle ^ reinterpret_cast<std::uintptr_t>(table)) * 0x9E3779B97F4A7C15u;
        return known[mixed >> 54];
    }
};

// A member of a struct, or a parameter: `vkharness.record.native_shapes.ShapeField` says what the letters mean.
struct ShapeField {
    Ref key;
    std::uint64_t offset, size;  // of the member; of one element
    char form, kind, code, count_code;
    unsigned shift, bits;
    long long count;
    std::uint64_t count_offset, divisor;
    Ref object;
    std::uint64_t guard_offset;
    char guard_code;
    std::vector<std::uint64_t> guard;  // none where it always means something
    std::uint64_t stride_offset;
    char stride_code;  // 0 where elements lie side by side

    // Whether a pointer may be followed: what another member says.
    bool means_anything(std::uint64_t address) const {
        if (guard.empty()) return true;
        const std::uint64_t value = load_integer(guard_code, address + guard_offset);
        return std::find(guard.begin(), guard.end(), value) != guard.end();
    }

    // Elements of a list; more than there can be where the member says less than none.
    std::uint64_t counted(std::uint64_t address) const {
        if (count >= 0) return static_cast<std::uint64_t>(count);
        const std::uint64_t said = load_integer(count_code, address + count_offset);
        return said / divisor + (said % divisor != 0);
    }

    // How many bytes apart the elements of a list lie.
    std::uint64_t step(std::uint64_t address) const {
        return stride_code == '0' ? size : load_integer(stride_code, address + stride_offset);
    }

    // Whether so many elements are there. One that begins within the one before takes the room of it all the same, so that no
    // more are read than there is memory for.
    bool are_there(std::uint64_t at, std::uint64_t elements, std::uint64_t apart) const {
        const std::uint64_t room = std::max(apart, size);
        if (elements > Readable::SPACE / std::max<std::uint64_t>(room, 1)) return false;
        return Addressed::there(at, elements ? (elements - 1) * room + size : 0);
    }
};

struct Shape {
    static constexpr std::uint64_t LONGEST_LIST = 4096;  // elements at most of what is remembered by its bytes

    using Field = ShapeField;

    // How bytes are written that a call is known by: what lies side by side in memory and in these bytes is one part, and so
    // is what structs hold that are members themselves.
    struct Part {
        enum Kind { COPY, HANDLE, NO_CHAIN, FIELD } kind;
        std::uint64_t offset, size;  // from where on; of what is copied
        const Field *field;          // none of what is copied; offsets of a FIELD count from `offset`
    };

    PyObject_HEAD
    Ref name, empty;  // the struct's name; a dictionary of all keys
    Ref key;          // the `KeyForm` of what it writes
    Ref missing;      // Python: told of a pointer that leads to no memory. None where that ends the reading
    std::vector<Field> fields;
    std::vector<Part> parts;

    static PyTypeObject *type;

    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *name, *rows, *missing = Py_None;
        if (!PyArg_ParseTuple(arguments, "O!O!|O", &PyUnicode_Type, &name, &PyTuple_Type, &rows, &missing)) return nullptr;
        Ref self = Ref::take(made->tp_alloc(made, 0));
        if (!self) return nullptr;
        Shape *const shape = reinterpret_cast<Shape *>(self.get());
        new (&shape->name) Ref(Ref::share(name));
        new (&shape->empty) Ref(Ref::take(PyDict_New()));
        new (&shape->missing) Ref(Ref::share(missing));
        new (&shape->key) Ref(shape->empty ? KeyForm::make(shape->empty.get()) : Ref());
        new (&shape->fields) std::vector<Field>();
        new (&shape->parts) std::vector<Part>();
        if (!shape->key) return nullptr;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(rows); ++at) {
            if (!shape->add(PyTuple_GET_ITEM(rows, at))) return nullptr;
        }
        for (const Field &field : shape->fields) shape->add_parts(field);
        return self.release();
    }

    bool add(PyObject *row) {
        PyObject *key, *object, *guard;
        unsigned long long offset, size, count_offset, divisor, guard_offset, stride_offset;
        int form, kind, code, count_code, guard_code, stride_code;
        unsigned shift, bits;
        long long count;
        if (!PyArg_ParseTuple(row, "UKKCCCIIOLKCKO!KCKC", &key, &offset, &size, &form, &kind, &code, &shift, &bits, &object,
                              &count, &count_offset, &count_code, &divisor, &PyTuple_Type, &guard, &guard_offset,
                              &guard_code, &stride_offset, &stride_code)) {
            return false;
        }
        std::vector<std::uint64_t> values;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(guard); ++at) {
            values.push_back(PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(guard, at)));
            if (PyErr_Occurred()) return false;
        }
        if (!std::strchr("va*+", form) || !std::strchr("nbhspcB0", kind) || !divisor || bits > 63 || shift > 63 ||
            (kind == 's' && Py_TYPE(object) != type) || (stride_code != '0' && (kind != 's' || form != '+'))) {
            PyErr_SetString(PyExc_ValueError, "no such field");
            return false;
        }
        Ref text = Ref::share(key);
        PyObject *interned = text.release();
        PyUnicode_InternInPlace(&interned);
        text = Ref::take(interned);
        if (PyDict_SetItem(empty.get(), interned, Py_None) < 0) return false;
        if (kind == 'n') size = size_of_number(static_cast<char>(code));
        const auto letter = [](int value) { return static_cast<char>(value); };
        Ref part = kind == 's' ? Ref::share(reinterpret_cast<Shape *>(object)->key.get()) : Ref();
        KeyForm::of(this->key.get())->fields.push_back(
            KeyForm::Field{Ref::share(interned), std::move(part), size, letter(form), letter(kind), letter(code)});
        fields.push_back(Field{std::move(text), offset, size, letter(form), letter(kind), letter(code),
                               letter(count_code), shift, bits, count, count_offset, divisor, Ref::share(object), guard_offset,
                               letter(guard_code), std::move(values), stride_offset, letter(stride_code)});
        return true;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        Shape *const shape = reinterpret_cast<Shape *>(object);
        shape->parts.~vector();
        shape->fields.~vector();
        shape->key.~Ref();
        shape->missing.~Ref();
        shape->empty.~Ref();
        shape->name.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(reinterpret_cast<Shape *>(object)->missing.get());
        for (const Field &field : reinterpret_cast<Shape *>(object)->fields) Py_VISIT(field.object.get());
        return 0;
    }

    // Nothing: it can be read as long as somebody has it. A ring has a part that was made later, and breaks there.
    static int clear(PyObject *) { return 0; }

    // read(address): the struct there, as a dictionary.
    static PyObject *read_method(PyObject *self, PyObject *address) {
        const unsigned long long at = PyLong_AsUnsignedLongLong(address);
        if (PyErr_Occurred()) return nullptr;
        return reinterpret_cast<Shape *>(self)->read(at).release();
    }

    // Reads the struct at an address into a dictionary; none with an exception.
    Ref read(std::uint64_t address) const {
        Ref made = Ref::take(PyDict_Copy(empty.get()));
        for (const Field &field : fields) {
            if (!made) break;
            const Ref value = read(field, address);
            if (!value || PyDict_SetItem(made.get(), field.key.get(), value.get()) < 0) made = Ref();
        }
        return left_out(std::move(made));
    }

    // Appends what lies at an address as bytes: the same bytes for what reads the same, and for nothing else. False where
    // that cannot be said: behind chains, in what Python reads, and with an exception.
    bool write(std::uint64_t address, KeyBytes &key) const {
        for (const Part &part : parts) {
            const std::uint64_t at = address + part.offset;
            switch (part.kind) {
                case Part::COPY: key.add_from(at, part.size); break;
                case Part::HANDLE:
                    if (!write_handle(*part.field, at, key)) return false;
                    break;
                case Part::NO_CHAIN:
                    if (load<std::uint64_t>(at)) return false;
                    break;
                default:
                    if (!write(*part.field, at, key)) return false;
            }
        }
        return true;
    }

  private:
    static const Shape &of_struct(const Field &field) { return *reinterpret_cast<const Shape *>(field.object.get()); }

    // Adds the parts of a field.
    void add_parts(const Field &field) {
        const bool is_value = field.form == 'v';
        if (is_value && field.kind == 's') {
            for (Part part : of_struct(field).parts) {
                part.offset += field.offset;
                add_part(part);
            }
        } else if (is_value && field.kind == 'n') {
            add_part({Part::COPY, field.offset, field.size, nullptr});
        } else if (is_value && field.kind == 'h') {
            add_part({Part::HANDLE, field.offset, 0, &field});
        } else if (is_value && field.kind == 'c') {
            add_part({Part::NO_CHAIN, field.offset, 0, &field});
        } else if (!is_value || field.kind != '0') {
            add_part({Part::FIELD, 0, 0, &field});
        }
    }

    void add_part(const Part &part) {
        const bool joins = part.kind == Part::COPY && !parts.empty() && parts.back().kind == Part::COPY &&
                           parts.back().offset + parts.back().size == part.offset;
        if (joins) parts.back().size += part.size;
        else parts.push_back(part);
    }

    // Whether its bytes are those of its memory.
    bool is_copied(std::uint64_t size) const {
        return parts.size() == 1 && parts[0].kind == Part::COPY && !parts[0].offset && parts[0].size == size;
    }

    static bool write_handle(const Field &field, std::uint64_t at, KeyBytes &key) {
        std::uint64_t id;
        if (!KnownHandles::find(field.object.get(), load<std::uint64_t>(at), id)) return false;
        key.add(id);
        return true;
    }

    bool write(const Field &field, std::uint64_t address, KeyBytes &key) const {
        std::uint64_t at = address + field.offset;
        if (field.form == 'v') return write_elements(field, at, 1, key);
        if (field.form != 'a') {
            at = field.means_anything(address) ? Addressed::follow(load<std::uint64_t>(at)) : 0;
            key.add_byte(at != 0);
            if (!at) return true;
        }
        if (field.form == '*') return Addressed::there(at, field.size) && write_elements(field, at, 1, key);
        std::uint64_t count = field.counted(address);
        const std::uint64_t step = field.step(address);
        if (count > LONGEST_LIST || (field.form == '+' && !field.are_there(at, count, step))) return false;
        key.add(count);
        if (step == field.size) return write_elements(field, at, count, key);
        for (; count; --count, at += step) {
            if (!write_elements(field, at, 1, key)) return false;
        }
        return true;
    }

    bool write_elements(const Field &field, std::uint64_t at, std::uint64_t count, KeyBytes &key) const {
        switch (field.kind) {
            case 'n':
            case 'B': key.add_from(at, count * field.size); return true;
            case 'b':
                for (; count; --count, at += field.size) key.add(bits_of(field, at));
                return true;
            case 'h':
                for (; count; --count, at += field.size) {
                    if (!write_handle(field, at, key)) return false;
                }
                return true;
            case 's':
                if (of_struct(field).is_copied(field.size)) {
                    key.add_from(at, count * field.size);
                    return true;
                }
                for (; count; --count, at += field.size) {
                    if (!of_struct(field).write(at, key)) return false;
                }
                return true;
            case 'c': return !load<std::uint64_t>(at);
            default: return field.kind == '0';
        }
    }

    static std::uint64_t bits_of(const Field &field, std::uint64_t at) {
        return load_integer(field.code, at) >> field.shift & ((std::uint64_t(1) << field.bits) - 1);
    }

    static Ref object_id(const Field &field, std::uint64_t at) {
        const Ref handle = Ref::take(PyLong_FromUnsignedLongLong(load<std::uint64_t>(at)));
        return handle ? Ref::take(PyObject_GetItem(field.object.get(), handle.get())) : Ref();
    }

    Ref read(const Field &field, std::uint64_t address) const {
        std::uint64_t at = address + field.offset;
        if (field.form == 'v') return element(field, at);
        if (field.form != 'a') {
            at = field.means_anything(address) ? Addressed::follow(load<std::uint64_t>(at)) : 0;
            if (!at) return Ref::share(Py_None);
        }
        if (field.form == '*') return Addressed::there(at, field.size) ? element(field, at) : nothing(field);
        const std::uint64_t count = field.counted(address);
        const std::uint64_t step = field.step(address);
        if (field.form == '+' && !field.are_there(at, count, step)) return nothing(field);
        if (field.kind == 'B') {
            return Ref::take(PyBytes_FromStringAndSize(reinterpret_cast<const char *>(at), static_cast<Py_ssize_t>(count)));
        }
        Ref list = Ref::take(PyList_New(static_cast<Py_ssize_t>(count)));
        for (std::uint64_t index = 0; list && index < count; ++index) {
            Ref each = element(field, at + index * step);
            if (!each) return Ref();
            PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(index), each.release());
        }
        return left_out(std::move(list));
    }

    Ref element(const Field &field, std::uint64_t at) const {
        switch (field.kind) {
            case 'n': return Ref::take(load_number(field.code, at));
            case 'b': return Ref::take(PyLong_FromUnsignedLongLong(bits_of(field, at)));
            case 'h': return object_id(field, at);
            case 's': return reinterpret_cast<Shape *>(field.object.get())->read(at);
            case 'c': {
                const std::uint64_t next = load<std::uint64_t>(at);
                return next ? Ref::take(PyObject_CallFunction(field.object.get(), "KO", static_cast<unsigned long long>(next),
                                                              name.get()))
                            : Ref::share(Py_None);
            }
            case 'p': return Ref::take(PyObject_CallFunction(field.object.get(), "K", static_cast<unsigned long long>(at)));
            default: return Ref::share(Py_None);
        }
    }

    // The value of a pointer that leads to no memory: an argument raises BufferError, a member is reported and is None.
    Ref nothing(const Field &field) const {
        if (missing.get() != Py_None) {
            const Ref told = Ref::take(PyObject_CallFunctionObjArgs(missing.get(), name.get(), field.key.get(), nullptr));
            return told ? Ref::share(Py_None) : Ref();
        }
        PyErr_Format(PyExc_BufferError, "%U leads to no memory", field.key.get());
        return Ref();
    }
};

PyTypeObject *Shape::type = nullptr;

}  // namespace vkharness

#endif
