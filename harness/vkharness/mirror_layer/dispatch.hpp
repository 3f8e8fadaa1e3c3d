// The next functions of each instance and device, by the dispatch table that its handles begin with.
//
// A thread keeps the last few that it used, so that a call takes no lock. What is destroyed changes a number, by which
// threads see that what they keep is old.

#ifndef VKHARNESS_MIRROR_DISPATCH_HPP
#define VKHARNESS_MIRROR_DISPATCH_HPP

#include "generated.hpp"
#include "loader_interface.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace vkharness::mirror {

extern const Command COMMAND_TABLE[];

struct Next {
    Handle handle = 0;  // of the instance or device
    bool is_device = false;
    GetProcAddr get = nullptr, get_physical = nullptr;
    std::atomic<Function> functions[COMMANDS] = {};

    // Of an instance all were asked for when it was created.
    Function function(unsigned command) {
        Function found = functions[command].load(std::memory_order_relaxed);
        if (!found && is_device) {
            found = get(handle, COMMAND_TABLE[command].name);
            functions[command].store(found, std::memory_order_relaxed);
        }
        return found;
    }

    // The functions of an instance, while it is being created: the loader answers with its own until then, and with
    // those of the first layer afterwards.
    void ask_all() {
        for (unsigned command = 0; command < COMMANDS; ++command) {
            if (COMMAND_TABLE[command].flags & (OF_INSTANCE | OF_PHYSICAL)) functions[command] = get(handle, COMMAND_TABLE[command].name);
        }
    }
};

class Dispatch {
  public:
    static std::uint64_t key(Handle handle) { return *reinterpret_cast<const std::uint64_t *>(handle); }

    // The functions behind a handle; nullptr for one of no instance or device that was created here.
    Next *find(Handle handle) {
        static thread_local Kept kept[PLACES];
        const std::uint64_t wanted = key(handle);
        Kept &place = kept[(wanted >> 6) % PLACES];
        const std::uint64_t changes = changes_.load(std::memory_order_acquire);
        if (place.key == wanted && place.changes == changes) return place.next;
        const std::lock_guard<std::mutex> locked(mutex_);
        const auto found = all_.find(wanted);
        if (found == all_.end()) return nullptr;
        place = {wanted, changes_.load(std::memory_order_relaxed), found->second.get()};
        return place.next;
    }

    void add(Handle handle, bool is_device, GetProcAddr get, GetProcAddr get_physical) {
        auto made = std::make_unique<Next>();
        made->handle = handle, made->is_device = is_device, made->get = get, made->get_physical = get_physical;
        if (!is_device) made->ask_all();
        const std::lock_guard<std::mutex> locked(mutex_);
        ++changes_;
        all_[key(handle)] = std::move(made);
    }

    void remove(std::uint64_t key) {
        const std::lock_guard<std::mutex> locked(mutex_);
        ++changes_;
        all_.erase(key);
    }

    std::mutex &lock() { return mutex_; }  // for fork

  private:
    static constexpr std::uint64_t PLACES = 8;
    struct Kept {
        std::uint64_t key, changes;
        Next *next;
    };

    std::mutex mutex_;
    std::atomic<std::uint64_t> changes_{1};
    std::unordered_map<std::uint64_t, std::unique_ptr<Next>> all_;
};

}  // namespace vkharness::mirror

#endif
