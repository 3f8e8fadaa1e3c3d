"""Our findings beside the layer's messages: what both say, what differs as expected, and what is left.

Compared by (hazard, command, prior command, access, prior access), by the resource, and for buffers by the bytes, each
once: the layer speaks once a region or descriptor, we once a pair of commands, and neither count means anything. When
every message is attributed to the API call in which it came (`LayerListener.take(call)`), they are compared call by
call. What a message leaves out matches anything.

Command names lose their KHR suffix: a command and its alias are one command.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import NamedTuple

from vkharness.findings import Finding, Place
from vkharness.layer.known_differences import LayerDifference
from vkharness.layer.parse import RECORD, SUBMIT, LayerMessage, plain_command
from vkharness.layer.plain_order import is_plainly_in_order
from vkharness.layer.silence import reason_for_silence
from vkharness.layer.stream import Stream
from vkharness.layer.subject import LAYER, OURS, Subject
from vkharness.spans import ENDLESS
from vkharness.trace.calls import Block

Key = tuple[str, str, str, str, str]


class Said(NamedTuple):
    """One judge's report of a hazard, reduced to the properties that are compared."""

    call: int | None
    """The API call in which it was said; None when nobody knows it."""
    kind: str
    """`record` or `submit`."""
    key: Key
    resource: int
    """A buffer, image or event; 0 for unknown."""
    batch: int | None = None
    entry: int | None = None
    """At submit: the batch, and the command buffer in it (or among the secondaries of one command); None for unknown.
    """
    seq_no: int | None = None
    """The number of the earlier command in its command buffer, if the layer tells."""
    bytes: tuple[int, int] | None = None
    """(offset, size) of the region of which the layer speaks."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A disagreement that is expected, with what explains it."""

    subject: Subject
    difference: LayerDifference | None
    reason: str


@dataclass(slots=True)
class Comparison:
    """The result of a comparison. `agreed` counts distinct keys that both judges report."""

    agreed: int = 0
    expected: list[Explained] = field(default_factory=list)
    disagreements: list[Subject] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """True when nothing is left unexplained."""
        return not self.disagreements

    @property
    def used(self) -> dict[str, int]:
        """How often each expected difference was needed, by id."""
        return Counter(each.difference.id if each.difference else "silent-by-design" for each in self.expected)

    def lines(self) -> list[str]:
        """One line a disagreement, in words."""
        return [each.line for each in self.disagreements]


def compare(
    findings: Sequence[Finding],
    messages: Sequence[LayerMessage],
    differences: Sequence[LayerDifference],
    blocks: Iterable[Block] | Stream = (),
) -> Comparison:
    """Compares one run. `differences` are those known of the layer's version (`known_differences`). `blocks` is the
    trace that both judged; without it, differences that depend on the stream stay disagreements."""
    by_call = all(message.call is not None for message in messages)
    stream = blocks if isinstance(blocks, Stream) else Stream(blocks)
    ours: dict[Said, list[Finding]] = {}
    for finding in (_as_recorded(each, stream) for each in findings):
        ours.setdefault(_said_by_us(finding, differences, by_call), []).append(finding)
    theirs: dict[Said, list[LayerMessage]] = {}
    for message in messages:
        theirs.setdefault(_said_by_layer(message, by_call, stream), []).append(message)

    result = Comparison()
    left_of_ours, left_of_theirs = _match(ours, theirs, result, stream)
    for side, left in ((OURS, left_of_ours), (LAYER, left_of_theirs)):
        for said in left:
            subject = _subject(side, said, ours, theirs, stream, differences)
            explained = _explain(subject, differences)
            if explained is None:
                result.disagreements.append(subject)
            else:
                result.expected.append(explained)
    return result


