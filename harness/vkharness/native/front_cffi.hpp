// The parts of cffi that the front end uses: functions that cffi exports to the modules it compiles, and the head of
// its values.
//
// The functions convert arguments with all of cffi's checks and errors. The head is not part of that interface, so
// `ready` holds it against values of which Python knows type and address: where it differs, there is no native front end.

#ifndef VKHARNESS_FRONT_CFFI_HPP
#define VKHARNESS_FRONT_CFFI_HPP

#include "python.hpp"

#include <cstdint>

namespace vkharness {

// How a value of cffi ("cdata") begins.
struct CData {
    PyObject_HEAD
    PyObject *type;  // its ctype
    char *data;      // what a pointer points at; where a struct or an array lies
    PyObject *weak;
};

// The functions by their places in the table that cffi's `_cffi_include.h` documents.
class Cffi {
  public:
    static PyTypeObject *base, *kinds;  // of all cdata; of all ctypes

    static bool is_cdata(PyObject *object) { return PyObject_TypeCheck(object, base); }
    static const CData *cdata(PyObject *object) { return reinterpret_cast<const CData *>(object); }

    // Writes a Python value as a C value of a type. False with cffi's error.
    static bool convert(void *target, PyObject *type, PyObject *value) {
        using Convert = int (*)(char *, PyObject *, PyObject *);
        return reinterpret_cast<Convert>(exports_[17])(static_cast<char *>(target), type, value) >= 0;
    }

    // Writes a pointer to `target` (0), or says how many bytes the array takes to which the value must be converted
    // (> 0). Negative with cffi's error.
    static Py_ssize_t prepare(PyObject *type, PyObject *value, void *target) {
        using Prepare = Py_ssize_t (*)(PyObject *, PyObject *, char **);
        return reinterpret_cast<Prepare>(exports_[23])(type, value, static_cast<char **>(target));
    }

    // Fills the array for a pointer argument. False with cffi's error.
    static bool fill(char *array, PyObject *type, PyObject *value) {
        using Fill = int (*)(char *, PyObject *, PyObject *);
        return reinterpret_cast<Fill>(exports_[24])(array, type, value) >= 0;
    }

    static void restore_errno() { reinterpret_cast<void (*)()>(exports_[13])(); }
    static void save_errno() { reinterpret_cast<void (*)()>(exports_[14])(); }

    // ready(capsule, base type, [(value, its ctype, address)]): whether cffi is as this file knows it.
    static PyObject *ready(PyObject *, PyObject *arguments) {
        PyObject *capsule, *type, *samples;
        if (!PyArg_ParseTuple(arguments, "OO!O!", &capsule, &PyType_Type, &type, &PyList_Type, &samples)) return nullptr;
        exports_ = static_cast<void **>(PyCapsule_GetPointer(capsule, "cffi"));
        if (!exports_) return nullptr;
        base = reinterpret_cast<PyTypeObject *>(Py_NewRef(type));
        bool same = base->tp_basicsize == sizeof(CData) && base->tp_weaklistoffset == offsetof(CData, weak) &&
                    !PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) && !PyType_IS_GC(base);
        for (Py_ssize_t at = 0; same && at < PyList_GET_SIZE(samples); ++at) {
            PyObject *value, *kind;
            unsigned long long address;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(samples, at), "OOK", &value, &kind, &address)) return nullptr;
            kinds = Py_TYPE(kind);
            same = is_cdata(value) && cdata(value)->type == kind &&
                   reinterpret_cast<std::uintptr_t>(cdata(value)->data) == address;
        }
        return PyBool_FromLong(same);
    }

  private:
    static void **exports_;
};

PyTypeObject *Cffi::base = nullptr, *Cffi::kinds = nullptr;
void **Cffi::exports_ = nullptr;

}  // namespace vkharness

#endif
