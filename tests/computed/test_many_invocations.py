"""Dispatches of many invocations at once, held against the same invocations one after the other."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.computed.test_executed_shaders import known_words
from tests.shader.test_execution import ARRAY, INDEX, Bound, Bytes, packed, run, store
from tests.support.spirv_text import complaint, module
from tests.support.streams import Stream, words
from vkharness.computed import expected_bytes
from vkharness.computed.expected_bytes import ComputedBytes, compute
from vkharness.computed.followed_transfers import KnownContents
from vkharness.computed.many_invocations import Numbers, execute_many
from vkharness.shader.execution.outside import Allowance, NotInterpreted

LIMIT = 1 << 20
COUNT = 64
SIZE = {"interface": "%local", "modes": "OpExecutionMode %main LocalSize 64 1 1", "decorations": INDEX}
LOCAL = ARRAY + "%local = OpVariable %input_word Input\n"
NUMBER = "%i = OpLoad %uint %local\n"


class Words(Bytes):
    """Memory that many invocations reach at once."""

    def gather(self, offsets: Numbers, invocations: Numbers) -> Numbers:
        """The words."""
        return np.frombuffer(self.data, "<u4")[offsets // 4].astype(np.uint64)

    def scatter(self, offsets: Numbers, words: Numbers, invocations: Numbers) -> None:
        """Replaces words."""
        np.frombuffer(self.data, "<u4")[offsets // 4] = words


def at_once(code: bytes, before: bytes, limit: int = LIMIT) -> list[int]:
    """The words of %a after one dispatch at once."""
    bound = Bound(b0=before, b1=before)
    bound.buffers = {place: Words(bytes(held.data)) for place, held in bound.buffers.items()}
    execute_many(code, "main", (1, 1, 1), (0, 0, 0), bound, {}, limit)
    return bound.words()


BODIES = {
    "arithmetic": """
%square = OpIMul %uint %i %i
%less = OpISub %uint %square %eight
%turned = OpNot %uint %less
%moved = OpShiftLeftLogical %uint %turned %three
%back = OpShiftRightLogical %uint %moved %two
%part = OpUDiv %uint %back %three
%v = OpUMod %uint %part %eight
""",
    "selection": """
%away = OpISub %uint %i %eight
%negative = OpSLessThan %bool %away %zero
%large = OpUGreaterThan %bool %i %eight
%both = OpLogicalOr %bool %negative %large
%neither = OpLogicalNot %bool %both
%low = OpSelect %uint %negative %three %i
%v = OpSelect %uint %neither %eight %low
""",
    "a loop that each invocation leaves at another time": """
OpBranch %head
%head = OpLabel
%sum = OpPhi %uint %zero %entry %more %next
%at = OpPhi %uint %zero %entry %step %next
OpLoopMerge %done %next None
OpBranch %test
%test = OpLabel
%goes = OpULessThan %bool %at %i
OpBranchConditional %goes %next %done
%next = OpLabel
%more = OpIAdd %uint %sum %at
%step = OpIAdd %uint %at %one
OpBranch %head
%done = OpLabel
%v = OpIAdd %uint %sum %one
""",
    "branches that meet again": """
%odd = OpBitwiseAnd %uint %i %one
%is_odd = OpIEqual %bool %odd %one
OpSelectionMerge %after None
OpBranchConditional %is_odd %then %else
%then = OpLabel
%tripled = OpIMul %uint %i %three
OpBranch %after
%else = OpLabel
OpBranch %after
%after = OpLabel
%v = OpPhi %uint %tripled %then %eight %else
""",
    "words that it reads": """
%there = OpAccessChain %word_pointer %b %zero %i
%v = OpLoad %uint %there
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_invocations_at_once_leave_what_they_leave_one_by_one(body: str) -> None:
    code = module(NUMBER + body + store("%v", "%i"), declarations=LOCAL, **SIZE)
    assert complaint(code) == ""
    before = packed(*range(1000, 1000 + COUNT))
    one_by_one = run(code, Bound(b0=before, b1=before)).words()
    assert at_once(code, before) == one_by_one
    assert len(set(one_by_one)) > 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("%v = OpUDiv %uint %eight %i\n", "a shift or division by what differs"),
        ("%v = OpShiftLeftLogical %uint %one %i\n", "a shift or division by what differs"),
        ("%v = OpSDiv %uint %i %three\n", "an operation on what differs"),
        ("%v = OpAtomicIAdd %uint %first %one %zero %i\n", "an instruction of this sort"),
    ],
)
def test_what_may_differ_between_invocations_is_refused(body: str, told: str) -> None:
    first = "%first = OpAccessChain %word_pointer %a %zero %zero\n"
    code = module(NUMBER + first + body + store("%v", "%i"), declarations=LOCAL, **SIZE)
    assert complaint(code) == ""
    with pytest.raises(NotInterpreted, match=told):
        at_once(code, bytes(4 * COUNT))


