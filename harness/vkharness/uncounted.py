"""Which hazards count with `--strict` alone, as data: `vkharness.strictness` tells which findings are such hazards."""

from __future__ import annotations

from enum import StrEnum


class Uncounted(StrEnum):
    """Why a hazard by the letter of the specification counts with `--strict` alone: every value of
    `Finding.uncounted`. The table in `docs/hazards.md` has each, beside the values of `Finding.hazard`."""

    TWO_INSTANCES = "attachment-of-two-instances"
    """Two attachment accesses of one kind, in two render pass instances on one queue."""
    ALL_COMMANDS = "all-commands-outside-a-pass"
    """A subpass dependency with VK_SUBPASS_EXTERNAL would order the accesses, if ALL_COMMANDS on its outer side were
    more than ALL_GRAPHICS."""

    @property
    def reason(self) -> str:
        """Why it does not count, in words."""
        return _REASONS[self]


_REASONS = {
    Uncounted.TWO_INSTANCES: "two render pass instances on one attachment, which programs leave to rasterization order",
    Uncounted.ALL_COMMANDS: "ALL_COMMANDS of a subpass dependency, which is no more than ALL_GRAPHICS",
}
