// The bytes by which a call is known, while they are written: most are four or eight at once.

#ifndef VKHARNESS_KEY_BYTES_HPP
#define VKHARNESS_KEY_BYTES_HPP

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace vkharness {

class KeyBytes {
  public:
    KeyBytes() = default;
    KeyBytes(KeyBytes &&other) noexcept { swap(other); }
    KeyBytes &operator=(KeyBytes &&other) noexcept {
        swap(other);
        return *this;
    }

    std::string_view view() const { return {at_.get(), size_}; }
    void clear() { size_ = 0; }

    void add(std::uint64_t value) { std::memcpy(more(sizeof value), &value, sizeof value); }
    void add_byte(bool value) { *more(1) = static_cast<char>(value); }

    // What lies at an address.
    void add_from(std::uint64_t address, std::uint64_t size) {
        const void *const from = reinterpret_cast<const void *>(address);
        if (size == 4) {
            std::memcpy(more(4), from, 4);
        } else if (size == 8) {
            std::memcpy(more(8), from, 8);
        } else if (size) {
            std::memcpy(more(size), from, size);
        }
    }

  private:
    char *more(std::size_t count) {
        if (room_ - size_ < count) grow(count);
        return at_.get() + std::exchange(size_, size_ + count);
    }

    void grow(std::size_t count) {
        const std::size_t room = 2 * (room_ + count) + 256;
        std::unique_ptr<char[]> made(new char[room]);
        if (size_) std::memcpy(made.get(), at_.get(), size_);
        at_ = std::move(made);
        room_ = room;
    }

    void swap(KeyBytes &other) {
        std::swap(at_, other.at_);
        std::swap(size_, other.size_);
        std::swap(room_, other.room_);
    }

    std::unique_ptr<char[]> at_;
    std::size_t size_ = 0, room_ = 0;
};

}  // namespace vkharness

#endif
