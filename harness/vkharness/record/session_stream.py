"""The stream of a session: each block in order, numbered, kept and judged, and the commands that wait to be."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from vkharness.findings import Finding, Unjudged
from vkharness.record.critical import critical, is_the_mirrors
from vkharness.record.native_log import CallOrder, WaitingCalls
from vkharness.trace.calls import Block, Call, block_name, cut_off
from vkharness.trace.effects import StreamEvent
from vkharness.trace.work_budget import OverBudget

ENDS_COMMAND_BUFFERS = frozenset({"vkFreeCommandBuffers", "vkDestroyCommandPool"})


class StreamJudge(Protocol):
    """Judges the stream while it is recorded, as `vkharness.check.Mirror` does."""

    @property
    def findings(self) -> list[Finding]:
        """All findings so far."""

    @property
    def events(self) -> Sequence[StreamEvent]:
        """The events of the blocks, in order; empty where they are not kept."""

    @property
    def unmodelled(self) -> dict[str, int]:
        """Commands that are not modelled, with how often they were called."""

    @property
    def verdict(self) -> str:
        """'clean', 'hazards' or 'unknown'."""

    @property
    def unjudged(self) -> Unjudged:
        """Parts of the stream that are not judged, and that the verdict leaves out."""

    def step(self, block: Block) -> list[Finding]:
        """Takes the next block and returns the findings that are new."""

    def written(self, memory: int, begin: int, end: int) -> Sequence[tuple[int, int]]:
        """Bytes of a memory object that pending submissions write and the host does not know to be complete."""

    def may_write(self, command_buffers: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """Memory object to the bytes that executing command buffers may write: at least what they write."""


@runtime_checkable
class CommandJudge(StreamJudge, Protocol):
    """A judge that takes recorded commands without a `Call` for each, as `vkharness.check.Analysis` does."""

    @property
    def recorded_alone(self) -> Collection[str]:
        """The names of the commands that `record` takes."""

    def record(self, index: int, name: str, args: dict[str, Any], site: str | None) -> None:
        """Takes a command that was recorded. The findings come with a later `step`."""

    def finish(self) -> list[Finding]:
        """Ends the stream; the findings that `step` has not given."""

    def stop(self, why: str) -> list[Finding]:
        """As `finish`, of a stream that asks for more work than it may."""


@runtime_checkable
class SayingJudge(CommandJudge, Protocol):
    """One that knows what a command does by what its call says."""

    def record_repeated(self, calls: Any) -> None:
        """Takes the commands at the front of `native_log.WaitingCalls` of which it knows what they do."""

    def record_new(self, index: int, said: Any, site: str | None) -> None:
        """Takes a command of which it does not: its `name` and `args`. `kept` is the judge's."""


