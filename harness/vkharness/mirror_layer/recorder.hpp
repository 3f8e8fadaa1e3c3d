// Each call as it passes: what is done before it is forwarded and after, and the records that it gives.
//
// A call takes the stream's lock once before it is forwarded where its record or its host writes come first, and once
// afterwards. The lock is never held while a driver is called.

#ifndef VKHARNESS_MIRROR_RECORDER_HPP
#define VKHARNESS_MIRROR_RECORDER_HPP

#include "copier.hpp"
#include "dispatch.hpp"
#include "mapped.hpp"
#include "stacks.hpp"

#include <optional>
#include <sys/stat.h>

namespace vkharness::mirror {

struct Call {
    unsigned command;
    const std::uint64_t *arguments;
    Entry entry;
    std::uint64_t result = 0;
    Next *next = nullptr;
    std::uint64_t first = 0;  // serial of its ENTER
    int imported = -1;
    struct stat file = {};
    bool is_recorded = false;

    const Command &row() const { return COMMAND_TABLE[command]; }
    bool is(unsigned main) const { return row().main == main; }
    bool has(Flags flag) const { return row().flags & flag; }
    bool succeeded() const { return !has(FAILS) || static_cast<std::int32_t>(result) >= 0; }
    bool was_done() const { return !has(FAILS) || !static_cast<std::int32_t>(result); }
};

template <class T>
std::optional<T> read(std::uint64_t at) {
    T found;
    if (!at || !Readable::copy(&found, at, sizeof found)) return std::nullopt;
    return found;
}

class Recorder {
  public:
    Stream out;

    static Recorder &of_process() {
        static Recorder *const made = new Recorder();  // never destroyed: threads may call until the end
        return *made;
    }

    // What comes before the call is forwarded.
    void before(Call &call) {
        if (!out.is_on()) return;
        if (call.is(Is::vkAllocateMemory) || call.has(IMPORTS_FILE)) look_at_import(call);
        if (!(call.row().flags & (FIRST | LOOK_BEFORE))) return;
        Frames frames;
        if (call.has(FIRST)) stacks_.take(call.entry, frames, out.mutex);
        {
            const std::lock_guard<std::mutex> locked(out.mutex);
            const std::uint32_t thread = this_thread();
            if (call.has(LOOK_BEFORE)) mapped_.look(out, thread);
            gone(call);
            if (!call.has(FIRST)) return;
            call.first = tell(call, call.has(VOID) ? CALL : ENTER, frames, thread);
            call.is_recorded = call.has(VOID);
            if (call.first && !call.is_recorded) out.open_calls.entered(call.first);
        }
        if (call.is_recorded) out.answered(call.first);
    }

    // What comes when it has returned.
    void after(Call &call) {
        if (!out.is_on() || call.is_recorded) return;
        std::optional<std::uint64_t> separate;
        if (call.is(Is::vkCreateDevice) && call.was_done()) separate = separate_aspects(call);
        Frames frames;
        if (!call.first) stacks_.take(call.entry, frames, out.mutex);
        std::uint64_t serial;
        {
            const std::lock_guard<std::mutex> locked(out.mutex);
            const std::uint32_t thread = this_thread();
            if (call.has(LOOK_AFTER)) mapped_.look(out, thread);
            if (call.was_done()) done(call, thread);
            if (separate) tell_numbers(PROPERTY, thread, {call.arguments[0], *separate});
            serial = call.first ? tell_return(call, thread) : tell(call, CALL, frames, thread);
            if (call.first) out.open_calls.returned(call.first);
        }
        out.answered(serial);
    }

    // A command that the tables lack was called.
    void unseen(const char *name) {
        if (!out.is_on()) return;
        const std::lock_guard<std::mutex> locked(out.mutex);
        tell_text(UNSEEN, 0, this_thread(), name);
    }

    // Before and after fork. In the child everything begins anew.
    void forking() { out.mutex.lock(); }
    void forked(bool is_child) {
        if (is_child) {
            out.born_again();
            mapped_.born_again();
            threads_ = 0;
            std::fill(std::begin(named_), std::end(named_), false);
        }
        out.mutex.unlock();
    }