def explained_alone(
    findings: Iterable[Finding],
    messages: Iterable[LayerMessage],
    differences: Sequence[LayerDifference],
    stream: Stream,
) -> Iterator[Explained]:
    """Yields those of both judges' reports that the differences would explain if one judge alone had made them."""
    ours: dict[Said, list[Finding]] = {}
    theirs: dict[Said, list[LayerMessage]] = {}
    for finding in findings:
        ours.setdefault(_said_by_us(finding, differences, True), []).append(finding)
    for message in messages:
        theirs.setdefault(_said_by_layer(message, True, stream), []).append(message)
    sides: list[tuple[str, Iterable[Said]]] = [(OURS, ours), (LAYER, theirs)]
    for side, left in sides:
        for said in left:
            explained = _explain(_subject(side, said, ours, theirs, stream, differences), differences)
            if explained is not None:
                yield explained


def _as_recorded(finding: Finding, stream: Stream) -> Finding:
    """A finding at submit inside one command buffer as if it had been made while that was recorded, where contents of
    memory decide what a command of it accesses, or one between the two: the layer need not wait for those. What is in a
    secondary and what is outside meet where the secondary is executed."""
    place, prior = finding.place, finding.prior
    alike = place.executed_by == prior.executed_by
    begin, end = (each.call if alike or not each.executed_by else each.executed_by[0] for each in (prior, place))
    between = (call for call in stream.calls if begin < call.index < end)
    settled = stream.is_settled(place.call) or stream.is_settled(prior.call)
    settled = settled or any(stream.facts(call).is_open for call in between)
    inside = place.submit is not None and _execution(place) == _execution(prior)
    if not (inside and settled and finding.hazard.is_between_accesses):
        return finding
    inside = (place.command_buffer, place.executed_by) == (prior.command_buffer, prior.executed_by)
    return replace(finding, place=_recorded(place, inside), prior=_recorded(prior, inside))


def _execution(place: Place) -> tuple[object, ...]:
    return place.submit, place.batch, place.position


def _recorded(place: Place, inside: bool) -> Place:
    executed_by = None if inside else place.executed_by
    return Place(place.call, place.command, place.site, place.command_buffer, executed_by=executed_by)


def _said_by_us(finding: Finding, differences: Sequence[LayerDifference], by_call: bool) -> Said:
    hazard, command, prior_command, access, prior_access = finding.key
    access, prior_access = _renamed(differences, command, access), _renamed(differences, prior_command, prior_access)
    place, submit = finding.place, tested_at(finding.place)
    call = (place.call if submit is None else submit) if by_call else None
    key = (hazard, plain_command(command), plain_command(prior_command), access, prior_access)
    resource = finding.through or finding.resource
    if submit is None:
        return Said(call, RECORD, key, resource)
    if place.submit is None and place.executed_by is not None:
        return Said(call, SUBMIT, key, resource, None, place.executed_by[1])
    return Said(call, SUBMIT, key, resource, place.batch, place.position)


def _renamed(differences: Sequence[LayerDifference], command: str, access: str) -> str:
    """The layer's name for our access of a command."""
    for each in differences:
        access = each.renamed(command, access)
    return access


def tested_at(place: Place) -> int | None:
    """The call at which a command that was recorded before is tested: a submit, or vkCmdExecuteCommands; None for a
    command that is tested while it is recorded."""
    return place.submit or (place.executed_by and place.executed_by[0])


def _said_by_layer(message: LayerMessage, by_call: bool, stream: Stream) -> Said:
    hazard, command, prior_command, access, prior_access = message.key
    key = (hazard, plain_command(command), plain_command(prior_command), access, prior_access)
    resource = stream.viewed(message.resource)
    where = (message.batch, message.entry) if message.kind == SUBMIT else (None, None)
    return Said(message.call if by_call else None, message.kind, key, resource, *where, message.seq_no, message.bytes)


def _match(
    ours: dict[Said, list[Finding]], theirs: dict[Said, list[LayerMessage]], result: Comparison, stream: Stream
) -> tuple[list[Said], list[Said]]:
    """Takes out what both have."""
    left_of_ours, left_of_theirs = dict.fromkeys(ours), []
    for said in theirs:
        alike = [each for each, findings in ours.items() if _is_alike(each, said) and _is_told(findings, said, stream)]
        result.agreed += bool(alike)
        if not alike:
            left_of_theirs.append(said)
        for each in alike:
            left_of_ours.pop(each, None)
    return list(left_of_ours), left_of_theirs


