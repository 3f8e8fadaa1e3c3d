// Whether there is memory at an address that a program gave, without touching it. No Python here.

#ifndef VKHARNESS_READABLE_HPP
#define VKHARNESS_READABLE_HPP

#include <cerrno>
#include <cstdint>
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
        const int before = errno;
        char byte;
        const iovec here{&byte, 1}, far{reinterpret_cast<void *>(page * PAGE), 1};
        const bool is_there = process_vm_readv(getpid(), &here, 1, &far, 1, 0) == 1 || errno != EFAULT;
        errno = before;
        return is_there;
    }
};

}  // namespace vkharness

#endif
