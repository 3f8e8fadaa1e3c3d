// Writes, reach and changes of contents of the plans of a recording: of flat plans (flat_plans.hpp) without asking
// Python.

#ifndef VKHARNESS_FLAT_COLUMNS_HPP
#define VKHARNESS_FLAT_COLUMNS_HPP

#include "flat_plans.hpp"

#include <set>
#include <unordered_map>
#include <unordered_set>

namespace vkharness {

// content_steps(plans, begin, end, written, nothing) -> what plans do to contents, but for those that do nothing. A
// flat plan stands for itself: most often nobody asks it. `written` says it of a plan first.
inline PyObject *content_steps(PyObject *, PyObject *const *given, Py_ssize_t count) {
    if (count != 5 || !PyList_Check(given[0])) return FlatKind::fault();
    const Py_ssize_t begin = PyLong_AsSsize_t(given[1]), end = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(given[2]);
    if (PyErr_Occurred() || begin < 0) return PyErr_Occurred() ? nullptr : FlatKind::fault();
    static PyObject *const writes = PyUnicode_InternFromString("writes");
    Ref found = writes ? Ref::take(PyList_New(0)) : Ref();
    for (Py_ssize_t at = begin; found && at < end && at < PyList_GET_SIZE(given[0]); ++at) {
        Ref step = Ref::share(PyList_GET_ITEM(given[0], at));
        if (FlatPlan::is_one(step.get()) && !FlatPlan::of(step.get())->does_write()) continue;
        if (!FlatPlan::is_one(step.get())) {
            const Ref plan = std::move(step);
            step = Ref::take(PyObject_GetAttr(plan.get(), writes));
            if (step.get() == Py_None) step = Ref::take(PyObject_CallOneArg(given[3], plan.get()));
        }
        if (!step || (step.get() != given[4] && PyList_Append(found.get(), step.get()) < 0)) return nullptr;
    }
    return found.release();
}

inline Ref spaces_of(PyObject *plans) {
    const Ref others = Ref::take(PyList_New(0)), found = Ref::take(PySet_New(nullptr));
    std::unordered_set<long long> spaces;
    for (Py_ssize_t at = 0; others && found && at < PyList_GET_SIZE(plans); ++at) {
        PyObject *const each = PyList_GET_ITEM(plans, at);
        if (!FlatPlan::is_one(each) && PyList_Append(others.get(), each) < 0) return Ref();
        for (std::size_t access = 0; FlatPlan::is_one(each) && access < FlatPlan::of(each)->accesses(); ++access) {
            if (!spaces.insert(FlatPlan::of(each)->space(access)).second) continue;
            const Ref number = Ref::take(PyLong_FromLongLong(FlatPlan::of(each)->space(access)));
            if (!number || PySet_Add(found.get(), number.get()) < 0) return Ref();
        }
    }
    return others && found ? Ref::take(PyTuple_Pack(2, others.get(), found.get())) : Ref();
}

inline Ref writes_of(PyObject *plans) {
    const Ref others = Ref::take(PyList_New(0)), found = Ref::take(PyDict_New());
    std::vector<std::pair<long long, std::vector<FlatSpan>>> spaces;
    std::unordered_map<long long, std::size_t> where;
    std::set<std::pair<PyObject *, long long>> images;  // one that some kind of plan only reads, another may write
    if (!others || !found) return Ref();
    std::size_t last = 0;  // most commands write where the one before them did
    const auto spans_of = [&](long long space) -> std::vector<FlatSpan> & {
        if (last < spaces.size() && spaces[last].first == space) return spaces[last].second;
        const auto known = where.find(space);
        last = known == where.end() ? spaces.size() : known->second;
        if (known == where.end()) {
            where[space] = last;
            spaces.push_back({space, {}});
        }
        return spaces[last].second;
    };
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(plans); ++at) {
        PyObject *const each = PyList_GET_ITEM(plans, at);
        if (!FlatPlan::is_one(each)) {
            if (PyList_Append(others.get(), each) < 0) return Ref();
            continue;
        }
        const FlatPlan &plan = *FlatPlan::of(each);
        for (std::size_t part = 0; part < plan.accesses(); ++part) {
            if (plan.writes(part) == FlatReach::IMAGE && images.insert({plan.origin, plan.space(part)}).second && PyList_Append(others.get(), each) < 0) {
                return Ref();
            }
            if (plan.writes(part) != FlatReach::MEMORY) continue;
            std::vector<FlatSpan> &spans = spans_of(plan.space(part));
            plan.each_span(part, [&](const FlatSpan &span) {
                const bool joins = !spans.empty() && spans.back().begin <= span.begin && span.begin <= spans.back().end;
                if (joins) spans.back().end = std::max(spans.back().end, span.end);
                else spans.push_back(span);
                return true;
            });
        }
    }
    for (auto &[space, spans] : spaces) {
        FlatPlan::join(spans);
        const Ref number = Ref::take(PyLong_FromLongLong(space));
        const Ref list = number ? Ref::take(PyList_New(static_cast<Py_ssize_t>(spans.size()))) : Ref();
        for (std::size_t at = 0; list && at < spans.size(); ++at) {
            PyObject *const span = Py_BuildValue("LL", spans[at].begin, spans[at].end);
            if (!span) return Ref();
            PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(at), span);
        }
        if (!list || PyDict_SetItem(found.get(), number.get(), list.get()) < 0) return Ref();
    }
    return Ref::take(PyTuple_Pack(2, others.get(), found.get()));
}

// flat_writes(plans) -> (those that are not flat, and one for each image that flat ones of a kind access, {space: the ranges that the flat
// ones write, sorted and joined}); flat_spaces(plans) -> (those that are not flat, the spaces of what the flat ones access)
template <Ref (*FOUND)(PyObject *)>
PyObject *of_plans(PyObject *, PyObject *plans) {
    if (PyList_Check(plans)) return FOUND(plans).release();
    PyErr_SetString(PyExc_TypeError, "plans are a list");
    return nullptr;
}

inline bool add_flat_columns(PyObject *module) {
    static PyMethodDef functions[] = {
        {"flat_writes", caught<of_plans<writes_of>>, METH_O, "What flat plans write, and which plans are not flat."},
        {"flat_spaces", caught<of_plans<spaces_of>>, METH_O, "The spaces of what flat plans access, and which plans are not flat."},
        {"content_steps", reinterpret_cast<PyCFunction>(reinterpret_cast<void *>(&content_steps)), METH_FASTCALL,
         "What plans do to contents."},
        {nullptr, nullptr, 0, nullptr},
    };
    return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace vkharness

#endif
