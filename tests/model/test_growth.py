"""How much the model compares: in proportion to what is executed, and nothing is lost by that."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from vkharness.fuzz import random_text
from vkharness.model import Opinion, access_history
from vkharness.model.judge import judge_stream_events as judge
from vkharness.model.opinion import Conflict
from vkharness.model.order import ExecutionOrder
from vkharness.model.program import Program
from vkharness.model.rules import RULES
from vkharness.text_form import stream_text

SUBMITS = "submit q1\n CLEAR_TRANSFER_WRITE a\n"
FILLS = "submit q1\n"
"""Everything that is repeated behind it is in one command buffer."""


def pairs(text: str) -> int:
    """How many pairs of accesses are compared."""
    program, count = Program(RULES), 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    program.accesses.observe = note
    program.follow(stream_text.parse(text))
    return count


@pytest.mark.parametrize(
    ("first", "repeated"),
    [
        ("", SUBMITS),
        ("", SUBMITS + SUBMITS.replace("q1", "q2")),
        (FILLS, " CLEAR_TRANSFER_WRITE a\n"),
        (FILLS, " CLEAR_TRANSFER_WRITE a\n COPY_TRANSFER_READ a\n"),
        (FILLS, " CLEAR_TRANSFER_WRITE a\n barrier CLEAR/TRANSFER_WRITE > CLEAR/TRANSFER_WRITE\n"),
        (
            FILLS + " CLEAR_TRANSFER_WRITE a\n",
            " barrier a CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ\n COPY_TRANSFER_READ a\n",
        ),
    ],
    ids=["submits", "queues", "fills", "reads-and-writes", "in-order", "read-often"],
)
def test_an_access_is_compared_with_as_many_others_late_as_early(first: str, repeated: str) -> None:
    short, long = (pairs(first + count * repeated) for count in (20, 40))
    assert short
    assert long <= 2 * short + 4


def test_accesses_of_different_addresses_are_not_compared() -> None:
    text = FILLS + "".join(f" CLEAR_TRANSFER_WRITE a[{4 * at}:{4 * at + 4}]\n" for at in range(12))
    assert pairs(text) == 0


def about(conflict: Conflict) -> tuple[object, ...]:
    """The subject of a conflict, without the addresses."""
    return (conflict.kind, conflict.prior.call, conflict.current.call, conflict.prior.access, conflict.current.access)


def opinions() -> Iterator[tuple[str, Opinion]]:
    for seed in range(400):
        text = random_text.make(random.Random(seed).choice)
        yield text, judge(stream_text.parse(text))


def test_an_access_that_stands_for_an_earlier_one_hides_no_hazard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it more pairs are named, and of no other command."""
    with monkeypatch.context() as patch:
        patch.setattr(access_history, "stands_for", lambda current, prior: False)
        every = dict(opinions())
    left_out = 0
    for text, opinion in opinions():
        all_of_them, some = ({about(each) for each in one.conflicts} for one in (every[text], opinion))
        assert some <= all_of_them, text
        assert {each[2] for each in some} == {each[2] for each in all_of_them}, text
        left_out += len(all_of_them) - len(some)
    assert left_out > 5


def test_of_reads_that_are_alike_the_first_one_is_kept_beside_the_write() -> None:
    """A write behind the reads needs to come after the first of them alone, since that saw the earlier write."""
    program, readers = Program(RULES), list[int]()
    program.accesses.observe = lambda prior, current, spans, gap: readers.append(len(prior.seen_by))
    program.follow(
        stream_text.parse(
            "submit q1\n CLEAR_TRANSFER_WRITE a\n barrier CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ\n"
            + 30 * " COPY_TRANSFER_READ a\n"
            + " barrier COPY > CLEAR\n CLEAR_TRANSFER_WRITE a\n"
        )
    )
    assert max(readers) == 1
    assert not program.opinion.conflicts


def test_a_path_looks_at_each_node_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many edges lead from a node: here all from each barrier to each later one."""
    step = " barrier ALL_COMMANDS/MEMORY_WRITE > ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE\n CLEAR_TRANSFER_WRITE a\n"
    order = judge(stream_text.parse(FILLS + 60 * step)).order
    last = len(order.nodes) - 1
    begin = next(at for at in range(last) if order.precedes(at, last))
    looked: list[int] = []
    precedes = type(order).precedes

    def note(self: ExecutionOrder, first: int, second: int, by_region: bool = False) -> bool:
        looked.append(second)
        return precedes(self, first, second, by_region)

    monkeypatch.setattr(ExecutionOrder, "precedes", note)
    assert order.path(begin, last)[0] == begin
    assert len(looked) <= len(order.nodes) and len(looked) == len(set(looked)) + (looked.count(last) - 1)
