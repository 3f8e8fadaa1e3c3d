// The platform of the suite without a window, and the two functions of OpenGL contexts that its shader helpers name.

#include "deDynamicLibrary.hpp"
#include "gluDefs.hpp"
#include "gluRenderContext.hpp"
#include "tcuFunctionLibrary.hpp"
#include "tcuPlatform.hpp"
#include "vkPlatform.hpp"

namespace
{

class Library final : public vk::Library
{
public:
    explicit Library(const char *path) : m_library(path ? path : "libvulkan.so.1"), m_driver(m_library)
    {
    }
    const vk::PlatformInterface &getPlatformInterface() const override
    {
        return m_driver;
    }
    const tcu::FunctionLibrary &getFunctionLibrary() const override
    {
        return m_library;
    }

private:
    const tcu::DynamicFunctionLibrary m_library;
    const vk::PlatformDriver m_driver;
};

class Platform final : public tcu::Platform, public vk::Platform
{
public:
    const vk::Platform &getVulkanPlatform() const override
    {
        return *this;
    }
#ifdef DE_PLATFORM_USE_LIBRARY_TYPE
    vk::Library *createLibrary(LibraryType, const char *path) const override
#else
    vk::Library *createLibrary(const char *path) const override
#endif
    {
        return new Library(path);
    }
};

} // namespace

tcu::Platform *createPlatform()
{
    return new Platform;
}

namespace glu
{

void checkError(uint32_t, const char *, const char *, int)
{
}

bool contextSupports(ContextType, ApiType)
{
    return false;
}

} // namespace glu
