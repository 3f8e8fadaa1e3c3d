// `Forms` for Python, and the two methods of `RangeStore` that make and execute forms.

#ifndef VKHARNESS_STORE_FORMS_TYPE_HPP
#define VKHARNESS_STORE_FORMS_TYPE_HPP

#include "flat_execution.hpp"
#include "range_store_type.hpp"
#include "store_forms.hpp"

namespace vkharness {

struct FormsObject {
    PyObject_HEAD
    Forms forms;
};

struct FormsType {
    static PyTypeObject *type;
    static PyObject *engine;  // the name of the attribute of a plan that has its forms

    static FormsObject *make() {
        FormsObject *const self = reinterpret_cast<FormsObject *>(type->tp_alloc(type, 0));
        if (self) new (&self->forms) Forms();
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        reinterpret_cast<FormsObject *>(object)->forms.~Forms();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        return reinterpret_cast<FormsObject *>(object)->forms.traverse(visit, arg);
    }

    static int clear(PyObject *object) {
        reinterpret_cast<FormsObject *>(object)->forms.clear();
        return 0;
    }
};

inline PyTypeObject *FormsType::type = nullptr;
inline PyObject *FormsType::engine = nullptr;

// (forms or anything else for none, standpoint, next standpoint, steps or None): the forms with one more. A step is (kind,
// space, spans, rule, racing): the rule is a request, a `Question` or a `Change`; racing is a number of `Racing`, or a
// `Question` beside the clock. That of SYNCHRONIZE is (kind, 0, covers, change or None, 0).
inline PyObject *RangeStoreType::form(RangeStoreObject *self, Arguments given) {
    if (given[3] != Py_None && !PyTuple_Check(given[3])) return fault("steps are a tuple");
    const Busy busy(self);
    if (!busy.good()) return nullptr;
    RangeStore &store = *self->store;
    const auto made = std::make_shared<Form>();
    made->standpoint = Ref::share(given[1]);
    made->next = Ref::share(given[2]);
    made->numbering = store.automaton().numbering();
    made->is_left = given[3] == Py_None;
    for (Py_ssize_t at = 0; !made->is_left && at < PyTuple_GET_SIZE(given[3]); ++at) {
        FormStep step;
        if (!read_step(store, PyTuple_GET_ITEM(given[3], at), step, made->notes)) return nullptr;
        made->steps.push(std::move(step));
    }
    Ref forms = Py_IS_TYPE(given[0], FormsType::type) ? Ref::share(given[0])
                                                          : Ref::take(reinterpret_cast<PyObject *>(FormsType::make()));
    if (forms) reinterpret_cast<FormsObject *>(forms.get())->forms.add(made);
    return forms.release();
}

inline bool RangeStoreType::read_step(RangeStore &store, PyObject *given, FormStep &step, std::uint32_t &notes) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 5) return fault("a step is five values");
    PyObject *const *const values = &PyTuple_GET_ITEM(given, 0);
    const long kind = PyLong_AsLong(values[0]);
    if (kind == -1 && PyErr_Occurred()) return false;
    if (kind < FormStep::APPLY || kind > FormStep::SYNCHRONIZE) return fault("a step of no kind");
    step.kind = static_cast<FormStep::Kind>(kind);
    if (!to_address(values[1], step.space)) return false;
    if (!PyTuple_Check(values[2])) return fault("spans and ranges are tuples");
    if (!read_racing(values[4], step.racing, step.race)) return false;
    if (step.kind == FormStep::SYNCHRONIZE) {
        if (values[3] != Py_None && !read_asking(values[3], step.rule)) return false;
        if (!read_covers(store, values[2], step.covers)) return false;
        for (const RangeStore::Cover &each : step.covers) notes += !each.change.object;
        return true;
    }
    const bool asks = step.kind == FormStep::TRANSITION || step.kind == FormStep::SHOW;
    if (asks ? !read_asking(values[3], step.rule) : !store.automaton().request(values[3], step.request)) return false;
    notes += step.kind == FormStep::APPLY || step.kind == FormStep::QUIET;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(values[2]); ++at) {
        FormStep::Span span;
        if (!to_span(PyTuple_GET_ITEM(values[2], at), span.begin, span.end)) return false;
        step.spans.push(std::move(span));
    }
    step.are_apart = RangeStore::are_apart(step.spans);
    return true;
}

