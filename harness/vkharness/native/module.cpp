// The module `vkharness.native._core`. `harness/vkharness/native/__init__.py` says when it is used.

#include "bound_sets.hpp"
#include "dirty_pages_type.hpp"
#include "flat_columns.hpp"
#include "flat_table.hpp"
#include "front.hpp"
#include "content_draws.hpp"
#include "numbered_contents.hpp"
#include "range_store_type.hpp"
#include "set_writes.hpp"
#include "span_map.hpp"
#include "store_forms_type.hpp"

namespace {

// Types are kept once for the process: a second interpreter would replace those of the first one.
bool is_ours() {
    static PyInterpreterState *owner = nullptr;
    if (!owner) owner = PyInterpreterState_Get();
    if (owner == PyInterpreterState_Get()) return true;
    PyErr_SetString(PyExc_ImportError, "another interpreter of this process has the native core");
    return false;
}

int fill(PyObject *module) {
    if (!is_ours()) return -1;
    const bool added = PyModule_AddIntConstant(module, "SOURCES", VKHARNESS_SOURCES) == 0 &&
                       vkharness::add_span_map(module) && vkharness::add_range_store(module) &&
                       vkharness::add_forms(module) && vkharness::add_flat_plans(module) && vkharness::add_moved_plans(module) && vkharness::add_flat_columns(module) &&
                       vkharness::add_content_draws(module) &&
                       vkharness::add_flat_table(module) && vkharness::add_bound_sets(module) && vkharness::add_numbered_contents(module) &&
                       vkharness::add_set_writes(module) && vkharness::add_dirty_pages(module) &&
                       vkharness::add_front(module);
    return added ? 0 : -1;
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void *>(fill)},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_core", "The native core of vkharness.", 0, nullptr, slots, nullptr, nullptr, nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__core() { return PyModuleDef_Init(&definition); }
