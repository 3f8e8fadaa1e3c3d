"""Experiments on single commands: each is run several times from the same state, with other contents around it.

*Writes.* A command runs once with the true contents and once where every byte that it is not declared to read holds
another value. A byte that changes in either run is written: a value cannot equal both fillings.

*Reads outside of what is declared.* The two runs write the same values, since what is declared as read is the same in
both. Where they do not, the command reads something else.

*Reads.* Bytes that are declared as read are changed, half by half, and the command runs again. A part that changes
nothing is not read, as far as this run shows. The number of runs is bounded: what they cannot divide further
counts as read whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from vkharness.replay.contents.contents import Bytes, StagingImage
from vkharness.replay.contents.observe import WORD
from vkharness.replay.observation.declared import BySpace, Declared, DeclaredAccesses
from vkharness.replay.observation.driver_faults import Faults, known_faults
from vkharness.replay.observation.shader_bindings import Bound
from vkharness.replay.observation.shader_notes import ShaderNotes
from vkharness.replay.observation.snapshots import (
    OTHER,
    Key,
    Mask,
    Snapshot,
    Snapshots,
    SurfacePlace,
    filled,
    mask_of,
    spans_of,
)
from vkharness.replay.outcomes.executor import PlanRun, Scene
from vkharness.replay.schedule.screens import OURS
from vkharness.replay.schedule.steps import Step, StepKind
from vkharness.replay.schedule.units import Unit
from vkharness.spans import Span, merge, subtract
from vkharness.trace.calls import Call, HostWrite
from vkharness.trace.observations import ALL, Observation, ObservedCommand, Spans

DISPATCHES = ("vkCmdDispatch", "vkCmdDispatchBase", "vkCmdDispatchBaseKHR", "vkCmdDispatchIndirect")
REPEATED = 4
"""How often each run is repeated before a difference between two is believed."""
Masks = dict[Key, Mask]
"""Addresses of each surface."""


@dataclass(slots=True)
class Budget:
    """Limits of an observation: bytes of contents that are moved, and runs of one command to find its reads."""

    bytes: int
    runs: int
    spent: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether no further command is observed."""
        return self.spent >= self.bytes


@dataclass(slots=True)
class _Piece:
    """A unit of the trace with what is declared for it."""

    unit: Unit
    steps: list[Step] = field(default_factory=list)
    declared: list[Declared] = field(default_factory=list)
    """For each of `steps`."""
    whole: Declared = field(default_factory=Declared)


def is_observed(unit: Unit) -> bool:
    """Whether a unit is a command of the trace that reaches memory."""
    call = unit.steps[0].block
    ours = isinstance(call, Call) and call.args.get("commandBuffer") == OURS
    return not unit.host and not ours and unit.steps[0].kind is StepKind.ACTION


def commands_of(unit: Unit) -> tuple[ObservedCommand, ...]:
    """The commands of a unit, as an observation names them."""
    return tuple(_command(step) for step in unit.steps if step.kind in (StepKind.ACTION, StepKind.SYNC))


