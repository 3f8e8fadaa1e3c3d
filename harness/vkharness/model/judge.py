"""The entry points of the model: from a trace, or from stream events, to an opinion."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

from vkharness.commands.interpret import Interpreter
from vkharness.model.opinion import Opinion
from vkharness.model.program import Program, RuleTable
from vkharness.model.rules import RULES
from vkharness.model.rules.recording import finish
from vkharness.trace.calls import Block
from vkharness.trace.effects import StreamEvent
from vkharness.trace.work_budget import at_most, begin_stream


def judge(blocks: Iterable[Block]) -> Opinion:
    """The model's opinion of a trace, given as the blocks of a stream."""
    interpreter = Interpreter()
    opinion = judge_stream_events(each for block in blocks for each in interpreter.step(block))
    opinion.debug = interpreter.objects.debug
    return opinion


def judge_stream_events(
    stream_events: Iterable[StreamEvent], units: int | None = None, rules: RuleTable = RULES
) -> Opinion:
    """The model's opinion of stream events, in the order of the stream, by all rules or by others.

    It may take so many `units` of work of those that are left, and by default those of a stream of its own
    (`vkharness.trace.work_budget`). Raises `OverBudget` when they are used up.
    """
    stream = list(stream_events)
    if units is None:
        begin_stream(len(stream))
    program = Program(rules)
    with nullcontext() if units is None else at_most(units):
        program.follow(stream)
        finish(program)
    program.opinion.events = stream
    return program.opinion
