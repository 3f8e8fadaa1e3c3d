"""Commands that say what others said, as the native front end gives them: in Python, from the calls of a stream."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from vkharness.check import Analysis, TraceSaying
from vkharness.commands.drawing.plans_by_sets import PlansBySets
from vkharness.commands.said_states import KnownBind, KnownDeferred
from vkharness.trace.calls import Block, Call
from vkharness.trace.recorded_commands import Line

COLUMN = 8
"""Bytes of a number in a column."""


class SaidInOrder:
    """`vkharness.record.native_log.WaitingCalls` in Python: the calls are (number, saying, site)."""

    def __init__(self, calls: Iterable[tuple[int, Any, str | None]]) -> None:
        self._calls = list(calls)

    @property
    def said(self) -> Any:
        """That of the next call."""
        return self._calls[0][1] if self._calls else None

    def __len__(self) -> int:
        return len(self._calls)

    def repeated(
        self, buffer: Any, changes: int, state: Any, line_of: Callable[[str, str | None], Line], flat: Any, sets: Any
    ) -> tuple[bytes, list[Line], list[Any], Any, list[Any]]:
        """Takes the next ones that are known."""
        numbers, lines = b"", list[Line]()
        plans, several = list[Any](), list[Any]()
        while self._calls:
            number, said, site = self._calls[0]
            if said.kept is None and flat is not None:
                said.kept = flat.record(buffer, buffer.id, changes, said.name, said.args)
            if state is not None and sets is not None:
                bound = sets.bind(buffer, buffer.id, said.kept, said.name, said.args)
                if bound is not None:
                    said.kept = bound
                    del self._calls[0]
                    continue
            kept, deferred = said.kept, None
            if isinstance(kept, KnownBind):
                break
            if isinstance(kept, tuple):
                if kept[:2] != (changes, buffer):
                    break
                plan = kept[2]
            elif state is not None and kept in state:
                plan, state = state[kept]
                if isinstance(plan, KnownDeferred):
                    plan, deferred = plan
                if isinstance(plan, PlansBySets):
                    plan = sets is not None and sets.plan(plan, buffer)
                if plan is False:
                    break
            else:
                break
            del self._calls[0]
            if plan is not None:
                if deferred is not None:
                    several.append((len(plans), deferred, b""))
                numbers += number.to_bytes(COLUMN, "little")
                lines.append(line_of(said.name, site))
                plans.append(plan)
        return numbers, lines, plans, state, several


class Listener:
    """Gives the commands of a stream to an analysis as the native front end does; `heard` counts them."""

    def __init__(self, one_by_one: bool = False) -> None:
        """`one_by_one`: the analysis is not asked for several commands at once."""
        self.analysis, self.heard, self._one_by_one = Analysis(), 0, one_by_one
        self._said: dict[str, TraceSaying] = {}
        self._recorded = 0
        self._record = self.analysis._interpreter.record
        self.analysis._interpreter.record = self._count  # type: ignore[assignment,method-assign]

    @property
    def known(self) -> int:
        """The commands of which it was known what they do."""
        return self.heard - self._recorded

    def _count(self, *given: Any) -> Any:
        self._recorded += 1
        return self._record(*given)

    def listen(self, blocks: Iterable[Block]) -> Analysis:
        """Takes what comes next."""
        for block in blocks:
            if not (isinstance(block, Call) and block.name in self.analysis.recorded_alone):
                sets = self.analysis._interpreter._sets
                is_write = isinstance(block, Call) and sets is not None and not self._one_by_one
                if not (is_write and sets.write(block.name, block.args)):  # type: ignore[union-attr]
                    self.analysis.step(block)
                continue
            said = self._said.setdefault(f"{block.name} {block.args}", TraceSaying(block.name, block.args))
            self.heard += 1
            calls = SaidInOrder([(block.index, said, block.site)])
            if self._one_by_one:
                self.analysis.record_said(block.index, said, block.site)
                continue
            self.analysis.record_repeated(calls)
            if len(calls):
                self.analysis.record_new(block.index, said, block.site)
        return self.analysis


def recorded_again(blocks: Iterable[Block], seed: int, times: int = 4) -> list[Block]:
    """A stream in which each command buffer is recorded several times before anything else is done with it, nearly
    alike: of some a few commands are left out, or come again, and objects change or go between them. Who does that is
    no valid program."""
    chosen, made = random.Random(seed), list[Block]()
    recording: dict[int, list[Call]] = {}
    before: list[Call] = []
    for block in blocks:
        made.append(block)
        id = block.args.get("commandBuffer") if isinstance(block, Call) else None
        if not isinstance(block, Call) or id is None:
            before += [block] if isinstance(block, Call) and block.name in CHANGES else []
            continue
        if block.name == "vkBeginCommandBuffer":
            recording[id] = []
        recording.setdefault(id, []).append(block)
        if block.name == "vkEndCommandBuffer":
            several = recording.pop(id)
            for _ in range(times):
                made += _nearly(several, before, chosen)
    return [replace(each, index=number) for number, each in enumerate(made, 1)]


CHANGES = {
    "vkUpdateDescriptorSets": "", "vkBindBufferMemory": "", "vkBindImageMemory": "", "vkCreateBuffer": "pBuffer",
    "vkCreateImageView": "pView", "vkCreateFramebuffer": "pFramebuffer", "vkCreateRenderPass2": "pRenderPass",
    "vkCreateComputePipelines": "pPipelines", "vkCreateGraphicsPipelines": "pPipelines",
    "vkAllocateDescriptorSets": "pDescriptorSets",
}  # fmt: skip
"""Calls that come again between recordings, with what may go that they made."""


def _nearly(recorded: list[Call], before: list[Call], chosen: random.Random) -> Iterator[Call]:
    rate, changes = chosen.choice((0, 0, 0.02, 0.1)), chosen.choice((0, 0, 0.02))
    for each in recorded:
        is_command = each.name.startswith("vkCmd")
        if not is_command or chosen.random() >= rate:
            yield each
        if is_command and chosen.random() < rate:
            yield chosen.choice([one for one in recorded if one.name.startswith("vkCmd")])
        if before and chosen.random() < changes:
            yield _change(before, chosen)


def _change(before: list[Call], chosen: random.Random) -> Call:
    call = chosen.choice(before)
    made = CHANGES[call.name]
    if call.name == "vkUpdateDescriptorSets":
        other = chosen.choice([each for each in before if each.name == call.name])
        writes = call.args["pDescriptorWrites"] or ()
        targets = [each["dstSet"] for each in other.args["pDescriptorWrites"] or ()] or [0]
        return replace(call, args=call.args | {"pDescriptorWrites": [w | {"dstSet": targets[0]} for w in writes]})
    if not made or chosen.random() < 0.5:
        return call
    ids = call.args[made]
    gone = chosen.choice(ids) if isinstance(ids, list) else ids
    if call.name == "vkAllocateDescriptorSets":
        pool = call.args["pAllocateInfo"]["descriptorPool"]
        args = {"descriptorPool": pool, "descriptorSetCount": 1, "pDescriptorSets": [gone]}
        return Call(0, "vkFreeDescriptorSets", {"device": call.args["device"], **args}, 0)
    kind = {"pPipelines": "Pipeline", "pView": "ImageView"}.get(made, made.removeprefix("p"))
    return Call(0, f"vkDestroy{kind}", {"device": call.args["device"], kind[0].lower() + kind[1:]: gone})
