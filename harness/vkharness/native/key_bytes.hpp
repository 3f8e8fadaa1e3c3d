// The bytes by which a call is known, while they are written: most are four or eight at once.

#ifndef VKHARNESS_KEY_BYTES_HPP
#define VKHARNESS_KEY_BYTES_HPP

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace vkharness {

// A hash of bytes, sixteen at once.
inline std::size_t hash_of_bytes(std::string_view bytes) {
    constexpr std::uint64_t ONE = 0x9E3779B97F4A7C15u, OTHER = 0xC2B2AE3D27D4EB4Fu;
    const auto mixed = [](std::uint64_t one, std::uint64_t other) {
        const unsigned __int128 both = static_cast<unsigned __int128>(one) * other;
        return static_cast<std::uint64_t>(both) ^ static_cast<std::uint64_t>(both >> 64);
    };
    std::uint64_t hash = bytes.size() ^ ONE;
    const char *at = bytes.data();
    std::size_t left = bytes.size();
    for (std::uint64_t pair[2]; left >= sizeof pair; at += sizeof pair, left -= sizeof pair) {
        std::memcpy(pair, at, sizeof pair);
        hash = mixed(pair[0] ^ hash, pair[1] ^ OTHER) ^ pair[0];
    }
    std::uint64_t rest[2] = {};
    if (left) std::memcpy(rest, at, left);
    return static_cast<std::size_t>(mixed(rest[0] ^ hash, rest[1] ^ OTHER) ^ hash);
}

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

    // Appends the bytes at an address.
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