class Experimenter:
    """Runs the units of a trace in submission order, each with its experiments."""

    def __init__(
        self, scene: Scene, declarations: DeclaredAccesses, budget: Budget, notes: ShaderNotes | None = None
    ) -> None:
        """`notes` is where shaders note what they access; without it none is instrumented."""
        self._scene = scene
        self._declarations = declarations
        self.notes = notes
        self._budget = budget
        self.runs = budget.runs
        self._execution = PlanRun(scene)
        self.snapshots = Snapshots(scene, declarations.shared)
        self._now: Snapshot | None = None
        """The contents as they are, where they are known."""

    def run(self, unit: Unit) -> None:
        """Runs a unit without looking."""
        if unit.host or unit.steps[0].kind is StepKind.SYNC:
            written = isinstance(unit.steps[0].block, HostWrite) or "Image" in unit.steps[0].name
            self._now = None if written or not unit.host else self._now
        else:
            self._now = None
        call = unit.steps[0].block
        if self.notes is not None and isinstance(call, Call) and call.name == "vkCreateShaderModule":
            unit = Unit([replace(unit.steps[0], block=self.notes.instrumented(call))])
        self.execute(unit)

    def run_as_it_is(self, unit: Unit) -> None:
        """Runs a unit and keeps what it leaves as the contents as they are."""
        self.execute(unit)
        self._now = self.read()

    def execute(self, unit: Unit) -> None:
        """Runs a unit with the state that it needs."""
        for step in (*unit.before, *unit.steps):
            self._execution.one(step)
        self._scene.recorder.finish()

    def observe(self, unit: Unit) -> Observation:
        """Runs a unit with experiments; what it was seen to do. Afterwards the contents are what it leaves."""
        piece = self._piece(unit)
        found = Observation(commands_of(unit))
        if self._budget.is_spent:
            found.problem = "the budget is spent"
            self.run(unit)
            return found
        return _Observing(self, piece, found).go()

    def _piece(self, unit: Unit) -> _Piece:
        piece = _Piece(unit)
        for step in unit.steps:
            if step.kind in (StepKind.ACTION, StepKind.SYNC):
                piece.steps.append(step)
                piece.declared.append(self._declarations.of(step))
                piece.whole.merge(piece.declared[-1])
        return piece

    def current(self) -> Snapshot:
        """The contents as they are."""
        if self._now is None:
            self._now = self.read()
        return self._now

    def read(self) -> Snapshot:
        """Reads all contents, and pays for it."""
        self._budget.spent += self.snapshots.bytes
        return self.snapshots.read()

    def spans(self, declared: BySpace, surface: SurfacePlace) -> list[Span]:
        """Declared addresses as addresses of the surface's resource."""
        if surface.box is not None:
            return declared.get(surface.resource, [])
        space, offset = self._declarations.places.get(surface.resource, (surface.resource, 0))
        return [(begin - offset, end - offset) for begin, end in declared.get(space, ()) if end > offset]

    def bound(self, step: Step) -> Bound | None:
        """Returns the state with which a command that runs shaders was recorded; None for any other command."""
        return self._declarations.bound.get(step.block.index)

    def faults(self, steps: list[Step], declared: Declared) -> Faults:
        """Returns the addresses that the driver is known to write without right."""
        images = {image.id: image.image for image in self._scene.contents.resources.images.values()}
        return known_faults(self._scene.device.target.name, steps, declared, images)

    def masks(self, declared: BySpace) -> Masks:
        """Declared addresses by surface."""
        return {key: mask_of(each, self.spans(declared, each)) for key, each in self.snapshots.surfaces.items()}


def _command(step: Step) -> ObservedCommand:
    where = step.identity
    return ObservedCommand(where.call, step.name, where.submit, where.batch, where.position, where.executed_by)


