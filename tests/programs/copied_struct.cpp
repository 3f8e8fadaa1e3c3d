// The copier of the mirror layer as a function: a struct by its number in the tables and its address gives a record of a
// call with one argument.
#include "copier.hpp"

namespace vkharness::mirror {
template <unsigned COMMAND_NUMBER, class Returned, class... Arguments>
void *stub_of() { return nullptr; }
}  // namespace vkharness::mirror

#define VKHARNESS_STUBS
#include "generated.hpp"

using namespace vkharness::mirror;

extern "C" const char *copied(std::uint32_t kind, std::uint64_t address) {
    static Stream out;
    static const UpdateTemplates templates;
    static const bool ready = (out.configure(), out.is_on());
    const Pointer argument{0, kind, 0, 0, 0, What::STRUCTS, Counted::ONE, 0, false, false};
    const char *record = nullptr;
    if (!ready) return record;
    out.write(CALL, 0, 0, 0, [&] {
        char *const to = out.room(24);
        if (!to) return;
        const std::uint64_t head[] = {0, 1, Copier(out, templates).argument(argument, &address, true)};
        std::memcpy(to, head, sizeof head);
        record = to - sizeof(Head);
    });
    return record;
}