def test_work_is_counted() -> None:
    body = BODIES["a loop that each invocation leaves at another time"]
    code = module(NUMBER + body + store("%v", "%i"), declarations=LOCAL, **SIZE)
    with pytest.raises(NotInterpreted, match="more than 2000 instructions"):
        at_once(code, bytes(4 * COUNT), limit=2000)


GROUPS = 256
LARGE = 64 * GROUPS


def test_a_large_dispatch_is_computed_at_once() -> None:
    stream = Stream()
    a, b = stream.buffer(4 * LARGE), stream.buffer(4 * LARGE)
    stream.begin()
    stream.compute("fill_words", [a], words(3)).run(GROUPS)
    stream.compute("reverse_words", [a, b]).run(GROUPS)
    stream.submit()
    computed = compute(stream.blocks)
    assert known_words(computed, a) == list(range(3, 3 + LARGE))
    assert known_words(computed, b) == list(range(3, 3 + LARGE))[::-1]
    assert not computed.reasons


def test_large_dispatches_count_for_the_whole_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many of them take as long as one that is refused. An instruction of 64 invocations counts as one."""
    stream = Stream()
    a = stream.buffer(4 * LARGE)
    stream.begin()
    fill = stream.compute("fill_words", [a], words(3))
    for _ in range(4):
        fill.run(GROUPS)
    stream.submit()
    spent: list[int] = []

    class Noted(Allowance):
        def spend(self, amount: int) -> None:
            spent.append(amount)
            super().spend(amount)

    def limited(limit: int) -> ComputedBytes:
        whole = Noted(limit, "the trace")
        monkeypatch.setattr(expected_bytes, "KnownContents", partial(KnownContents, instructions=whole))
        return compute(stream.blocks)

    assert known_words(limited(1 << 24), a) == list(range(3, 3 + LARGE))
    every = sum(spent)
    assert 4 * LARGE // 64 < every < 4 * LARGE
    assert not limited(every).reasons
    assert [*limited(every - 1).reasons] == [f"vkCmdDispatch: the trace executes more than {every - 1} instructions"]


def test_invocations_that_reach_words_of_one_another_are_not_executed_at_once() -> None:
    """In place, each of two words is read by the invocation that writes the other one."""
    stream = Stream()
    a = stream.buffer(4 * LARGE)
    stream.begin()
    stream.compute("fill_words", [a], words(3)).run(GROUPS)
    stream.compute("reverse_words", [a, a]).run(GROUPS)
    stream.submit()
    computed = compute(stream.blocks)
    assert set(known_words(computed, a)) == {None}
    assert not computed.reasons, "they are executed one after the other, in two orders"


def test_words_that_several_write_are_not_known() -> None:
    """With a pitch of 0, all rows of a tile are one row."""
    stream = Stream()
    a = stream.buffer(4 * LARGE)
    stream.begin()
    stream.fill(a, 1)
    stream.compute("tile_words", [a], words(0, 0, 5)).run(GROUPS)
    stream.submit()
    found = known_words(compute(stream.blocks), a)
    assert set(found[: 8 * GROUPS]) == {None}


def test_words_that_nobody_knows_are_not_read() -> None:
    stream = Stream()
    a, b = stream.buffer(4 * LARGE), stream.buffer(4 * LARGE)
    stream.begin()
    query = stream.make("vkCreateQueryPool", "pQueryPool", {"queryType": 2, "queryCount": 1, "pNext": None})
    copied = {"queryPool": query, "firstQuery": 0, "queryCount": 1, "dstBuffer": a, "dstOffset": 64, "stride": 8}
    stream.cmd("WriteTimestamp", pipelineStage=1, queryPool=query, query=0)
    stream.cmd("CopyQueryPoolResults", **copied, flags=1)
    stream.compute("copy_words", [a, b]).run(GROUPS)
    stream.submit()
    assert set(known_words(compute(stream.blocks), b)) == {None}
