// Pages that were written, as the kernel knows them: userfaultfd's write protection, and PAGEMAP_SCAN. No Python here.
//
// Theory of operation
// ===================
//
// A range that is registered with a userfaultfd for write protection (UFFDIO_REGISTER_MODE_WP) with the feature
// UFFD_FEATURE_WP_ASYNC costs its first write to a protected page one fault, which the kernel resolves by itself: it
// drops the page's mark, and nobody is asked or woken. That goes for its own writes as well (`read` into the memory),
// and for every thread; no signal is involved. PAGEMAP_SCAN walks the page tables, gives the pages without the mark as
// runs (PAGE_IS_WRITTEN), and marks them again under the same lock: no write falls between. Both are of Linux 6.7.
//
// Asked for PAGE_IS_WRITTEN alone (`scan_dense`), the scan takes a fast path of about 1 ns a page, and gives pages that
// were never touched, too: once, since it marks them as well, for which it makes page tables. A page that was given back
// (madvise) counts as written then; so does one of shared memory that was written and then swapped out. Asked for pages
// that are there and written (`scan_sparse`), it skips page tables that are not, at 4 us a GiB, and takes 5 ns for a page
// that is there. What was never there cannot be given back, but a page of shared memory may be written and swapped out
// between two scans without a trace.
//
// With this feature all memory may be registered, but a scan silently leaves out what has no page structures (VM_PFNMAP,
// as device files of graphics drivers have it). Whether it does is seen in the first dense scan, which gives all pages
// of a range or none. Memory of huge pages of a file system refuses to be registered in parts (EINVAL), and so do pages
// that another userfaultfd has (EBUSY). A child of fork is not registered, and the parent's userfaultfd acts on the
// parent: it must open its own. Unregistering removes all marks; so does unmapping.
//
// Writes that go unseen: those through another mapping of the same shared memory, writes of a device, and of the kernel
// to pages that it pinned before (buffers registered with io_uring).
//
// Ways that were not taken
// ------------------------
// * Soft-dirty bits (`/proc/self/clear_refs`): reading and clearing are two steps, and what another thread writes
//   between them is lost. They are also those of the whole process, which others may use (CRIU), and clearing walks all
//   of it.
// * `mprotect` with a handler of SIGSEGV: a handler that the program installs later replaces ours, and system calls
//   that write protected memory fail (EFAULT) instead of faulting.
// * Write protection that is not asynchronous (Linux 5.7): without privileges system calls fail like that, too.

