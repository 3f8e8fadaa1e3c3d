"""Defects of dependencies, and the hazard that the rules call for with each.

The expectation of the matrix is written here and nowhere else. It knows scopes, not validators. A pair of accesses to
one location, at least one of them a write, needs an execution dependency from the first to the second. After a write it
also needs a memory dependency: the first access in the first access scope, the second in the second (specification:
"Execution and Memory Dependencies"; a write after a read needs no memory dependency).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.findings import Hazard
from harness.suite.matrix.operations import MatrixOperation
from harness.suite.matrix.primitives import Link, Primitive
from harness.suite.matrix.resource_kinds import ResourceKind, ResourcePart

TRANSFERS = {"COPY", "CLEAR", "BLIT", "RESOLVE"}
OF_TRANSFERS, OF_OTHERS = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COPY/TRANSFER_WRITE"
"""The wrong scope of an operation. Not the compute stage for what is no transfer: as a source it covers the reading of
indirect parameters, which is earlier; nor one transfer for another, which an old layer takes for the same."""

ORDER, MEMORY, NOTHING = "order", "memory", "nothing"
"""What a defect takes away: the whole dependency, its memory dependency, or nothing."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The facts on which a defect may depend."""

    first: MatrixOperation
    second: MatrixOperation
    resource: ResourceKind
    primitive: Primitive


Change = Callable[[Setting, ResourcePart, Link], Link | None]


@dataclass(frozen=True, slots=True)
class Defect:
    """One defect of the dependency between two operations. `change` returns the wrong dependency, None for none."""

    name: str
    breaks: str
    applies: Callable[[Setting], bool]
    change: Change


DEFECTS: dict[str, Defect] = {}


def defect(breaks: str, applies: Callable[[Setting], bool] = lambda _: True) -> Callable[[Change], Change]:
    """Registers a defect under its function's name, underscores as spaces."""

    def register(function: Change) -> Change:
        name = function.__name__.rstrip("_").replace("_", " ")
        DEFECTS[name] = Defect(name, breaks, applies, function)
        return function

    return register


def possible(setting: Setting) -> Iterator[Defect]:
    """The defects that this pair can have with this primitive."""
    return (each for each in DEFECTS.values() if each.applies(setting))


def expected(setting: Setting, wrong: Defect) -> Hazard | None:
    """The hazard that the rules call for."""
    first, second = setting.first, setting.second
    if not first.writes and not second.writes:
        return None
    if first.attachment and second.attachment:
        return None  # rasterization order, which the Khronos layer extends over rendering instances
    breaks = ORDER if setting.primitive.name == "nothing" else wrong.breaks
    if breaks == NOTHING or (breaks == MEMORY and not first.writes):
        return None
    if not first.writes:
        return Hazard.WRITE_AFTER_READ
    return Hazard.WRITE_AFTER_WRITE if second.writes else Hazard.READ_AFTER_WRITE


def right(setting: Setting, part: ResourcePart) -> Link:
    """The dependency that the pair needs, limited to the part where the primitive can be."""
    spell = setting.primitive.spell
    about = part.barrier() if setting.primitive.ranges else {}
    return Link(spell(setting.first.scope), spell(setting.second.scope), about)


def _is_dependency(setting: Setting) -> bool:
    return setting.primitive.name != "nothing"


def _other_stage(setting: Setting, operation: MatrixOperation) -> str:
    return setting.primitive.spell(OF_TRANSFERS if operation.stages in TRANSFERS else OF_OTHERS)


def _other_access(setting: Setting, operation: MatrixOperation) -> str:
    """The scope with the other access; empty when there is none that the primitive can tell from the right one."""
    if not (setting.primitive.accesses and operation.other_access):
        return ""
    wrong = setting.primitive.spell(f"{operation.stages}/{operation.other_access}")
    return wrong if wrong != setting.primitive.spell(operation.scope) else ""


@defect(NOTHING)
def none(_: Setting, __: ResourcePart, link: Link) -> Link | None:
    """Nothing is wrong."""
    return link


@defect(ORDER, _is_dependency)
def missing(_: Setting, __: ResourcePart, ___: Link) -> Link | None:
    """The dependency is left out."""
    return None


@defect(MEMORY, lambda setting: setting.primitive.accesses)
def execution_only(_: Setting, __: ResourcePart, link: Link) -> Link | None:
    """The stages are right, but there are no accesses."""
    return Link(*link.stages, link.about)


@defect(ORDER, lambda setting: setting.primitive.stages)
def wrong_source_stage(setting: Setting, _: ResourcePart, link: Link) -> Link | None:
    """The first scope names another stage."""
    return Link(_other_stage(setting, setting.first), link.dst, link.about)


@defect(ORDER, lambda setting: setting.primitive.stages)
def wrong_destination_stage(setting: Setting, _: ResourcePart, link: Link) -> Link | None:
    """The second scope names another stage."""
    return Link(link.src, _other_stage(setting, setting.second), link.about)


@defect(MEMORY, lambda setting: bool(_other_access(setting, setting.first)))
def wrong_source_access(setting: Setting, _: ResourcePart, link: Link) -> Link | None:
    """The first scope names another access of the right stage."""
    return Link(_other_access(setting, setting.first), link.dst, link.about)


@defect(MEMORY, lambda setting: bool(_other_access(setting, setting.second)))
def wrong_destination_access(setting: Setting, _: ResourcePart, link: Link) -> Link | None:
    """The second scope names another access of the right stage."""
    return Link(link.src, _other_access(setting, setting.second), link.about)


@defect(MEMORY, lambda setting: setting.primitive.ranges and setting.resource.kind == "buffer")
def narrow_range(setting: Setting, part: ResourcePart, link: Link) -> Link | None:
    """The barrier covers the second half of the bytes."""
    return Link(link.src, link.dst, setting.resource.half(part) or {})


@defect(MEMORY, lambda setting: setting.primitive.ranges and setting.resource.elsewhere is not None)
def wrong_subresource(setting: Setting, part: ResourcePart, link: Link) -> Link | None:
    """The barrier covers another part of the resource."""
    assert setting.resource.elsewhere is not None
    return Link(link.src, link.dst, setting.resource.elsewhere(part))


@defect(MEMORY, lambda setting: setting.primitive.ranges)
def unrelated_resource(setting: Setting, part: ResourcePart, link: Link) -> Link | None:
    """The barrier covers another resource."""
    return Link(link.src, link.dst, setting.resource.unrelated(part.rig))
