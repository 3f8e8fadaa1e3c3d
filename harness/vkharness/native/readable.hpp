// Whether there is memory at an address that a program gave, without touching it. No Python here.

#ifndef VKHARNESS_READABLE_HPP
#define VKHARNESS_READABLE_HPP

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

namespace vkharness {

class Readable {
  public:
#ifdef __aarch64__
    static constexpr std::uint64_t SPACE = std::uint64_t(1) << 48;
#else
    static constexpr std::uint64_t SPACE = std::uint64_t(1) << 47;  // bytes of user address space
#endif

    // True where the system does not say.
    static bool there(std::uint64_t at, std::uint64_t size) {
        if (!size) return true;
        if (at >= SPACE || size > SPACE - at) return false;
        for (std::uint64_t page = at / PAGE; page <= (at + size - 1) / PAGE; ++page) {
            if (!known(page)) return false;
        }
        return true;
    }

    // Copies memory that may be given back at any time. Only the stack of the thread that asks is sure to stay. True
    // where the system does not say and it was copied all the same.
    static bool copy(void *to, std::uint64_t at, std::uint64_t size) {
        if (!size) return true;
        if (at >= SPACE || size > SPACE - at) return false;
        if (!is_own_stack(at, size)) {
            const std::int64_t got = ask(at, to, size);
            if (got >= 0) return static_cast<std::uint64_t>(got) == size;
        }
        std::memcpy(to, reinterpret_cast<const void *>(at), size);
        return true;
    }

  private:
    static constexpr std::uint64_t PAGE = 4096;
    static constexpr std::uint64_t PAGES = 1024;  // the arguments of a frame lie on some hundred
    static constexpr unsigned LOOKS = 1 << 16;  // until the system is asked anew: memory may be given back

    static bool known(std::uint64_t page) {
        struct Known {
            std::uint64_t pages[PAGES];  // plus 1
            unsigned looks;
        };
        thread_local Known known = {};
        if (++known.looks == LOOKS) known = {};
        std::uint64_t &slot = known.pages[page % PAGES];
        if (slot == page + 1) return true;
        if (!ask(page)) return false;
        slot = page + 1;
        return true;
    }

    static bool ask(std::uint64_t page) {
        char byte;
        return ask(page * PAGE, &byte, 1) != 0;
    }

    // Bytes that the system copied, -1 where it does not do that.
    static std::int64_t ask(std::uint64_t at, void *to, std::uint64_t size) {
        const int before = errno;
        const iovec here{to, size}, far{reinterpret_cast<void *>(at), size};
        const ssize_t got = process_vm_readv(getpid(), &here, 1, &far, 1, 0);
        const bool is_missing = got < 0 && errno == EFAULT;
        errno = before;
        return is_missing ? 0 : got;
    }

    // Between the frame that asks and the end of the stack. A program may run on a stack of its own making: that is none.
    static bool is_own_stack(std::uint64_t at, std::uint64_t size) {
        struct Stack {
            std::uint64_t start, end;
        };
        thread_local const Stack stack = [] {
            Stack found{0, 0};
            const int before = errno;
            pthread_attr_t attributes;
            void *start;
            std::size_t size;
            if (!pthread_getattr_np(pthread_self(), &attributes)) {
                if (!pthread_attr_getstack(&attributes, &start, &size)) {
                    found.start = reinterpret_cast<std::uint64_t>(start);
                    found.end = found.start + size;
                }
                pthread_attr_destroy(&attributes);
            }
            errno = before;
            return found;
        }();
        const auto frame = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
        return stack.start <= frame && frame <= at && at < stack.end && size <= stack.end - at;
    }
};

}  // namespace vkharness

#endif
