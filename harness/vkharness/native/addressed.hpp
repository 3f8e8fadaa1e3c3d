// What addresses lead to: memory of this process, or places in a record of another one (`record_calls.hpp`).

#ifndef VKHARNESS_ADDRESSED_HPP
#define VKHARNESS_ADDRESSED_HPP

#include "readable.hpp"

namespace vkharness {

class Addressed {
  public:
    // A record as memory, as long as this lives. Addresses in it count from its beginning; what they lead to lies behind its
    // arguments. No more bytes are read than some times as many as it has: several pointers may lead to one place.
    class Record {
      public:
        Record(std::uint64_t base, std::uint64_t begin, std::uint64_t size)
            : base_(base), begin_(base + begin), end_(base + size), left_(OUT_OF_PROPORTION * size) {
            current() = this;
        }
        ~Record() { current() = nullptr; }
        Record(const Record &) = delete;
        Record &operator=(const Record &) = delete;

      private:
        friend class Addressed;
        static constexpr std::uint64_t OUT_OF_PROPORTION = 8;
        std::uint64_t base_, begin_, end_, left_;
    };

    // Where a pointer leads to.
    static std::uint64_t follow(std::uint64_t pointer) {
        const Record *const record = current();
        return record && pointer ? record->base_ + pointer : pointer;
    }

    static bool there(std::uint64_t at, std::uint64_t size) {
        Record *const record = current();
        if (!record) return Readable::there(at, size);
        if (!size) return true;
        if (at < record->begin_ || at > record->end_ || size > record->end_ - at || size > record->left_) return false;
        record->left_ -= size;
        return true;
    }

  private:
    static Record *&current() {
        thread_local Record *record = nullptr;
        return record;
    }
};

}  // namespace vkharness

#endif
