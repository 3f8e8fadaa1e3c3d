"""Which resources queue families need not transfer to one another."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

EVERY_FAMILY = ((1 << 32) - 1,) * 32
"""`SharedResource.acquirers` of buffers and linear images: any family may take them from any other one."""


@dataclass(frozen=True, slots=True)
class SharedResource:
    """The creation of a resource with VK_SHARING_MODE_CONCURRENT, which belongs to all families, or of an exclusive one
    of which some families keep the contents where they take it without a transfer (maintenance9)."""

    resource: int
    _: KW_ONLY
    acquirers: tuple[int, ...] | None = None
    """By index of the family that owns it, a mask of the families that keep the contents; None where it is concurrent.
    """
