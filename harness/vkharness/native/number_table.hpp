// A hash table from 64-bit keys to small values, with open addressing. Nothing is erased from it but everything.

#ifndef VKHARNESS_NUMBER_TABLE_HPP
#define VKHARNESS_NUMBER_TABLE_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vkharness {

template <typename Value>
class NumberTable {
    static constexpr std::uint64_t NONE = ~static_cast<std::uint64_t>(0);  // no key
    static constexpr std::size_t LEAST = 16;

  public:
    std::size_t size() const { return size_; }

    // Where the value of a key is, or nullptr. Good until the next `put`.
    Value *find(std::uint64_t key) {
        if (!size_) return nullptr;
        const std::size_t at = place(key);
        return places_[at].key == key ? &places_[at].value : nullptr;
    }

    void put(std::uint64_t key, Value value) {
        if (2 * (size_ + 1) > places_.size()) grow();
        const std::size_t at = place(key);
        if (places_[at].key != key) ++size_;
        places_[at] = {key, value};
    }

    void clear() {
        if (size_ * 16 < places_.size()) places_.resize(LEAST);
        for (Entry &each : places_) each.key = NONE;
        size_ = 0;
    }

    template <typename Function>
    void each(Function function) const {
        for (const Entry &entry : places_) {
            if (entry.key != NONE) function(entry.key, entry.value);
        }
    }

  private:
    struct Entry {
        std::uint64_t key = NONE;
        Value value{};
    };

    static std::uint64_t mixed(std::uint64_t key) {
        key *= 0x9E3779B97F4A7C15ull;
        return key ^ key >> 32;
    }

    std::size_t place(std::uint64_t key) const {
        std::size_t at = mixed(key) & (places_.size() - 1);
        while (places_[at].key != key && places_[at].key != NONE) at = (at + 1) & (places_.size() - 1);
        return at;
    }

    void grow() {
        std::vector<Entry> old(places_.empty() ? LEAST : 2 * places_.size());
        old.swap(places_);
        for (const Entry &each : old) {
            if (each.key != NONE) places_[place(each.key)] = each;
        }
    }

    std::vector<Entry> places_;
    std::size_t size_ = 0;
};

}  // namespace vkharness

#endif
