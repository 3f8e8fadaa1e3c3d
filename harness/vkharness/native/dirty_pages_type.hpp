// `DirtyPages` for Python: functions of numbers and lists.

#ifndef VKHARNESS_DIRTY_PAGES_TYPE_HPP
#define VKHARNESS_DIRTY_PAGES_TYPE_HPP

#include "changed_words.hpp"
#include "dirty_pages.hpp"
#include "python.hpp"

namespace vkharness {

struct DirtyPagesFunctions {
    static DirtyPages &pages() { return DirtyPages::of_process(); }

    // follow_pages(address, bytes, whether it is fresh): (number, whether it is protected, what it holds)
    static PyObject *follow(PyObject *, PyObject *arguments) {
        unsigned long long address, size;
        int fresh;
        if (!PyArg_ParseTuple(arguments, "KKp", &address, &size, &fresh)) return nullptr;
        const DirtyPages::Followed made = pages().follow(address, size, fresh);
        const Ref held = listed(made.held);
        if (!held) return nullptr;
        return Py_BuildValue("KOO", made.id, made.is_protected ? Py_True : Py_False, held.get());
    }

    static PyObject *forget(PyObject *, PyObject *id) {
        const unsigned long long number = PyLong_AsUnsignedLongLong(id);
        if (PyErr_Occurred()) return nullptr;
        pages().forget(number);
        Py_RETURN_NONE;
    }

    static PyObject *holds(PyObject *, PyObject *id) {
        const unsigned long long number = PyLong_AsUnsignedLongLong(id);
        return PyErr_Occurred() ? nullptr : PyBool_FromLong(pages().holds(number));
    }

    static PyObject *look(PyObject *, PyObject *) {
        const std::vector<DirtyPages::Id> touched = pages().look();
        Ref made = Ref::take(PyList_New(static_cast<Py_ssize_t>(touched.size())));
        for (std::size_t at = 0; made && at < touched.size(); ++at) {
            PyObject *const id = PyLong_FromUnsignedLongLong(touched[at]);
            if (!id) return nullptr;
            PyList_SET_ITEM(made.get(), static_cast<Py_ssize_t>(at), id);
        }
        return made.release();
    }

    static PyObject *take(PyObject *, PyObject *id) {
        const unsigned long long number = PyLong_AsUnsignedLongLong(id);
        return PyErr_Occurred() ? nullptr : listed(pages().take(number)).release();
    }

    static PyObject *why_not(PyObject *, PyObject *) {
        const char *const said = pages().why_not();
        return said ? PyUnicode_FromString(said) : Py_NewRef(Py_None);
    }

    // changed_words(address, address of the copy, [(start, end), ...]): pairs of int64
    static PyObject *changed(PyObject *, PyObject *arguments) {
        unsigned long long now, then;
        PyObject *parts;
        if (!PyArg_ParseTuple(arguments, "KKO!", &now, &then, &PyList_Type, &parts)) return nullptr;
        Spans runs;
        for (Py_ssize_t at = 0; at < PyList_GET_SIZE(parts); ++at) {
            unsigned long long start, end;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(parts, at), "KK", &start, &end)) return nullptr;
            changed_words(reinterpret_cast<const char *>(now), reinterpret_cast<const char *>(then), {start, end}, runs);
        }
        const Py_ssize_t size = static_cast<Py_ssize_t>(runs.size() * sizeof(Span));
        return PyBytes_FromStringAndSize(reinterpret_cast<const char *>(runs.data()), size);
    }

  private:
    static Ref listed(const Spans &spans) {
        Ref made = Ref::take(PyList_New(static_cast<Py_ssize_t>(spans.size())));
        for (std::size_t at = 0; made && at < spans.size(); ++at) {
            PyObject *const span = Py_BuildValue("KK", spans[at].start, spans[at].end);
            if (!span) return Ref();
            PyList_SET_ITEM(made.get(), static_cast<Py_ssize_t>(at), span);
        }
        return made;
    }
};

inline bool add_dirty_pages(PyObject *module) {
    static PyMethodDef functions[] = {
        {"follow_pages", caught<DirtyPagesFunctions::follow>, METH_VARARGS, "Follows the writes to a range of memory."},
        {"forget_pages", caught<DirtyPagesFunctions::forget>, METH_O, "Ends that."},
        {"pages_hold", caught<DirtyPagesFunctions::holds>, METH_O, "Whether no other memory came to its addresses."},
        {"written_pages", caught<DirtyPagesFunctions::look>, METH_NOARGS, "Looks; the ranges that were written."},
        {"take_pages", caught<DirtyPagesFunctions::take>, METH_O, "What was written in one of them."},
        {"pages_refused", caught<DirtyPagesFunctions::why_not>, METH_NOARGS, "Why pages are not protected, or None."},
        {"changed_words", caught<DirtyPagesFunctions::changed>, METH_VARARGS, "Runs of words that differ from a copy."},
        {nullptr, nullptr, 0, nullptr},
    };
    return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace vkharness

#endif
