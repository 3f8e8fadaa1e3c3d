// How C functions are called: one typed call for each shape of parameters that a Vulkan command has.
//
// A letter a parameter: Q is an integer of 64 bits or a pointer, I an integer of 32 bits, H of 16, f a float. Nothing is returned.

#ifndef VKHARNESS_FRONT_SIGNATURES_HPP
#define VKHARNESS_FRONT_SIGNATURES_HPP

#include <cstdint>
#include <cstring>
#include <utility>

namespace vkharness {

union Value {
    std::uint64_t wide;
    std::uint32_t narrow;
    float real;
};

constexpr std::size_t MOST_PARAMETERS = 16;

struct Signature {
    const char *kinds;
    void (*call)(void *function, const Value *values);
};

template <char KIND> struct Kind;
template <> struct Kind<'Q'> {
    using Type = std::uint64_t;
    static Type of(const Value &value) { return value.wide; }
};
template <> struct Kind<'I'> {
    using Type = std::uint32_t;
    static Type of(const Value &value) { return value.narrow; }
};
template <> struct Kind<'H'> {
    using Type = std::uint16_t;
    static Type of(const Value &value) { return static_cast<std::uint16_t>(value.narrow); }
};
template <> struct Kind<'f'> {
    using Type = float;
    static Type of(const Value &value) { return value.real; }
};

template <char... KINDS>
struct Typed {
    static_assert(sizeof...(KINDS) <= MOST_PARAMETERS);
    static constexpr char kinds[] = {KINDS..., 0};

    template <std::size_t... PLACES>
    static void call_with(void *function, const Value *values, std::index_sequence<PLACES...>) {
        reinterpret_cast<void (*)(typename Kind<KINDS>::Type...)>(function)(Kind<KINDS>::of(values[PLACES])...);
    }
    static void call(void *function, const Value *values) {
        call_with(function, values, std::make_index_sequence<sizeof...(KINDS)>());
    }
    static constexpr Signature signature() { return {kinds, call}; }
};

inline const Signature *find_signature(const char *kinds) {
    static constexpr Signature known[] = {
        Typed<'Q'>::signature(),
        Typed<'Q', 'I'>::signature(),
        Typed<'Q', 'I', 'H'>::signature(),
        Typed<'Q', 'I', 'I'>::signature(),
        Typed<'Q', 'I', 'I', 'I'>::signature(),
        Typed<'Q', 'I', 'I', 'I', 'I'>::signature(),
        Typed<'Q', 'I', 'I', 'I', 'I', 'I'>::signature(),
        Typed<'Q', 'I', 'I', 'I', 'I', 'I', 'I'>::signature(),
        Typed<'Q', 'I', 'I', 'I', 'I', 'Q', 'I', 'Q', 'I', 'Q'>::signature(),
        Typed<'Q', 'I', 'I', 'Q'>::signature(),
        Typed<'Q', 'I', 'I', 'Q', 'I', 'I'>::signature(),
        Typed<'Q', 'I', 'I', 'Q', 'Q'>::signature(),
        Typed<'Q', 'I', 'I', 'Q', 'Q', 'I', 'I'>::signature(),
        Typed<'Q', 'I', 'I', 'Q', 'Q', 'Q'>::signature(),
        Typed<'Q', 'I', 'I', 'Q', 'Q', 'Q', 'Q'>::signature(),
        Typed<'Q', 'I', 'Q'>::signature(),
        Typed<'Q', 'I', 'Q', 'I'>::signature(),
        Typed<'Q', 'I', 'Q', 'I', 'I', 'I'>::signature(),
        Typed<'Q', 'I', 'Q', 'I', 'I', 'I', 'Q'>::signature(),
        Typed<'Q', 'I', 'Q', 'I', 'I', 'I', 'Q', 'I', 'Q', 'I', 'Q'>::signature(),
        Typed<'Q', 'I', 'Q', 'I', 'I', 'Q'>::signature(),
        Typed<'Q', 'I', 'Q', 'I', 'I', 'Q', 'I', 'Q'>::signature(),
        Typed<'Q', 'I', 'Q', 'I', 'I', 'Q', 'Q'>::signature(),
        Typed<'Q', 'I', 'Q', 'I', 'Q'>::signature(),
        Typed<'Q', 'I', 'Q', 'I', 'Q', 'I'>::signature(),
        Typed<'Q', 'I', 'Q', 'Q'>::signature(),
        Typed<'Q', 'I', 'Q', 'Q', 'I'>::signature(),
        Typed<'Q', 'Q'>::signature(),
        Typed<'Q', 'Q', 'I'>::signature(),
        Typed<'Q', 'Q', 'I', 'I'>::signature(),
        Typed<'Q', 'Q', 'I', 'I', 'I'>::signature(),
        Typed<'Q', 'Q', 'I', 'I', 'I', 'Q'>::signature(),
        Typed<'Q', 'Q', 'I', 'I', 'Q', 'I', 'I'>::signature(),
        Typed<'Q', 'Q', 'I', 'I', 'Q', 'I', 'Q'>::signature(),
        Typed<'Q', 'Q', 'I', 'I', 'Q', 'Q', 'Q', 'I'>::signature(),
        Typed<'Q', 'Q', 'I', 'Q', 'I', 'I', 'Q'>::signature(),
        Typed<'Q', 'Q', 'I', 'Q', 'I', 'I', 'Q', 'I'>::signature(),
        Typed<'Q', 'Q', 'I', 'Q', 'I', 'Q'>::signature(),
        Typed<'Q', 'Q', 'I', 'Q', 'Q'>::signature(),
        Typed<'Q', 'Q', 'Q'>::signature(),
        Typed<'Q', 'Q', 'Q', 'I'>::signature(),
        Typed<'Q', 'Q', 'Q', 'I', 'I'>::signature(),
        Typed<'Q', 'Q', 'Q', 'I', 'I', 'Q'>::signature(),
        Typed<'Q', 'Q', 'Q', 'I', 'Q'>::signature(),
        Typed<'Q', 'Q', 'Q', 'Q'>::signature(),
        Typed<'Q', 'Q', 'Q', 'Q', 'I'>::signature(),
        Typed<'Q', 'Q', 'Q', 'Q', 'I', 'I'>::signature(),
        Typed<'Q', 'Q', 'Q', 'Q', 'I', 'Q', 'Q', 'Q', 'Q'>::signature(),
        Typed<'Q', 'Q', 'Q', 'Q', 'Q'>::signature(),
        Typed<'Q', 'Q', 'Q', 'Q', 'Q', 'I', 'I'>::signature(),
        Typed<'Q', 'Q', 'Q', 'Q', 'Q', 'I', 'I', 'I'>::signature(),
        Typed<'Q', 'Q', 'Q', 'Q', 'Q', 'Q'>::signature(),
        Typed<'Q', 'Q', 'Q', 'Q', 'Q', 'Q', 'Q', 'Q', 'Q', 'Q', 'Q', 'Q', 'I', 'I', 'I'>::signature(),
        Typed<'Q', 'f'>::signature(),
        Typed<'Q', 'f', 'f'>::signature(),
        Typed<'Q', 'f', 'f', 'f'>::signature(),
    };
    for (const Signature &each : known) {
        if (std::strcmp(each.kinds, kinds) == 0) return &each;
    }
    return nullptr;
}

}  // namespace vkharness

#endif
