// Numbers that the state of a command buffer leaves open: those of calls of which no key has what they set.
//
// Ids of buffers may be among them. The command buffer has them in `left_open` (harness/vkharness/commands/open_numbers.py), by
// what stands for such calls. A plan that depends on them is moved by them, too.

#ifndef VKHARNESS_OPEN_NUMBERS_HPP
#define VKHARNESS_OPEN_NUMBERS_HPP

#include "flat_keys.hpp"

#include <cstring>

namespace vkharness {

inline Ref numbers_left_open(PyObject *buffer) {
    static PyObject *const name = PyUnicode_InternFromString("left_open");
    Ref found = name ? Ref::take(PyObject_GetAttr(buffer, name)) : Ref();
    return found && PyDict_Check(found.get()) ? std::move(found) : Ref();
}

// Whether the command buffer has the numbers of a call, which the state after it leaves open.
inline bool has_left_open(PyObject *buffer, PyObject *item, const FlatKey::Values &values, Ref &state) {
    const char *const words = reinterpret_cast<const char *>(values.numbers.data());
    const Ref bytes = Ref::take(PyBytes_FromStringAndSize(words, static_cast<Py_ssize_t>(values.numbers.size() * sizeof(std::uint64_t))));
    static PyObject *const settled_name = PyUnicode_InternFromString("settled");
    const Ref left_open = bytes && settled_name ? numbers_left_open(buffer) : Ref();
    if (!left_open || PyDict_SetItem(left_open.get(), PyTuple_GET_ITEM(item, 0), bytes.get()) < 0) return false;
    if (PyObject_SetAttr(buffer, settled_name, Py_None) < 0) return false;
    state = Ref::share(PyTuple_GET_ITEM(item, 1));
    return true;
}

// Puts the numbers behind those of a call that the command buffer has of what is opened. False where it has none, or with an
// exception.
inline bool add_open(PyObject *buffer, PyObject *opened, FlatKey::Values &values) {
    const Py_ssize_t count = PyTuple_GET_SIZE(opened);
    const Ref left_open = count ? numbers_left_open(buffer) : Ref();
    for (Py_ssize_t at = 0; at < count; ++at) {
        const Ref held = left_open ? Ref::share(PyDict_GetItemWithError(left_open.get(), PyTuple_GET_ITEM(opened, at))) : Ref();
        if (!held || !PyBytes_Check(held.get())) return false;
        const std::size_t before = values.numbers.size(), size = static_cast<std::size_t>(PyBytes_GET_SIZE(held.get()));
        values.numbers.resize(before + size / sizeof(std::uint64_t));
        if (size) std::memcpy(values.numbers.data() + before, PyBytes_AS_STRING(held.get()), size / sizeof(std::uint64_t) * sizeof(std::uint64_t));
    }
    return true;
}

}  // namespace vkharness

#endif
