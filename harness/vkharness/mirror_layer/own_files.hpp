// Files of the layer's own in a program that knows nothing of them. A full disk, a limit and a closed descriptor are errors
// here, and never signals.

#ifndef VKHARNESS_MIRROR_OWN_FILES_HPP
#define VKHARNESS_MIRROR_OWN_FILES_HPP

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vkharness::mirror {

// A file that stays open in a program that may close descriptors that are not its own, and give their numbers to others.
class OwnFile {
  public:
    static constexpr int FLAGS = O_RDWR | O_NONBLOCK | O_CLOEXEC;

    void keep(int file, const std::string &path) {
        close();
        file_ = file, path_ = path;
        if (file >= 0) fstat(file, &is_);
    }

    // -1 where it cannot be opened any more.
    int number() {
        struct stat found;
        const bool same = file_ >= 0 && fstat(file_, &found) == 0 && found.st_ino == is_.st_ino && found.st_dev == is_.st_dev;
        if (!same) file_ = path_.empty() ? -1 : ::open(path_.c_str(), FLAGS);
        return file_;
    }

    void close() {
        if (number() >= 0) ::close(file_);
        file_ = -1, path_.clear();
    }

  private:
    int file_ = -1;
    struct stat is_ = {};
    std::string path_;
};

// A file that grows beyond the limit of the process is a signal, else.
inline bool may_reach(std::uint64_t size) {
    rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || size <= limit.rlim_cur) return true;
    errno = EFBIG;
    return false;
}

// Has the file system keep blocks for a part of a file. Errno says why not.
inline bool have(int file, std::uint64_t at, std::uint64_t size) {
    if (!may_reach(at + size)) return false;
    int error;
    do error = posix_fallocate(file, static_cast<off_t>(at), static_cast<off_t>(size));
    while (error == EINTR);
    errno = error;
    return error != ENOSPC && error != EDQUOT && error != EFBIG && error != EIO;
}

// Takes back a file that did not become what it should, and leaves the reason in errno.
inline bool unmade(const std::string &path, int file) {
    const int error = errno;
    if (file >= 0) close(file), unlink(path.c_str());
    errno = error;
    return false;
}

}  // namespace vkharness::mirror

#endif
