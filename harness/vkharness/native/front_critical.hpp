// Critical sections of the mirror: what runs between a call of the program and its return, but for the driver.
//
// A signal handler of the program may raise at any instruction of Python, and what is half done then is wrong for ever. So
// while the main thread is in one, signals wait: the C handler that Python put in place gets them when the outermost one
// is over, and Python runs the program's handler behind it, in the program's frame. Nothing that `signal` says changes.
// Handlers for which it is time already run before one begins. No trace or profile function is called in one.

#ifndef VKHARNESS_FRONT_CRITICAL_HPP
#define VKHARNESS_FRONT_CRITICAL_HPP

#include "python.hpp"

#include <atomic>
#include <csignal>

namespace vkharness {

// Signals of this process that wait. Python runs handlers on the main thread only, so sections of others put off nothing.
class WaitingSignals {
  public:
    // Whether this thread may have to run handlers.
    static bool is_here() { return main_thread() == PyThread_get_thread_ident(); }

    static bool is_outermost() { return depth() == 0; }

    static void begin() { depth().fetch_add(1); }

    static void end() {
        if (depth().fetch_sub(1) != 1) return;
        if (waiting().load() != 0) hand_on(waiting().exchange(0));
        if (!raised().empty()) Py_AddPendingCall(raise_next, nullptr);
    }

    // Lets the program's own code run in the middle of sections: how many there are, which `go_on` takes back.
    static int pause() {
        const int sections = depth().exchange(0);
        if (sections && waiting().load() != 0) hand_on(waiting().exchange(0));
        return sections;
    }

    static void go_on(int sections) { depth().fetch_add(sections); }

    // put_off_signals(number of the main thread, numbers): these signals, which have handlers of Python, wait.
    static PyObject *put_off(PyObject *, PyObject *arguments) {
        unsigned long thread;
        PyObject *numbers;
        if (!PyArg_ParseTuple(arguments, "kO!", &thread, &PyTuple_Type, &numbers)) return nullptr;
        main_thread() = thread;
        for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(numbers); ++at) {
            const long number = PyLong_AsLong(PyTuple_GET_ITEM(numbers, at));
            if (number == -1 && PyErr_Occurred()) return nullptr;
            if (number >= 1 && number <= MOST) stand_before(static_cast<int>(number));
        }
        Py_RETURN_NONE;
    }

    // let_signals_through(): all handlers are what they were.
    static PyObject *let_through(PyObject *, PyObject *) {
        for (int number = 1; number <= MOST; ++number) {
            struct sigaction now;
            if (sigaction(number, nullptr, &now) == 0 && is_ours(now)) sigaction(number, &behind()[number], nullptr);
        }
        Py_RETURN_NONE;
    }

    // forked(number of the main thread): in a child. What another thread was in the middle of is over.
    static PyObject *forked(PyObject *, PyObject *thread) {
        const unsigned long number = PyLong_AsUnsignedLong(thread);
        if (PyErr_Occurred()) return nullptr;
        if (main_thread() != number) depth() = 0;
        main_thread() = number;
        Py_RETURN_NONE;
    }

    // raise_later(error): in the program, outside of sections. For what C between it and us would swallow.
    static PyObject *raise_later(PyObject *, PyObject *error) {
        if (!PyExceptionInstance_Check(error)) {
            PyErr_SetString(PyExc_TypeError, "raises an exception");
            return nullptr;
        }
        raised().push(Ref::share(error));
        Py_AddPendingCall(raise_next, nullptr);
        Py_RETURN_NONE;
    }

  private:
    static constexpr int MOST = 64;  // the highest number of a signal
    using Bits = unsigned long long;

    // Exceptions that are to be raised, the oldest first. Only the main thread takes some out.
    class Raised {
      public:
        bool empty() const { return begin_ == end_; }
        void push(Ref &&error) {  // one that finds no room goes the way of all that C swallows
            if (end_ - begin_ < ROOM) errors_[end_++ % ROOM] = std::move(error);
        }
        Ref pop() { return std::move(errors_[begin_++ % ROOM]); }

      private:
        static constexpr unsigned ROOM = 32;
        Ref errors_[ROOM];
        unsigned begin_ = 0, end_ = 0;
    };

    // Never destroyed: signals come while the process ends.
    static std::atomic<int> &depth() {
        static std::atomic<int> sections{0};
        return sections;
    }
    static std::atomic<Bits> &waiting() {
        static std::atomic<Bits> bits{0};
        return bits;
    }
    static std::atomic<unsigned long> &main_thread() {
        static std::atomic<unsigned long> number{0};
        return number;
    }
    static struct sigaction *behind() {
        static struct sigaction handlers[MOST + 1];
        return handlers;
    }
    static Raised &raised() {
        static auto *const errors = new Raised();
        return *errors;
    }

    static bool is_ours(const struct sigaction &action) {
        return !(action.sa_flags & SA_SIGINFO) && action.sa_handler == arrived;
    }

