// Descriptor update templates: where the data of an update lies in the program's memory, and where in a record.
//
// A program may keep its descriptors far apart, and each update names a few of them. So a record holds only these, one
// behind the other, and the record of the template's creation says so: the offsets and strides of its entries are those
// of the records. (Specification: "Descriptor Update Templates".)

#ifndef VKHARNESS_MIRROR_UPDATE_TEMPLATES_HPP
#define VKHARNESS_MIRROR_UPDATE_TEMPLATES_HPP

#include "generated.hpp"
#include "stream.hpp"

#include <unordered_map>
#include <vector>

namespace vkharness::mirror {

inline std::uint64_t number_at(const char *place, unsigned size) {
    std::uint64_t found = 0;
    std::memcpy(&found, place, size);
    return found;
}

// Pieces of memory at equal distances.
struct Pieces {
    std::uint64_t offset, stride, size, count;
};

class UpdateTemplate {
  public:
    UpdateTemplate() = default;
    UpdateTemplate(const char *entries, std::uint64_t count) {
        for (std::uint64_t at = 0; at < count; ++at) add(entries + at * size_of_VkDescriptorUpdateTemplateEntry);
    }

    const std::vector<Pieces> &pieces() const { return pieces_; }

    // Bytes in a record.
    std::uint64_t size() const { return size_; }

    // Has entries say where the data lies in records.
    void rewrite(char *entries, std::uint64_t count) const {
        std::uint64_t offset = 0;
        for (std::uint64_t at = 0; at < count && at < pieces_.size(); ++at) {
            char *const entry = entries + at * size_of_VkDescriptorUpdateTemplateEntry;
            std::memcpy(entry + VkDescriptorUpdateTemplateEntry_offset, &offset, 8);
            std::memcpy(entry + VkDescriptorUpdateTemplateEntry_stride, &pieces_[at].size, 8);
            offset += padded(pieces_[at]);
        }
    }

    static std::uint64_t padded(const Pieces &pieces) { return (pieces.size * pieces.count + 7) / 8 * 8; }

  private:
    std::vector<Pieces> pieces_;
    std::uint64_t size_ = 0;

    void add(const char *entry) {
        const std::uint64_t count = number_at(entry + VkDescriptorUpdateTemplateEntry_descriptorCount, 4);
        const std::uint64_t offset = number_at(entry + VkDescriptorUpdateTemplateEntry_offset, 8);
        const std::uint64_t stride = number_at(entry + VkDescriptorUpdateTemplateEntry_stride, 8);
        const auto type = static_cast<std::int32_t>(number_at(entry + VkDescriptorUpdateTemplateEntry_descriptorType, 4));
        if (type == INLINE_BYTES) pieces_.push_back({offset, 0, count, 1});
        else pieces_.push_back({offset, stride, size_of(type), count});
        size_ += padded(pieces_.back());
    }

    // 0 for a kind that no reader knows.
    static std::uint64_t size_of(std::int32_t type) {
        for (const TemplateKind &each : TEMPLATE_KINDS) {
            if (each.type == type) return each.size;
        }
        return 0;
    }
};

using UpdateTemplates = std::unordered_map<std::uint64_t, UpdateTemplate>;  // by handle

}  // namespace vkharness::mirror

#endif
