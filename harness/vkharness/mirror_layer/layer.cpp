// VK_LAYER_VKHARNESS_mirror: writes each Vulkan call of a program into a stream. docs/ARCHITECTURE.md ("The mirror
// layer") says how; `stream.hpp` where to.

#include "unknown.hpp"

#include <algorithm>
#include <type_traits>

namespace vkharness::mirror {

Dispatch &dispatch() {
    static Dispatch *const made = new Dispatch();
    return *made;
}

UnknownCommands &unknown_commands() {
    static UnknownCommands *const made = new UnknownCommands();
    return *made;
}

// The link of the next layer, from a pNext chain; the chain leads to the one after it then.
template <class Link>
Link *next_link(std::uint64_t info, std::int32_t type) {
    auto *each = *reinterpret_cast<LayerInfo<Link> *const *>(info + 8);
    while (each && !(each->type == type && each->function == LINK)) each = each->next;
    if (!each || !each->link) return nullptr;
    Link *const found = each->link;
    each->link = found->next;
    return found;
}

// An instance or device that is being created: what makes it, and how its functions are found.
struct Creation {
    Function create = nullptr;
    GetProcAddr get = nullptr, get_physical = nullptr;
};

Creation instance_creation(const Call &call) {
    const InstanceLink *const link = next_link<InstanceLink>(call.arguments[0], INSTANCE_INFO);
    if (!link) return {};
    return {link->get_instance_proc_addr(0, "vkCreateInstance"), link->get_instance_proc_addr, link->get_physical_device_proc_addr};
}

Creation device_creation(const Call &call) {
    const DeviceLink *const link = next_link<DeviceLink>(call.arguments[1], DEVICE_INFO);
    if (!link || !call.next) return {};
    return {link->get_instance_proc_addr(call.next->handle, "vkCreateDevice"), link->get_device_proc_addr, nullptr};
}

template <unsigned COMMAND_NUMBER, class Returned, class... Arguments>
Returned stub(Arguments... arguments);

template <class T>
std::uint64_t bits_of(T value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
std::uint64_t widened(T value) {
    return std::is_signed_v<T> ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) : static_cast<std::uint64_t>(value);
}

Function begin(Call &call, Creation &creation) {
    const unsigned command = call.command;
    if (command == Is::vkCreateInstance) {
        creation = instance_creation(call);
        return creation.create;
    }
    call.next = dispatch().find(call.arguments[0]);
    if (!call.next) return nullptr;
    if (command == Is::vkCreateDevice) creation = device_creation(call);
    const Function found = command == Is::vkCreateDevice ? creation.create : call.next->function(command);
    if (found) Recorder::of_process().before(call);
    return found;
}

void finish(Call &call, const Creation &creation) {
    const unsigned command = call.command;
    if (creation.create && !static_cast<std::int32_t>(call.result)) {
        const bool is_device = command == Is::vkCreateDevice;
        const Handle made = *reinterpret_cast<const Handle *>(call.arguments[is_device ? 3 : 2]);
        dispatch().add(made, is_device, creation.get, creation.get_physical);
    }
    Recorder::of_process().after(call);
}

template <unsigned COMMAND_NUMBER, class Returned, class... Arguments>
__attribute__((noinline)) Returned stub(Arguments... arguments) {
    const std::uint64_t held[] = {bits_of(arguments)...};
    const Entry entry{reinterpret_cast<std::uint64_t>(__builtin_extract_return_addr(__builtin_return_address(0))),
                      reinterpret_cast<std::uint64_t>(__builtin_dwarf_cfa()),
                      *static_cast<const std::uint64_t *>(__builtin_frame_address(0))};
    Call call{COMMAND_NUMBER, held, entry};
    Creation creation;
    constexpr bool ends = COMMAND_NUMBER == Is::vkDestroyInstance || COMMAND_NUMBER == Is::vkDestroyDevice;
    const std::uint64_t key = ends && held[0] ? Dispatch::key(held[0]) : 0;
    if (ends && !held[0]) return Returned();
    const auto next = reinterpret_cast<Returned (*)(Arguments...)>(begin(call, creation));
    if constexpr (std::is_void_v<Returned>) {
        if (!next) return;
        if (ends) dispatch().remove(key);  // a new one may have it before the driver returns
        next(arguments...);
        finish(call, creation);
    } else {
        if (!next) return static_cast<Returned>(INITIALIZATION_FAILED);
        const Returned result = next(arguments...);
        call.result = widened(result);
        finish(call, creation);
        return result;
    }
}

template <unsigned COMMAND_NUMBER, class Returned, class... Arguments>
void *stub_of() {
    return reinterpret_cast<void *>(&stub<COMMAND_NUMBER, Returned, Arguments...>);
}

}  // namespace vkharness::mirror