  private:
    Stacks stacks_;
    MappedMemory mapped_;
    UpdateTemplates templates_;
    std::uint32_t threads_ = 0;
    bool named_[COMMANDS] = {};

    Recorder() {
        out.configure();
        if (!out.is_on()) return;
        mapped_.prepare();
        stacks_.configure();
        out.depth(stacks_.depth());
    }

    // The number of the calling thread in this stream. The lock is held.
    std::uint32_t this_thread() {
        static thread_local struct {
            std::uint32_t generation, number;
        } mine = {};
        if (mine.generation != out.generation()) mine = {out.generation(), threads_++};
        return mine.number;
    }

    std::uint64_t tell(const Call &call, Kind kind, const Frames &frames, std::uint32_t thread) {
        const Command &row = call.row();
        if (!named_[call.command]) {
            named_[call.command] = true;
            tell_text(COMMAND, call.command, thread, row.name);
        }
        const std::uint32_t stack = stacks_.number(frames, out, thread);
        const bool succeeded = kind == CALL && call.succeeded();
        const std::uint64_t serial = out.write(kind, call.command, thread, stack, [&] {
            const std::uint64_t head[] = {call.result, row.arguments};
            char *const to = out.room(sizeof head + 8 * row.arguments);
            if (!to) return;
            std::memcpy(to, head, sizeof head);
            std::memcpy(to + sizeof head, call.arguments, 8 * row.arguments);
            Copier copier(out, templates_);
            for (const Pointer *p = POINTERS + row.first; p != POINTERS + row.first + row.count; ++p) {
                const std::uint64_t leads = copier.argument(*p, call.arguments, succeeded);
                std::memcpy(to + sizeof head + 8 * p->at, &leads, 8);
            }
            if (call.is(Is::vkCreateDescriptorUpdateTemplate)) rewrite_entries(to - sizeof(Head), to + sizeof head, call.arguments);
        });
        if (!serial && out.is_on()) {
            const char *const why = out.state == Stream::State::TOO_DEEP ? "its structs lead into each other" : "it is too large";
            tell_text(LOST, call.command, thread, (std::string(row.name) + ": " + why).c_str());
        }
        return serial;
    }

    std::uint64_t tell_return(const Call &call, std::uint32_t thread) {
        return tell_numbers(RETURN, thread, {call.first, call.result}, call.command);
    }

    std::uint64_t tell_numbers(Kind kind, std::uint32_t thread, std::initializer_list<std::uint64_t> numbers, unsigned command = 0) {
        return out.write(kind, command, thread, 0, [&] {
            if (char *const to = out.room(8 * numbers.size())) std::memcpy(to, numbers.begin(), 8 * numbers.size());
        });
    }

    void tell_text(Kind kind, unsigned command, std::uint32_t thread, const char *text) {
        out.write(kind, command, thread, 0, [&] {
            const std::size_t size = std::strlen(text);
            char *const to = out.room((size + 8) / 8 * 8);
            if (!to) return;
            std::memset(to + size / 8 * 8, 0, 8);
            std::memcpy(to, text, size);
        });
    }

    // What is not there any more when the driver has it: another thread may look at mapped memory meanwhile.
    void gone(const Call &call) {
        const std::uint64_t *const a = call.arguments;
        switch (call.row().main) {
            case Is::vkUnmapMemory: mapped_.unmapped({a[0], a[1]}); break;
            case Is::vkUnmapMemory2KHR:
                if (const auto memory = read<std::uint64_t>(a[1] + VkMemoryUnmapInfoKHR_memory)) mapped_.unmapped({a[0], *memory});
                break;
            case Is::vkFreeMemory: mapped_.freed({a[0], a[1]}); break;
            case Is::vkDestroyDevice: mapped_.device_destroyed(a[0]); break;
            case Is::vkDestroyDescriptorUpdateTemplate: templates_.erase(a[1]); break;
            default: break;
        }
    }