class _Observing:
    """The experiments on one unit."""

    def __init__(self, experimenter: Experimenter, piece: _Piece, found: Observation) -> None:
        self._own = experimenter
        self._snapshots = experimenter.snapshots
        self._piece, self._found = piece, found
        self._layouts = self._snapshots.layouts()
        self._before = experimenter.current()
        touched = piece.whole.reads.keys() | piece.whole.writes.keys()
        self._saved: dict[Key, StagingImage] = self._snapshots.save_samples(touched)
        self._notes: list[str] = []
        self.reads = experimenter.masks(piece.whole.reads)
        self.writes = experimenter.masks(piece.whole.writes)
        shaders = experimenter.masks(piece.whole.shader_writes)
        # Shaders may read what they are declared to write, without a word.
        self._inputs = {key: mask | shaders[key] for key, mask in self.reads.items()}
        self._left = self._before

    def go(self) -> Observation:
        """Runs the unit with another filling, then as it is, then with changed inputs."""
        own, found = self._own, self._found
        repeatable = not self._touches_what_is_not_observed()
        other, other_after = self._with_another_filling(self._inputs) if repeatable else ({}, {})
        runs = [(other, other_after)]
        if repeatable and self._piece.whole.shader_writes:
            runs.append(self._with_another_filling(self.reads))
        if own.notes is not None:
            own.notes.clear()
        own.run_as_it_is(self._piece.unit)
        if own.notes is not None:
            self._take_notes(own.notes)
        after = self._left = own.current()
        runs.append((self._before, after))
        written = {key: np.zeros(surface.count, np.bool_) for key, surface in self._snapshots.surfaces.items()}
        for filling, left in runs:
            for key in filling:
                written[key] |= _differ(filling[key], left[key])
        for key in written:
            written[key] |= self._noted(found.shader_writes, key)
        suspects = self._suspects(other, other_after, after)
        if suspects and repeatable:
            found.undeclared_reads |= self._spans(self._confirmed(other, after))
        found.writes = self._spans(written)
        if not self._piece.whole.anything:
            found.undeclared_writes |= self._undeclared(written)
        read = self._read(after) if repeatable else dict(self._inputs)
        for key in read:
            read[key] |= self._noted(found.shader_reads, key)
        found.reads = self._spans(read)
        found.figures = tuple(self._figures(written, read))
        found.notes = tuple(self._notes)
        return found

    def _take_notes(self, notes: ShaderNotes) -> None:
        """Takes in what the shaders noted in the run with the true contents."""
        commands = [each for step in self._piece.steps if (each := self._own.bound(step)) is not None]
        if not commands:
            return
        noted, found = notes.read(commands), self._found
        found.shaders = noted.reason or ALL
        found.shader_reads, found.shader_writes = noted.reads, noted.writes
        if len(commands) == 1 and not self._piece.whole.anything:
            # Of several commands with one shader, it is not known which one made a note.
            found.undeclared_reads = self._beyond(noted.reads, self._inputs)
            found.undeclared_writes = self._beyond(noted.writes, self.writes)

    def _beyond(self, noted: Spans, declared: Masks) -> Spans:
        return self._spans({key: self._noted(noted, key) & ~mask for key, mask in declared.items()})

    def _noted(self, noted: Spans, key: Key) -> Mask:
        """Returns the units of one surface in which the shaders noted an access, as a mask."""
        place = self._snapshots.surfaces[key]
        return mask_of(place, list(noted.get(place.resource, ())))

    def _undeclared(self, written: Masks) -> Spans:
        """Returns the written addresses that are neither declared nor a known fault of the driver."""
        beyond = self._spans({key: mask & ~self.writes[key] for key, mask in written.items()})
        if not beyond:
            return beyond
        faults = self._own.faults(self._piece.steps, self._piece.whole)
        left = {resource: tuple(subtract(spans, faults.spans.get(resource, ()))) for resource, spans in beyond.items()}
        if left != beyond:
            self._notes += [f"a fault of the driver: {reason}" for reason in faults.reasons]
        return {resource: spans for resource, spans in left.items() if spans}

    def _touches_what_is_not_observed(self) -> bool:
        """Whether the unit reaches a resource that cannot be put back, so that it may run only once."""
        unobserved = self._snapshots.unobserved
        spaces = self._piece.whole.reads.keys() | self._piece.whole.writes.keys()
        reached = [id for id in unobserved if self._own._declarations.places.get(id, (id, 0))[0] in spaces]
        self._notes += [f"resource {id} is not observed: {unobserved[id]}" for id in reached]
        return bool(reached)

    def _with_another_filling(self, kept: Masks) -> tuple[Snapshot, Snapshot]:
        """Runs the unit with other contents everywhere but at `kept`, and puts all back. What it found and left."""
        wanted = {key: filled(data, kept[key]) for key, data in self._before.items()}
        for key, surface in self._snapshots.surfaces.items():
            if surface.samples > 1 and (kept[key].any() or key not in self._saved):
                wanted[key] = self._before[key]
        self._snapshots.put(wanted, self._before, {})
        other = self._own.read()
        self._own.execute(self._piece.unit)
        after = self._own.read()
        self._put_back(after)
        return other, after

    def _put_back(self, now: Snapshot) -> None:
        self._snapshots.put(self._before, now, self._saved)
        self._snapshots.restore_layouts(self._layouts)

    def _suspects(self, other: Snapshot, other_after: Snapshot, after: Snapshot) -> Masks:
        """Returns the units that one of the two runs wrote and that hold different values after the two."""
        found = {}
        for key in other:
            wrote = (self._before[key] != after[key]) | (other[key] != other_after[key])
            mask = np.any(wrote & (after[key] != other_after[key]), axis=1)
            if mask.any():
                found[key] = mask
        return found

    def _confirmed(self, other: Snapshot, after: Snapshot) -> Masks:
        """The resources of which other contents change what the unit writes, though it is not declared to read them.

        Bytes that differ from run to run by themselves prove nothing: a unit may hold a hazard.
        """
        stable = {key: np.ones(place.count, np.bool_) for key, place in self._snapshots.surfaces.items()}
        found: Masks = {}
        for key in other:
            if np.array_equal(other[key], self._before[key]):
                continue
            input = {key: _differ(other[key], self._before[key])}
            seen = []
            for _ in range(REPEATED):  # in turn, so that what drifts shows on both sides
                seen.append(self._again({key: other[key]}))
                again = self._again({})
                for each, mask in stable.items():
                    mask &= ~_differ(again[each], after[each])
            if all(self._outcome_differs(each, after, input, stable) for each in seen):
                found.update(input)
        self._leave()
        return found

    def _again(self, changed: Snapshot) -> Snapshot:
        """Runs the unit again from its state, with changed surfaces. What it leaves then."""
        self._put_back(self._left)
        if changed:
            self._snapshots.put(changed, self._before, {})
        self._own.execute(self._piece.unit)
        self._left = self._own.read()
        return self._left

    def _outcome_differs(self, seen: Snapshot, after: Snapshot, input: Masks, stable: Masks) -> bool:
        """Whether a run left other bytes than the true one, beside those changed before it and not written."""
        for key, data in seen.items():
            different = data != after[key]
            if key in input:
                unwritten = self._before[key] == after[key]
                different &= ~(input[key][:, np.newaxis] & unwritten)
            if bool((np.any(different, axis=1) & stable[key]).any()):
                return True
        return False

    def _leave(self) -> None:
        """Leaves what the unit leaves with its true inputs."""
        self._put_back(self._left)
        self._own.run_as_it_is(self._piece.unit)
        self._left = self._own.current()

    def _read(self, after: Snapshot) -> Masks:
        """The addresses that may be read, without parts of which other contents change nothing that the unit leaves.

        Parts are halved breadth first, in a bounded number of runs.
        """
        if self._found.shaders == ALL and len(self._piece.steps) == 1 and self._piece.steps[0].name in DISPATCHES:
            # The shader says it all; beside it there are only indirect parameters.
            counts = self._own.masks(self._piece.whole.counts)
            return {key: mask | self._noted(self._found.shader_reads, key) for key, mask in counts.items()}
        read = {key: mask.copy() for key, mask in self._inputs.items()}
        left = self._own.runs - 1
        parts = deque((key, *_ends(mask)) for key, mask in read.items() if mask.any() and self._single(key))
        if left < 1 or not parts:
            return read
        stable = {key: ~_differ(data, after[key]) for key, data in self._again({}).items()}
        plain, counts = (self._own.masks(each) for each in (self._piece.whole.plain_reads, self._piece.whole.counts))
        while parts and left > 0:
            key, begin, end = parts.popleft()
            part = np.zeros_like(read[key])
            part[begin:end] = self._inputs[key][begin:end]
            if not part.any():
                continue
            mild = 1 if counts[key][part].any() else 2
            changes = CHANGES[-1:] if plain[key][part].all() else CHANGES[:mild]
            for change in changes:
                left -= 1
                changed = {key: change(self._before[key], part)}
                if self._outcome_differs(self._again(changed), after, {key: part}, stable):
                    parts += ((key, *half) for half in _halves(begin, end, 1 if key[1] else WORD))
                    break
            else:
                read[key] &= ~part
        self._leave()
        return read

    def _single(self, key: Key) -> bool:
        return self._snapshots.surfaces[key].samples == 1

    def _spans(self, masks: Masks) -> Spans:
        found: dict[int, list[Span]] = {}
        for key, mask in masks.items():
            if mask.any():
                surface = self._snapshots.surfaces[key]
                found.setdefault(surface.resource, []).extend(spans_of(surface, mask))
        return {resource: tuple(merge(spans)) for resource, spans in found.items()}

    def _figures(self, written: Masks, read: Masks) -> Iterator[tuple[str, int, int, int, int]]:
        for step, declared in zip(self._piece.steps, self._piece.declared, strict=True):
            writes, reads = self._own.masks(declared.writes), self._own.masks(declared.reads)
            yield (step.name, *_counted(writes, written), *_counted(reads, read))


