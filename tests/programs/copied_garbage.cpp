// Feeds the copier of the mirror layer with garbage: memory full of structs of all kinds whose numbers are random and
// whose pointers lead into each other, into holes and nowhere. Built with the sanitizers.
#include "copier.hpp"

#include <random>

namespace vkharness::mirror {
template <unsigned COMMAND_NUMBER, class Returned, class... Arguments>
void *stub_of() { return nullptr; }
}  // namespace vkharness::mirror

#define VKHARNESS_STUBS
#include "generated.hpp"

using namespace vkharness::mirror;

int main(int, char **arguments) {
    constexpr std::uint64_t SIZE = 1 << 16, HOLE = 1 << 14;
    std::mt19937_64 random(std::strtoull(arguments[1], nullptr, 10));
    // Nobody else's memory lies beside it: that would be readable, too.
    constexpr std::uint64_t AROUND = 64 << 20;
    char *const all = static_cast<char *>(mmap(nullptr, SIZE + 2 * AROUND, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *const memory = all + AROUND;
    if (mprotect(memory, SIZE - HOLE, PROT_READ | PROT_WRITE) != 0) return 1;
    const auto pointer = [&]() -> std::uint64_t {
        switch (random() % 8) {
            case 0: return 0;
            case 1: return random();
            case 2: return random() % 4096;
            default: return reinterpret_cast<std::uint64_t>(memory) + random() % SIZE / 8 * 8;
        }
    };
    for (std::uint64_t at = 0; at < SIZE - HOLE; at += 8) {
        std::uint64_t value = random() % 4 ? pointer() : random() % 16;
        if (random() % 8 == 0) value = static_cast<std::uint32_t>(STRUCT_TYPES[random() % (sizeof STRUCT_TYPES / sizeof *STRUCT_TYPES)].type);
        std::memcpy(memory + at, &value, 8);
    }
    Stream out;
    out.configure();
    UpdateTemplates templates;
    for (std::uint64_t handle = 1; handle < 8; ++handle) templates[handle] = UpdateTemplate(memory + 4096 * handle, handle);
    unsigned long written = 0, refused = 0;
    for (unsigned round = 0; round < 3; ++round) {
        for (const Command &command : COMMAND_TABLE) {
            std::uint64_t given[32];
            for (std::uint64_t &each : given) each = random() % 2 ? pointer() : random() % 16;
            const std::uint64_t serial = out.write(CALL, 0, 0, 0, [&] {
                char *const to = out.room(16 + 8 * command.arguments);
                if (!to) return;
                Copier copier(out, templates);
                for (const Pointer *p = POINTERS + command.first; p != POINTERS + command.first + command.count; ++p) {
                    const std::uint64_t leads = copier.argument(*p, given, true);
                    std::memcpy(to + 16 + 8 * p->at, &leads, 8);
                }
            });
            ++(serial ? written : refused);
        }
    }
    std::printf("%lu written %lu refused\n", written, refused);
}