#define VKHARNESS_STUBS
#include "generated.hpp"

vkharness::mirror::UnknownCommand vkharness_unknown[vkharness::mirror::UNKNOWN_COMMANDS];

namespace vkharness::mirror {

namespace {

const Command *command_named(const char *name) {
    const Command *const end = COMMAND_TABLE + COMMANDS;
    const Command *const found = std::lower_bound(COMMAND_TABLE, end, name, [](const Command &each, const char *wanted) { return std::strcmp(each.name, wanted) < 0; });
    return found != end && !std::strcmp(found->name, name) ? found : nullptr;
}

// Whether the layer has to see a command though nothing is recorded.
bool is_needed(const Command &command) {
    const auto number = static_cast<unsigned>(&command - COMMAND_TABLE);
    return number == Is::vkCreateInstance || number == Is::vkDestroyInstance || number == Is::vkCreateDevice || number == Is::vkDestroyDevice;
}

// What the layer gives for a command whose next function is `next`.
Function given(const char *name, const Command *command, Function next) {
    if (!next) return nullptr;
    const bool records = Recorder::of_process().out.is_on();
    if (command) return (records && !(command->flags & IS_GLOBAL)) || is_needed(*command) ? reinterpret_cast<Function>(command->stub) : next;
    return records ? unknown_commands().standing_for(name, next) : next;
}

Function get_device_proc_addr(Handle device, const char *name) {
    if (!std::strcmp(name, "vkGetDeviceProcAddr")) return reinterpret_cast<Function>(get_device_proc_addr);
    Next *const next = device ? dispatch().find(device) : nullptr;
    return next ? given(name, command_named(name), next->get(device, name)) : nullptr;
}

// The next function of an instance. Those that were asked for at its creation are not asked for again.
Function of_instance(Next &next, const Command *command, GetProcAddr get, const char *name) {
    const bool was_asked = command && command->flags & (OF_INSTANCE | OF_PHYSICAL);
    return was_asked ? next.function(static_cast<unsigned>(command - COMMAND_TABLE)) : get(next.handle, name);
}

Function get_physical_device_proc_addr(Handle instance, const char *name) {
    Next *const next = instance ? dispatch().find(instance) : nullptr;
    if (!next || !next->get_physical) return nullptr;
    const Command *const command = command_named(name);
    if (command && !(command->flags & OF_PHYSICAL)) return nullptr;
    return given(name, command, of_instance(*next, command, next->get_physical, name));
}

Function get_instance_proc_addr(Handle instance, const char *name) {
    if (!std::strcmp(name, "vkGetInstanceProcAddr")) return reinterpret_cast<Function>(get_instance_proc_addr);
    if (!std::strcmp(name, "vkGetDeviceProcAddr")) return reinterpret_cast<Function>(get_device_proc_addr);
    const Command *const command = command_named(name);
    if (command && is_needed(*command)) return reinterpret_cast<Function>(command->stub);
    Next *const next = instance ? dispatch().find(instance) : nullptr;
    return next ? given(name, command, of_instance(*next, command, next->get, name)) : nullptr;
}

void follow_forks() {
    static std::once_flag done;
    std::call_once(done, [] {
        Recorder::of_process();
        const auto before = [] {
            dispatch().lock().lock();
            unknown_commands().lock().lock();
            Recorder::of_process().forking();
        };
        const auto in_parent = [] {
            Recorder::of_process().forked(false);
            unknown_commands().lock().unlock();
            dispatch().lock().unlock();
        };
        const auto in_child = [] {
            Recorder::of_process().forked(true);
            unknown_commands().lock().unlock();
            dispatch().lock().unlock();
        };
        pthread_atfork(before, in_parent, in_child);
    });
}

// The process ends, and not by a signal or _exit.
struct End {
    ~End() { Recorder::of_process().out.end(); }
} end_of_process;

}  // namespace

}  // namespace vkharness::mirror

extern "C" __attribute__((visibility("default"))) std::int32_t vkNegotiateLoaderLayerInterfaceVersion(vkharness::mirror::Negotiation *told) {
    using namespace vkharness::mirror;
    if (!told || told->version < INTERFACE) return INITIALIZATION_FAILED;
    follow_forks();
    told->version = INTERFACE;
    told->get_instance_proc_addr = get_instance_proc_addr;
    told->get_device_proc_addr = get_device_proc_addr;
    told->get_physical_device_proc_addr = get_physical_device_proc_addr;
    return SUCCESS;
}