def _ends(mask: Mask) -> Span:
    """From the first to behind the last address of a mask."""
    places = np.flatnonzero(mask)
    return int(places[0]), int(places[-1]) + 1


def _halves(begin: int, end: int, grain: int) -> Iterator[Span]:
    """Two halves, where the part is larger than the grain, of which the second begins at a multiple of it."""
    half = (begin + end) // 2
    half = half // grain * grain if half // grain * grain > begin else half
    if end - begin > grain:
        yield begin, half
        yield half, end


def _slightly(data: Bytes, part: Mask) -> Bytes:
    """Changes the lowest bit of each word of a buffer, or of each byte of a texel: what steers a command stays sane."""
    changed = data.copy()
    if data.shape[1] == 1:
        part = part & (np.arange(len(part)) % WORD == 0)
    changed[part] ^= np.uint8(1)
    return changed


def _largely(data: Bytes, part: Mask) -> Bytes:
    """Changes every byte, the higher two of each word of a buffer but a little: it may say how much there is to do."""
    changed = data.copy()
    values = np.full(len(part), OTHER, np.uint8)
    if data.shape[1] == 1:
        values[2::WORD], values[3::WORD] = 0x04, 0
    changed[part] ^= values[part][:, np.newaxis]
    return changed


def _wholly(data: Bytes, part: Mask) -> Bytes:
    """Changes every byte."""
    return filled(data, ~part)


CHANGES = (_slightly, _largely, _wholly)
"""Changes of inputs, the mildest first; the last one only for what is taken as it is."""


def _differ(one: Bytes, other: Bytes) -> Mask:
    """The addresses at which any byte differs."""
    mask: Mask = np.any(one != other, axis=1)
    return mask


def _counted(declared: Masks, seen: Masks) -> tuple[int, int]:
    """How many addresses are declared, and how many of them were seen."""
    return (
        sum(int(mask.sum()) for mask in declared.values()),
        sum(int((mask & seen[key]).sum()) for key, mask in declared.items() if key in seen),
    )
