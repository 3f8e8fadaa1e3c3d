// Critical sections of the mirror: what runs between a call of the program and its return, but for the driver.
//
// A signal handler of the program may raise at any instruction of Python, and what is half done then is wrong for ever. So
// while the main thread is in one, signals wait: the C handler that Python put in place gets them when the outermost one
// is over, and Python runs the program's handler behind it, in the program's frame. Nothing that `signal` says changes.
// Handlers for which it is time already run before one begins. No trace or profile function is called in one.
//
// A driver may call the program back in the middle of one (`Outside`). What comes while that Python runs is the program's
// business, as without the mirror: handlers and trace functions run there.

#ifndef VKHARNESS_FRONT_CRITICAL_HPP
#define VKHARNESS_FRONT_CRITICAL_HPP

#include "python.hpp"

#include <atomic>
#include <csignal>
#include <cstring>

namespace vkharness {

// Signals of this process that wait. Python runs handlers on the main thread only, so sections of others put off nothing.
class WaitingSignals {
  public:
    // Whether this thread may have to run handlers.
    static bool is_here() { return main_thread() == PyThread_get_thread_ident(); }

    static bool is_outermost() { return depth() == 0; }
    static bool is_only() { return depth() == 1; }

    static void begin() { depth().fetch_add(1); }

    static void end() {
        if (depth().fetch_sub(1) != 1) return;
        hand_on(nullptr);
        if (!raised().empty() && !below().load()) Py_AddPendingCall(raise_next, nullptr);
    }

    // Where sections were left for the driver or for code of the program.
    struct Left {
        PyThreadState *thread;
        const void *frame;  // of Python, when they were left: another one runs when the program does
        int sections;
        const Left *before;
    };

    // Leaves all sections, until `go_on`. Signals wait until Python runs: they are handed on in front of its first instruction.
    static void leave(Left &left) {
        left.frame = frame_of(left.thread);
        left.before = below().load(std::memory_order_relaxed);
        left.sections = depth().load(std::memory_order_relaxed);
        below().store(&left, std::memory_order_release);
        depth().store(0, std::memory_order_release);
        if (waiting().load() != 0) Py_AddPendingCall(hand_on, nullptr);
    }

    // Goes on with what was left. What came too late for the program's code there is handled now, and raised later.
    static void go_on(const Left &left) {
        if (passed_on().load(std::memory_order_relaxed)) check_signals();
        depth().store(left.sections, std::memory_order_release);
        below().store(left.before, std::memory_order_release);
    }

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
        if (main_thread() != number) {
            depth() = 0;
            below() = nullptr;
        }
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

    // Takes the error that is set, and raises it later.
    static void raise_what_is_set_later() {
        const Ref error = taken_error();
        Ref::take(raise_later(nullptr, error.get()));
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
    static std::atomic<const Left *> &below() {
        static std::atomic<const Left *> left{nullptr};
        return left;
    }
    // Whether Python got signals since sections were left.
    static std::atomic<bool> &passed_on() {
        static std::atomic<bool> any{false};
        return any;
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

    static const void *frame_of(PyThreadState *thread) {
#if PY_VERSION_HEX >= 0x030D0000
        return thread->current_frame;
#else
        return thread->cframe->current_frame;
#endif
    }

    static bool is_to_wait() {
        if (depth().load() > 0) return true;
        const Left *const left = below().load();
        return left && frame_of(left->thread) == left->frame;
    }

    static void arrived(int number) {
        const Bits bit = Bits(1) << (number - 1);
        if (is_to_wait()) {
            waiting().fetch_or(bit);
            // Between the driver and Python nobody holds the lock that this takes.
            if (depth().load() == 0 && is_here()) Py_AddPendingCall(hand_on, nullptr);
            if (is_to_wait()) return;
            if (!(waiting().fetch_and(~bit) & bit)) return;  // somebody else handed it on
        }
        pass_on(number);
    }

    static void pass_on(int number) {
        if (below().load()) passed_on() = true;
        behind()[number].sa_handler(number);
    }

    // Hands on what waits, where it is time.
    static int hand_on(void *) {
        if (waiting().load() == 0 || is_to_wait()) return 0;
        const Bits bits = waiting().exchange(0);
        for (int number = 1; number <= MOST; ++number) {
            if (bits & (Bits(1) << (number - 1))) pass_on(number);
        }
        return 0;
    }

    // Runs the handlers for which it is time. What one of them raises is raised later.
    static void check_signals() {
        passed_on() = false;
        PyObject *kind, *error, *trace;
        PyErr_Fetch(&kind, &error, &trace);
        if (PyErr_CheckSignals() != 0) raise_what_is_set_later();
        PyErr_Restore(kind, error, trace);
    }

    static int raise_next(void *) {
        if (raised().empty() || !is_outermost() || below().load()) return 0;  // the end of the section asks again
        const Ref error = raised().pop();
        if (!raised().empty()) Py_AddPendingCall(raise_next, nullptr);
        PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.get())), error.get());
        return -1;
    }
};