#ifndef VKHARNESS_PAGE_PROTECTION_HPP
#define VKHARNESS_PAGE_PROTECTION_HPP

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace vkharness {

// Half open, in bytes.
struct Span {
    std::uint64_t start, end;
};
using Spans = std::vector<Span>;

class PageProtection {
  public:
    static constexpr std::uint64_t PAGE = 4096;

    PageProtection() = default;
    PageProtection(const PageProtection &) = delete;
    PageProtection &operator=(const PageProtection &) = delete;
    ~PageProtection() { close(); }

    // Opens what the kernel has; nullptr, or why it does not work here.
    const char *open() {
        close();
        const char *why = opened();
        if (why) close();
        return why;
    }

    void close() {
        for (int *each : {&faults_, &pages_}) {
            if (*each >= 0) ::close(*each);
            *each = -1;
        }
    }

    bool is_open() const { return faults_ >= 0; }

    // Whether writes to whole pages are followed from now on. All of them count as written, once.
    bool protect(const Span &range) {
        Register asked{{range.start, range.end - range.start}, MODE_WRITE_PROTECT, 0};
        return is_open() && ioctl(faults_, REGISTER, &asked) == 0;
    }

    // Nobody asks for these pages any more. They may be gone already.
    void release(const Span &range) {
        Range asked{range.start, range.end - range.start};
        if (is_open()) ioctl(faults_, UNREGISTER, &asked);
    }

    // Whether all of a range is still protected: no other memory came to its addresses.
    bool holds(const Span &range) {
        Region none[1];
        Scan asked = asked_of(range, none, 1);
        asked.flags = FAIL_UNPROTECTED;
        asked.must_be = IS_FILE | IS_ZERO_PAGE;  // no page is both
        return is_open() && ioctl(pages_, PAGEMAP_SCAN_OF_6_7, &asked) == 0;
    }

    // Tell `found` the runs of pages written since the last scan; false when the kernel does not say.
    template <typename Found>
    bool scan_dense(const Span &range, const Found &found) {
        return scan(range, 0, found);
    }

    template <typename Found>
    bool scan_sparse(const Span &range, const Found &found) {
        return scan(range, IS_PRESENT | IS_SWAPPED, found);
    }

  private:
    // As <linux/userfaultfd.h> and <linux/fs.h> of Linux 6.7 have them: older headers have a part of it.
    struct Api {
        std::uint64_t api, features, ioctls;
    };
    struct Range {
        std::uint64_t start, size;
    };
    struct Register {
        Range range;
        std::uint64_t mode, ioctls;
    };
    struct Region {
        std::uint64_t start, end, categories;
    };
    struct Scan {
        std::uint64_t size, flags, start, end, walk_end, regions, most_regions, most_pages;
        std::uint64_t inverted, must_be, any_of, say;
    };
    static constexpr unsigned long API = _IOWR(0xAA, 0x3F, Api), REGISTER = _IOWR(0xAA, 0x00, Register);
    static constexpr unsigned long UNREGISTER = _IOR(0xAA, 0x01, Range), NEW = _IO(0xAA, 0x00);
    static constexpr unsigned long PAGEMAP_SCAN_OF_6_7 = _IOWR('f', 16, Scan);
    static constexpr std::uint64_t VERSION = 0xAA, SHARED_TOO = 1 << 12, ASYNCHRONOUS = 1 << 15;
    static constexpr std::uint64_t MODE_WRITE_PROTECT = 1 << 1;
    static constexpr std::uint64_t WRITE_PROTECT_MATCHING = 1 << 0, FAIL_UNPROTECTED = 1 << 1;
    static constexpr std::uint64_t IS_WRITTEN = 1 << 1, IS_FILE = 1 << 2, IS_PRESENT = 1 << 3, IS_SWAPPED = 1 << 4;
    static constexpr std::uint64_t IS_ZERO_PAGE = 1 << 5;
    static constexpr int USER_MODE_ONLY = 1;  // all that an unprivileged process may ask for, and all that is needed
    static constexpr int REGIONS = 256;

    int faults_ = -1, pages_ = -1;

    const char *opened() {
        if (sysconf(_SC_PAGESIZE) != static_cast<long>(PAGE)) return "pages are not of 4 KiB";
        faults_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY));
        if (faults_ < 0) faults_ = of_device();
        if (faults_ < 0) return "userfaultfd is forbidden or missing";
        Api asked{VERSION, SHARED_TOO | ASYNCHRONOUS, 0};
        if (ioctl(faults_, API, &asked)) return "the kernel has no UFFD_FEATURE_WP_ASYNC: it is of Linux 6.7";
        pages_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        if (pages_ < 0) return "/proc/self/pagemap cannot be read";
        return keeps_its_word() ? nullptr : "PAGEMAP_SCAN fails or says something else than expected";
    }

    static int of_device() {
        const int device = ::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
        if (device < 0) return -1;
        const int made = ioctl(device, NEW, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
        ::close(device);
        return made;
    }

    static Scan asked_of(const Span &range, Region *regions, std::uint64_t most_regions) {
        Scan asked = {};
        asked.size = sizeof asked;
        asked.start = range.start;
        asked.end = range.end;
        asked.regions = reinterpret_cast<std::uint64_t>(regions);
        asked.most_regions = most_regions;
        asked.say = IS_WRITTEN;
        return asked;
    }

    template <typename Found>
    bool scan(const Span &range, std::uint64_t any_of, const Found &found) {
        Region regions[REGIONS];
        Scan asked = asked_of(range, regions, REGIONS);
        asked.flags = WRITE_PROTECT_MATCHING;
        asked.must_be = IS_WRITTEN;
        asked.any_of = any_of;
        while (asked.start < asked.end) {
            const int count = is_open() ? ioctl(pages_, PAGEMAP_SCAN_OF_6_7, &asked) : -1;
            if (count < 0 || (count == 0 && asked.walk_end <= asked.start)) return false;
            for (int i = 0; i < count; ++i) found(Span{regions[i].start, regions[i].end});
            asked.start = asked.walk_end;
        }
        return true;
    }

    // Tries it: writes of ours, of the kernel, and a page that is given back.
    bool keeps_its_word() {
        void *const made = mmap(nullptr, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED) return false;
        volatile char *const page = static_cast<char *>(made);
        char *const third = static_cast<char *>(made) + 2 * PAGE;
        const std::uint64_t first = reinterpret_cast<std::uint64_t>(made);
        const Span all{first, first + 4 * PAGE};
        page[0] = 1;
        bool holds = protect(all) && gives(all, 0, true) && gives(all, -1, true);
        page[PAGE] = 1;
        holds = holds && gives(all, 1, true) && gives(all, 3, false) && gives(all, -1, false);
        holds = holds && getrandom(third, 8, 0) == 8 && gives(all, 2, false) && gives(all, -1, false);
        holds = holds && madvise(made, PAGE, MADV_DONTNEED) == 0 && gives(all, 0, false) && gives(all, -1, false);
        munmap(made, 4 * PAGE);
        return holds && gives_what_has_no_table();
    }

    // Whether pages without a page table are given, too: kernels that leave them out lose what was given back.
    bool gives_what_has_no_table() {
        constexpr std::uint64_t BLOCK = 512 * PAGE;
        void *const made = mmap(nullptr, 2 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED) return false;
        const std::uint64_t first = reinterpret_cast<std::uint64_t>(made);
        const Span whole{first, first + 2 * BLOCK}, block{(first + BLOCK - 1) / BLOCK * BLOCK, 0};
        std::uint64_t given = 0;
        const bool done = protect(whole) && scan_dense(Span{block.start, block.start + BLOCK}, [&](const Span &run) {
            given += run.end - run.start;
        });
        munmap(made, 2 * BLOCK);
        return done && given == BLOCK;
    }

    // Whether a scan gives a page, or none for -1.
    bool gives(const Span &range, int page, bool sparse) {
        const std::uint64_t at = range.start + (page < 0 ? 0 : page) * PAGE;
        bool is_there = false, any = false;
        const auto found = [&](const Span &run) {
            any = true;
            is_there |= run.start <= at && at < run.end;
        };
        const bool done = sparse ? scan_sparse(range, found) : scan_dense(range, found);
        return done && (page < 0 ? !any : is_there);
    }
};

