// The native form of `Sites.caller` in harness/vkharness/record/sites.py, which explains each new place once.

#ifndef VKHARNESS_FRONT_SITES_HPP
#define VKHARNESS_FRONT_SITES_HPP

#include "python.hpp"

#include <algorithm>
#include <unordered_map>

namespace vkharness {

struct Sites {
    // A code object and an instruction of it.
    struct Spot {
        PyObject *code;
        int instruction;
        bool operator==(const Spot &other) const { return code == other.code && instruction == other.instruction; }
    };
    struct Hash {
        std::size_t operator()(const Spot &spot) const {
            return std::hash<void *>()(spot.code) ^ (static_cast<std::size_t>(spot.instruction) * 0x9E3779B97F4A7C15u);
        }
    };
    struct Known {
        Ref code, text;  // text: None for code whose frames do not count
    };

    // One that was asked for lately.
    struct Recent {
        Spot spot;
        PyObject *text;  // of `known`; none where there is none
    };
    static constexpr std::size_t RECENT = 64;  // six bits of a hash

    PyObject_HEAD
    Ref explain;  // Python: frame to text, or None
    std::unordered_map<Spot, Known, Hash> known;
    Recent recent[RECENT];

    static PyTypeObject *type;

    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *explain;
        if (!PyArg_ParseTuple(arguments, "O", &explain)) return nullptr;
        PyObject *const self = made->tp_alloc(made, 0);
        if (!self) return nullptr;
        Sites *const sites = reinterpret_cast<Sites *>(self);
        new (&sites->explain) Ref(Ref::share(explain));
        new (&sites->known) std::unordered_map<Spot, Known, Hash>();
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        Sites *const sites = reinterpret_cast<Sites *>(object);
        sites->known.~unordered_map();
        sites->explain.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        const Sites *const sites = reinterpret_cast<Sites *>(object);
        Py_VISIT(sites->explain.get());
        for (const auto &each : sites->known) {
            Py_VISIT(each.second.code.get());
            Py_VISIT(each.second.text.get());
        }
        return 0;
    }

    // Forgets what was explained, and goes on: it can be called as long as somebody has it.
    static int clear(PyObject *object) {
        std::unordered_map<Spot, Known, Hash> old;
        std::fill_n(reinterpret_cast<Sites *>(object)->recent, RECENT, Recent{});
        old.swap(reinterpret_cast<Sites *>(object)->known);
        return 0;
    }

    // The line of the program that is running, or None; nothing with an exception.
    Ref caller() {
        Ref frame = Ref::share(reinterpret_cast<PyObject *>(PyEval_GetFrame()));
        while (frame) {
            PyFrameObject *const held = reinterpret_cast<PyFrameObject *>(frame.get());
            Ref code = Ref::take(reinterpret_cast<PyObject *>(PyFrame_GetCode(held)));
            const Spot spot{code.get(), PyFrame_GetLasti(held)};
            Ref text = find(spot);
            if (!text) {
                text = Ref::take(PyObject_CallOneArg(explain.get(), frame.get()));
                if (!text) return text;
                keep(spot, {std::move(code), Ref::share(text.get())});
            }
            if (text.get() != Py_None) return text;
            frame = Ref::take(reinterpret_cast<PyObject *>(PyFrame_GetBack(held)));
        }
        return PyErr_Occurred() ? Ref() : Ref::share(Py_None);  // there may be no memory for a frame
    }

    static PyObject *caller_method(PyObject *self, PyObject *) {
        return reinterpret_cast<Sites *>(self)->caller().release();
    }

  private:
    Ref find(const Spot &spot) {
        const Locked locked(reinterpret_cast<PyObject *>(this));
        Recent &last = recent[(Hash()(spot) * 0x9E3779B97F4A7C15u) >> 58];
        if (last.text && last.spot == spot) return Ref::share(last.text);
        const auto found = known.find(spot);
        if (found == known.end()) return Ref();
        last = {spot, found->second.text.get()};
        return Ref::share(last.text);
    }

    void keep(const Spot &spot, Known &&found) {
        const Locked locked(reinterpret_cast<PyObject *>(this));
        known.emplace(spot, std::move(found));
    }
};

PyTypeObject *Sites::type = nullptr;

}  // namespace vkharness

#endif