    static void stand_before(int number) {
        struct sigaction now;
        if (sigaction(number, nullptr, &now) != 0 || is_ours(now) || (now.sa_flags & SA_SIGINFO)) return;
        if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return;
        behind()[number] = now;
        now.sa_handler = arrived;
        sigaction(number, &now, nullptr);
    }

    static void arrived(int number) {
        const Bits bit = Bits(1) << (number - 1);
        if (depth().load() > 0) {
            waiting().fetch_or(bit);
            if (depth().load() > 0) return;
            if (!(waiting().fetch_and(~bit) & bit)) return;  // the end of the section handed it on
        }
        behind()[number].sa_handler(number);
    }

    static void hand_on(Bits bits) {
        for (int number = 1; number <= MOST; ++number) {
            if (bits & (Bits(1) << (number - 1))) behind()[number].sa_handler(number);
        }
    }

    static int raise_next(void *) {
        if (raised().empty() || !is_outermost()) return 0;  // the end of the section asks again
        const Ref error = raised().pop();
        if (!raised().empty()) Py_AddPendingCall(raise_next, nullptr);
        PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.get())), error.get());
        return -1;
    }
};

// While one is alive, this thread is in a critical section.
class CriticalSection {
  public:
    CriticalSection() : puts_off_(WaitingSignals::is_here()), thread_(PyThreadState_Get()) {
        if (puts_off_) WaitingSignals::begin();
        PyThreadState_EnterTracing(thread_);
    }
    ~CriticalSection() {
        PyThreadState_LeaveTracing(thread_);
        if (puts_off_) WaitingSignals::end();
    }
    CriticalSection(const CriticalSection &) = delete;
    CriticalSection &operator=(const CriticalSection &) = delete;

    // Runs the handlers for which it is time. False with what one of them raised: none is to begin.
    static bool may_begin() {
        return !WaitingSignals::is_here() || !WaitingSignals::is_outermost() || PyErr_CheckSignals() == 0;
    }

  private:
    bool puts_off_;
    PyThreadState *thread_;
};

// A function of Python whose call is a critical section. In a callback of C nobody would hear of what is raised: it is raised later.
struct Critical {
    PyObject_HEAD
    vectorcallfunc call;
    Ref function;
    bool is_callback;

    static PyTypeObject *type;

    // Critical(function, whether C calls it)
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *function;
        int is_callback;
        if (!PyArg_ParseTuple(arguments, "Op", &function, &is_callback)) return nullptr;
        PyObject *const self = made->tp_alloc(made, 0);
        if (!self) return nullptr;
        Critical *const critical = reinterpret_cast<Critical *>(self);
        critical->call = called;
        new (&critical->function) Ref(Ref::share(function));
        critical->is_callback = is_callback != 0;
        return self;
    }

    static void unmake(PyObject *object) {
        PyTypeObject *const made = Py_TYPE(object);
        PyObject_GC_UnTrack(object);
        reinterpret_cast<Critical *>(object)->function.~Ref();
        made->tp_free(object);
        Py_DECREF(made);
    }

    static int traverse(PyObject *object, visitproc visit, void *arg) {
        Py_VISIT(Py_TYPE(object));
        Py_VISIT(reinterpret_cast<Critical *>(object)->function.get());
        return 0;
    }

    static int clear(PyObject *) { return 0; }

    static PyObject *called(PyObject *self, PyObject *const *arguments, std::size_t flags, PyObject *names) noexcept {
        const Critical *const critical = reinterpret_cast<Critical *>(self);
        if (!CriticalSection::may_begin()) {
            if (!critical->is_callback) return nullptr;
            raise_what_is_set_later();
        }
        const CriticalSection section;
        return PyObject_Vectorcall(critical->function.get(), arguments, flags, names);
    }

    static PyObject *get(PyObject *self, PyObject *owner, PyObject *) {
        return owner && owner != Py_None ? PyMethod_New(self, owner) : Py_NewRef(self);
    }

  private:
    static void raise_what_is_set_later() {
        PyObject *kind, *error, *trace;
        PyErr_Fetch(&kind, &error, &trace);
        PyErr_NormalizeException(&kind, &error, &trace);
        if (trace) PyException_SetTraceback(error, trace);
        const Ref type = Ref::take(kind), value = Ref::take(error), lines = Ref::take(trace);
        Ref::take(WaitingSignals::raise_later(nullptr, value.get()));
    }
};

PyTypeObject *Critical::type = nullptr;

// uncritical(function, *arguments): calls code of the program in the middle of a section.
inline PyObject *uncritical(PyObject *, PyObject *const *arguments, Py_ssize_t count) noexcept {
    if (count < 1) return PyErr_Format(PyExc_TypeError, "takes a function");
    PyThreadState *const thread = PyThreadState_Get();
    const bool is_here = WaitingSignals::is_here();
    const int sections = is_here ? WaitingSignals::pause() : 0;
    PyThreadState_LeaveTracing(thread);
    PyObject *const result = PyObject_Vectorcall(arguments[0], arguments + 1, static_cast<std::size_t>(count - 1), nullptr);
    PyThreadState_EnterTracing(thread);
    if (is_here) WaitingSignals::go_on(sections);
    return result;
}

}  // namespace vkharness

#endif
