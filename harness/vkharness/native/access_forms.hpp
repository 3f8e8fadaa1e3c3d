// The forms of commands that only access memory, made without Python: programs make such commands anew all the time.
//
// The request that an access makes of a state depends on the standpoint and on a few members of the access. The
// standpoint is asked for it once per combination (`asks`); the answer is good for as long as the numbers of requests
// are.

#ifndef VKHARNESS_ACCESS_FORMS_HPP
#define VKHARNESS_ACCESS_FORMS_HPP

#include <structmember.h>

#include <array>

#include "store_forms.hpp"

namespace vkharness {

// An attribute of the objects of a type, read where it lies if it is a slot.
class Attribute {
  public:
    // False with an exception set.
    bool find(PyObject *type, const char *name) {
        name_ = Ref::take(PyUnicode_InternFromString(name));
        const Ref found = name_ ? Ref::take(PyObject_GetAttr(type, name_.get())) : Ref();
        if (!found) PyErr_Clear();  // objects may have it that their type has not
        if (found && Py_IS_TYPE(found.get(), &PyMemberDescr_Type)) {
            const PyMemberDef *const member = reinterpret_cast<PyMemberDescrObject *>(found.get())->d_member;
            if (member->type == T_OBJECT_EX) offset_ = member->offset;
        }
        return static_cast<bool>(name_);
    }

    // Of an object of precisely this type. None with an exception set.
    Ref of(PyObject *object) const {
        if (offset_ >= 0) {
            PyObject *const held = *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + offset_);
            if (held) return Ref::share(held);
        }
        return Ref::take(PyObject_GetAttr(object, name_.get()));
    }

    // The same as it lies there, or nullptr.
    PyObject *peek(PyObject *object) const {
        return offset_ < 0 ? nullptr : *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + offset_);
    }

  private:
    Ref name_;
    Py_ssize_t offset_ = -1;
};

// Reads what plans keep for the store, most of which are of one type.
class PlanReader {
  public:
    bool learn() {
        name_ = Ref::take(PyUnicode_InternFromString("engine"));
        return static_cast<bool>(name_);
    }

    // None with an exception set.
    Ref engine_of(PyObject *plan) {
        if (!type_) {
            type_ = Ref::share(reinterpret_cast<PyObject *>(Py_TYPE(plan)));
            if (!engine_.find(type_.get(), "engine")) return Ref();
        }
        return is_known(plan) ? engine_.of(plan) : Ref::take(PyObject_GetAttr(plan, name_.get()));
    }

    // The same as it lies in the plan, or nullptr.
    PyObject *peek(PyObject *plan) const { return type_ && is_known(plan) ? engine_.peek(plan) : nullptr; }

    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(type_.get());
        return 0;
    }

  private:
    bool is_known(PyObject *plan) const { return type_.get() == reinterpret_cast<PyObject *>(Py_TYPE(plan)); }

    Ref name_, type_;
    Attribute engine_;
};

// Reads accesses, and knows what they ask of states.
class AccessReader {
  public:
    PlanReader plans;

    static constexpr std::size_t MOST = 8;         // accesses of a command whose form is made here
    static constexpr std::size_t MOST_KNOWN = 4096;

    // False with an exception set. `type` is that of accesses.
    bool learn(PyObject *type) {
        type_ = Ref::share(type);
        static constexpr const char *NAMES[] = {"atomic", "order", "operation", "marker", "certainty"};
        for (std::size_t at = 0; at < WHICH; ++at) {
            if (!which_[at].find(type, NAMES[at])) return false;
        }
        effects_ = Ref::take(PyUnicode_InternFromString("effects"));
        return effects_ && plans.learn() && kind_.find(type, "access_kind") && space_.find(type, "space") && spans_.find(type, "spans") &&
               aliases_.find(type, "aliases");
    }

    PyObject *effects() const { return effects_.get(); }  // the name of the attribute of a plan

    bool is_access(PyObject *object) const { return type_ && Py_TYPE(object) == as_type(); }

