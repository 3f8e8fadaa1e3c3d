"""Predicates of `differences.toml` about queries and transform feedback (see `conditions`)."""

from __future__ import annotations

from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.stream import Stream, Subject, scopes
from harness.trace.calls import Call

COPY_RESULTS = "vkCmdCopyQueryPoolResults"
RESULT_64, WITH_AVAILABILITY = 0x1, 0x4
INDIRECT_COMMAND_READ, COUNTER_READ = 0x1, 0x4000000
"""VkAccessFlagBits2."""
EXACT_STRIDE = (1, 4, 352)
"""The first version seen not to count the stride after the last result."""


@condition
def query_results_as_one_range(subject: Subject, stream: Stream, version: Version) -> bool:
    """One of the two copies results whose bytes the layer does not have: with gaps between them, with availability,
    or (older layers) with a stride after the last one."""
    own = stream.command(subject)
    prior = stream.at(subject.finding.prior.call) if subject.finding is not None else None
    earlier = [call for call in stream.calls if own is not None and call.index < own.index]
    calls = [own, *([prior] if subject.finding is not None else earlier)]
    return any(call is not None and call.name == COPY_RESULTS and _differs(call, version) for call in calls)


def _differs(call: Call, version: Version) -> bool:
    args = call.args
    number = 8 if args["flags"] & RESULT_64 else 4
    apart = args["stride"] > number and (args["queryCount"] > 1 or version < EXACT_STRIDE)
    return apart or bool(args["flags"] & WITH_AVAILABILITY)


@condition
def counter_or_command_read(subject: Subject, stream: Stream, _: Version) -> bool:
    """A barrier between the two names one of the accesses that a byte count may be read with, and not the other."""
    both = INDIRECT_COMMAND_READ | COUNTER_READ
    return any(scope.dst_accesses & both not in (0, both) for call in stream.window(subject) for scope in scopes(call))