    // What a call that has done what it should means to the layer. The lock is held.
    void done(const Call &call, std::uint32_t thread) {
        const std::uint64_t *const a = call.arguments;
        switch (call.row().main) {
            case Is::vkAllocateMemory: allocated(a); break;
            case Is::vkMapMemory: mapped(a[0], a[1], a[2], a[3], a[5], thread); break;
            case Is::vkMapMemory2KHR: {
                const auto memory = read<std::uint64_t>(a[1] + VkMemoryMapInfoKHR_memory);
                const auto offset = read<std::uint64_t>(a[1] + VkMemoryMapInfoKHR_offset);
                const auto size = read<std::uint64_t>(a[1] + VkMemoryMapInfoKHR_size);
                if (memory && offset && size) mapped(a[0], *memory, *offset, *size, a[2], thread);
                break;
            }
            case Is::vkCreateDescriptorUpdateTemplate: template_made(a[1], a[3]); break;
            default: break;
        }
        if (call.imported >= 0) tell_file(call.imported, call.file, thread);
        if (call.has(EXPORTS_FILE)) exported(a[2], thread);
    }

    void allocated(const std::uint64_t *a) {
        const auto memory = read<std::uint64_t>(a[3]), size = read<std::uint64_t>(a[1] + VkMemoryAllocateInfo_allocationSize);
        if (!memory || !size) return;
        bool shared = false;
        each_link(a[1], [&](std::int32_t type, std::uint64_t) {
            shared |= std::find(std::begin(SHARED_TYPES), std::end(SHARED_TYPES), type) != std::end(SHARED_TYPES);
        });
        mapped_.allocated({a[0], *memory}, *size, shared);
    }

    void mapped(std::uint64_t device, std::uint64_t memory, std::uint64_t offset, std::uint64_t size, std::uint64_t data, std::uint32_t thread) {
        if (const auto address = read<std::uint64_t>(data)) mapped_.mapped({device, memory}, offset, size, *address, out, thread);
    }

    template <class Take>
    static void each_link(std::uint64_t address, Take &&take) {
        for (unsigned links = 0; links < 64; ++links) {
            const auto type = read<std::int32_t>(address);
            if (!type) return;
            take(*type, address);
            address = read<std::uint64_t>(address + 8).value_or(0);
        }
    }

    void template_made(std::uint64_t info, std::uint64_t made) {
        const auto handle = read<std::uint64_t>(made);
        const auto count = read<std::uint32_t>(info + VkDescriptorUpdateTemplateCreateInfo_descriptorUpdateEntryCount);
        const auto entries = read<std::uint64_t>(info + VkDescriptorUpdateTemplateCreateInfo_pDescriptorUpdateEntries);
        if (!handle || !count || !entries) return;
        const std::uint64_t size = std::uint64_t(*count) * size_of_VkDescriptorUpdateTemplateEntry;
        if (!size || size > Stream::MOST || !read<char>(*entries + size - 1)) return;
        std::vector<char> held(size);
        if (Readable::copy(held.data(), *entries, size)) templates_[*handle] = UpdateTemplate(held.data(), *count);
    }

    // In the record of its creation, a template says where data lies in records.
    void rewrite_entries(char *record, const char *leads, const std::uint64_t *arguments) {
        const auto handle = read<std::uint64_t>(arguments[3]);
        const auto known = templates_.find(handle.value_or(0));
        const std::uint64_t info = number_at(leads + 8, 8);
        if (known == templates_.end() || info < sizeof(Head)) return;
        const std::uint64_t entries = number_at(record + info + VkDescriptorUpdateTemplateCreateInfo_pDescriptorUpdateEntries, 8);
        const std::uint64_t count = number_at(record + info + VkDescriptorUpdateTemplateCreateInfo_descriptorUpdateEntryCount, 4);
        if (entries >= sizeof(Head)) known->second.rewrite(record + entries, count);
    }

