"""Witness: for one hazard, run the outcome that the missing dependency makes possible, and look at the bytes.

Theory of operation
===================

A hazard is a pair: a prior access P and a current access C of one range that nothing orders, or whose memory
dependency is missing. The specification then allows more than one result. A software driver always gives the same
one. A witness makes the driver give the other.

Reordering whole commands is not enough for that: P and C may be stages of two commands that are ordered otherwise, or
be in the right order without visibility. So a witness leaves the order alone and changes *contents* at the right
moments:

| hazard | what the specification allows | what the witness does |
|---|---|---|
| read after write | C sees the range as it was before P | save before P, put that back for C, restore after C |
| write after read | P sees what C writes | take what C wrote in a first run, show it to P in a second run |
| write after write | P's write lands last | after C, put back what P wrote |

Two runs are needed. `SerialCapture` is the serial run, every command kept apart from the next by a full barrier; it
looks at the range before P, after P, before C and after C. `AllowedOutcome` repeats that run and puts the contents in
place. What C did not write is restored afterwards, so that only the effect of the hazard is left.

When the outcome changes a byte that anybody can observe (a buffer or an image at the end of the run, or what the host
read), the hazard is *shown*. When none can, since both writes store the same bytes, say, it is *benign here*.

Layout transitions
------------------
A transition writes its whole range. It keeps the contents, or loses them when
the old layout is UNDEFINED ("Image Layout Transitions"). An access that is not ordered with it may see anything,
which the witness shows as a pattern that no program writes; a write that is not made available to it may be lost.

Presentation
------------
A replay has no presentation engine. The copies of an image to its screen stand for it (`schedule.screens`): one at the
present, and one at the next acquire, since the engine "may not have finished reading from the image at the time it is
acquired" ("vkAcquireNextImageKHR"). So these copies are the engine's accesses of a finding, and what an outcome changes
is the picture on the screen:

| hazard | what the specification allows | what the screen shows |
|---|---|---|
| write after the acquire or the present | the engine still reads the frame before | what C makes of the image |
| present after write | the engine reads before P is complete | the image as it was before P |

The image itself keeps its contents: "presentation is a read-only operation" ("vkQueuePresentKHR"). So a read beside a
read of the engine changes nothing. An image that was never presented is on no screen: its first acquire waits for
nobody, and no outcome shows a transition that comes too early. The next acquire of the same image can. Rules:
rules.md#an-acquired-image-waits-for-its-semaphore, rules.md#a-present-waits-for-the-frame.

Render pass instances
---------------------
An instance is one unit: what it stores it has written, also where that equals what it loaded. One that holds both
accesses is cut into several first (`as_shown`).

A worked example
----------------
A fill and a copy that reads it, with no barrier. The one outcome worth trying is that the copy sees stale bytes. A run
is a plan: the steps of the stream with probes between them. Probes save and put back contents while the device is idle.

>>> from vkharness.replay.outcomes.serial import Serial
>>> from vkharness.replay.schedule.steps import flatten
>>> from tests.support.streams import Stream, hazard
>>> stream = Stream()
>>> a, b = stream.buffer(16), stream.buffer(16)
>>> begun, fill, copy, last = stream.begin(), stream.fill(a, 1), stream.copy(a, b, 16), stream.submit()
>>> finding = hazard(stream, "READ_AFTER_WRITE", fill, copy, a, ((0, 16),))
>>> steps = flatten(stream.blocks)
>>> variants(steps, finding)
['stale']
>>> region = Region(((a, 0, 16),))
>>> first = SerialCapture(finding, region)
>>> def show(plan):
...     return [each.label if isinstance(each, Probe) else each.name for each in plan]
>>> show(first.plan(steps))[-8:-2]
['save before_prior', 'vkCmdFillBuffer', 'save after_prior', 'save before', 'vkCmdCopyBuffer', 'save after']
>>> second = AllowedOutcome(finding, region, first.captured, "stale")
>>> show(second.plan(steps))[-6:-2]
['vkCmdFillBuffer', 'show C what was there before P', 'vkCmdCopyBuffer', 'put back']
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vkharness.findings import Finding, Hazard, Place, UserError
from vkharness.replay.contents.contents import Content, Contents
from vkharness.replay.contents.observe import Outputs, observe
from vkharness.replay.contents.regions import Mask, Pieces, Region, changed, choose, covered
from vkharness.replay.outcomes.executor import Plan, Probe
from vkharness.replay.schedule.cut_instances import CutSteps, cut_instance
from vkharness.replay.schedule.layouts import HOST_TRANSITION, UNDEFINED, transitions
from vkharness.replay.schedule.render_pass_effects import RenderPassEffects
from vkharness.replay.schedule.steps import Step, StepKind, locate
from vkharness.spec.command_classes import RENDERING, TRANSFERS
from vkharness.spec.scopes import IMAGE_LAYOUT_TRANSITION, OWNERSHIP_TRANSFER
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, is_host_unseen

FAMILIES = {
    Hazard.READ_AFTER_WRITE: "RAW",
    Hazard.READ_RACING_WRITE: "RAW",
    Hazard.WRITE_AFTER_READ: "WAR",
    Hazard.WRITE_RACING_READ: "WAR",
    Hazard.WRITE_AFTER_WRITE: "WAW",
    Hazard.WRITE_RACING_WRITE: "WAW",
    Hazard.PRESENT_AFTER_WRITE: "RAW",
    Hazard.WRITE_AFTER_PRESENT: "WAR",
    Hazard.OWNERSHIP_NOT_TRANSFERRED: "RAW",
    Hazard.OWNERSHIP_NOT_ACQUIRED: "RAW",
    Hazard.OWNERSHIP_NOT_RELEASED: "WAW",
    Hazard.OWNERSHIP_MISMATCH: "WAW",
}

ONLY_READS = (
    "both accesses only read: the presentation engine changes nothing, so that no outcome of the two changes a byte"
)
WITHOUT_OUTCOME = {
    Hazard.READ_AFTER_PRESENT: ONLY_READS,
    Hazard.PRESENT_AFTER_READ: ONLY_READS,
    Hazard.SPARSE_BINDING_RACE: "the access goes through the old binding, the new one or none: a replay binds in order",
    Hazard.OWNERSHIP_WITHOUT_CONTENTS: "nobody ever wrote the contents, so that no outcome loses any",
}
"""Why hazards that are no advice have no outcome that anybody could see."""

EXACT = (*TRANSFERS, *RENDERING)
"""Beginnings of the names of commands that write every byte of the range that a finding gives; shaders
may write less."""

STALE, EARLY, LATE, LOST, POISON, AFTER_NEXT = "stale", "early", "late", "lost", "poison", "after-next"
"""The variants of an outcome. P is the prior access and C the current one.

