// The stream of one process: records in files that are mapped, for a judge that reads them meanwhile or later.
//
// Theory of operation
// ===================
//
// Records follow each other in segments, sparse files that are made as they are needed. A record is written where it
// stays, under the lock that gives the stream its order, and counts when its size is stored, last of all: whoever reads
// sees whole records only, and what was recorded outlives the process however that ends. The blocks of a segment are
// asked of the file system before they are touched (`grow`): a full disk would be a signal otherwise.
//
// A record that does not fit what is left of a segment is begun anew in the next one. So writing one may be repeated.
//
// The program waits for its judge only where the judge can go on without it. A call that began (ENTER) is judged when it
// has returned, and the driver may be in it until another thread goes on: while one is open, nobody waits for what comes
// behind it.

#ifndef VKHARNESS_MIRROR_STREAM_HPP
#define VKHARNESS_MIRROR_STREAM_HPP

#include "own_files.hpp"
#include "table_types.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace vkharness::mirror {

enum Kind : std::uint16_t { CALL = 1, ENTER, RETURN, DATA, COMMAND, STACK, MODULE, UNSEEN, FILE_OF, LOST, PROPERTY };

struct Head {  // of a record
    std::atomic<std::uint32_t> size;
    std::uint16_t kind, command;
    std::uint32_t thread, stack;
    std::uint64_t serial;
};
static_assert(sizeof(Head) == 24, "as the format has it");

struct Control {
    std::uint32_t magic, version, pid, depth;
    std::atomic<std::uint64_t> begun, consumed;
    std::atomic<std::uint32_t> judge, waiting;
    std::uint32_t limit;
    std::atomic<std::uint32_t> ended;
    std::atomic<std::uint64_t> answered, stop;
    std::atomic<std::uint32_t> breaks, stopped;  // the last: nobody comes again
};

// Calls that began and whose results are not told yet.
class OpenCalls {
  public:
    // The lock of the stream is held for each of these.
    void entered(std::uint64_t serial) {
        serials_.push_back(serial);
        oldest_.store(serials_.front());
    }

    void returned(std::uint64_t serial) {
        const auto found = std::find(serials_.begin(), serials_.end(), serial);
        if (found != serials_.end()) serials_.erase(found);
        oldest_.store(serials_.empty() ? NONE : serials_.front());
    }

    void clear() { serials_.clear(), oldest_.store(NONE); }
    bool any() const { return !serials_.empty(); }

    // Whether one began before this record. No lock is needed.
    bool before(std::uint64_t serial) const { return oldest_.load() < serial; }

  private:
    static constexpr std::uint64_t NONE = ~std::uint64_t(0);
    std::vector<std::uint64_t> serials_;  // in their order
    std::atomic<std::uint64_t> oldest_{NONE};
};

class Stream {
  public:
    static constexpr std::uint64_t SEGMENT = 16 << 20, CHUNK = 256 << 10, HEAD = 64, CONTROL = 4096;
    static constexpr std::uint64_t SPARE = 512;  // bytes at the end for a last word
    static constexpr std::uint64_t MOST = 256 << 20;  // bytes of one record
    static constexpr std::uint32_t GO_ON = 0xFFFFFFFF;

    enum class State { GOOD, NO_ROOM, TOO_LARGE, TOO_DEEP, FULL };

    // Why the record that is being written cannot be.
    State state = State::GOOD;
    std::mutex mutex;
    OpenCalls open_calls;

    // The environment: where to, and how.
    void configure() {
        if (const char *const folder = std::getenv("VKHARNESS_OUT")) out_ = folder;
        char here[4096];  // the program may go elsewhere
        if (!out_.empty() && out_[0] != '/' && getcwd(here, sizeof here)) out_ = std::string(here) + "/" + out_;
        limit_ = static_cast<std::uint32_t>(number_of("VKHARNESS_LIMIT"));
        breaks_ = number_of("VKHARNESS_BREAK") != 0;
        is_run_ = number_of("VKHARNESS_RUN") != 0;
        on_ = !out_.empty();
    }

