// The native front end: what `vkharness.record.native_front` makes of it.

#ifndef VKHARNESS_FRONT_HPP
#define VKHARNESS_FRONT_HPP

#include "front_function.hpp"
#include "record_calls.hpp"

#include <structmember.h>

namespace vkharness {

// is_readable(address, size)
inline PyObject *is_readable(PyObject *, PyObject *arguments) {
    PyObject *address, *size;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyLong_Type, &address, &PyLong_Type, &size)) return nullptr;
    int low = 0, high = 0;
    const long long at = PyLong_AsLongLongAndOverflow(address, &low), bytes = PyLong_AsLongLongAndOverflow(size, &high);
    if (PyErr_Occurred()) return nullptr;
    const bool sensible = !low && !high && at >= 0 && bytes >= 0;
    return PyBool_FromLong(sensible && Readable::there(static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(bytes)));
}

inline bool add_front(PyObject *module) {
    const auto slot = [](int which, auto function) { return PyType_Slot{which, reinterpret_cast<void *>(function)}; };
    static PyMethodDef functions[] = {
        {"front_ready", caught<Cffi::ready>, METH_VARARGS, "Whether cffi is as the front end knows it."},
        {"handles_changed", caught<KnownHandles::changed>, METH_NOARGS, "Any handle means another object now, or none."},
        {"is_readable", caught<is_readable>, METH_VARARGS, "Whether there is memory at an address, without touching it."},
        {"direct_calls", caught<Target::direct_calls>, METH_O, "Whether function pointers that have a Target lead to it."},
        {"arm", caught<arm>, METH_VARARGS, "Gives a Function or a Target its Command, or takes it away."},
        {"put_off_signals", caught<WaitingSignals::put_off>, METH_VARARGS, "Lets signals of these numbers wait."},
        {"let_signals_through", caught<WaitingSignals::let_through>, METH_NOARGS, "Makes all handlers what they were."},
        {"forked", caught<WaitingSignals::forked>, METH_O, "What other threads were in the middle of is over."},
        {"raise_later", caught<WaitingSignals::raise_later>, METH_O, "Raises an error on the main thread, outside of critical sections."},
        {"uncritical", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(uncritical)), METH_FASTCALL,
         "Calls the driver, or code of the program, in the middle of a critical section."},
        {nullptr, nullptr, 0, nullptr},
    };
    static PyMethodDef shape_methods[] = {{"read", caught<Shape::read_method>, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
    static PyMethodDef site_methods[] = {{"caller", caught<Sites::caller_method>, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
    static PyMethodDef log_methods[] = {
        {"take", caught<CallLog::take>, METH_NOARGS, nullptr},
        {"forget", caught<CallLog::forget>, METH_NOARGS, nullptr},
        {"take_and_number", caught<CallLog::take_and_number>, METH_NOARGS, nullptr},
        {nullptr, nullptr, 0, nullptr},
    };
    static PyMethodDef waiting_methods[] = {
        method<WaitingCalls, WaitingCalls::repeated, 6>("repeated"),
        {nullptr, nullptr, 0, nullptr},
    };
    static PyGetSetDef waiting_values[] = {{"said", caught<WaitingCalls::next_said>, nullptr, nullptr, nullptr},
                                           {nullptr, nullptr, nullptr, nullptr, nullptr}};
    static PyMemberDef saying_members[] = {
        {"name", T_OBJECT, offsetof(Saying, name), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyGetSetDef saying_values[] = {{"args", caught<Saying::get_args>, nullptr, nullptr, nullptr},
                                          {"kept", caught<Saying::get_kept>, caught<Saying::set_kept>, nullptr, nullptr},
                                          {nullptr, nullptr, nullptr, nullptr, nullptr}};
    static PyMethodDef function_methods[] = {{"__reduce__", caught<Function::reduce>, METH_NOARGS, nullptr},
                                             {nullptr, nullptr, 0, nullptr}};
    static PyMemberDef function_members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, call), READONLY, nullptr},
        {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weak), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot shape_slots[] = {
        slot(Py_tp_new, caught<Shape::make>), slot(Py_tp_dealloc, Shape::unmake), slot(Py_tp_traverse, Shape::traverse),
        slot(Py_tp_clear, Shape::clear), slot(Py_tp_methods, shape_methods), {0, nullptr},
    };
    static PyType_Slot site_slots[] = {
        slot(Py_tp_new, caught<Sites::make>), slot(Py_tp_dealloc, Sites::unmake), slot(Py_tp_traverse, Sites::traverse),
        slot(Py_tp_clear, Sites::clear), slot(Py_tp_methods, site_methods), {0, nullptr},
    };
    static PyType_Slot saying_slots[] = {
        slot(Py_tp_dealloc, Saying::unmake), slot(Py_tp_traverse, Saying::traverse), slot(Py_tp_clear, Saying::clear),
        slot(Py_tp_members, saying_members), slot(Py_tp_getset, saying_values), {0, nullptr},
    };
    static PyType_Slot key_form_slots[] = {slot(Py_tp_dealloc, KeyForm::unmake), {0, nullptr}};
    static PyType_Slot log_slots[] = {
        slot(Py_tp_new, caught<CallLog::make>), slot(Py_tp_dealloc, CallLog::unmake), slot(Py_tp_traverse, CallLog::traverse),
        slot(Py_tp_clear, CallLog::clear), slot(Py_sq_length, caught<CallLog::length>), slot(Py_tp_methods, log_methods),
        {0, nullptr},
    };
    static PyType_Slot waiting_slots[] = {
        slot(Py_tp_dealloc, WaitingCalls::unmake), slot(Py_tp_traverse, WaitingCalls::traverse),
        slot(Py_tp_clear, WaitingCalls::clear), slot(Py_tp_iter, PyObject_SelfIter),
        slot(Py_tp_iternext, caught<WaitingCalls::next_row>), slot(Py_sq_length, caught<WaitingCalls::length>),
        slot(Py_tp_methods, waiting_methods), slot(Py_tp_getset, waiting_values), {0, nullptr},
    };
    static PyType_Slot command_slots[] = {
        slot(Py_tp_new, caught<Command::make>), slot(Py_tp_dealloc, Command::unmake), slot(Py_tp_traverse, Command::traverse),
        slot(Py_tp_clear, Command::clear), {0, nullptr},
    };
    static PyType_Slot function_slots[] = {
        slot(Py_tp_new, caught<Function::make>), slot(Py_tp_dealloc, Function::unmake), slot(Py_tp_traverse, Function::traverse),
        slot(Py_tp_clear, Function::clear), slot(Py_tp_call, PyVectorcall_Call), slot(Py_tp_descr_get, Function::get),
        slot(Py_tp_getattro, Function::attribute), slot(Py_tp_setattro, Function::set_attribute),
        slot(Py_tp_repr, Function::text), slot(Py_tp_methods, function_methods), slot(Py_tp_members, function_members),
        {0, nullptr},
    };
    static PyType_Slot target_slots[] = {
        slot(Py_tp_new, caught<Target::make>), slot(Py_tp_dealloc, Target::unmake), slot(Py_tp_traverse, Target::traverse),
        slot(Py_tp_clear, Target::clear), {0, nullptr},
    };
    static PyMemberDef critical_members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Critical, call), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot critical_slots[] = {
        slot(Py_tp_new, caught<Critical::make>), slot(Py_tp_dealloc, Critical::unmake),
        slot(Py_tp_traverse, Critical::traverse), slot(Py_tp_clear, Critical::clear),
        slot(Py_tp_call, PyVectorcall_Call), slot(Py_tp_descr_get, Critical::get),
        slot(Py_tp_members, critical_members), {0, nullptr},
    };
    static PyMethodDef record_methods[] = {
        {"know", caught<RecordCalls::know>, METH_VARARGS, nullptr},
        {"take", caught<RecordCalls::take>, METH_VARARGS, nullptr},
        {nullptr, nullptr, 0, nullptr},
    };
    static PyType_Slot record_slots[] = {
        slot(Py_tp_new, caught<RecordCalls::make>), slot(Py_tp_dealloc, RecordCalls::unmake),
        slot(Py_tp_traverse, RecordCalls::traverse), slot(Py_tp_clear, RecordCalls::clear),
        slot(Py_tp_methods, record_methods), {0, nullptr},
    };
    const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE;
    struct Made {
        PyTypeObject **type;
        PyType_Spec spec;
    } made[] = {
        {&Shape::type, {"vkharness.native._core.Shape", sizeof(Shape), 0, flags, shape_slots}},
        {&Sites::type, {"vkharness.native._core.Sites", sizeof(Sites), 0, flags, site_slots}},
        {&Saying::type,
         {"vkharness.native._core.Saying", offsetof(Saying, bytes), 1, flags | Py_TPFLAGS_DISALLOW_INSTANTIATION, saying_slots}},
        {&KeyForm::type,
         {"vkharness.native._core.KeyForm", sizeof(KeyForm), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
          Py_TPFLAGS_DISALLOW_INSTANTIATION, key_form_slots}},
        {&WaitingCalls::type,
         {"vkharness.native._core.WaitingCalls", sizeof(WaitingCalls), 0, flags | Py_TPFLAGS_DISALLOW_INSTANTIATION,
          waiting_slots}},
        {&CallLog::type, {"vkharness.native._core.CallLog", sizeof(CallLog), 0, flags, log_slots}},
        {&RecordCalls::type, {"vkharness.native._core.RecordCalls", sizeof(RecordCalls), 0, flags, record_slots}},
        {&Command::type, {"vkharness.native._core.Command", sizeof(Command), 0, flags, command_slots}},
        {&Target::type, {"vkharness.native._core.Target", sizeof(Target), 0, flags, target_slots}},
        {&Critical::type,
         {"vkharness.native._core.Critical", sizeof(Critical), 0,
          flags | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, critical_slots}},
        {&Function::type,
         {"vkharness.native._core.Function", sizeof(Function), 0,
          flags | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, function_slots}},
    };
    for (Made &each : made) {
        *each.type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &each.spec, nullptr));
        if (!*each.type || PyModule_AddType(module, *each.type) < 0) return false;
    }
    return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace vkharness

#endif
