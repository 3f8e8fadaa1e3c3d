// Objects of a Python class with `__slots__`, made as copies of one of them: no code of the class runs.

#ifndef VKHARNESS_SLOTTED_HPP
#define VKHARNESS_SLOTTED_HPP

#include "python.hpp"

#include <structmember.h>

#include <cstring>
#include <initializer_list>
#include <vector>

namespace vkharness {

class Slotted {
  public:
    // The offset of each of these members in `like`, which is kept; false with an exception where it has no such member, or
    // is no such object.
    bool learn(PyObject *like, std::initializer_list<const char *> names, Py_ssize_t *offsets) {
        PyTypeObject *const kind = Py_TYPE(like);
        bool fits = kind->tp_itemsize == 0 && kind->tp_dictoffset == 0 && kind->tp_dict && PyType_IS_GC(kind) &&
                    PyType_HasFeature(kind, Py_TPFLAGS_HEAPTYPE);
        std::vector<const char *> found;
        PyObject *name, *value;
        for (Py_ssize_t at = 0; fits && PyDict_Next(kind->tp_dict, &at, &name, &value);) {
            if (Py_TYPE(value) != &PyMemberDescr_Type) continue;
            const PyMemberDef *const member = reinterpret_cast<PyMemberDescrObject *>(value)->d_member;
            if (member->type != T_OBJECT_EX) continue;
            members_.push_back(member->offset);
            found.push_back(member->name);
        }
        for (const char *each : names) {
            std::size_t at = 0;
            while (at < found.size() && std::strcmp(found[at], each)) ++at;
            fits = fits && at < found.size();
            if (fits) *offsets++ = members_[at];
        }
        if (!fits) PyErr_SetString(PyExc_TypeError, "takes an object of a class with slots");
        like_ = Ref::share(like);
        return fits;
    }

    // A copy; none with an exception.
    Ref copy() const {
        PyTypeObject *const kind = Py_TYPE(like_.get());
        Ref made = Ref::take(kind->tp_alloc(kind, 0));
        if (!made) return made;
        for (const Py_ssize_t at : members_) *member(made.get(), at) = Py_XNewRef(*member(like_.get(), at));
        return made;
    }

    // Gives a copy another value.
    static void set(const Ref &made, Py_ssize_t offset, PyObject *value) {
        const Ref old = Ref::take(std::exchange(*member(made.get(), offset), Py_NewRef(value)));
    }

    PyObject *like() const { return like_.get(); }

    // Where a member of such an object lies; nothing may lie there.
    static PyObject **member(PyObject *object, Py_ssize_t offset) {
        return reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + offset);
    }

  private:
    Ref like_;
    std::vector<Py_ssize_t> members_;
};

}  // namespace vkharness

#endif
