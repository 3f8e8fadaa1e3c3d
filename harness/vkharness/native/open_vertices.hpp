// Vertex buffers that commands bind as nobody said before: the native form of `AllOpen.bind` in
// harness/vkharness/commands/open_vertices.py, whose words these are.
//
// Python says once what stands for binds of so many buffers from one binding on, and what a vertex buffer refers to of
// which equally many bits tell the bytes behind the offset. What differs from that in where it lies alone is that, moved
// (`MovedContents`). It leaves to Python what is rare: no buffer, no bytes behind the offset.

#ifndef VKHARNESS_OPEN_VERTICES_HPP
#define VKHARNESS_OPEN_VERTICES_HPP

#include "flat_plans.hpp"
#include "key_form.hpp"
#include "numbered_contents.hpp"
#include "slotted.hpp"

#include <utility>

namespace vkharness {

class OpenVertices {
  public:
    enum Name { INTO, FIRST, IDS, OFFSETS, NAMES };  // members of a bind
    using Where = MovedContents::Where;

    // A bind, as it is read from the bytes of a form.
    struct Bind {
        long long buffer = 0, first = 0;  // buffer: the id of the command buffer
        std::uint64_t count = 0;
        const char *ids = nullptr, *offsets = nullptr;
    };

    // A buffer and a vertex buffer as bound, of which others are made. False with an exception.
    bool learn(PyObject *buffer, PyObject *vertices) {
        return buffers_.learn(buffer, {"id", "size", "memory", "offset"}, members_) &&
               vertices_.learn(vertices, {"buffer", "offset", "contents"}, fields_);
    }

    // Visits the objects that it holds, for `tp_traverse`.
    int traverse(visitproc visit, void *arg) const {
        Py_VISIT(buffers_.like());
        Py_VISIT(vertices_.like());
        for (const Stand &each : stands_) Py_VISIT(each.stands.get());
        for (const Ref &each : shapes_) Py_VISIT(each.get());
        return 0;
    }

    // Forgets what Python has said.
    void forget() {
        for (Stand &each : stands_) const Ref old = std::exchange(each.stands, Ref());
        forget_shapes();
    }

    // Reads a bind. False where Python must.
    static bool read(PyObject *form, const char *bytes, PyObject *const (&names)[NAMES], Bind &bind) {
        const KeyForm::Field *fields[NAMES] = {};
        const char *places[NAMES] = {};
        KeyForm::of(form)->walk(bytes, [&](const KeyForm::Field &field, const char *at) {
            for (int each = 0; each < NAMES; ++each) {
                if (field.name.get() == names[each]) fields[each] = &field, places[each] = at;
            }
        });
        for (const KeyForm::Field *each : fields) {
            if (!each) return false;
        }
        const bool fits = fields[INTO]->kind == 'h' && fields[FIRST]->code == 'I' && fields[IDS]->kind == 'h' &&
                          fields[OFFSETS]->kind == 'n' && fields[OFFSETS]->size == sizeof(std::uint64_t);
        if (!fits || fields[INTO]->form != 'v' || fields[FIRST]->form != 'v') return false;
        bind.buffer = static_cast<long long>(number(places[INTO]));
        bind.first = load<std::uint32_t>(reinterpret_cast<std::uintptr_t>(places[FIRST]));
        bind.count = KeyForm::elements(*fields[IDS], places[IDS]);
        const std::uint64_t offsets = KeyForm::elements(*fields[OFFSETS], places[OFFSETS]);
        bind.ids = places[IDS], bind.offsets = places[OFFSETS];
        return bind.count && bind.count == offsets;
    }

    // The object that stands for such binds in states; none where Python has not said it.
    Ref stands(const Bind &bind) const {
        const Stand &known = stands_[place(bind)];
        const bool is_one = known.buffer == bind.buffer && known.first == bind.first && known.count == bind.count;
        return is_one ? Ref::share(known.stands.get()) : Ref();
    }

    // Python has said what stands for such binds.
    void stand(const Bind &bind, const Ref &stands) {
        const Stand old = std::exchange(stands_[place(bind)], Stand{bind.buffer, bind.first, bind.count, Ref::share(stands.get())});
    }

    // One of the vertex buffers of a bind, as bound, where `moved` says how often anything has moved. None where Python must
    // say what it refers to, or with an exception.
    Ref bound(const Bind &bind, std::uint64_t at, PyObject *by_id, const Ref &moved) {
        const std::uint64_t id = number(bind.ids + at * KeyForm::NUMBER), offset = number(bind.offsets + at * KeyForm::NUMBER);
        const Ref named = Ref::take(PyLong_FromUnsignedLongLong(id));
        const Ref held = named ? Ref::share(PyDict_GetItemWithError(by_id, named.get())) : Ref();
        Where where;
        if (!held || !read_buffer(held, offset, where) || !keep_shapes(moved)) return Ref();
        const Ref &shape = shapes_[bits(where)];
        const Ref contents = shape ? MovedContents::make(shape, --last_, &where, 1) : Ref();
        const Ref kept = contents ? left_out(Ref::take(PyTuple_Pack(2, moved.get(), contents.get()))) : Ref();
        const Ref from = kept ? Ref::take(PyLong_FromUnsignedLongLong(offset)) : Ref(), made = from ? vertices_.copy() : Ref();
        if (!made) return Ref();
        Slotted::set(made, fields_[BUFFER], named.get());
        Slotted::set(made, fields_[FROM], from.get());
        Slotted::set(made, fields_[CONTENTS], kept.get());
        return left_out(Ref::share(made.get()));
    }

