"""The cells of the matrix, in one fixed order, and each one as a claim that the scenario machinery can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from vkharness.rig.core import RigImage
from vkharness.rig.rig import Rig
from vkharness.suite.claims import Claim, ExpectedHazard, Variant
from vkharness.suite.matrix.defects import Defect, Setting, expected, possible, right
from vkharness.suite.matrix.operation_table import DEVICE
from vkharness.suite.matrix.operations import OPERATIONS, MatrixOperation
from vkharness.suite.matrix.primitives import PRIMITIVES, Primitive
from vkharness.suite.matrix.resource_kinds import RESOURCES, ResourceKind

PLAIN = {"buffer", "image", "depth image"}
"""Resources on which every primitive and every operation is tried. The others differ in what a range names and in how
texels lie: they are tried with `barrier2`, and without the variants of an operation in other shader stages. A primitive
sees the masks of an operation and nothing else of it: variants are tried with `barrier2`, too."""
RANGED = "barrier2"
FIRST_VALUE, SECOND_VALUE = 4, 6
"""The values that the first and the second operation write; the resource holds zeros before. As parameters of a draw
each covers part of the target."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Two operations on one resource, ordered by one primitive with one defect."""

    first: MatrixOperation
    second: MatrixOperation
    resource: ResourceKind
    primitive: Primitive
    defect: Defect

    @property
    def name(self) -> str:
        """Reads as a sentence, and finds the cell again (`find`)."""
        how = "" if self.defect.name == "none" else f", {self.defect.name}"
        return f"{self.first.name}, {self.second.name}: {self.resource.name}, {self.primitive.name}{how}"

    @property
    def setting(self) -> Setting:
        """The facts on which the cell's defect and its expectation depend."""
        return Setting(self.first, self.second, self.resource, self.primitive)

    @property
    def expected(self) -> tuple[ExpectedHazard, ...]:
        """The hazards that the rules call for."""
        return expected(self.setting, self.defect)

    @property
    def shows(self) -> bool:
        """Whether its hazard can change bytes: what a read gets must reach memory."""
        return self.first.observable and self.second.observable

    def claim(self) -> Claim:
        """The cell as a scenario of one variant."""
        needs = dict.fromkeys((*self.resource.needs, *self.first.needs, *self.second.needs))
        return Claim(self.record, {Variant(): self.expected}, tuple(needs), name=self.name)

    def record(self, rig: Rig) -> None:
        """Readies the resource and what the operations need, waits, then records and submits the pair."""
        part = self.resource.make(rig)
        with rig.commands() as setup:
            if isinstance(part.resource, RigImage):
                setup.transition(part.resource, dst="ALL_COMMANDS|HOST/MEMORY_READ|MEMORY_WRITE")
            first = self.first.prepare(setup, part, FIRST_VALUE)
            second = self.second.prepare(setup, part, SECOND_VALUE)
            link = self.defect.change(self.setting, part, right(self.setting, part))
            about = link.about.get("image") if link is not None else None
            if about is not None and about is not part.resource:
                setup.transition(about)
        rig.submit(setup)
        rig.wait()
        self.primitive.relate(rig, first, second, link)


@cache
def cells() -> tuple[Cell, ...]:
    """Every cell in which at least one operation writes."""
    return tuple(_cells())


def _cells() -> Iterator[Cell]:
    for resource in RESOURCES.values():
        able = [each for each in OPERATIONS.values() if resource.kind in each.kinds]
        for first in able:
            for second in (each for each in able if first.writes or each.writes):
                for primitive in _primitives(resource, first, second):
                    for defect in possible(Setting(first, second, resource, primitive)):
                        yield Cell(first, second, resource, primitive, defect)


def _primitives(resource: ResourceKind, first: MatrixOperation, second: MatrixOperation) -> Iterator[Primitive]:
    varied, plain = first.variant or second.variant, resource.name in PLAIN
    for each in PRIMITIVES.values():
        alone = each.places != (DEVICE, DEVICE) or each.name == RANGED
        if each.places == (first.place, second.place) and (plain or (alone and not varied)) and (alone or not varied):
            yield each