class SessionStream:
    """Takes blocks, one after the other. What comes up in the middle of a block, on the same thread, is the next one.

    `blocks` is the stream so far, None where it is not kept. Errors of the judge and of the sink are told to `failed`,
    and to `interrupted` what the program raised in the judge.
    """

    def __init__(
        self,
        mirror: StreamJudge | None,
        keep_trace: bool,
        sink: Callable[[Block], None] | None,
        failed: Callable[[str], None],
        interrupted: Callable[[str], None],
        thread: Callable[[], int] = threading.get_ident,
    ) -> None:
        """`thread` says which thread makes the call that is taken."""
        self.mirror = mirror
        self.lock = threading.RLock()
        self.blocks: list[Block] | None = [] if keep_trace else None
        self._sink, self._failed, self._interrupted, self._ident = sink, failed, interrupted, thread
        self._judge = mirror if isinstance(mirror, CommandJudge) else None
        self._by_saying = mirror if isinstance(mirror, SayingJudge) else None
        keeps = keep_trace or sink is not None
        self._alone: Collection[str] = () if keeps or self._judge is None else self._judge.recorded_alone
        """The commands of which nobody needs a `Call`."""
        self._order = CallOrder()
        self._untold: list[Finding] = []
        self._taking = False
        """Whether a block is being kept and judged."""
        self._next: list[Block] = []
        """Blocks that came up meanwhile."""
        self.is_cut_off = False
        """Whether a call was lost in the middle: nobody knows what it did, so that nothing that follows is kept or
        judged."""
        self.is_judged = True
        """Whether blocks are judged: not from where an exception of the program met the judge on, or the stream asked
        for more work than it may."""
        self._interrupt: BaseException | None = None
        """An exception of the program that was raised while the judge ran. It is raised again once no block is being
        judged."""
        if self._alone:
            self._order.let_wait(self.catch_up)

    @property
    def log(self) -> Any:
        """Where native commands leave calls that nobody needs to hear of at once; None where somebody does."""
        return self._order.log

    def __bool__(self) -> bool:
        """Whether there was any call."""
        return bool(self._order)

    def cut_off(self, why: str) -> None:
        """Ends what is kept and judged, with a call that cannot be read: the verdict is not clean any more."""
        with self.lock:
            if self.is_cut_off:
                return
            self.is_cut_off = True
            calls, index = self._order.number()
            self._logged(calls)
            block = cut_off(index - 1, why)
            self._keep(block)
            self._step(block)
            self._next.clear()

    @critical
    def take(self, block: Block) -> list[Finding]:
        """Takes the next block; the findings that were not told."""
        with self.lock:
            in_the_middle = self._taking
            self.take_untold(block)
            if in_the_middle:
                return []
            found, self._untold = self._untold, []
            return found

    def take_untold(self, block: Block) -> None:
        """Takes the next block, whose findings are told with those of the next call."""
        with self.lock:
            if self.is_cut_off:
                return
            if self._taking:
                self._next.append(block)
                return
            self._taking = True
            try:
                self._judged(block)
                self._judge_next()
            finally:
                self._taking = False
            self._raise_interrupt()

    def take_alone(self, name: str, args: dict[str, Any], site: str | None) -> bool:
        """Takes a command for which nobody needs a `Call`. False where somebody does, and in the middle of a block on
        the same thread."""
        if name not in self._alone:
            return False
        with self.lock:
            if self.is_cut_off:
                return True
            if self._taking:
                return False
            self._taking = True
            try:
                calls, index = self._order.number()
                self._logged(calls)
                self._judge_alone(index, name, args, site)
                self._judge_next()
            finally:
                self._taking = False
            self._raise_interrupt()
        return True

    @critical
    def catch_up(self) -> None:
        """Judges the calls that wait. Those that are made in the middle of a block come after it."""
        with self.lock:
            if self._taking or not self.log:
                return
            if self.is_cut_off:
                self._order.waiting()
                return
            self._taking = True
            try:
                self._logged(self._order.waiting())
                self._judge_next()
            except BaseException as error:
                if not is_the_mirrors(error):
                    self.cut_off(f"commands that waited, interrupted ({type(error).__name__}),")
                raise
            finally:
                self._taking = False
            self._raise_interrupt()

    @critical
    def end(self) -> list[Finding]:
        """Ends the stream: what was found in command buffers that were not ended, and behind events that nothing
        signaled."""
        with self.lock:
            self.catch_up()
            found, self._untold = self._untold, []
            try:
                return found if self._judge is None or not self.is_judged else found + self._judge.finish()
            except BaseException as error:
                self._lost("detach", error)
                self._raise_interrupt()
                return found + self._untold

    def _lost(self, what: str, error: BaseException) -> None:
        """Something was not judged. Of what is judged in part nobody knows what it leaves, so that nothing is judged
        behind what the program raised in the judge, or behind more work than the stream may ask for."""
        if isinstance(error, OverBudget) and self._judge is not None:
            self.is_judged = False
            self._untold += self._judge.stop(f"{what}: {error}")
        elif is_the_mirrors(error):
            self._failed(f"{what}: {''.join(traceback.format_exception(error)).strip()}")
        else:
            self.is_judged = False
            self._interrupted(f"{what}, was interrupted ({type(error).__name__})")
            self._interrupt = error

    def _raise_interrupt(self) -> None:
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            raise interrupt

    def _judge_next(self) -> None:
        """Judges what came up meanwhile."""
        while self._next:
            self._judged(self._next.pop(0))

    def _logged(self, calls: WaitingCalls | None) -> None:
        """Judges calls that waited."""
        if calls is None or not self.is_judged:
            return
        self._judge_repeated(calls)
        for index, said, site, ident in calls:
            if said.name in self._alone:
                self._judge_said(index, said, site)
            else:
                self._step(Call(index, said.name, said.args, None, site, self._order.thread(ident)))
            self._judge_repeated(calls)

    def _judged(self, block: Block) -> None:
        calls, block.index = self._order.number()
        self._logged(calls)
        if isinstance(block, Call):
            if block.name in ENDS_COMMAND_BUFFERS:
                self._order.forget()
            block.thread = self._order.thread(self._ident())
        self._keep(block)
        self._step(block)

    def _keep(self, block: Block) -> None:
        if self.blocks is not None:
            self.blocks.append(block)
        if self._sink is None:
            return
        try:
            self._sink(block)
        except Exception as error:
            if not is_the_mirrors(error):
                raise
            self._sink = None
            self._failed(f"the trace ends at block {block.index}: {traceback.format_exc().strip()}")

    def _judge_repeated(self, calls: WaitingCalls) -> None:
        """Judges the next calls, as far as the judge knows what they do."""
        if self._by_saying is None or not self.is_judged:
            return
        before = len(calls)
        try:
            self._by_saying.record_repeated(calls)
        except BaseException as error:
            self._lost(f"one of {before - len(calls)} commands that are repeated", error)

    def _judge_said(self, index: int, said: Any, site: str | None) -> None:
        if not self.is_judged:
            return
        if self._by_saying is None:
            self._judge_alone(index, said.name, said.args, site)
            return
        try:
            self._by_saying.record_new(index, said, site)
        except BaseException as error:
            self._lost(f"block {index}, {said.name}", error)

    def _judge_alone(self, index: int, name: str, args: dict[str, Any], site: str | None) -> None:
        if not self.is_judged:
            return
        try:
            assert self._judge is not None
            self._judge.record(index, name, args, site)
        except BaseException as error:
            self._lost(f"block {index}, {name}", error)

    def _step(self, block: Block) -> None:
        if self.mirror is None or not self.is_judged:
            return
        try:
            self._untold += self.mirror.step(block)
        except BaseException as error:
            self._lost(f"block {block.index}, {block_name(block)}", error)