// While one is alive, the driver or code of the program runs in the middle of sections.
class Outside {
  public:
    Outside() : is_here_(WaitingSignals::is_here()), left_{PyThreadState_Get(), nullptr, 0, nullptr} {
        if (is_here_) WaitingSignals::leave(left_);
        PyThreadState_LeaveTracing(left_.thread);
    }
    ~Outside() {
        PyThreadState_EnterTracing(left_.thread);
        if (is_here_) WaitingSignals::go_on(left_);
    }
    Outside(const Outside &) = delete;
    Outside &operator=(const Outside &) = delete;

  private:
    bool is_here_;
    WaitingSignals::Left left_;
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

    // Runs the handlers for which it is time, in the outermost one. False with what one of them raised: it is not to go on.
    bool begins() const {
        if (!puts_off_ || !WaitingSignals::is_only()) return true;
        const Outside outside;
        return PyErr_CheckSignals() == 0;
    }

  private:
    bool puts_off_;
    PyThreadState *thread_;
};

// A function of Python whose call is a critical section. In a callback of C nobody would hear of what is raised: it is raised
// later. One that is to be completed is called again where it raised, and raises that when it has ended.
struct Critical {
    PyObject_HEAD
    vectorcallfunc call;
    Ref function;
    bool is_callback, is_completed;

    static PyTypeObject *type;
    static constexpr int MOST_CALLS = 8;  // of one that is to be completed

    // Critical(function, "", "callback" or "completed")
    static PyObject *make(PyTypeObject *made, PyObject *arguments, PyObject *) {
        PyObject *function;
        const char *kind;
        if (!PyArg_ParseTuple(arguments, "Os", &function, &kind)) return nullptr;
        PyObject *const self = made->tp_alloc(made, 0);
        if (!self) return nullptr;
        Critical *const critical = reinterpret_cast<Critical *>(self);
        critical->call = called;
        new (&critical->function) Ref(Ref::share(function));
        critical->is_callback = std::strcmp(kind, "callback") == 0;
        critical->is_completed = std::strcmp(kind, "completed") == 0;
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
        const CriticalSection section;
        if (!section.begins()) {
            if (!critical->is_callback && !critical->is_completed) return nullptr;
            WaitingSignals::raise_what_is_set_later();
        }
        PyObject *const result = PyObject_Vectorcall(critical->function.get(), arguments, flags, names);
        return result || !critical->is_completed ? result : complete(critical->function.get(), arguments, flags, names);
    }

    static PyObject *get(PyObject *self, PyObject *owner, PyObject *) {
        return owner && owner != Py_None ? PyMethod_New(self, owner) : Py_NewRef(self);
    }

  private:
    // Calls a function that raised until it ends. Raises what it raised at first.
    static PyObject *complete(PyObject *function, PyObject *const *arguments, std::size_t flags, PyObject *names) {
        PyObject *kind, *error, *trace;
        PyErr_Fetch(&kind, &error, &trace);
        for (int calls = 1; calls < MOST_CALLS; ++calls) {
            if (Ref::take(PyObject_Vectorcall(function, arguments, flags, names))) break;
            PyErr_Clear();
        }
        PyErr_Restore(kind, error, trace);
        return nullptr;
    }
};

PyTypeObject *Critical::type = nullptr;

// uncritical(function, *arguments): calls the driver, or code of the program, in the middle of a section.
inline PyObject *uncritical(PyObject *, PyObject *const *arguments, Py_ssize_t count) noexcept {
    if (count < 1) return PyErr_Format(PyExc_TypeError, "takes a function");
    const Outside outside;
    return PyObject_Vectorcall(arguments[0], arguments + 1, static_cast<std::size_t>(count - 1), nullptr);
}

}  // namespace vkharness

#endif
