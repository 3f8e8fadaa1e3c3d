"""Constants of Vulkan by their short names: stages, accesses, layouts, and what the programs use most."""

import sys
from pathlib import Path

import vulkan as vk

MENDED = "--mended" in sys.argv
FOREVER = 0xFFFFFFFFFFFFFFFF
IGNORED = vk.VK_QUEUE_FAMILY_IGNORED
COLOR, DEPTH = vk.VK_IMAGE_ASPECT_COLOR_BIT, vk.VK_IMAGE_ASPECT_DEPTH_BIT
RGBA, D32 = vk.VK_FORMAT_R8G8B8A8_UNORM, vk.VK_FORMAT_D32_SFLOAT
DEEP = (D32, vk.VK_FORMAT_D16_UNORM, vk.VK_FORMAT_D32_SFLOAT_S8_UINT, vk.VK_FORMAT_D24_UNORM_S8_UINT)
SHADERS = Path(__file__).resolve().parents[2] / "shaders"
STORAGE, UNIFORM = vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, vk.VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
SAMPLED, STORED = vk.VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, vk.VK_DESCRIPTOR_TYPE_STORAGE_IMAGE
INPUT = vk.VK_DESCRIPTOR_TYPE_INPUT_ATTACHMENT


def one_of(prefix, name):
    """A constant by the end of its name."""
    return getattr(vk, prefix + name)


def layout(name):
    """A VkImageLayout."""
    return one_of("VK_IMAGE_LAYOUT_", name)


def stages(text):
    """The stages of a scope such as "COPY|BLIT/TRANSFER_WRITE"."""
    names = [each for each in text.split("/")[0].split("|") if each != "NONE"]
    return sum(one_of("VK_PIPELINE_STAGE_2_", each + "_BIT") for each in names)


def accesses(text):
    """The accesses of a scope."""
    return sum(one_of("VK_ACCESS_2_", each + "_BIT") for each in text.partition("/")[2].split("|") if each)
