// Helpers of the native core over Python's C interface: owned references, locks, addresses, guarded methods.

#ifndef VKHARNESS_PYTHON_HPP
#define VKHARNESS_PYTHON_HPP

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <climits>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "span_tree.hpp"

namespace vkharness {

// A reference that is owned, or none. To give one up may run any Python code.
class Ref {
  public:
    Ref() = default;
    static Ref take(PyObject *owned) { return Ref(owned); }
    static Ref share(PyObject *borrowed) { return Ref(Py_XNewRef(borrowed)); }
    Ref(Ref &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref &operator=(Ref &&other) noexcept {
        Ref old(std::exchange(object_, std::exchange(other.object_, nullptr)));
        return *this;
    }
    ~Ref() { Py_XDECREF(object_); }
    explicit operator bool() const { return object_ != nullptr; }
    PyObject *get() const { return object_; }
    PyObject *release() { return std::exchange(object_, nullptr); }

  private:
    explicit Ref(PyObject *owned) : object_(owned) {}
    PyObject *object_ = nullptr;
};

// The error that is set, which is taken.
inline Ref taken_error() {
#if PY_VERSION_HEX >= 0x030C0000
    return Ref::take(PyErr_GetRaisedException());
#else
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    if (trace) PyException_SetTraceback(error, trace);
    Py_XDECREF(kind);
    Py_XDECREF(trace);
    return Ref::take(error);
#endif
}

// Lets the garbage collector leave out an object that is in no cycle: it holds numbers, and what is left out, too. There are
// many of these, and looking at them costs more than making them.
inline Ref left_out(Ref &&object) {
    if (object && PyObject_IS_GC(object.get())) PyObject_GC_UnTrack(object.get());
    return std::move(object);
}

// Keeps other threads away from an object where no lock of the interpreter does.
class Locked {
  public:
#ifdef Py_GIL_DISABLED
    explicit Locked(PyObject *object) { PyCriticalSection_Begin(&section_, object); }
    ~Locked() { PyCriticalSection_End(&section_); }

  private:
    PyCriticalSection section_;
#else
    explicit Locked(PyObject *) {}
#endif
};

// A tuple, or a tuple of a subtype that adds nothing to it, to be filled. None with an exception.
inline Ref tuple_to_fill(PyTypeObject *kind, Py_ssize_t size) {
    Ref made = Ref::take(kind->tp_alloc(kind, size));
#if PY_VERSION_HEX >= 0x030E0000
    if (made) reinterpret_cast<PyTupleObject *>(made.get())->ob_hash = -1;  // it is not known yet; 0 would be taken for it
#endif
    return made;
}

// Has memory come near that is read soon: what a frame consists of does not fit into a cache of the processor. It need not
// be there any more.
inline void bring_near(const void *at, std::size_t size = 1) {
    for (std::size_t each = 0; each < size; each += 64) __builtin_prefetch(static_cast<const char *>(at) + each);
}

// A few values without an allocation, more with one. Values are moved, never copied.
template <typename T, std::size_t INLINE = 8>
class Few {
  public:
    Few() = default;
    Few(Few &&other) noexcept : size_(std::exchange(other.size_, 0)), room_(std::exchange(other.room_, INLINE)) {
        if (other.at_ != other.here()) {
            at_ = std::exchange(other.at_, other.here());
            return;
        }
        for (std::size_t at = 0; at < size_; ++at) {
            new (at_ + at) T(std::move(other.at_[at]));
            other.at_[at].~T();
        }
    }
    Few(const Few &) = delete;
    Few &operator=(const Few &) = delete;
    ~Few() {
        for (T &each : *this) each.~T();
        if (at_ != here()) ::operator delete(at_);
    }
    T *begin() { return at_; }
    T *end() { return at_ + size_; }
    const T *begin() const { return at_; }
    const T *end() const { return at_ + size_; }
    std::size_t size() const { return size_; }
    T &operator[](std::size_t index) { return at_[index]; }
    const T &operator[](std::size_t index) const { return at_[index]; }
    T &back() { return at_[size_ - 1]; }
    void push(T &&value) {
        if (size_ == room_) grow();
        new (at_ + size_) T(std::move(value));
        ++size_;
    }
    // The same for a value that is made where it will lie.
    template <typename... Parts>
    T &emplace(Parts &&...parts) {
        if (size_ == room_) grow();
        return *new (at_ + size_++) T{std::forward<Parts>(parts)...};
    }