// Whether pages that are not there hold zeros.
inline bool is_private_anonymous(const Span &pages) {
    std::FILE *const maps = std::fopen("/proc/self/maps", "re");
    if (!maps) return false;
    char line[4096];
    std::uint64_t at = pages.start;
    while (at < pages.end && std::fgets(line, sizeof line, maps)) {
        std::uint64_t start, end, inode;
        char kind[8];
        const int parts = std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64, &start, &end, kind, &inode);
        if (parts != 4 || start > at || end <= at) continue;
        if (kind[3] != 'p' || inode) break;
        at = end;
    }
    std::fclose(maps);
    return at >= pages.end;
}

// Adds the pages of shared memory that are there, whoever wrote them.
inline bool resident(const Span &pages, Spans &found) {
    std::vector<unsigned char> there((pages.end - pages.start) / PageProtection::PAGE);
    if (mincore(reinterpret_cast<void *>(pages.start), pages.end - pages.start, there.data())) return false;
    std::uint64_t at = pages.start;
    for (const unsigned char each : there) {
        if (each & 1) {
            if (!found.empty() && found.back().end == at) found.back().end += PageProtection::PAGE;
            else found.push_back({at, at + PageProtection::PAGE});
        }
        at += PageProtection::PAGE;
    }
    return true;
}

}  // namespace vkharness

#endif
