// The native core as `interrupted_program` hunts it: trace functions see the mirror, too, and an allocation with a number
// fails, of Python's or of C++, that is made in a critical section and not below the driver.

#include <Python.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <vector>

#define PyThreadState_EnterTracing(thread) ((void)(thread))
#define PyThreadState_LeaveTracing(thread) ((void)(thread))
#include "python.hpp"
#define private public  // where the driver is below, nobody else needs to know
#include "front_critical.hpp"
#undef private
#include "module.cpp"

extern "C" __attribute__((weak)) void _Py_DumpTraceback(int, PyThreadState *);  // of CPython, which may hide it

namespace {

std::atomic<bool> shows{false}, is_cores{false}, only_new{false}, notes{false};
std::atomic<long> left{-1}, made{0};
PyMemAllocatorEx behind[3];

// Whether the core itself makes an allocation, and not Python that it calls. The first two calls are those of this file.
bool asks_core(void **calls, int count) {
    Dl_info ours, each;
    if (!dladdr(calls[0], &ours)) return false;
    for (int at = 2; at < count && dladdr(calls[at], &each); ++at) {
        if (each.dli_fbase == ours.dli_fbase) return true;
        if (each.dli_sname && std::strcmp(each.dli_sname, "_PyEval_EvalFrameDefault") == 0) return false;
    }
    return false;
}

// Where CPython 3.11 makes the tuple of an iterator over the items of a dictionary. It frees the iterator as one that the
// garbage collector knows when that fails, which none knows yet, and ends the process.
void *unsafe = nullptr;
bool learns = false;

void *below_pack(void **calls, int count) {
    Dl_info each;
    for (int at = 0; at + 1 < count && dladdr(calls[at], &each); ++at) {
        if (each.dli_sname && std::strcmp(each.dli_sname, "PyTuple_Pack") == 0) return calls[at + 1];
    }
    return nullptr;
}

// Lets one be made where no tuple of two is left over.
void learn_unsafe() {
    constexpr int LEFT_OVER = 2001;
    vkharness::Ref held = vkharness::Ref::take(PyList_New(0)), dictionary = vkharness::Ref::take(PyDict_New());
    for (int at = 0; held && at < LEFT_OVER; ++at) {
        vkharness::Ref pair = vkharness::Ref::take(PyTuple_Pack(2, Py_None, Py_None));
        if (!pair || PyList_Append(held.get(), pair.get())) return;
    }
    vkharness::Ref items = vkharness::Ref::take(dictionary ? PyObject_CallMethod(dictionary.get(), "items", nullptr) : nullptr);
    learns = true;
    vkharness::Ref iterator = vkharness::Ref::take(items ? PyObject_GetIter(items.get()) : nullptr);
    learns = false;
}

// The call paths of the allocations since the last `hunted_fail`, where they are noted.
std::vector<std::size_t> paths;
thread_local bool is_noting = false;

// What leads to an allocation: the calls of C, and the places in functions of Python between them. Functions that are
// generated anew for each driver are the same by their names.
std::size_t path_of(void **calls, int count) {
    std::size_t path = 0;
    const auto add = [&path](const void *what) { path = (path ^ reinterpret_cast<std::size_t>(what)) * 0x9E3779B97F4A7C15ULL; };
    for (int at = 0; at < count; ++at) add(calls[at]);
    if (!PyGILState_Check()) return path;  // memory of C that Python takes while it lets other threads run
    for (vkharness::Ref frame = vkharness::Ref::share(reinterpret_cast<PyObject *>(PyEval_GetFrame())); frame;) {
        PyFrameObject *const held = reinterpret_cast<PyFrameObject *>(frame.get());
        const vkharness::Ref code = vkharness::Ref::take(reinterpret_cast<PyObject *>(PyFrame_GetCode(held)));
        const PyCodeObject *const function = reinterpret_cast<PyCodeObject *>(code.get());
        add(reinterpret_cast<void *>(PyObject_Hash(function->co_filename)));
        add(reinterpret_cast<void *>(PyObject_Hash(function->co_name)));
        add(reinterpret_cast<void *>(static_cast<std::size_t>(function->co_firstlineno)));
        add(reinterpret_cast<void *>(static_cast<std::size_t>(PyFrame_GetLasti(held))));
        frame = vkharness::Ref::take(reinterpret_cast<PyObject *>(PyFrame_GetBack(held)));
    }
    return path;
}

bool fails() {
    using vkharness::WaitingSignals;
    void *calls[64];
    if (is_noting) return false;
    if (learns) {
        void *const place = below_pack(calls, backtrace(calls, 64));
        if (place) unsafe = place;
    }
    if (left.load() < 0 || WaitingSignals::depth().load() == 0 || WaitingSignals::below().load()) return false;
    ++made;
    if (notes.load()) {
        is_noting = true;
        paths.push_back(path_of(calls, backtrace(calls, 64)));
        is_noting = false;
    }
    if (left.fetch_sub(1) != 0) return false;
    const int count = backtrace(calls, 64);
    if (unsafe && below_pack(calls, count) == unsafe) {
        left = 0;  // the next one does
        return false;
    }
    is_cores = asks_core(calls, count);
    if (shows.load()) {
        if (_Py_DumpTraceback) _Py_DumpTraceback(STDERR_FILENO, PyThreadState_Get());
        backtrace_symbols_fd(calls, count, STDERR_FILENO);
    }
    return true;
}

PyMemAllocatorEx *of(void *domain) { return static_cast<PyMemAllocatorEx *>(domain); }

bool pythons_fails() { return !only_new.load() && fails(); }

void *allocate(void *domain, size_t size) { return pythons_fails() ? nullptr : of(domain)->malloc(of(domain)->ctx, size); }

void *allocate_many(void *domain, size_t count, size_t size) {
    return pythons_fails() ? nullptr : of(domain)->calloc(of(domain)->ctx, count, size);
}

void *allocate_again(void *domain, void *memory, size_t size) {
    return pythons_fails() ? nullptr : of(domain)->realloc(of(domain)->ctx, memory, size);
}

void release(void *domain, void *memory) { of(domain)->free(of(domain)->ctx, memory); }

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Stands before the allocators of Python, once. An exception that nobody catches says where it came from.
EXPORTED void hunted_begin() {
    std::set_terminate([] {
        void *calls[64];
        backtrace_symbols_fd(calls, backtrace(calls, 64), STDERR_FILENO);
        std::abort();
    });
    for (int domain = PYMEM_DOMAIN_RAW; domain <= PYMEM_DOMAIN_OBJ; ++domain) {
        PyMem_GetAllocator(static_cast<PyMemAllocatorDomain>(domain), &behind[domain]);
        PyMemAllocatorEx ours{&behind[domain], allocate, allocate_many, allocate_again, release};
        PyMem_SetAllocator(static_cast<PyMemAllocatorDomain>(domain), &ours);
    }
    learn_unsafe();
}

// Lets the allocation fail that is this many behind the next one; none where it is negative.
EXPORTED void hunted_fail(long at) {
    made = 0;
    paths.clear();
    left = at;
}

// Whether it was the core that made the one that failed.
EXPORTED int hunted_is_cores() { return is_cores.load(); }

// Whether the stacks of an allocation that fails are printed.
EXPORTED void hunted_show(int on) { shows = on != 0; }

// Whether call paths are noted, and that of the allocation with a number.
EXPORTED void hunted_note(int on) { notes = on != 0; }
EXPORTED size_t hunted_path(long at) { return paths.at(static_cast<std::size_t>(at)); }

// Whether only those of C++ count, and fail.
EXPORTED void hunted_only_new(int on) { only_new = on != 0; }

// How many there were since then.
EXPORTED long hunted_made() { return made.load(); }

void *operator new(std::size_t size) {
    void *const memory = fails() ? nullptr : std::malloc(size ? size : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