// The form of a plan, which is made where that needs no Python. It is kept when that happens for the second time: most
// plans of a program that never says the same twice are executed once. False with an exception set.
inline bool RangeStoreType::found_or_made(RangeStoreObject *self, PyObject *plan, bool keeps, PyObject *standpoint,
                                          std::shared_ptr<const Form> &form) {
    Automaton &automaton = self->store->automaton();
    AccessReader *const reader = self->automaton->reader;
    Ref forms = reader ? reader->plans.engine_of(plan) : Ref::take(PyObject_GetAttr(plan, FormsType::engine));
    if (!forms) return false;
    const bool has_any = Py_IS_TYPE(forms.get(), FormsType::type);
    if (has_any) form = reinterpret_cast<FormsObject *>(forms.get())->forms.find(standpoint, automaton.numbering());
    if (form || !reader) return true;
    if (!make_access_form(*reader, automaton, plan, standpoint, form)) return false;
    if (!form || !keeps) return true;
    if (!has_any && forms.get() != Py_True) return PyObject_SetAttr(plan, FormsType::engine, Py_True) == 0;
    if (!has_any) forms = Ref::take(reinterpret_cast<PyObject *>(FormsType::make()));
    if (!forms) return false;
    reinterpret_cast<FormsObject *>(forms.get())->forms.add(form);
    return has_any || PyObject_SetAttr(plan, FormsType::engine, forms.get()) == 0;
}

// (space, spans) of the last accesses that forms and flat plans make, so many at most.
inline Ref RangeStoreType::notes_of(const std::deque<Noted> &last, std::size_t most) {
    std::vector<Ref> found;  // the last one first
    const auto note = [&](Address space, const FormStep::Span *spans, std::size_t count) {
        Ref several = Ref::take(PyTuple_New(static_cast<Py_ssize_t>(count)));
        for (std::size_t at = 0; several && at < count; ++at) {
            Ref from = from_address(spans[at].begin), to = from_address(spans[at].end);
            Ref span = from && to ? Ref::take(PyTuple_Pack(2, from.get(), to.get())) : Ref();
            if (!span) return false;
            PyTuple_SET_ITEM(several.get(), static_cast<Py_ssize_t>(at), span.release());
        }
        const Ref number = several ? from_address(space) : Ref();
        if (number) found.push_back(Ref::take(PyTuple_Pack(2, number.get(), several.get())));
        return number && found.back();
    };
    const auto note_plan = [&](const FlatPlan &plan, const FlatSteps &of) {
        for (auto step = of.steps.rbegin(); step != of.steps.rend() && found.size() < most; ++step) {
            if (!step->takes_place()) continue;
            RangeStore::Spans spans;
            FlatSteps::each_span(plan, *step, [&](const FlatSpan &span) {
                spans.push({span.begin, span.end});
                return true;
            });
            if (!note(FlatSteps::space(plan, *step), spans.begin(), spans.size())) return false;
        }
        return true;
    };
    for (auto noted = last.rbegin(); noted != last.rend(); ++noted) {
        if (noted->flat && !note_plan(*FlatPlan::of(noted->flat.get()), *noted->steps)) return Ref();
        if (noted->flat) continue;
        for (std::size_t at = noted->form->steps.size(); at; --at) {
            const FormStep *const step = &noted->form->steps[at - 1];
            const bool accesses = step->kind == FormStep::APPLY || step->kind == FormStep::QUIET;
            const RangeStore::Spans &spans = step->spans;
            if (accesses && found.size() < most && !note(step->space, spans.begin(), spans.size())) return Ref();
            for (auto cover = step->covers.rbegin(); cover != step->covers.rend(); ++cover) {
                if (cover->change.object || found.size() >= most) continue;
                const FormStep::Span span{cover->begin, cover->end};
                if (!note(cover->space, &span, 1)) return Ref();
            }
        }
    }
    Ref list = Ref::take(PyList_New(static_cast<Py_ssize_t>(found.size())));
    for (std::size_t at = 0; list && at < found.size(); ++at) {
        PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(found.size() - 1 - at), found[at].release());
    }
    return list;
}

