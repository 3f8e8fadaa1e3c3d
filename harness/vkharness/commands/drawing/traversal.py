"""Ray traversal: shaders that use a top level acceleration structure read the bottom level structures behind it.

"Next, rays are tested against geometries in a bottom-level acceleration structure"; which ones a ray meets is not
known. Which structures are behind it follows from the build that was executed last.
Specification: "Ray Intersection Candidate Determination"; rules.md#a-traversal-reads-what-its-structure-leads-to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vkharness.commands.contents.built_structures import StructurePlace
from vkharness.commands.contents.content_steps import Deferred, Outcome, Overwritten, ReadsBytes, overwritten
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.resources.structure_builds import any_reads, structure_reads
from vkharness.findings import Certainty
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access, Effect

TRAVERSALS = frozenset(kind.index for kind in ACCESS_KINDS if kind.name.endswith("_SHADER_ACCELERATION_STRUCTURE_READ"))
"""The kinds of access of shaders that use a structure."""


@dataclass(slots=True)
class Traversal(Deferred):
    """A command whose shaders may use acceleration structures."""

    objects: ObjectState = field(compare=False, repr=False)
    inner: Deferred | None = None
    """The rest of the command that depends on contents of memory; None without one."""
    kinds: tuple[int, ...] = ()
    """The kinds of access with which it uses structures as far as that is known while it is recorded."""

    @property
    def loads_values(self) -> bool:
        """Whether it does with the inner one."""
        return self.inner is not None and self.inner.loads_values

    def resources(self) -> set[int]:
        """Those of the inner one."""
        return set() if self.inner is None else self.inner.resources()

    def is_idle(self, memory: ReadsBytes) -> bool:
        """Whether the inner one is."""
        return self.inner is not None and self.inner.is_idle(memory)

    def outcome(self, memory: KnownMemory) -> Outcome:
        """Gives the accesses of the inner one. Those of structures behind others come from `beside`."""
        return Outcome() if self.inner is None else self.inner.outcome(memory)

    def most(self) -> tuple[Access, ...]:
        """Gives the most accesses of the inner one, and reads of all structures that instances may name."""
        inner = () if self.inner is None else self.inner.most()
        return (*inner, *(each for kind in self.kinds for each in any_reads(self.objects, kind)))

    def beside(self, effects: tuple[Effect, ...], memory: KnownMemory) -> tuple[Effect, ...]:
        """The reads of the structures behind those that it uses."""
        found: dict[int, dict[StructurePlace, None]] = {}
        for each in effects:
            if isinstance(each, Access) and each.access_kind in TRAVERSALS:
                places = found.setdefault(each.access_kind, {})
                for span in each.spans:
                    places.update(dict.fromkeys(memory.structures.all_behind(each.space, span)))
        return tuple(
            each
            for access_kind, places in found.items()
            for each in structure_reads(access_kind, places, Certainty.DECLARED)
        )


def traverses(effects: tuple[Effect, ...]) -> bool:
    """Whether shaders use an acceleration structure."""
    return any(isinstance(each, Access) and each.access_kind in TRAVERSALS for each in effects)


def defer_traversal(objects: ObjectState, buffer: CommandBuffer, effects: tuple[Effect, ...]) -> None:
    """Defers the command being recorded, which has these effects, if its shaders may use an acceleration structure."""
    if not objects.contents.has_structures:
        return
    kinds = {each.access_kind for each in effects if isinstance(each, Access)} & TRAVERSALS
    if not (kinds or buffer.late is not None):
        return
    inner = buffer.deferred
    written = None if inner is None else inner.writes
    if written is None:
        written = overwritten(effects) or Overwritten(())
    step = Traversal(objects, inner, tuple(sorted(kinds)), writes=written)
    if inner is not None:
        buffer.steps.cut(len(buffer.steps.noted) - 1)
        step.sure, step.idle, step.open = inner.sure, inner.idle, inner.open
    buffer.defer(step, objects.contents)
