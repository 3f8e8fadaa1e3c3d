"""A small program that is clean, for tests that raise in the middle of the mirror; `hunt` raises everywhere.

As a program of its own it prints what `hunt` found: `python -m tests.record.interrupted_program KIND FIRST EVERY`.
"""

from __future__ import annotations

import builtins
import dis
import json
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import vkharness
from vkharness.check import Analysis
from vkharness.fuzz.front_programs import deaf_driver, heard
from vkharness.record.session import Session
from vkharness.record.sites import GENERATED
from vkharness.trace.calls import Block, block_name

HERE = str(Path(vkharness.__file__).parent)
TRANSFER, TRANSFER_WRITE = 0x1000, 0x1000


def calls_of(vk: Any) -> list[Callable[[], object]]:
    """Two fills of one buffer with a barrier between. The driver that does nothing takes any handle."""
    commands, buffer = vk.ffi.cast("VkCommandBuffer", 16), vk.ffi.cast("VkBuffer", 32)
    queue = vk.ffi.cast("VkQueue", 48)
    begin = vk.VkCommandBufferBeginInfo()
    barrier = vk.VkMemoryBarrier(srcAccessMask=TRANSFER_WRITE, dstAccessMask=TRANSFER_WRITE)
    submit = vk.VkSubmitInfo(pCommandBuffers=[commands])
    return [
        lambda: vk.vkBeginCommandBuffer(commands, begin),
        lambda: vk.vkCmdFillBuffer(commands, buffer, 0, 64, 1),
        lambda: vk.vkCmdPipelineBarrier(commands, TRANSFER, TRANSFER, 0, 1, [barrier], 0, None, 0, None),
        lambda: vk.vkCmdFillBuffer(commands, buffer, 0, 64, 2),
        lambda: vk.vkEndCommandBuffer(commands),
        lambda: vk.vkQueueSubmit(queue, 1, [submit], vk.ffi.cast("VkFence", 0)),
        lambda: vk.vkQueueWaitIdle(queue),
    ]  # fmt: skip


class Outcome(NamedTuple):
    """What came of a run."""

    arrived: list[int]
    """The calls at which an exception reached the program."""
    heard: list[str]
    """The calls that the driver got."""
    blocks: list[Block]
    verdict: str
    errors: list[str]

    @property
    def is_whole(self) -> bool:
        """Whether each call that the driver got is in the stream, once."""
        return [*map(block_name, self.blocks)] == self.heard

    def fault(self, told: int) -> str:
        """What is wrong of a run in which `told` exceptions were raised in the mirror; nothing for a right one."""
        if len(self.arrived) != told:
            return f"{len(self.arrived)} of {told} exceptions arrived"
        if self.errors:
            return f"an error of the mirror: {self.errors[0]}"
        checked = Analysis().follow(self.blocks).verdict
        right = ("clean", "unknown") if self.is_whole else ("unknown",)
        if self.verdict not in right or checked not in right:
            names = [*map(block_name, self.blocks)]
            return f"the verdict is {self.verdict}, that of the trace {checked}, of {names} for {self.heard}"
        return ""


def run(kinds: tuple[type[BaseException], ...], keeps_trace: bool = True) -> tuple[Session, Outcome]:
    """Runs the program under the mirror; it catches these exceptions at each call."""
    arrived = []
    with deaf_driver() as vk:
        calls = calls_of(vk)
        session = vkharness.attach(keep_trace=keeps_trace)
        for place, call in enumerate(calls):
            try:
                call()
            except kinds:
                arrived.append(place)
        try:
            session.detach()
        except kinds:
            arrived.append(len(calls))
            session.detach()
    return session, Outcome(arrived, heard(), list(session.blocks or ()), session.verdict, session.internal_errors)


def held_locks(session: Session) -> list[str]:
    """The locks of a session that another thread cannot have."""
    locks = {"stream": session._lock, "host memory": session.host._lock}
    held: list[str] = []

    def look() -> None:
        held.extend(name for name, lock in locks.items() if not lock.acquire(timeout=1))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return held + [f"in flight: {ident}" for ident in session._in_flight.threads]


RAISES = ("CALL", "RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD", "SEND")
"""How the names of the instructions begin behind which Python raises what comes from outside."""


@cache
def points_of(code: CodeType) -> dict[int, tuple[int, ...]]:
    """By offset, where in a function Python may raise: the offsets of instructions that may come before it, which raise
    then, and are protected by the same handlers."""
    body = dis.Bytecode(code)
    protected = [(each.start, each.end, each.target) for each in body.exception_entries]  # type: ignore[attr-defined]

    def handler(offset: int) -> int:
        return next((target for start, end, target in protected if start <= offset < end), -1)

    raising = [each.offset for each in body if each.opname.startswith(RAISES)]
    return {each.offset: tuple(at for at in raising if handler(at) == handler(each.offset)) for each in body}


class Raiser:
    """Raises in the mirror where Python would raise what comes from outside: there for the time with a number."""

    def __init__(self, kind: type[BaseException], at: int) -> None:
        self.kind, self.left, self.where = kind, at, ""
        self._before: dict[FrameType, int] = {}

    def traced(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith((HERE, GENERATED)) or name.startswith(f"{HERE}/fuzz/") or self.where:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            before, self._before[frame] = self._before.get(frame, -1), frame.f_lasti
            self.left -= before in points_of(frame.f_code)[frame.f_lasti]
            if self.left < 0:
                self.where = f"{name.removeprefix(HERE)}:{frame.f_lineno}"
                raise self.kind
        return self.traced


def interrupted(kind: type[BaseException], at: int) -> tuple[str, str]:
    """(where, what is wrong) of a run in which instruction `at` raises; ("", "") behind the last one."""
    raiser = Raiser(kind, at)
    arrived = []
    with deaf_driver() as vk:
        calls = calls_of(vk)
        session = vkharness.attach(keep_trace=True)
        for place, call in enumerate(calls):
            sys.settrace(raiser.traced)
            try:
                call()
            except kind:
                arrived.append(place)
            finally:
                sys.settrace(None)
        session.detach()
    if not raiser.where:
        return "", ""
    outcome = Outcome(arrived, heard(), list(session.blocks or ()), session.verdict, session.internal_errors)
    held = held_locks(session)
    return raiser.where, outcome.fault(1) or (f"held: {held}" if held else "")


def hunt(kind: type[BaseException], first: int, every: int) -> dict[str, Any]:
    """Raises at each `every`th instruction from the `first` one on, one run for each."""
    points = 0
    faults: list[str] = []
    while True:
        where, fault = interrupted(kind, first + points * every)
        if not where:
            return {"points": points, "faults": faults}
        points += 1
        if fault:
            faults.append(f"{where}: {fault}")


if __name__ == "__main__":
    run((Exception,))  # what is made once is made
    print(json.dumps(hunt(getattr(builtins, sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
