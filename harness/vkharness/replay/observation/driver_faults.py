"""Writes of software drivers that are known, and that the specification does not allow: no faults of the declarations.

Each entry says which driver, which command and which addresses. Anything beside them is a violation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from vkharness.replay.observation.declared import Declared
from vkharness.replay.schedule.steps import Step
from vkharness.spans import Span, merge
from vkharness.spec.command_classes import DRAWS
from vkharness.spec.enums import VkQueryResult
from vkharness.trace.calls import Call
from vkharness.trace.resources import Image


@dataclass(slots=True)
class Faults:
    """The addresses, by resource, at which a command of a driver is known to write without right."""

    spans: dict[int, list[Span]] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    def add(self, reason: str, resource: int, spans: list[Span]) -> None:
        """Takes in what one entry excuses."""
        self.spans[resource] = merge([*self.spans.get(resource, ()), *spans])
        if reason not in self.reasons:
            self.reasons.append(reason)


RESOLVES_TOO_MUCH = {
    "lavapipe": "Mesa 22.3 resolves at the end of a render pass instance into the first layer of the mip level",
    "swiftshader": "SwiftShader resolves whole subresources, whatever the render area",
}
ZEROES_A_STRIDE = "Mesa 22.3 zeroes a whole stride for each query that never ran, when availability is asked for"
BEYOND_THE_SCISSOR = "Mesa 22.3 draws to multisampled images a texel beyond the scissor"
WITHOUT_AN_OUTPUT = "Mesa 22.3 draws to colour attachments for which the fragment shader declares no output"


def known_faults(driver: str, steps: list[Step], declared: Declared, images: dict[int, Image]) -> Faults:
    """Returns the addresses that a driver is known to write without right when it executes the steps of one piece."""
    found = Faults()
    if driver in RESOLVES_TOO_MUCH:
        for resource, spans in declared.resolves.items():
            if resource in images:
                found.add(RESOLVES_TOO_MUCH[driver], resource, list(_around(driver, images[resource], spans)))
    if driver == "lavapipe":
        for step in steps:
            call = step.block
            if step.name.startswith(DRAWS):
                _draws(declared, images, found)
            if (
                isinstance(call, Call)
                and call.name == "vkCmdCopyQueryPoolResults"
                and call.args["flags"] & VkQueryResult.WITH_AVAILABILITY
            ):
                begin, stride = call.args["dstOffset"], call.args["stride"]
                found.add(ZEROES_A_STRIDE, call.args["dstBuffer"], [(begin, begin + stride * call.args["queryCount"])])
    return found


def _draws(declared: Declared, images: dict[int, Image], found: Faults) -> None:
    """Beside one colour attachment that has an output there must be another one that has none."""
    if len(declared.colors) > 1:
        for resource, spans in declared.colors.items():
            found.add(WITHOUT_AN_OUTPUT, resource, spans)
    for resource, spans in declared.writes.items():
        if resource in images and images[resource].samples > 1:
            image = images[resource]
            for box in (box for span in spans for box in image.boxes(span)):
                low = (max(0, box.offset[0] - 1), max(0, box.offset[1] - 1), 0)
                extent = (box.extent[0] + 2, box.extent[1] + 2, 1)
                around = image.region(box.aspect, box.mip, [box.layer], low, extent)
                found.add(BEYOND_THE_SCISSOR, resource, list(around))


def _around(driver: str, image: Image, spans: list[Span]) -> Iterator[Span]:
    """The subresources that resolves into spans of an image reach on the driver."""
    for span in spans:
        for box in image.boxes(span):
            layer = 0 if driver == "lavapipe" else box.layer
            yield from image.region(box.aspect, box.mip, [layer], (0, 0, 0), image.texels(box.aspect, box.mip))
