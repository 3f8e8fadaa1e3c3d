// The native form of `Sites.caller` in harness/vkharness/record/sites.py, which explains each new stack once.

#ifndef VKHARNESS_FRONT_SITES_HPP
#define VKHARNESS_FRONT_SITES_HPP

#include "python.hpp"

#include <memory>
#include <unordered_map>
#include <vector>

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
    // The innermost frames of a stack, as far as somebody walked.
    struct Node {
        Ref stack, code, site;  // stack: a `RunningStack`; code: of the last frame; site: none until somebody asks for it
        bool ends = false;
        std::unordered_map<Spot, Node *, Hash> next;
        Spot last{};  // that came lately behind these frames
        Node *behind = nullptr;
    };
    using Nodes = std::vector<std::unique_ptr<Node>>;
    static constexpr std::size_t MOST = 1 << 16;  // nodes; with more, all are forgotten

    PyObject_HEAD
    Ref explain;  // Python: (stack, frame) to the stack with that frame
    Node root;
    Nodes nodes;  // all others
    std::size_t walking;  // threads that walk

    static PyTypeObject *type;

    // Sites(explain, the stack without a frame)
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *explain, *none;
        if (!PyArg_ParseTuple(arguments, "OO", &explain, &none)) return nullptr;
        PyObject *const self = made->tp_alloc(made, 0);
        if (!self) return nullptr;
        Sites *const sites = reinterpret_cast<Sites *>(self);
        new (&sites->explain) Ref(Ref::share(explain));
        new (&sites->root) Node();
        new (&sites->nodes) Nodes();
        sites->root.stack = Ref::share(none);
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        Sites *const sites = reinterpret_cast<Sites *>(object);
        sites->nodes.~Nodes();
        sites->root.~Node();
        sites->explain.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        const Sites *const sites = reinterpret_cast<Sites *>(object);
        Py_VISIT(sites->explain.get());
        Py_VISIT(sites->root.stack.get());
        Py_VISIT(sites->root.site.get());
        for (const auto &each : sites->nodes) {
            Py_VISIT(each->stack.get());
            Py_VISIT(each->code.get());
            Py_VISIT(each->site.get());
        }
        return 0;
    }

    // Forgets what was explained, and goes on: it can be called as long as somebody has it.
    static int clear(PyObject *object) {
        Sites *const sites = reinterpret_cast<Sites *>(object);
        Nodes old;
        if (sites->walking) return 0;
        sites->root.next.clear();
        sites->root.behind = nullptr;
        old.swap(sites->nodes);
        return 0;
    }

    // The site of the line of the program that is running, or None; nothing with an exception.
    Ref caller() {
        const Walk walking_here(*this);
        return walk();
    }

    static PyObject *caller_method(PyObject *self, PyObject *) {
        return reinterpret_cast<Sites *>(self)->caller().release();
    }

  private:
    // As long as there is one, nodes stay.
    class Walk {
      public:
        explicit Walk(Sites &sites) : sites_(sites) {
            const Locked locked(reinterpret_cast<PyObject *>(&sites_));
            if (sites_.nodes.size() > MOST) clear(reinterpret_cast<PyObject *>(&sites_));
            ++sites_.walking;
        }
        ~Walk() {
            const Locked locked(reinterpret_cast<PyObject *>(&sites_));
            --sites_.walking;
        }
        Walk(const Walk &) = delete;
        Walk &operator=(const Walk &) = delete;

      private:
        Sites &sites_;
    };

    Ref walk() {
        Node *at = &root;
        Ref frame = Ref::share(reinterpret_cast<PyObject *>(PyEval_GetFrame()));
        while (frame && !at->ends) {
            PyFrameObject *const held = reinterpret_cast<PyFrameObject *>(frame.get());
            Ref code = Ref::take(reinterpret_cast<PyObject *>(PyFrame_GetCode(held)));
            const Spot spot{code.get(), PyFrame_GetLasti(held)};
            Node *next = find(*at, spot);
            if (!next) next = explained(*at, spot, std::move(code), frame);
            if (!next) return Ref();
            at = next;
            frame = Ref::take(reinterpret_cast<PyObject *>(PyFrame_GetBack(held)));
        }
        if (PyErr_Occurred()) return Ref();  // there may be no memory for a frame
        return site_of(*at);
    }

    Node *find(Node &at, const Spot &spot) {
        const Locked locked(reinterpret_cast<PyObject *>(this));
        if (at.behind && at.last == spot) return at.behind;
        const auto found = at.next.find(spot);
        if (found == at.next.end()) return nullptr;
        at.last = spot;
        return at.behind = found->second;
    }

    // None with an exception.
    Node *explained(Node &at, const Spot &spot, Ref &&code, const Ref &frame) {
        PyObject *const given[] = {at.stack.get(), frame.get()};
        Ref stack = Ref::take(PyObject_Vectorcall(explain.get(), given, 2, nullptr));
        const Ref ends = stack ? Ref::take(PyObject_GetAttrString(stack.get(), "ends")) : Ref();
        if (!ends) return nullptr;
        auto made = std::make_unique<Node>();
        made->stack = std::move(stack);
        made->code = std::move(code);
        made->ends = ends.get() == Py_True;
        const Locked locked(reinterpret_cast<PyObject *>(this));
        const auto known = at.next.find(spot);  // by another thread
        if (known != at.next.end()) return known->second;
        nodes.push_back(std::move(made));  // before something leads there: each of the two may throw
        Node *const kept = nodes.back().get();
        at.next.emplace(spot, kept);
        return kept;
    }

    Ref site_of(Node &at) {
        {
            const Locked locked(reinterpret_cast<PyObject *>(this));
            if (at.site) return Ref::share(at.site.get());
        }
        Ref found = Ref::take(PyObject_GetAttrString(at.stack.get(), "site"));
        const Locked locked(reinterpret_cast<PyObject *>(this));
        if (found && !at.site) at.site = Ref::share(found.get());
        return found;
    }
};

PyTypeObject *Sites::type = nullptr;

}  // namespace vkharness

#endif