    // Python has said what a vertex buffer refers to: a SetContents, mostly. False with an exception.
    bool told(const Ref &contents, const Ref &moved) {
        if (!PyTuple_Check(contents.get()) || PyTuple_GET_SIZE(contents.get()) != MovedContents::FIELDS) return true;
        PyObject *const memories = PyTuple_GET_ITEM(contents.get(), MovedContents::MEMORIES), *key, *part;
        if (PyTuple_GET_ITEM(contents.get(), MovedContents::SHAPE) == Py_None || !PyDict_CheckExact(memories)) return true;
        Py_ssize_t first = 0;
        if (PyDict_GET_SIZE(memories) != 1 || !PyDict_Next(memories, &first, &key, &part) || !MovedContents::is_part(part)) return true;
        ContentsShape::Descriptor each{0, 0, Ref::share(key), Ref::share(part)};
        Where where;
        if (!PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != 2 || !near_number(PyTuple_GET_ITEM(key, 0), each.binding) ||
            !near_number(PyTuple_GET_ITEM(key, 1), each.element) || !near_number(PyTuple_GET_ITEM(part, MovedContents::BEGIN), where.begin) ||
            !near_number(PyTuple_GET_ITEM(part, MovedContents::END), where.end) || where.begin >= where.end) {
            return true;
        }
        const Ref made = ContentsShape::make(contents);
        if (!made || !keep_shapes(moved)) return false;
        ContentsShape::of(made.get())->descriptors.push_back(std::move(each));
        const Ref old = std::exchange(shapes_[bits(where)], Ref::share(made.get()));
        return true;
    }

  private:
    enum Member { OWN, BYTES, MEMORY, BEGIN, MEMBERS };
    enum Field { BUFFER, FROM, CONTENTS, FIELDS };
    static constexpr std::size_t STANDS = 32, SHAPES = 64;
    // Of one command buffer, what stands for binds of so many from one binding on.
    struct Stand {
        long long buffer = 0, first = 0;
        std::uint64_t count = 0;
        Ref stands;
    };

    static std::uint64_t number(const char *at) { return load<std::uint64_t>(reinterpret_cast<std::uintptr_t>(at)); }
    static std::size_t place(const Bind &bind) {
        return (static_cast<std::size_t>(bind.buffer) * 5 + static_cast<std::size_t>(bind.first) * 3 + bind.count) % STANDS;
    }
    // How many bits tell the bytes behind the offset.
    static std::size_t bits(const Where &where) {
        std::size_t found = 0;
        for (long long left = where.end - where.begin; left; left >>= 1) ++found;
        return found;
    }

    // Where the bytes of a buffer behind an offset lie. False where there are none, or Python must find that.
    bool read_buffer(const Ref &held, std::uint64_t offset, Where &where) const {
        if (Py_TYPE(held.get()) != Py_TYPE(buffers_.like())) return false;
        const Ref memory = member(held, MEMORY);
        long long size, start;
        if (!near_number(member(held, OWN).get(), where.resource) || !near_number(member(held, BYTES).get(), size) || !memory ||
            !near_number(member(held, BEGIN).get(), start) || offset >= static_cast<std::uint64_t>(size)) {
            return false;
        }
        where.space = where.resource;
        where.begin = start + static_cast<long long>(offset);
        where.end = where.limit = start + size;
        return memory.get() == Py_None || near_number(memory.get(), where.space);
    }

    Ref member(const Ref &held, Member which) const { return Ref::share(*Slotted::member(held.get(), members_[which])); }

    // Numbers of shapes hold until something moves: `KnownShaders.clear` comes with that. False with an exception.
    bool keep_shapes(const Ref &moved) {
        const long long now = PyLong_AsLongLong(moved.get());
        if (now == -1 && PyErr_Occurred()) return false;
        if (std::exchange(moved_, now) != now) forget_shapes();
        return true;
    }

    void forget_shapes() {
        for (Ref &each : shapes_) const Ref old = std::exchange(each, Ref());
    }

    Slotted buffers_, vertices_;
    Py_ssize_t members_[MEMBERS] = {}, fields_[FIELDS] = {};
    Stand stands_[STANDS];
    Ref shapes_[SHAPES];  // by how many bits tell the bytes
    long long moved_ = -1, last_ = 0;
};

}  // namespace vkharness

#endif
