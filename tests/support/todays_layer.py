"""What today's Khronos layer (1.4.364) says about a trace, predicted from syncval.

Its rules are ours but for three: atomics are reads, other barriers of a command may act on its own layout transitions,
and ALL_COMMANDS covers a transition only with MEMORY_WRITE. So the prediction is syncval's own judgement, reported as
the layer does: the hazard of the lowest address of each region or descriptor, at every submit anew. From layers/sync:
ApplyBarrier, ApplyMultipleBarriers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.commands.interpret import Interpreter
from harness.findings import Finding, Place
from harness.spans import Span
from harness.syncval.context import Context, DetectedHazard, RangeScope
from harness.syncval.evidence import Description, Reporter
from harness.syncval.execution import Execution
from harness.syncval.queue import Batch
from harness.syncval.scope import expand
from harness.syncval.validator import Validator
from harness.trace.calls import Block, Call
from harness.trace.effects import Access, Barrier
from tests.support.older_rules import TODAYS, Older, OlderContext, lowest

RULES = frozenset(TODAYS)


class TodaysExecution(Execution):
    """Tests accesses one by one, and barriers as the layer does. `calls` by block index."""

    def __init__(self, context: Context, calls: dict[int, Call]) -> None:
        super().__init__(context)
        self._calls = calls

    def _access(self, accesses: list[Access], place: Place) -> list[DetectedHazard]:
        hits = [hit for access in accesses for hit in lowest(self.context.check(access))]
        for access in accesses:
            self.context.apply(access, place)
        return hits

    def _barrier(self, barrier: Barrier, place: Place, queue_flags: int) -> list[DetectedHazard]:
        return _barrier(self.context, barrier, place, queue_flags, _counts_one(self._calls[place.call]))


class TodaysValidator(Validator):
    """Syncval with the layer's way of reporting. `calls` by block index."""

    def __init__(self, calls: dict[int, Call]) -> None:
        super().__init__(
            _describe, lambda queue: OlderContext(queue, RULES), lambda context: TodaysExecution(context, calls)
        )

    def _judged(self, batches: Iterator[Batch]) -> Iterator[Finding]:
        self._report = Reporter(_describe)  # which has said nothing of earlier submits
        return super()._judged(batches)


def _describe(_resource: int, _spans: list[Span]) -> Description:
    return Description("", (), ())


def _counts_one(call: Call) -> bool:
    """True when the layer has one global barrier for the command: it is applied after the ranged ones, which it then
    chains with."""
    info = call.args.get("pDependencyInfo")
    if info is None:
        return len(call.args["pMemoryBarriers"] or ()) <= 1
    ranged = [*(info["pBufferMemoryBarriers"] or ()), *(info["pImageMemoryBarriers"] or ())]
    pairs = {(each["srcStageMask"], each["dstStageMask"]) for each in ranged}
    return len(info["pMemoryBarriers"] or ()) + len(pairs) == 1


def _barrier(context: Context, barrier: Barrier, place: Place, queue_flags: int, one: bool) -> list[DetectedHazard]:
    hits: list[DetectedHazard] = []
    ranges: list[RangeScope] = []
    for each in barrier.ranges:
        scope = expand(each.dependency, queue_flags)
        if each.transition:
            hits += lowest(context.check_transition(each.space, each.spans, (scope,), each.resource))
        ranges += [RangeScope(each.space, span, scope, each.transition) for span in each.spans]
    everything = tuple(expand(each, queue_flags) for each in barrier.globals)
    if one:
        context.barrier((), ranges, place)
        context.barrier(everything, [], place)
    else:
        context.barrier(everything, ranges, place)
    return hits


def predict(blocks: Iterable[Block]) -> list[Finding]:
    """What the layer says about a whole trace, in order."""
    calls: dict[int, Call] = {}
    interpreter, changed, validator = Interpreter(), Older(RULES), TodaysValidator(calls)
    findings: list[Finding] = []
    for block in blocks:
        if isinstance(block, Call):
            calls[block.index] = block
        for stream_event in interpreter.step(block):
            findings += validator.consume(changed.stream_event(stream_event, block))
    return findings