* stale: C reads the contents from before P.
* early: P reads what C writes.
* late: the write of P lands after the write of C.
* lost: the write of P is lost.
* poison: an access sees contents that are undefined.
* after-next: C is a transition that discards the contents, and the next command writes them anew. The write of P lands
  after that command.
"""


@dataclass(slots=True)
class CapturedRegion:
    """The contents of the region around P and C in the serial run."""

    before_prior: Pieces = field(default_factory=list)
    after_prior: Pieces = field(default_factory=list)
    before: Pieces = field(default_factory=list)
    after: Pieces = field(default_factory=list)
    moments: dict[int, Outputs] = field(default_factory=dict)
    """Everything observed at the cuts where an outcome first shows, by index: later commands may overwrite it."""


@dataclass(frozen=True, slots=True)
class HazardPosition:
    """The indices of P and C in the step list, and of the steps that follow the cuts around them."""

    prior: int
    current: int
    before_prior: int
    after_prior: int
    before: int
    after: int


class UncutError(UserError):
    """Both accesses, the steps with these indices, are inside one render pass instance or query."""

    def __init__(self, prior: int, current: int) -> None:
        super().__init__("both accesses are in one render pass instance or query, which cannot be cut")
        self.prior, self.current = prior, current


def find_ends(steps: list[Step], finding: Finding) -> HazardPosition:
    """The steps of a finding and the cuts around them.

    Raises `UserError` when the trace does not execute them; `UncutError`, which is one, where no cut separates them.
    """
    if finding.hazard not in FAMILIES:
        raise UserError(WITHOUT_OUTCOME.get(finding.hazard, f"no witness is defined for {finding.hazard}"))
    current = locate(steps, finding.place)
    # One command may do both: what a render pass instance stores and the transition that follows, for one.
    place, before = finding.place, finding.prior
    alone = (before.call, before.executed_by) == (place.call, place.executed_by) and before.submit is None
    prior = current if alone else _locate_prior(steps, before, current)
    if prior > current:
        raise UserError("the prior access does not come before the other one in submission order")
    ends = HazardPosition(
        prior,
        current,
        _cut_before(steps, prior),
        _cut_after(steps, prior),
        _cut_before(steps, current),
        _cut_after(steps, current),
    )
    if _is_uncut(steps, ends, finding):
        raise UncutError(prior, current)
    return ends


def as_shown(steps: list[Step], finding: Finding) -> CutSteps:
    """The steps in which an outcome of a finding can be brought about, and the finding in them: with the render pass
    instance that holds both accesses cut between them.

    Raises `UserError` as `find_ends`.
    """
    try:
        find_ends(steps, finding)
    except UncutError as error:
        cut = cut_instance(steps, finding, error.prior, error.current)
        if cut is None:
            raise
        find_ends(cut.steps, cut.finding)
        return cut
    return CutSteps(steps, finding)


def _locate_prior(steps: list[Step], place: Place, current: int) -> int:
    """The index of the step of P. Raises `UserError` when there is none."""
    try:
        return locate(steps, place, before=current)
    except UserError:
        if not main_name(place.command).startswith("vkAcquireNextImage"):
            raise
        raise UserError(
            f"no outcome changes a picture: the image was not presented before call {place.call} ({place.command})"
            " acquired it, so that nothing of it is on the screen"
        ) from None


def _is_uncut(steps: list[Step], ends: HazardPosition, finding: Finding) -> bool:
    """Whether both accesses are inside one render pass instance or query, so that no cut separates them."""
    return ends.after_prior > ends.before and not _is_at_a_boundary(steps, ends, finding)


def _is_at_a_boundary(steps: list[Step], ends: HazardPosition, finding: Finding) -> bool:
    """Whether one access is a transition at the begin or the end of the render pass instance that holds both.

    Its effect on the other access can be brought about before or after the instance.
    """
    if finding.access == IMAGE_LAYOUT_TRANSITION.name:
        return steps[ends.current].name.startswith("vkCmdEndRenderPass")
    moved = finding.prior_access == IMAGE_LAYOUT_TRANSITION.name
    return moved and steps[ends.prior].name.startswith("vkCmdBeginRenderPass")


def _cut_before(steps: list[Step], index: int) -> int:
    while steps[index].inside:
        index -= 1
    return index


def _cut_after(steps: list[Step], index: int) -> int:
    index += 1
    while index < len(steps) and steps[index].inside:
        index += 1
    return index


def with_probes(steps: list[Step], probes: Iterable[tuple[int, Probe]]) -> Plan:
    """The steps with probes before the given indices. Probes of one index keep their order."""
    at: dict[int, list[Probe]] = {}
    for index, probe in probes:
        at.setdefault(index, []).append(probe)
    plan: Plan = []
    for index, step in enumerate(steps):
        plan.extend(at.get(index, ()))
        plan.append(step)
    plan.extend(at.get(len(steps), ()))
    return plan


class SerialCapture:
    """The serial run with probes that read the region around P and C into `captured`."""

    outcome = "serial"

    def __init__(self, finding: Finding, region: Region) -> None:
        self._finding = finding
        self._region = region
        self.captured = CapturedRegion()

    def plan(self, steps: list[Step]) -> Plan:
        """The steps with four probes that only read."""
        ends = find_ends(steps, self._finding)
        moments = {moment_of(steps, ends, self._finding, variant) for variant in variants(steps, self._finding)}
        looks = [(index, observe_into(self.captured.moments, index)) for index in moments]
        return with_probes(
            steps,
            [
                (ends.before_prior, self._look("before_prior")),
                (ends.after_prior, self._look("after_prior")),
                (ends.before, self._look("before")),
                (ends.after, self._look("after")),
                *looks,
            ],
        )

    def _look(self, slot: str) -> Probe:
        def look(contents: Contents) -> None:
            setattr(self.captured, slot, self._region.read(contents))

        return Probe(f"save {slot}", look)


class AllowedOutcome:
    """One outcome that the hazard allows. `variant` names it."""

    def __init__(self, finding: Finding, region: Region, captured: CapturedRegion, variant: str) -> None:
        self._finding = finding
        self._region = region
        self._captured = captured
        self.variant = variant
        self.outcome = ""
        """The text that reproduces this run, set by `plan`."""
        self._prior_is_exact = True
        self._current_is_exact = True
        self._shown: Pieces = []
        self.moment = 0
        """Index of the cut where the outcome first shows; set by `plan`."""
        self.moments: dict[int, Outputs] = {}
        """The observed outputs, by the index of the cut."""
        self._stored: dict[str, list[Mask | None]] = {}
        """For "prior" and "current", the texels of each piece that their render pass instance stores."""

    def plan(self, steps: list[Step]) -> Plan:
        """The steps with probes that bring the outcome about."""
        ends = find_ends(steps, self._finding)
        rendered = RenderPassEffects(steps)
        self._stored = {
            "prior": self._stores(rendered, ends.before_prior, ends.after_prior),
            "current": self._stores(rendered, ends.before, ends.after),
        }
        prior, current = steps[ends.prior], steps[ends.current]
        self._prior_is_exact, self._current_is_exact = _is_exact(prior), _is_exact(current)
        self.outcome = outcome_id(self._finding.hazard, prior, current, self.variant)
        self.moment = moment_of(steps, ends, self._finding, self.variant)
        look = observe_into(self.moments, self.moment)
        return with_probes(steps, [*self._probes(steps, ends), (self.moment, look)])

    def _stores(self, rendered: RenderPassEffects, begin: int, end: int) -> list[Mask | None]:
        """For each piece, the texels that render pass instances in steps [begin, end) store. None stands for a piece
        without box."""
        boxes = rendered.stored(self._region.image, begin, end) if self._region.boxes else []
        held = [covered(box, boxes) if boxes else None for box in self._region.boxes]
        return [*([None] * len(self._region.spans)), *held]

    def _probes(self, steps: list[Step], ends: HazardPosition) -> list[tuple[int, Probe]]:
        family = FAMILIES[self._finding.hazard]
        if family == "RAW":
            show = Probe("show C what was there before P", self._show_stale)
            return [(ends.before, show), (ends.after, Probe("put back", self._put_back_after_read))]
        if family == "WAR":
            show = Probe("show P what C writes", self._show_early)
            return [(ends.before_prior, show), (ends.after_prior, Probe("put back", self._put_back_after_prior))]
        if self.variant == POISON:
            return [(ends.after, Probe("undefined contents", self._region.poison))]
        if self.variant == LOST:
            # A transition at the beginning of a subpass comes before everything else that its instance does.
            early = steps[ends.current].name.startswith(("vkCmdBegin", "vkCmdNext"))
            return [(ends.before if early else ends.after, Probe("P's write is lost", self._lose))]
        if self.variant == AFTER_NEXT:
            return [(self.moment, Probe("P's write lands", self._land_everywhere))]
        return [(ends.after, Probe("P's write lands after C's", self._land))]

    def _show_stale(self, contents: Contents) -> None:
        if self.variant == POISON:
            self._region.poison(contents)
            return
        if any(piece is None for piece in self._captured.before_prior):
            # Nothing was defined there before P: C may see anything.
            self._region.poison(contents)
        self._region.write(contents, self._captured.before_prior)

    def _put_back_after_read(self, contents: Contents) -> None:
        """Keeps what C wrote in this run or in the serial run. Everything else is put back as it was before C."""
        shown: Pieces = self._captured.before_prior if self.variant == STALE else []
        now = self._region.read(contents)
        pieces: Pieces = []
        for index, current in enumerate(self._captured.before):
            seen = shown[index] if shown else None
            serial = (current, self._captured.after[index])
            pieces.append(self._kept(now[index], current, seen, serial, self._stored["current"][index]))
        self._region.write(contents, pieces)

    def _show_early(self, contents: Contents) -> None:
        if self.variant == POISON:
            self._region.poison(contents)
            return
        pieces: Pieces = []
        slots = (self._captured.before_prior, self._captured.before, self._captured.after)
        for there, before, after in zip(*slots, strict=True):
            if there is None or before is None or after is None:
                pieces.append(None)
            else:
                mask = None if self._current_is_exact else changed(before, after)
                pieces.append(choose(mask, after, there))
        self._region.write(contents, pieces)
        self._shown = self._region.read(contents)

    def _put_back_after_prior(self, contents: Contents) -> None:
        """Keeps what P wrote. Everything else is put back as it was before P."""
        shown: Pieces = self._shown if self.variant == EARLY else []
        now = self._region.read(contents)
        pieces: Pieces = []
        for index, original in enumerate(self._captured.before_prior):
            seen = shown[index] if shown else None
            serial = (original, self._captured.after_prior[index])
            pieces.append(self._kept(now[index], original, seen, serial, self._stored["prior"][index]))
        self._region.write(contents, pieces)

    def _kept(
        self,
        now: Content | None,
        otherwise: Content | None,
        shown: Content | None,
        serial: tuple[Content | None, Content | None],
        stored: Mask | None,
    ) -> Content | None:
        """`now` where the command wrote, by either run's account, and `otherwise` elsewhere.

        A unit that a command writes cannot equal both what it was shown here and what it found in the serial run,
        unless those were equal; so the two accounts together miss nothing that matters.
        """
        if now is None or otherwise is None:
            return None
        if stored is not None and stored.all():
            return now
        mask = None if serial[0] is None or serial[1] is None else changed(serial[0], serial[1])
        if shown is not None and mask is not None:
            here = changed(shown, now)
            mask = mask if here is None else mask | here
        if mask is None:
            return otherwise
        if stored is not None:
            mask = mask | stored
        return choose(mask, now, otherwise)

    def _lose(self, contents: Contents) -> None:
        if any(piece is None for piece in self._captured.before_prior):
            # Nothing was defined there before P: without its write nothing is.
            self._region.poison(contents)
        self._write_where_prior_wrote(contents, self._captured.before_prior, only_over_current=False)

    def _land(self, contents: Contents) -> None:
        self._write_where_prior_wrote(contents, self._captured.after_prior, only_over_current=True)

    def _land_everywhere(self, contents: Contents) -> None:
        self._write_where_prior_wrote(contents, self._captured.after_prior, only_over_current=False)

    def _write_where_prior_wrote(self, contents: Contents, source: Pieces, only_over_current: bool) -> None:
        captured = self._captured
        now = self._region.read(contents)
        pieces: Pieces = []
        for index, piece in enumerate(source):
            there = now[index]
            if piece is None or there is None:
                pieces.append(None)
                continue
            mask = None
            accounts = [(captured.before_prior[index], captured.after_prior[index], self._prior_is_exact)]
            if only_over_current:
                accounts.append((captured.before[index], captured.after[index], self._current_is_exact))
            for before, after, exact in accounts:
                wrote = None if exact or before is None or after is None else changed(before, after)
                if wrote is not None:
                    mask = wrote if mask is None else mask & wrote
            pieces.append(choose(mask, piece, there))
        self._region.write(contents, pieces)


EQUAL = {
    "RAW": "the write leaves the bytes that were there",
    "WAR": "the write leaves the bytes that are read",
    "WAW": "both writes leave the same bytes",
}


def why_unchanged(blocks: list[Block], steps: list[Step], finding: Finding, captured: CapturedRegion) -> str:
    """One line for a hazard of which no outcome changed what is observed, with the reason where the bytes tell it.

    Where the stream lacks what the host wrote, the bytes of the replay need not be the program's, and tell nothing.
    """
    line, family = "no outcome that the hazard allows changes what is observed", FAMILIES[finding.hazard]
    if is_host_unseen(blocks):
        return f"{line}, without what the host wrote to mapped memory: a dump lacks it"
    if not {STALE, EARLY, LATE}.issuperset(variants(steps, finding)):
        return line
    first = captured.after_prior if family == "WAW" else captured.before_prior
    second = captured.before if family == "RAW" else captured.after
    for one, other in zip(first, second, strict=True):
        mask = None if one is None or other is None else changed(one, other)
        if mask is None or mask.any():
            return line
    return f"{line}: {EQUAL[family]}"


def moment_of(steps: list[Step], ends: HazardPosition, finding: Finding, variant: str) -> int:
    """The cut at which the outcome has had its effect on the accesses themselves."""
    if FAMILIES[finding.hazard] == "WAR":
        return ends.after_prior
    following = next_action(steps, ends.after) if variant == AFTER_NEXT else None
    return ends.after if following is None else _cut_after(steps, following)


def observe_into(moments: dict[int, Outputs], index: int) -> Probe:
    """A probe that observes everything and keeps it under `index`."""

    def look(contents: Contents) -> None:
        moments[index] = observe(contents, [])

    return Probe("observe", look)


def _is_exact(step: Step) -> bool:
    return step.kind in (StepKind.HOST, StepKind.SYNC) or step.name.startswith(EXACT)


def outcome_id(hazard: Hazard, prior: Step, current: Step, variant: str) -> str:
    """The string that names one outcome of one hazard."""
    usual = {"RAW": STALE, "WAR": EARLY, "WAW": LATE}[FAMILIES[hazard]]
    suffix = "" if variant == usual else f":{variant}"
    return f"witness:{hazard}:{prior.identity}->{current.identity}{suffix}"


def variants(steps: list[Step], finding: Finding) -> list[str]:
    """The outcomes worth trying for a finding, simplest first."""
    ends = find_ends(steps, finding)
    prior, current = steps[ends.prior], steps[ends.current]
    prior_moves, current_moves = _moves(prior, finding.prior_access), _moves(current, finding.access)
    family = FAMILIES[finding.hazard]
    if finding.hazard.is_ownership or OWNERSHIP_TRANSFER.name in (finding.access, finding.prior_access):
        return [POISON]  # a transfer that is not ordered, or lacks a half, leaves the contents undefined
    if family == "RAW":
        return [POISON] if prior_moves else [STALE]
    if family == "WAR":
        return [POISON] if current_moves else [EARLY]
    if not current_moves:
        return [LATE, POISON] if prior_moves else [LATE]
    if current.kind is not StepKind.SYNC:
        return [LATE, POISON] if RenderPassEffects(steps).discards(ends.current, finding.resource) else [LOST]
    if not _discards(current, finding.resource):
        return [LOST, POISON] if prior_moves else [LOST]
    return _before_a_discard(steps, ends, current)


def _before_a_discard(steps: list[Step], ends: HazardPosition, current: Step) -> list[str]:
    """The outcomes of a write before a transition that discards. What follows the transition overwrites the range."""
    following = next_action(steps, ends.after)
    unordered = following is not None and not any(
        step.kind is StepKind.SYNC for step in steps[ends.prior + 1 : following] if step is not current
    )
    return [AFTER_NEXT, POISON] if unordered else [POISON]


def _moves(step: Step, access: str) -> bool:
    """Whether the access is a layout transition: a barrier's, the host's, or one that a render pass instance does by
    itself."""
    return step.kind is StepKind.SYNC or step.name == HOST_TRANSITION or access == IMAGE_LAYOUT_TRANSITION.name


def next_action(steps: list[Step], index: int) -> int | None:
    """The first action at or after `index`."""
    return next((i for i in range(index, len(steps)) if steps[i].kind is StepKind.ACTION), None)


def _discards(step: Step, image: int) -> bool:
    """Whether a barrier's transition of an image has UNDEFINED as its old layout."""
    call = step.block
    return isinstance(call, Call) and any(item.image == image and item.old == UNDEFINED for item in transitions(call))