  private:
    T *here() { return reinterpret_cast<T *>(inline_); }
    void grow() {
        T *const more = static_cast<T *>(::operator new(2 * room_ * sizeof(T)));
        for (std::size_t at = 0; at < size_; ++at) {
            new (more + at) T(std::move(at_[at]));
            at_[at].~T();
        }
        if (at_ != here()) ::operator delete(at_);
        at_ = more;
        room_ *= 2;
    }
    alignas(T) unsigned char inline_[INLINE * sizeof(T)];
    T *at_ = here();
    std::size_t size_ = 0, room_ = INLINE;
};

// False with an exception set where it is no integer of 128 bits.
inline bool to_address(PyObject *number, Address &address) {
    int overflow = 0;
    const long long small = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (!overflow) {
        address = small;
        return small != -1 || !PyErr_Occurred();
    }
    const Ref bits = Ref::take(PyLong_FromLong(64));
    const Ref upper = bits ? Ref::take(PyNumber_Rshift(number, bits.get())) : Ref();
    if (!upper) return false;
    const long long high = PyLong_AsLongLong(upper.get());
    const unsigned long long low = PyLong_AsUnsignedLongLongMask(number);
    address = static_cast<Address>(high) * (static_cast<Address>(1) << 64) + low;
    return !PyErr_Occurred();
}

inline Ref from_address(Address address) {
    if (address >= LLONG_MIN && address <= LLONG_MAX) {
        return Ref::take(PyLong_FromLongLong(static_cast<long long>(address)));
    }
    const Ref upper = Ref::take(PyLong_FromLongLong(static_cast<long long>(address >> 64)));
    const Ref bits = Ref::take(PyLong_FromLong(64));
    const Ref low = Ref::take(PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(address)));
    if (!upper || !bits || !low) return Ref();
    const Ref high = Ref::take(PyNumber_Lshift(upper.get(), bits.get()));
    return high ? Ref::take(PyNumber_Or(high.get(), low.get())) : Ref();
}

// A function for Python of one of C++ that may find no memory.
template <auto FUNCTION>
struct Caught;

template <typename Result, typename... Arguments, Result (*FUNCTION)(Arguments...)>
struct Caught<FUNCTION> {
    static Result call(Arguments... arguments) noexcept {
        try {
            return FUNCTION(arguments...);
        } catch (const std::bad_alloc &) {
            PyErr_NoMemory();
            return failed();
        }
    }

  private:
    static Result failed() {
        if constexpr (std::is_pointer_v<Result>) return nullptr;
        else return -1;
    }
};

template <auto FUNCTION>
constexpr auto caught = &Caught<FUNCTION>::call;

// The same as a method with a number of arguments.
template <typename Object, PyObject *(*FUNCTION)(Object *, PyObject *const *), int ARGUMENTS>
PyObject *guarded(PyObject *self, PyObject *const *arguments, Py_ssize_t count) noexcept {
    if (count != ARGUMENTS) {
        return PyErr_Format(PyExc_TypeError, "takes %d arguments, and %zd were given", ARGUMENTS, count);
    }
    const Locked locked(self);
    try {
        return FUNCTION(reinterpret_cast<Object *>(self), arguments);
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
}

template <typename Object, PyObject *(*FUNCTION)(Object *, PyObject *const *), int ARGUMENTS>
PyMethodDef method(const char *name) {
    void *const function = reinterpret_cast<void *>(&guarded<Object, FUNCTION, ARGUMENTS>);
    return {name, reinterpret_cast<PyCFunction>(function), METH_FASTCALL, nullptr};
}

template <typename Function>
PyType_Slot slot(int which, Function *function) {
    return {which, reinterpret_cast<void *>(function)};
}

}  // namespace vkharness

#endif
