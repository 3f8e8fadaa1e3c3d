"""Effects of rendering as data to compare: those of recorded commands, and names for their accesses."""

from __future__ import annotations

from tests.support import passes
from tests.support.passes import rect
from tests.support.streams import COLOR, R8G8B8A8, Stream
from vkharness.spec.masks import scope
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access, Effect

AREA = rect((8, 8))
COLOR_READ = "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ"
COLOR_WRITE = "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE"
EARLY_READ = "EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"
EARLY_WRITE = "EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE"
LATE_WRITE = "LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE"
ATTACHMENT_ACCESSES = (
    "INPUT_ATTACHMENT_READ|COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
    "|DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
)


def accesses(found: tuple[Effect, ...]) -> list[tuple[int, str, str]]:
    """(resource, access, operation) of the accesses among effects."""
    return [
        (each.resource, ACCESS_KINDS[each.access_kind].name.removeprefix("SYNC_"), each.operation.name)
        for each in found
        if isinstance(each, Access)
    ]


def spans(found: tuple[Effect, ...]) -> list[tuple[tuple[int, int], ...]]:
    return [each.spans for each in found if isinstance(each, Access)]


def target(
    stream: Stream, form: int = R8G8B8A8, samples: int = 1, array: int = 1, aspects: int = COLOR
) -> tuple[int, int]:
    """An image of 8 by 8 texels and a view of all its layers."""
    image = stream.image((8, 8, 1), form, array=array, samples=samples)
    return image, passes.view(stream, image, form, aspects=aspects, layers=(0, array))


def mask(text: str) -> int:
    return scope(f"NONE/{text}")[1]