    // The descriptor that is imported is the driver's afterwards.
    static void look_at_import(Call &call) {
        std::optional<std::int32_t> file;
        if (call.has(IMPORTS_FILE)) file = read<std::int32_t>(call.arguments[1] + IMPORTED_FD);
        else each_link(call.arguments[1], [&](std::int32_t type, std::uint64_t at) {
            if (type == type_of_VkImportMemoryFdInfoKHR) file = read<std::int32_t>(at + VkImportMemoryFdInfoKHR_fd);
        });
        if (file && *file >= 0 && is_named(*file, call.file)) call.imported = *file;
    }

    void exported(std::uint64_t place, std::uint32_t thread) {
        const auto file = read<std::int32_t>(place);
        struct stat found;
        if (file && *file >= 0 && is_named(*file, found)) tell_file(*file, found, thread);
    }

    // Whether the file behind a descriptor is the same in every process: memory files and DMA buffers have an inode of
    // their own, anonymous files and devices have not.
    static bool is_named(int file, struct stat &found) {
        const int before = errno;
        bool named = fstat(file, &found) == 0;
        if (named && !S_ISREG(found.st_mode)) {
            char link[32], path[16] = {};
            std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
            named = readlink(link, path, sizeof path - 1) > 0 && !std::strncmp(path, "/dmabuf", 7);
        }
        errno = before;
        return named;
    }

    void tell_file(int file, const struct stat &found, std::uint32_t thread) {
        tell_numbers(FILE_OF, thread, {static_cast<std::uint64_t>(file), found.st_dev, found.st_ino});
    }

    // separateDepthStencilAttachmentAccess of a physical device; 0 where it lacks VK_KHR_maintenance7, nothing where it
    // does not say.
    static std::optional<std::uint64_t> separate_aspects(const Call &call) {
        using Enumerate = std::int32_t (*)(Handle, const char *, std::uint32_t *, void *);
        using Ask = void (*)(Handle, void *);
        const Handle physical = call.arguments[0];
        Next *const next = call.next;
        const auto enumerate = reinterpret_cast<Enumerate>(next ? next->function(Is::vkEnumerateDeviceExtensionProperties) : nullptr);
        if (!enumerate) return std::nullopt;
        std::uint32_t count = 0;
        if (enumerate(physical, nullptr, &count, nullptr) < 0) return std::nullopt;
        std::vector<char> listed(std::size_t(count) * size_of_VkExtensionProperties);
        if (enumerate(physical, nullptr, &count, listed.data()) < 0) return std::nullopt;
        bool has = false;
        for (std::uint32_t at = 0; at < count; ++at) {
            has |= !std::strcmp(listed.data() + std::size_t(at) * size_of_VkExtensionProperties + VkExtensionProperties_extensionName, "VK_KHR_maintenance7");
        }
        if (!has) return 0;
        auto ask = reinterpret_cast<Ask>(next->function(Is::vkGetPhysicalDeviceProperties2));
        if (!ask) ask = reinterpret_cast<Ask>(next->function(Is::vkGetPhysicalDeviceProperties2KHR));
        if (!ask) return std::nullopt;
        alignas(8) char told[size_of_VkPhysicalDeviceMaintenance7PropertiesKHR] = {}, asked[size_of_VkPhysicalDeviceProperties2] = {};
        std::memcpy(told, &type_of_VkPhysicalDeviceMaintenance7PropertiesKHR, 4);
        std::memcpy(asked, &type_of_VkPhysicalDeviceProperties2, 4);
        const char *const chained = told;
        std::memcpy(asked + 8, &chained, sizeof chained);
        char *const place = told + VkPhysicalDeviceMaintenance7PropertiesKHR_separateDepthStencilAttachmentAccess;
        std::memset(place, 0xFF, 4);  // no VkBool32: what stays if the driver does not know the struct
        ask(physical, asked);
        const std::uint64_t value = number_at(place, 4);
        if (value == 0xFFFFFFFF) return std::nullopt;
        return value != 0;
    }
};

}  // namespace vkharness::mirror

#endif