    bool is_on() const { return on_.load(std::memory_order_relaxed); }
    std::uint64_t serial() const { return serial_; }
    std::uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }

    // Bytes of the record that is being written; nullptr where there is no room.
    char *room(std::uint64_t size, std::uint64_t alignment = 8) {
        if (state != State::GOOD) return nullptr;
        const std::uint64_t at = (end_ + alignment - 1) / alignment * alignment;
        if (size > MOST || at + size - start_ > MOST) return refuse(State::TOO_LARGE);
        if (at + size > ready_ && !grow(at + size)) return nullptr;
        pad(at);
        end_ = at + size;
        return base_ + at;
    }

    // The room from a place on is not needed.
    void give_back(const char *place) { end_ = static_cast<std::uint64_t>(place - base_); }

    // Of a place in the record, as pointers are written.
    std::uint64_t offset(const char *place) const { return static_cast<std::uint64_t>(place - base_) - start_; }

    // Writes one record; `body` puts in what follows the head. Gives the record's serial, 0 where it was not written
    // (`state` says why). The lock is held.
    template <class Body>
    std::uint64_t write(Kind kind, unsigned command, std::uint32_t thread, std::uint32_t stack, Body &&body) {
        if (!is_on() || !(base_ || open()) || is_left()) return 0;
        wait_for_room();
        for (std::uint64_t size = SEGMENT;; size *= 2) {
            state = State::GOOD;
            start_ = end_;
            if (room(sizeof(Head))) body();
            if (state == State::GOOD) return publish(kind, command, thread, stack);
            const State why = state;
            end_ = start_;
            if (why != State::NO_ROOM) return stop_at(why);
            if (!next_segment(size)) return 0;
        }
    }

    // Has the program wait for the judge where it is to, and stop where the judge wants it to. The lock is not held.
    void answered(std::uint64_t serial) {
        if (!breaks_ || !serial || !is_on()) return;
        Control *const control = control_;
        while (control->breaks.load() && control->answered.load() < serial && !open_calls.before(serial)) {
            if (!judge_lives(control)) return;
            pause();
        }
        if (control->stop.load() == serial) std::raise(SIGTRAP);
    }

    // The process ends as it should.
    void end() {
        const std::lock_guard<std::mutex> locked(mutex);
        if (!control_) return;
        control_->ended.store(1);
        ring();
    }

    // In a child of fork: what is mapped is the parent's.
    void born_again() {
        if (base_) munmap(base_, size_);
        if (control_) munmap(control_, CONTROL);
        bell_.close(), file_.close();
        base_ = nullptr, control_ = nullptr;
        serial_ = number_ = start_ = end_ = ready_ = 0;
        open_calls.clear();
        is_ahead_ = false;
        generation_.fetch_add(1);
    }

    void depth(std::uint32_t frames) { depth_ = frames; }

    // Nothing is recorded any more, and why.
    void give_up(const char *what, int error) {
        if (!on_.exchange(false)) return;
        std::fprintf(stderr, "vkharness: the mirror layer stops recording: %s: %s\n", what, std::strerror(error));
    }

  private:
    std::string out_, folder_;
    std::atomic<bool> on_{false};
    std::atomic<std::uint32_t> generation_{1};
    bool breaks_ = false, is_run_ = false, is_ahead_ = false;
    std::uint32_t limit_ = 0, depth_ = 0;
    int error_ = 0;
    Control *control_ = nullptr;
    OwnFile bell_, file_;
    char *base_ = nullptr;
    std::uint64_t size_ = 0, number_ = 0, start_ = 0, end_ = 0, ready_ = 0, allocated_ = 0, serial_ = 0;

    static std::uint64_t number_of(const char *variable) {
        const char *const text = std::getenv(variable);
        return text ? std::strtoull(text, nullptr, 10) : 0;
    }

    // Equal calls have equal bytes.
    void pad(std::uint64_t end) { std::memset(base_ + end_, 0, end - end_); }

    char *refuse(State why) {
        state = why;
        return nullptr;
    }

    std::uint64_t stop_at(State why) {
        if (why == State::FULL) {
            last_word(error_);
            give_up(folder_.c_str(), error_);
        }
        state = why;
        return 0;
    }

    // In the bytes that each segment has for it: the judge is to know that the calls go on.
    void last_word(int error) {
        const std::string said = std::string("recording: the stream cannot go on: ") + std::strerror(error);
        ready_ = std::max(ready_, allocated_ - 2 * sizeof(Head));
        write(LOST, 0, 0, 0, [&] {
            const std::uint64_t size = std::min<std::uint64_t>(said.size() + 1, SPARE / 2);
            if (char *const text = room(size)) std::memcpy(text, said.c_str(), size);
        });
    }

    std::uint64_t publish(Kind kind, unsigned command, std::uint32_t thread, std::uint32_t stack) {
        const std::uint64_t end = (end_ + 7) & ~std::uint64_t(7);
        pad(end);
        end_ = end;
        std::memset(base_ + end_, 0, sizeof(std::uint64_t));  // no record follows yet
        Head *const head = reinterpret_cast<Head *>(base_ + start_);
        head->kind = kind, head->command = static_cast<std::uint16_t>(command);
        head->thread = thread, head->stack = stack;
        head->serial = ++serial_;
        head->size.store(static_cast<std::uint32_t>(end_ - start_), std::memory_order_release);
        ring();
        return serial_;
    }

    void ring() {
        std::atomic_thread_fence(std::memory_order_seq_cst);  // the judge says that it waits, and looks once more
        if (!control_->waiting.load(std::memory_order_relaxed)) return;
        if (!control_->waiting.exchange(0)) return;
        const int before = errno;
        const char one = 1;
        if (::write(bell_.number(), &one, 1) < 0) {}  // full: somebody will read it
        errno = before;
    }

    // Makes sure of the blocks of the segment up to `needed` and a little more.
    bool grow(std::uint64_t needed) {
        if (needed + SPARE > size_) return refuse(State::NO_ROOM) != nullptr;
        const std::uint64_t wanted = std::min(size_, (needed + SPARE + CHUNK - 1) / CHUNK * CHUNK);
        if (!have(file_.number(), allocated_, wanted - allocated_)) return error_ = errno, refuse(State::FULL) != nullptr;
#ifdef MADV_POPULATE_WRITE
        madvise(base_ + allocated_, wanted - allocated_, MADV_POPULATE_WRITE);
#endif
        allocated_ = wanted;
        ready_ = wanted - SPARE;
        return true;
    }

    bool next_segment(std::uint64_t size) {
        if (size > 2 * MOST) return stop_at(State::TOO_LARGE) != 0;
        char *const old = base_;
        const std::uint64_t old_size = size_, at = end_;
        if (!make_segment(size)) {
            const int error = errno;
            last_word(error);
            give_up(folder_.c_str(), error);
            return false;
        }
        reinterpret_cast<Head *>(old + at)->size.store(GO_ON, std::memory_order_release);
        ring();
        munmap(old, old_size);
        is_ahead_ = control_->limit != 0;
        judge_lives(control_);
        if (is_left()) return false;
        wait_for_room();
        return true;
    }

    // Waits while as many segments as the limit are unread beside the one that is begun.
    void wait_for_room() {
        if (!is_ahead_ || open_calls.any()) return;
        while (control_->judge.load() && control_->begun.load() - control_->consumed.load() > control_->limit) {
            if (!judge_lives(control_)) break;
            pause();
        }
        is_ahead_ = false;
    }

    // Whether nobody comes again to read.
    bool is_left() {
        if (!control_->stopped.load(std::memory_order_relaxed)) return false;
        on_.store(false);
        return true;
    }

    // A judge that was there and is gone is not waited for. Nobody follows one that ran the program.
    bool judge_lives(Control *control) const {
        const std::uint32_t judge = control->judge.load();
        if (judge && kill(static_cast<pid_t>(judge), 0) != 0 && errno == ESRCH) {
            if (is_run_) control->stopped.store(1);
            control->breaks.store(0);
            control->judge.store(0);
            return false;
        }
        return true;
    }

    static void pause() {
        const timespec a_little{0, 50000};
        nanosleep(&a_little, nullptr);
    }

    bool make_segment(std::uint64_t size) {
        char name[32];
        std::snprintf(name, sizeof name, "/segment-%08llu", static_cast<unsigned long long>(number_));
        const std::string path = folder_ + name;
        const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0 || !may_reach(size) || ftruncate(file, static_cast<off_t>(size)) != 0) return unmade(path, file);
        if (!have(file, 0, CHUNK)) return unmade(path, file);
        void *const made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (made == MAP_FAILED) return unmade(path, file);
        file_.keep(file, path);
        base_ = static_cast<char *>(made), size_ = size;
        allocated_ = CHUNK, ready_ = CHUNK - SPARE, start_ = end_ = HEAD;
        const std::uint32_t first[] = {0x53484B56, 1};
        const std::uint64_t rest[] = {number_, size, static_cast<std::uint64_t>(getpid())};
        std::memcpy(base_, first, sizeof first);
        std::memcpy(base_ + sizeof first, rest, sizeof rest);
        ++number_;
        control_->begun.fetch_add(1);
        return true;
    }

    bool failed(const std::string &path, int file) {
        unmade(path, file);
        give_up(path.c_str(), errno);
        return false;
    }

    // Makes the folder: `control` comes last, so that who sees it sees all.
    bool open() {
        const std::string wanted = out_ + "/process-" + std::to_string(getpid());
        if (!is_run_) mkdir(out_.c_str(), 0777);  // else it was there: who made it is gone
        folder_ = wanted;
        for (unsigned other = 2; mkdir(folder_.c_str(), 0700) != 0; ++other) {
            if (errno != EEXIST) return failed(folder_, -1);
            folder_ = wanted + "-" + std::to_string(other);
        }
        const std::string bell = folder_ + "/bell", control = folder_ + "/control", hidden = folder_ + "/.control";
        if (mkfifo(bell.c_str(), 0600) != 0) return failed(bell, -1);
        bell_.keep(::open(bell.c_str(), OwnFile::FLAGS), bell);
        const int file = ::open(hidden.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (bell_.number() < 0 || file < 0 || !may_reach(CONTROL) || ftruncate(file, CONTROL) != 0) return failed(hidden, file);
        if (!have(file, 0, CONTROL)) return failed(hidden, file);
        void *const made = mmap(nullptr, CONTROL, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (made == MAP_FAILED) return failed(hidden, file);
        close(file);
        control_ = static_cast<Control *>(made);
        control_->magic = 0x4D484B56, control_->version = 1, control_->pid = static_cast<std::uint32_t>(getpid());
        control_->depth = depth_, control_->limit = limit_, control_->breaks = breaks_;
        if (!make_segment(SEGMENT)) return failed(folder_, -1);
        if (rename(hidden.c_str(), control.c_str()) != 0) return failed(control, -1);
        return true;
    }
};

}  // namespace vkharness::mirror

#endif
