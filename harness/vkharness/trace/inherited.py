"""Accesses of commands of a secondary command buffer to attachments that only the primary one knows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from vkharness.trace.graphics_state import Targets


@dataclass(frozen=True, slots=True)
class InheritedTargets:
    """The attachments that a command of a secondary accesses, where the render pass instance is not known.

    `Execute` holds accesses in place of this effect, so that judges need no rule for it.
    """

    targets: Targets


@dataclass(frozen=True, slots=True)
class InheritedClear(InheritedTargets):
    """A vkCmdClearAttachments in a secondary, where the render pass instance is not known.

    It has (aspects, colour attachment) pairs, and rectangles (x, y, width, height, first layer, layers).
    """

    _: KW_ONLY
    clears: tuple[tuple[int, int], ...] = ()
    rects: tuple[tuple[int, int, int, int, int, int], ...] = ()
