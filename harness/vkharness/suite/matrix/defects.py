"""Defects of dependencies, and the hazard that the rules call for with each.

The expectation of the matrix is written here and nowhere else. It knows scopes, not validators. A pair of accesses to
one location, at least one of them a write, needs an execution dependency from the first to the second. After a write it
also needs a memory dependency: the first access in the first access scope, the second in the second (specification:
"Execution and Memory Dependencies"; a write after a read needs no memory dependency).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from vkharness.findings import Hazard
from vkharness.suite.claims import ExpectedHazard
from vkharness.suite.matrix.operation_table import DEVICE, ENGINE, HOST, MatrixOperation
from vkharness.suite.matrix.primitives import Link, Primitive
from vkharness.suite.matrix.resource_kinds import ResourceKind, ResourcePart

TRANSFERS = {"COPY", "CLEAR", "BLIT", "RESOLVE"}
OF_TRANSFERS, OF_OTHERS = "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COPY/TRANSFER_WRITE"
"""The wrong scope of an operation. Not the compute stage for what is no transfer: as a source it covers the reading of
indirect parameters, which is earlier; nor one transfer for another, which an old layer takes for the same."""

ORDER, MEMORY, NOTHING = "order", "memory", "nothing"
"""The part of a dependency that a defect takes away: all of it, its memory dependency, or nothing."""
TRANSITION = "vkCmdPipelineBarrier2"
"""The command that makes an image ready for presentation."""


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


def expected(setting: Setting, wrong: Defect) -> tuple[ExpectedHazard, ...]:
    """The hazards that the rules call for, each with the two calls that meet in it."""
    first, second = setting.first, setting.second
    if second.place == ENGINE:
        return _expected_of_present(first, wrong)
    hazard = _hazard(first, second.writes, _breaks(setting, wrong)) if first.writes or second.writes else None
    commands = filter(None, (second.command, second.again))
    return tuple(ExpectedHazard(hazard, each, first.last) for each in commands) if hazard else ()


def _breaks(setting: Setting, wrong: Defect) -> str:
    if setting.primitive.name == "nothing":
        return ORDER
    # Wrong scopes do not undo a wait of the host: the accesses are in order, but the write is not visible.
    return MEMORY if setting.primitive.waits and wrong.breaks == ORDER and wrong.name != "missing" else wrong.breaks


def _hazard(first: MatrixOperation, then_writes: bool, breaks: str) -> Hazard | None:
    if breaks == NOTHING or (breaks == MEMORY and not first.writes):
        return None
    if not first.writes:
        return Hazard.WRITE_AFTER_READ
    return Hazard.WRITE_AFTER_WRITE if then_writes else Hazard.READ_AFTER_WRITE


def _expected_of_present(first: MatrixOperation, wrong: Defect) -> tuple[ExpectedHazard, ...]:
    """A present comes after the transition of its image, which is a write: the present has to wait for the transition,
    and the transition needs the dependency (specification: "Image Layout Transitions", "vkQueuePresentKHR")."""
    if wrong.name == "missing":
        return (ExpectedHazard(Hazard.PRESENT_AFTER_WRITE, "vkQueuePresentKHR", TRANSITION),)
    hazard = _hazard(first, True, wrong.breaks)
    return (ExpectedHazard(hazard, TRANSITION, first.last),) if hazard else ()


def right(setting: Setting, part: ResourcePart) -> Link:
    """The dependency that the pair needs, limited to the part where the primitive can be."""
    spell = setting.primitive.spell
    about = part.barrier() if setting.primitive.ranges or setting.second.place == ENGINE else {}
    return Link(spell(setting.first.scope), spell(setting.second.scope), about)


def _can_be_missing(setting: Setting) -> bool:
    # While work that writes the bytes is pending, nothing tells a write to mapped memory from that of the device.
    unseen = setting.first.writes and setting.second.command == "host write"
    return setting.primitive.name != "nothing" and setting.first.place != HOST and not unseen


def _has_second_scope(setting: Setting) -> bool:
    return setting.primitive.stages and setting.second.place != ENGINE


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


@defect(ORDER, _can_be_missing)
def missing(setting: Setting, __: ResourcePart, link: Link) -> Link | None:
    """The dependency is left out. A present and the host do not wait, for whatever the barrier says."""
    return None if setting.second.place == DEVICE else replace(link, awaited=False)


@defect(MEMORY, lambda setting: setting.primitive.accesses)
def execution_only(_: Setting, __: ResourcePart, link: Link) -> Link | None:
    """The stages are right, but there are no accesses."""
    return Link(*link.stages, link.about)


@defect(ORDER, lambda setting: setting.primitive.stages)
def wrong_source_stage(setting: Setting, _: ResourcePart, link: Link) -> Link | None:
    """The first scope names another stage."""
    return Link(_other_stage(setting, setting.first), link.dst, link.about)


@defect(ORDER, _has_second_scope)
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
