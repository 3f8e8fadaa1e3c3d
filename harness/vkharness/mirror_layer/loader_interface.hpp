// What the Vulkan loader and a layer say to each other, as the loader's LoaderLayerInterface.md describes it.

#ifndef VKHARNESS_MIRROR_LOADER_INTERFACE_HPP
#define VKHARNESS_MIRROR_LOADER_INTERFACE_HPP

#include <cstdint>

namespace vkharness::mirror {

using Handle = std::uint64_t;  // dispatchable: the address of an object that begins with its dispatch table
using Function = void (*)();
using GetProcAddr = Function (*)(Handle, const char *);

struct InstanceLink {
    InstanceLink *next;
    GetProcAddr get_instance_proc_addr, get_physical_device_proc_addr;
};

struct DeviceLink {
    DeviceLink *next;
    GetProcAddr get_instance_proc_addr, get_device_proc_addr;
};

// In the pNext chain of vkCreateInstance and vkCreateDevice. The link is that of the next layer.
template <class Link>
struct LayerInfo {
    std::int32_t type;
    LayerInfo *next;
    std::int32_t function;  // 0: `link` is there
    Link *link;
};
constexpr std::int32_t INSTANCE_INFO = 47, DEVICE_INFO = 48, LINK = 0;

struct Negotiation {
    std::int32_t type;
    void *next;
    std::uint32_t version;
    GetProcAddr get_instance_proc_addr, get_device_proc_addr, get_physical_device_proc_addr;
};
constexpr std::uint32_t INTERFACE = 2;
constexpr std::int32_t SUCCESS = 0, INITIALIZATION_FAILED = -3;

}  // namespace vkharness::mirror

#endif
