"""Presents frames to a window made by GLFW; it needs a display.

python window_present.py [FRAMES] [wrong]
"""

import sys

import glfw
import vulkan as vk
from presenter import Presenter, make_instance

SIZE = (96, 64)


def main(words):
    """Presents as many frames as asked for."""
    frames = next((int(word) for word in words if word.isdigit()), 4)
    if not glfw.init():
        raise SystemExit("no display")
    glfw.window_hint(glfw.CLIENT_API, glfw.NO_API)
    glfw.window_hint(glfw.RESIZABLE, glfw.FALSE)
    window = glfw.create_window(*SIZE, "presenter", None, None)
    instance = make_instance(glfw.get_required_instance_extensions())
    surface = vk.ffi.new("VkSurfaceKHR *")
    if glfw.create_window_surface(instance, window, None, surface) != vk.VK_SUCCESS:
        raise SystemExit("no surface")
    presenter = Presenter(instance, surface[0], SIZE, mend="wrong" not in words)
    for number in range(frames):
        glfw.poll_events()
        presenter.frame(number)
    presenter.close()
    glfw.destroy_window(window)
    glfw.terminate()
    print(f"presented {frames} frames of {len(presenter.images)} images")


if __name__ == "__main__":
    main(sys.argv[1:])
