"""Presents frames to a surface of VK_EXT_headless_surface: no window, no display.

    python headless_present.py [FRAMES] [wrong]

`wrong` lets the first layout transition start before the image is acquired.
"""

import sys

import vulkan as vk
from presenter import Presenter, make_instance


def main(words):
    """Presents as many frames as asked for."""
    frames = next((int(word) for word in words if word.isdigit()), 4)
    instance = make_instance(["VK_KHR_surface", "VK_EXT_headless_surface"])
    create = vk.vkGetInstanceProcAddr(instance, "vkCreateHeadlessSurfaceEXT")
    surface = create(instance, vk.VkHeadlessSurfaceCreateInfoEXT(), None)
    presenter = Presenter(instance, surface, (64, 48), mend="wrong" not in words)
    for number in range(frames):
        presenter.frame(number)
    presenter.close()
    print(f"presented {frames} frames of {len(presenter.images)} images")


if __name__ == "__main__":
    main(sys.argv[1:])
