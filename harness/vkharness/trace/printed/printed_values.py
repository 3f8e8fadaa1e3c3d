"""A call as it stands in a file: names and texts, with nothing known of what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field

UNUSED = "UNUSED"
"""What the layer prints for a member that Vulkan ignores."""
HIDDEN = "address"
"""What the layer prints for each handle and address when it was told to leave them out."""
MOST_DEPTH = 64
"""Values inside one another. The registry nests fewer."""
NULLS = ("NULL", "VK_NULL_HANDLE", "(nil)", "nullptr")


@dataclass(slots=True)
class PrintedValue:
    """A parameter, a member or an element."""

    name: str
    text: str
    """What stands behind its name; empty for what has members alone."""
    parts: list[PrintedValue] = field(default_factory=list)
    """Members or elements, in order."""
    data: bytes | None = None
    """The bytes that it points to, where the file has them."""

    @property
    def is_null(self) -> bool:
        """Whether it is a pointer that leads nowhere."""
        return not self.parts and self.text in NULLS


@dataclass(slots=True)
class PrintedCall:
    """One call. `line` counts from 1 where it begins."""

    line: int
    name: str
    result: str
    """The returned value as text; empty where there is none."""
    thread: int
    values: list[PrintedValue]
    trouble: str = ""
    """Why the values are not those of the call."""
    is_last: bool = False
    """Whether the file ends within it or right behind it, so that it may be cut off."""
