"""The bytes that buffers and images start with where nobody wrote any: the same in replays and in written scenarios.

Each resource has a pattern of its own, so that runs repeat and stale bytes are recognized.
"""

from __future__ import annotations

from vkharness.spec.enums import VkBufferUsage

READ_AS_NUMBERS = VkBufferUsage.INDEX_BUFFER | VkBufferUsage.INDIRECT_BUFFER
"""VkBufferUsageFlags for indices and indirect parameters. An arbitrary pattern there could run for ever."""

PATTERNS = 59
"""The number of patterns: resources whose ids differ by a multiple of it start with the same contents."""


def pattern_of(resource: int) -> int:
    """The byte that a resource is filled with: 0x81 to 0xBB, so never zero, all ones or the exponent of a NaN."""
    return 0x81 + resource * 37 % PATTERNS


def first_byte(buffer: int, usage: int) -> int:
    """The byte that a buffer of this VkBufferUsageFlags is filled with."""
    return 0 if usage & READ_AS_NUMBERS else pattern_of(buffer)
