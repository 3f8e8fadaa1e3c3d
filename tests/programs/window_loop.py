"""Presents frames to a window until it is closed, the way that tutorials do; it ends by itself only with no display.

python window_loop.py [cffi|ctypes] [wait|silent]
"""

import ctypes
import sys

import glfw
import glfw.GLFW as constants
import vulkan as vk
from presenter import Presenter, make_instance


def make_surface(instance, window, pointers):
    """The window's surface, through a pointer of the library asked for."""
    if pointers == "ctypes":
        raw = ctypes.c_uint64()
        assert glfw.create_window_surface(int(vk.ffi.cast("uintptr_t", instance)), window, None, ctypes.byref(raw)) == 0
        return vk.ffi.cast("VkSurfaceKHR", raw.value)
    surface = vk.ffi.new("VkSurfaceKHR *")
    assert constants.glfwCreateWindowSurface(instance, window, vk.ffi.NULL, surface) == vk.VK_SUCCESS
    return surface[0]


def main(words):
    """Presents until the window asks to be closed."""
    pointers = "ctypes" if "ctypes" in words else "cffi"
    if not glfw.init():
        raise SystemExit("no display")
    glfw.window_hint(constants.GLFW_CLIENT_API, constants.GLFW_NO_API)
    glfw.window_hint(constants.GLFW_RESIZABLE, constants.GLFW_TRUE)
    window = glfw.create_window(96, 64, "loop", None, None)
    assert glfw.vulkan_supported()
    pressed = []
    glfw.set_key_callback(window, lambda *event: pressed.append(event))
    instance = make_instance(glfw.get_required_instance_extensions())
    presenter = Presenter(instance, make_surface(instance, window, pointers), glfw.get_framebuffer_size(window))
    assert glfw.get_physical_device_presentation_support(instance, presenter.physical, 0)
    number, began = 0, glfw.get_time()
    while not glfw.window_should_close(window):
        if "wait" in words:
            glfw.wait_events()
        elif "silent" not in words:
            glfw.poll_events()
        presenter.frame(number)
        glfw.set_window_title(window, f"frame {number} at {glfw.get_time() - began:.3f} s")
        number += 1
    presenter.close()
    glfw.terminate()
    print(f"presented {number} frames of {len(presenter.images)} images")


if __name__ == "__main__":
    main(sys.argv[1:])
