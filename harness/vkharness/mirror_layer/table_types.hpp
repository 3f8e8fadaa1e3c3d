// What the rows of the tables mean that layer_tables.py writes.

#ifndef VKHARNESS_MIRROR_TABLE_TYPES_HPP
#define VKHARNESS_MIRROR_TABLE_TYPES_HPP

#include <cstdint>

namespace vkharness::mirror {

// What a pointer leads to.
enum class What : std::uint8_t {
    NOTHING,  // that is not followed
    PLAIN,  // bytes, `element` a piece
    STRUCTS,  // of the number `element`
    STRIDED,  // structs of `element` bytes, as many bytes apart as the argument `number` says
    STRUCT_LIST,  // pointers to them
    TEXT,  // up to a NUL
    TEXTS,  // pointers to texts
    CHAIN,  // of structs that begin with sType and pNext
    TEMPLATED,  // what the entries of the update template name that the member or argument at `count_at` is
    GEOMETRIES,  // pointers, each to as many pieces as the geometry info of the same place counts
};

// How many of these there are.
enum class Counted : std::uint8_t {
    ONE,
    FIXED,  // `number`
    BY_NUMBER,  // a member, or an argument
    CEIL,  // such a one, divided by `number`, rounded up
    THROUGH,  // an argument that points to the count
    PATH,  // the member at `number` of the struct that an argument points to
};

struct Pointer {
    std::uint32_t at;  // offset in the struct, or number of the argument
    std::uint32_t element;
    std::uint32_t count_at;  // offset of the counting member, or number of the argument
    std::uint32_t number;
    std::uint16_t guard;  // 0: means something always
    What what;
    Counted counted;
    std::uint8_t count_size;  // bytes of the counting number
    bool in_union;  // what is not meant stays as it is: it may be something else
    bool is_output;  // holds something when the call has succeeded
};

// A pointer means something where the number at `at` is one of these.
struct Guard {
    std::uint32_t at;
    std::uint16_t first, count;  // in GUARD_VALUES
};

struct Struct {
    std::uint32_t size;
    std::uint16_t first, count;  // in POINTERS
};

struct StructType {
    std::int32_t type;  // VkStructureType
    std::uint16_t number;
};

struct TemplateKind {
    std::int32_t type;  // VkDescriptorType
    std::uint32_t size;
};

// What there is to do about a command beside recording it.
enum Flags : std::uint16_t {
    FIRST = 1,  // recorded before it is forwarded
    FAILS = 2,  // returns VkResult
    VOID = 4,
    LOOK_BEFORE = 8,  // at mapped memory
    LOOK_AFTER = 16,
    OF_INSTANCE = 32,
    OF_PHYSICAL = 64,
    EXPORTS_FILE = 128,
    IMPORTS_FILE = 256,
    IS_GLOBAL = 512,  // needs no instance
};

struct Command {
    const char *name;
    std::uint16_t main;  // the number of the name that stands for this one and its aliases
    std::uint16_t arguments;
    std::uint16_t flags;
    std::uint16_t first, count;  // in POINTERS
    void *stub;
};

}  // namespace vkharness::mirror

#endif