    // Reads an access as a step: false with an exception set. `is_plain` says whether it has no alias.
    bool read(Automaton &automaton, PyObject *access, PyObject *standpoint, FormStep &step, bool &is_plain) {
        const Ref aliases = aliases_.of(access), space = space_.of(access), spans = spans_.of(access);
        if (!aliases || !space || !spans || !to_address(space.get(), step.space)) return false;
        is_plain = PyTuple_Check(aliases.get()) && !PyTuple_GET_SIZE(aliases.get()) && PyTuple_Check(spans.get());
        if (!is_plain) return true;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(spans.get()); ++at) {
            PyObject *const span = PyTuple_GET_ITEM(spans.get(), at);
            FormStep::Span made;
            is_plain = PyTuple_Check(span) && PyTuple_GET_SIZE(span) == 2;
            if (!is_plain) return true;
            if (!to_address(PyTuple_GET_ITEM(span, 0), made.begin)) return false;
            if (!to_address(PyTuple_GET_ITEM(span, 1), made.end)) return false;
            step.spans.push(std::move(made));
        }
        step.are_apart = RangeStore::are_apart(step.spans);
        return ask(automaton, access, standpoint, step);
    }

    void forget() {
        Known gone;
        gone.swap(known_);
    }

    int traverse(visitproc visit, void *arg) const {
        if (const int stop = plans.traverse(visit, arg)) return stop;
        Py_VISIT(type_.get());
        for (const auto &each : known_) {
            Py_VISIT(each.first.standpoint.get());
            for (const Ref &part : each.first.which) Py_VISIT(part.get());
            Py_VISIT(each.second.race.object.get());
        }
        return 0;
    }

  private:
    static constexpr std::size_t WHICH = 5;
    struct Key {
        Ref standpoint;
        long kind = 0;
        std::array<Ref, WHICH> which;
        bool operator==(const Key &other) const {
            return standpoint.get() == other.standpoint.get() && kind == other.kind &&
                   std::equal(which.begin(), which.end(), other.which.begin(),
                              [](const Ref &one, const Ref &two) { return one.get() == two.get(); });
        }
    };
    struct KeyHash {
        std::size_t operator()(const Key &key) const {
            std::size_t mixed = reinterpret_cast<std::size_t>(key.standpoint.get()) ^ static_cast<std::size_t>(key.kind);
            for (const Ref &each : key.which) {
                mixed = mixed * 0x9E3779B97F4A7C15ull ^ reinterpret_cast<std::size_t>(each.get()) >> 4;
            }
            return mixed;
        }
    };
    struct Asked {
        std::uint32_t request;
        RangeStore::Racing racing;
        Asking race;
    };
    using Known = std::unordered_map<Key, Asked, KeyHash>;

    PyTypeObject *as_type() const { return reinterpret_cast<PyTypeObject *>(type_.get()); }

    bool ask(Automaton &automaton, PyObject *access, PyObject *standpoint, FormStep &step) {
        if (numbering_ != automaton.numbering() || known_.size() >= MOST_KNOWN) {
            forget();
            numbering_ = automaton.numbering();
        }
        Key key;
        key.standpoint = Ref::share(standpoint);
        const Ref kind = kind_.of(access);
        if (!kind) return false;
        key.kind = PyLong_AsLong(kind.get());
        if (key.kind == -1 && PyErr_Occurred()) return false;
        for (std::size_t at = 0; at < WHICH; ++at) {
            key.which[at] = which_[at].of(access);
            if (!key.which[at]) return false;
        }
        auto found = known_.find(key);
        if (found == known_.end()) {
            Asked made{};
            if (!asked(automaton, access, standpoint, made)) return false;
            found = known_.emplace(std::move(key), std::move(made)).first;  // Python may have put it there meanwhile
        }
        step.request = found->second.request;
        step.racing = found->second.racing;
        step.race.object = Ref::share(found->second.race.object.get());
        step.race.number = found->second.race.number;
        return true;
    }

    static bool asked(Automaton &automaton, PyObject *access, PyObject *standpoint, Asked &made) {
        const Ref answer = Ref::take(PyObject_CallMethod(standpoint, "asks", "O", access));
        if (!answer) return false;
        if (!PyTuple_Check(answer.get()) || PyTuple_GET_SIZE(answer.get()) != 2) {
            PyErr_SetString(PyExc_TypeError, "a standpoint says two things of an access");
            return false;
        }
        if (!automaton.request(PyTuple_GET_ITEM(answer.get(), 0), made.request)) return false;
        return read_racing(PyTuple_GET_ITEM(answer.get(), 1), made.racing, made.race);
    }

    Ref type_, effects_;
    Attribute kind_, space_, spans_, aliases_;
    std::array<Attribute, WHICH> which_;
    std::uint64_t numbering_ = 0;
    Known known_;
};

// Whether no two steps touch one address.
inline bool are_apart(const Few<FormStep, 2> &steps) {
    const auto begin = [](const FormStep &step) {
        return std::min_element(step.spans.begin(), step.spans.end(), [](const auto &one, const auto &two) {
                   return one.begin < two.begin;
               })->begin;
    };
    const auto end = [](const FormStep &step) {
        return std::max_element(step.spans.begin(), step.spans.end(), [](const auto &one, const auto &two) {
                   return one.end < two.end;
               })->end;
    };
    for (std::size_t one = 0; one < steps.size(); ++one) {
        for (std::size_t two = 0; two < one; ++two) {
            if (steps[one].space != steps[two].space || !steps[one].spans.size() || !steps[two].spans.size()) continue;
            if (begin(steps[one]) < end(steps[two]) && begin(steps[two]) < end(steps[one])) return false;
        }
    }
    return true;
}

// The form of a plan at a standpoint, where all that it does is to access memory, and no two of its accesses can touch one
// address; else there is none. False with an exception set.
inline bool make_access_form(AccessReader &reader, Automaton &automaton, PyObject *plan, PyObject *standpoint,
                             std::shared_ptr<const Form> &form) {
    const Ref effects = Ref::take(PyObject_GetAttr(plan, reader.effects()));
    if (!effects) return false;
    const Py_ssize_t count = PyTuple_Check(effects.get()) ? PyTuple_GET_SIZE(effects.get()) : 0;
    if (!count || count > static_cast<Py_ssize_t>(AccessReader::MOST)) return true;
    const auto made = std::make_shared<Form>();
    for (Py_ssize_t at = 0; at < count; ++at) {
        PyObject *const access = PyTuple_GET_ITEM(effects.get(), at);
        if (!reader.is_access(access)) return true;
        FormStep step;
        bool is_plain = false;
        if (!reader.read(automaton, access, standpoint, step, is_plain)) return false;
        if (!is_plain) return true;
        made->steps.push(std::move(step));
    }
    if (!are_apart(made->steps)) return true;
    made->standpoint = Ref::share(standpoint);
    made->next = Ref::share(standpoint);
    made->numbering = automaton.numbering();
    made->notes = static_cast<std::uint32_t>(count);
    form = made;
    return true;
}

}  // namespace vkharness

#endif