// Brings near what is read of the forms of the commands that come, each part some commands before it is read.
inline void bring_forms_near(const AccessReader *reader, PyObject *plans, Py_ssize_t at, Py_ssize_t end) {
#ifndef Py_GIL_DISABLED
    enum Distance : Py_ssize_t { FORM = 8, FORMS = 14, PLAN = 20 };
    end = std::min(end, PyList_GET_SIZE(plans));
    const auto forms_of = [&](Distance distance) {
        return reader && at + distance < end ? reader->plans.peek(PyList_GET_ITEM(plans, at + distance)) : nullptr;
    };
    if (at + PLAN < end) bring_near(PyList_GET_ITEM(plans, at + PLAN), 2 * 64);
    if (PyObject *const forms = forms_of(FORMS)) bring_near(forms, sizeof(FormsObject));
    PyObject *const forms = forms_of(FORM);
    if (!forms || !Py_IS_TYPE(forms, FormsType::type)) return;
    if (const Form *const form = reinterpret_cast<FormsObject *>(forms)->forms.newest()) bring_near(form, sizeof *form);
#else
    static_cast<void>(reader), static_cast<void>(plans), static_cast<void>(at), static_cast<void>(end);
#endif
}

// (plans, begin, end, place number of the first, standpoint, how many notes are wanted, whether forms that are made here
// are kept): executes the forms of plans. A `FormsRun`.
inline PyObject *RangeStoreType::run(RangeStoreObject *self, Arguments given) {
    Py_ssize_t at = PyLong_AsSsize_t(given[1]);
    const Py_ssize_t end = at == -1 && PyErr_Occurred() ? -1 : PyLong_AsSsize_t(given[2]);
    unsigned long long place;
    if (PyErr_Occurred() || !to_number(given[3], place)) return nullptr;
    if (!PyList_Check(given[0]) || at < 0) return fault("plans are a list");
    const Py_ssize_t most = PyLong_AsSsize_t(given[5]);
    if (most == -1 && PyErr_Occurred()) return nullptr;
    const int keeps = PyObject_IsTrue(given[6]);
    if (keeps < 0) return nullptr;
    const Busy busy(self);
    if (!busy.good()) return nullptr;
    RangeStore &store = *self->store;
    Ref standpoint = Ref::share(given[4]), before = Ref::share(given[4]);
    bool left = false;
    std::vector<RangeStore::Met> met;
    Py_ssize_t noted = 0;
    std::deque<Noted> last;
    FlatExecution flat;
    while (at < end && at < PyList_GET_SIZE(given[0])) {
        bring_forms_near(self->automaton->reader, given[0], at, end);
        Ref plan = Ref::share(PyList_GET_ITEM(given[0], at));
        std::shared_ptr<const Form> form;
        std::shared_ptr<const FlatSteps> steps;
        const bool is_flat = FlatPlan::is_one(plan.get());
        std::size_t notes;
        if (is_flat) {
            const FlatPlan &numbers = *FlatPlan::of(plan.get());
            steps = flat.execute(store, self->automaton->reader, numbers, standpoint.get(), place, met);
            if (!steps && PyErr_Occurred()) return nullptr;
            left = !steps;
            if (left) break;
            notes = steps->notes;
        } else {
            if (!found_or_made(self, plan.get(), keeps, standpoint.get(), form)) return nullptr;
            left = form && form->is_left;
            if (!form || left) break;
            if (!execute(store, *form, place, met)) return nullptr;
            notes = form->notes;
        }
        ++at;
        ++place;
        noted += static_cast<Py_ssize_t>(notes);
        before = Ref::share(standpoint.get());
        if (!is_flat) standpoint = Ref::share(form->next.get());
        if (most > 0 && notes) {
            if (last.size() == static_cast<std::size_t>(most)) last.pop_front();
            last.push_back({std::move(form), is_flat ? std::move(plan) : Ref(), std::move(steps)});
        }
        if (!met.empty() || store.automaton().is_full()) break;
    }
    const Ref list = Ref::take(met_list(store, met, true));
    const Ref notes = list ? notes_of(last, static_cast<std::size_t>(std::max<Py_ssize_t>(most, 0))) : Ref();
    if (!notes) return nullptr;
    return PyObject_CallFunction(store.types().run, "nOOnOOO", at, standpoint.get(), before.get(), noted, notes.get(),
                                 left ? Py_True : Py_False, list.get());
}

// Adds the type; false with an exception set.
inline bool add_forms(PyObject *module) {
    static PyType_Slot slots[] = {
        slot(Py_tp_dealloc, FormsType::unmake), slot(Py_tp_traverse, FormsType::traverse),
        slot(Py_tp_clear, FormsType::clear), {0, nullptr},
    };
    const unsigned flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION;
    PyType_Spec spec = {"vkharness.native._core.Forms", sizeof(FormsObject), 0, flags, slots};
    FormsType::type = reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
    FormsType::engine = PyUnicode_InternFromString("engine");
    return FormsType::type && FormsType::engine && PyModule_AddType(module, FormsType::type) == 0;
}

}  // namespace vkharness

#endif
