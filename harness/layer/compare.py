"""Our findings beside the layer's messages: what both say, what differs as expected, and what is left.

Compared by (hazard, command, prior command, access, prior access), each distinct key once: the layer speaks once a
region or descriptor, we once a pair of commands, and neither count means anything. When every message is attributed to
the API call in which it came (`LayerListener.take(call)`), keys are compared call by call.

Command names lose their KHR suffix: a command and its alias are one command.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.findings import Finding, Place
from harness.layer.known_differences import LayerDifference
from harness.layer.parse import RECORD, SUBMIT, LayerMessage, plain_command
from harness.layer.silence import reason_for_silence
from harness.layer.stream import Stream
from harness.layer.subject import LAYER, OURS, Subject
from harness.trace.calls import Block

Key = tuple[str, str, str, str, str]
Said = tuple[int | None, str, Key]
"""(API call or None, `record` or `submit`, key)"""


@dataclass(frozen=True, slots=True)
class Explained:
    """A disagreement that is expected, with what explains it."""

    subject: Subject
    difference: LayerDifference | None
    reason: str


@dataclass(slots=True)
class Comparison:
    """What came out. `agreed` counts distinct keys that both have."""

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
        return [
            f"{each.side} at {each.kind}{'' if each.call is None else f' (block {each.call})'}: "
            f"{each.key[0]} {each.key[1]} {each.key[3] or '?'} after {each.key[2] or '?'} {each.key[4] or '?'}"
            for each in self.disagreements
        ]


def compare(
    findings: Sequence[Finding],
    messages: Sequence[LayerMessage],
    differences: Sequence[LayerDifference],
    blocks: Iterable[Block] | Stream = (),
) -> Comparison:
    """Compares one run. `differences` are those known of the layer's version (`known_differences`). `blocks` is the
    trace that both judged; without it, differences that depend on the stream stay disagreements."""
    by_call = all(message.call is not None for message in messages)
    ours: dict[Said, list[Finding]] = {}
    for finding in findings:
        ours.setdefault(_said_by_us(finding, differences, by_call), []).append(finding)
    theirs: dict[Said, list[LayerMessage]] = {}
    for message in messages:
        theirs.setdefault(_said_by_layer(message, by_call), []).append(message)

    result = Comparison()
    left_of_ours, left_of_theirs = _match(ours, theirs, result)
    stream = blocks if isinstance(blocks, Stream) else Stream(blocks)
    for side, left in ((OURS, left_of_ours), (LAYER, left_of_theirs)):
        for said in left:
            subject = _subject(side, said, ours, theirs, stream)
            explained = _explain(subject, differences)
            if explained is None:
                result.disagreements.append(subject)
            else:
                result.expected.append(explained)
    return result


def _said_by_us(finding: Finding, differences: Sequence[LayerDifference], by_call: bool) -> Said:
    hazard, command, prior_command, access, prior_access = finding.key
    for each in differences:
        access = each.renamed(command, access)
        prior_access = each.renamed(prior_command, prior_access)
    submit = _tested_at(finding.place)
    call = (finding.place.call if submit is None else submit) if by_call else None
    key = (hazard, plain_command(command), plain_command(prior_command), access, prior_access)
    return call, RECORD if submit is None else SUBMIT, key


def _tested_at(place: Place) -> int | None:
    """The call at which a command that was recorded before is tested: a submit, or vkCmdExecuteCommands; None for a
    command that is tested while it is recorded."""
    return place.submit or (place.executed_by and place.executed_by[0])


def _said_by_layer(message: LayerMessage, by_call: bool) -> Said:
    hazard, command, prior_command, access, prior_access = message.key
    key = (hazard, plain_command(command), plain_command(prior_command), access, prior_access)
    return message.call if by_call else None, message.kind, key


def _match(
    ours: dict[Said, list[Finding]], theirs: dict[Said, list[LayerMessage]], result: Comparison
) -> tuple[list[Said], list[Said]]:
    """Takes out what both have; what a message leaves out matches anything."""
    both = ours.keys() & theirs.keys()
    result.agreed = len(both)
    left_of_ours = [said for said in ours if said not in both]
    left_of_theirs: list[Said] = []
    for said in theirs:
        if said in both:
            continue
        alike = [each for each in ours if _is_alike(each, said)]
        if alike:
            result.agreed += 1
            left_of_ours = [each for each in left_of_ours if each not in alike]
        else:
            left_of_theirs.append(said)
    return left_of_ours, left_of_theirs


def _is_alike(ours: Said, theirs: Said) -> bool:
    """True when they differ in nothing but what the layer leaves out: the access at submit; of an event rule, and of a
    transition at a wait that the old layer finds at submit, the earlier command and that it is about a submit."""
    rest = theirs[2][2:]
    at_one_place = ours[0] == theirs[0] and (not rest[0] or ours[1] == theirs[1])
    return at_one_place and not all(rest) and _is_same(ours[2], theirs[2])


def _subject(
    side: str, said: Said, ours: dict[Said, list[Finding]], theirs: dict[Said, list[LayerMessage]], stream: Stream
) -> Subject:
    # A finding that the layer should have spoken about stands for its group, if there is one.
    finding = min(ours[said], key=lambda each: bool(reason_for_silence(each, stream))) if side == OURS else None
    call, kind, key = said
    if finding is not None:
        call = _tested_at(finding.place) or finding.place.call
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
        any(_is_same(other[2], key) and (other[0] or 0) < (said[0] or 0) for other in ours if other[0] is not None),
        tuple(
            each
            for group in ours.values()
            for each in group
            if (each.place.call == finding.place.call if finding else plain_command(each.place.command) == key[1])
        ),
    )


def _is_same(ours: Key, theirs: Key) -> bool:
    """True for one key, and for one of which the layer left out the access, or of an event rule what came before."""
    return ours[:2] == theirs[:2] and all(not told or told == known for told, known in zip(theirs, ours, strict=True))


def _explain(subject: Subject, differences: Sequence[LayerDifference]) -> Explained | None:
    if subject.finding is not None and (untracked := reason_for_silence(subject.finding, subject.stream)):
        return Explained(subject, None, f"the Khronos layer does not track {untracked}")
    for difference in differences:
        if difference.explains(subject):
            return Explained(subject, difference, difference.reason)
    return None
