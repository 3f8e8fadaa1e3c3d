"""Programs with windows on a machine with no display: GLFW's own null platform, with surfaces of
VK_EXT_headless_surface in place of windows' (which GLFW 3.4's null platform cannot make).

Everything else (sizes, hints, callbacks, time, monitors) is what GLFW does there. A window asks to be closed after a
number of frames, so that the loop of a program ends: a frame is one call that handles events.

SwiftShader says of its surfaces that the number of images has no limit (`maxImageCount` 0) and makes a swapchain of
none when it is asked for none, which programs do that take the 0 for a limit. Here they are told of one.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

from vkharness.device.drivers import environment, find_driver
from vkharness.findings import UserError
from vkharness.spec.enums import VkResult
from vkharness.spec.shapes import new_struct

DRIVER = "swiftshader"
"""The software driver that has VK_EXT_headless_surface."""
EXTENSIONS = ("VK_KHR_surface", "VK_EXT_headless_surface")
IMAGES = 8
"""The most images of a swapchain that a program is told of when there is no limit."""
CAPABILITIES = "vkGetPhysicalDeviceSurfaceCapabilitiesKHR"
DRIVER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")


def make_windowless(frames: int) -> None:
    """Makes every window of this process one of no display that lives for `frames` frames, and binds the process to a
    driver that can present to it, unless the environment names one.

    To be called before the program imports `glfw` or makes an instance. Raises `UserError` when there is no such
    driver, or a GLFW without a null platform. A process whose programs have no `glfw` is only bound to the driver.
    """
    if not any(os.environ.get(name) for name in DRIVER_VARIABLES):
        os.environ.update(environment(find_driver(DRIVER)))
    try:
        import glfw
    except ImportError:
        return
    if not hasattr(glfw, "PLATFORM_NULL") or glfw.get_version() < (3, 4, 0):
        version = ".".join(map(str, glfw.get_version()))
        raise UserError(f"--headless needs GLFW 3.4 or newer; the glfw package here has {version}")
    Windowless(glfw, frames).install()
    _limit_images()


def _limit_images() -> None:
    """Wraps the function that the `vulkan` package makes of a pointer to vkGetPhysicalDeviceSurfaceCapabilitiesKHR."""
    from vulkan import _vulkan as package

    makers = package._instance_ext_funcs
    make = makers[CAPABILITIES]

    def make_limited(pointer: Any) -> Callable[..., Any]:
        real = make(pointer)

        def ask(physicalDevice: Any, surface: Any, pSurfaceCapabilities: Any = None) -> Any:
            answer = real(physicalDevice, surface, pSurfaceCapabilities)
            told = pSurfaceCapabilities or answer
            told.maxImageCount = told.maxImageCount or max(IMAGES, told.minImageCount)
            return answer

        return ask

    makers[CAPABILITIES] = make_limited


class Windowless:
    """Functions that replace some functions of the `glfw` module, with the same arguments and results."""

    def __init__(self, glfw: Any, frames: int) -> None:
        self._glfw, self._frames = glfw, frames
        self._polls = 0
        self._asked = 0
        self._real: dict[str, Callable[..., Any]] = {}

    def install(self) -> None:
        """Puts these functions into the module."""
        for name in (
            "init",
            "terminate",
            "create_window",
            "poll_events",
            "wait_events",
            "wait_events_timeout",
            "window_should_close",
            "vulkan_supported",
            "get_required_instance_extensions",
            "get_physical_device_presentation_support",
            "create_window_surface",
        ):
            if hasattr(self._glfw, name):
                self._real[name] = getattr(self._glfw, name)
                setattr(self._glfw, name, getattr(self, name))

    def init(self) -> Any:
        """Initializes the null platform, whatever the program asked for."""
        self._polls = self._asked = 0
        self._glfw.init_hint(self._glfw.PLATFORM, self._glfw.PLATFORM_NULL)
        return self._real["init"]()

    def terminate(self) -> None:
        """Ends GLFW; the frames of the next `init` are counted anew."""
        self._real["terminate"]()

    def create_window(self, *arguments: Any, **named: Any) -> Any:
        """A window with no context of a graphics library."""
        self._glfw.window_hint(self._glfw.CLIENT_API, self._glfw.NO_API)
        return self._real["create_window"](*arguments, **named)

    def poll_events(self) -> None:
        """Handles events: a frame of the program."""
        self._polls += 1
        self._real["poll_events"]()

    def wait_events(self) -> None:
        """No event would ever come: it does not wait."""
        self.poll_events()

    def wait_events_timeout(self, timeout: float) -> None:
        """No event would come in that time: it does not wait."""
        self.poll_events()

    def window_should_close(self, window: Any) -> Any:
        """Whether the frames are over. For a program that handles no events, each question counts as a frame."""
        self._asked += 1
        over = self._polls >= self._frames if self._polls else self._asked > self._frames
        return 1 if over else self._real["window_should_close"](window)

    def vulkan_supported(self) -> bool:
        """Yes."""
        return True

    def get_required_instance_extensions(self) -> list[str]:
        """The extensions that surfaces need here."""
        return list(EXTENSIONS)

    def get_physical_device_presentation_support(self, instance: Any, device: Any, queuefamily: int) -> int:
        """Any queue family can present to a surface that nobody sees."""
        return 1

    def create_window_surface(self, instance: Any, window: Any, allocator: Any, surface: Any) -> int:
        """Makes a headless surface in `surface`, a VkSurfaceKHR pointer of cffi or ctypes; the VkResult.

        It goes through the `vulkan` package, so that an attached session sees it.
        """
        import vulkan as vk

        owner = vk.ffi.cast("VkInstance", _address(instance))
        found = vk.lib.vkGetInstanceProcAddr(owner, vk.ffi.new("char[]", b"vkCreateHeadlessSurfaceEXT"))
        if found == vk.ffi.NULL:
            return VkResult.ERROR_EXTENSION_NOT_PRESENT
        info = new_struct(vk.ffi, "VkHeadlessSurfaceCreateInfoEXT")
        create = vk.ffi.cast("PFN_vkCreateHeadlessSurfaceEXT", found)
        return int(create(owner, info, vk.ffi.NULL, vk.ffi.cast("VkSurfaceKHR *", _address(surface))))


def _address(value: Any) -> int:
    """The address that a cffi or ctypes pointer holds, or an integer is."""
    import vulkan as vk

    if isinstance(value, int):
        return value
    if isinstance(value, vk.ffi.CData):
        return int(vk.ffi.cast("uintptr_t", value))
    return int(ctypes.cast(value, ctypes.c_void_p).value or 0)