def _is_alike(ours: Said, theirs: Said) -> bool:
    """True when they differ in nothing but what the layer leaves out. Of an event rule, and of a transition at a wait
    that the old layer finds at submit, it leaves out the earlier command and that it is about a submit."""
    told = ((ours.resource, theirs.resource or None), (ours.batch, theirs.batch), (ours.entry, theirs.entry))
    if ours.call != theirs.call or not _is_same(ours.key, theirs.key):
        return False
    if ours.kind != theirs.kind:
        return not theirs.key[2]
    return all(their is None or our in (None, their) for our, their in told)


def _is_told(findings: Iterable[Finding], said: Said, stream: Stream) -> bool:
    """True when the layer can mean one of the findings, by the number of the earlier command and by the bytes."""
    begin, size = said.bytes or (0, ENDLESS)
    return any(
        (not said.seq_no or said.seq_no in (stream.numbers_of(each.prior.call) or {said.seq_no}))
        and (not each.ranges or any(at < begin + size and begin < at + length for at, length in each.ranges))
        for each in findings
    )


def _subject(
    side: str,
    said: Said,
    ours: dict[Said, list[Finding]],
    theirs: dict[Said, list[LayerMessage]],
    stream: Stream,
    differences: Sequence[LayerDifference],
) -> Subject:
    # A finding that the layer should have spoken about stands for its group, if there is one.
    finding = min(ours[said], key=lambda each: bool(reason_for_silence(each, stream))) if side == OURS else None
    call, kind, key = said[:3]
    if finding is not None:
        call = tested_at(finding.place) or finding.place.call
    return Subject(
        side,
        key,
        kind,
        call,
        finding,
        theirs[said][0] if side == LAYER else None,
        stream,
        tuple(each for other, group in ours.items() if other[:2] == said[:2] for each in group),
        tuple(each for other, group in theirs.items() if other[:2] == said[:2] for each in group),
        tuple(
            each
            for other, group in ours.items()
            if _is_repeated(other, said, stream)
            for each in group
            if _is_told([each], said, stream)
        ),
        tuple(chain.from_iterable(ours.values())),
        tuple(chain.from_iterable(theirs.values())),
        partial(_renamed, differences),
    )


def _is_repeated(ours: Said, theirs: Said, stream: Stream) -> bool:
    """True when we said before, in another call or of another execution, what the layer says now. We say a pair of
    commands once in each recording, and once for all submits."""
    now = (theirs.call or 0, theirs.batch or 0, theirs.entry or 0)
    if theirs.batch is None and ours.batch is not None:
        now = (theirs.call or 0, ENDLESS, 0)
    return (
        (ours.call or 0, ours.batch or 0, ours.entry or 0) < now
        and _is_same(ours.key, theirs.key)
        and theirs.resource in (0, ours.resource)
        and (theirs.key[0].startswith("vkCmd") or _recording(ours.call, stream) == _recording(theirs.call, stream))
    )


def _recording(call: int | None, stream: Stream) -> int:
    """The command buffer into which a call is recorded, 0 for a submit."""
    said = stream.at(call)
    return said.args.get("commandBuffer", 0) if said is not None else 0


def _is_same(ours: Key, theirs: Key) -> bool:
    """True for one key, and for one of which the layer left out the access, or of an event rule what came before."""
    return ours[:2] == theirs[:2] and all(not told or told == known for told, known in zip(theirs, ours, strict=True))


def _explain(subject: Subject, differences: Sequence[LayerDifference]) -> Explained | None:
    if is_plainly_in_order(subject):
        return None
    if subject.finding is not None and (untracked := reason_for_silence(subject.finding, subject.stream)):
        return Explained(subject, None, f"the Khronos layer does not track {untracked}")
    for difference in differences:
        if difference.explains(subject):
            return Explained(subject, difference, difference.reason)
    return None
