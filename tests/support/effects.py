"""Effects and submits written by hand, with no calls behind them: what tests of syncval and of the model start from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkPipelineStage2
from vkharness.spec.masks import scope
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.effects import (
    Access,
    Barrier,
    Command,
    Dependency,
    Effect,
    RangeBarrier,
    SemaphoreOperation,
    Submission,
    Submitted,
)

ALL_FLAGS = 0x7FFFFFFF
ALL_COMMANDS = VkPipelineStage2.ALL_COMMANDS
A, B, IMAGE = 100, 101, 102
"""Resources, each with a space of its own."""

Effects = Effect | tuple[Effect, ...]


def access(name: str, space: int = A, begin: int = 0, end: int = 64, **more: object) -> Access:
    """`COPY_TRANSFER_READ` of [begin, end) of a resource."""
    return Access(ACCESS_KIND[f"SYNC_{name}"].index, space, ((begin, end),), space, **more)  # type: ignore[arg-type]


WRITE_A, READ_A = access("COPY_TRANSFER_WRITE"), access("COPY_TRANSFER_READ")
WRITE_B = access("COPY_TRANSFER_WRITE", B)


def dependency(src: str, dst: str) -> Dependency:
    """From `STAGE/ACCESS` to `STAGE/ACCESS`."""
    return Dependency(*scope(src), *scope(dst))


def barrier(*scopes: str) -> Barrier:
    """One command with a global dependency for each two scopes (source, destination)."""
    return Barrier(tuple(map(dependency, scopes[::2], scopes[1::2])))


def ranged(src: str, dst: str, space: int, begin: int = 0, end: int = 64, move: bool = False) -> Barrier:
    """A buffer barrier, or a layout transition, as the commands make it: its execution dependency is for everything."""
    given = dependency(src, dst)
    execution = Dependency(given.src_stages, 0, given.dst_stages, 0)
    part = RangeBarrier(
        given, space, ((begin, end),), space, transition=move, old_layout=6 if move else 0, new_layout=7 if move else 0
    )
    return Barrier((execution,), ranges=(part,))


def at(semaphore: int, stages: int = ALL_COMMANDS, value: int = 0) -> tuple[SemaphoreOperation, ...]:
    """One wait or signal."""
    return (SemaphoreOperation(semaphore, stages, value=value),)


def commands(calls: Iterator[int], *effects: Effects) -> tuple[Command, ...]:
    """A command for each effect or tuple of effects, numbered by `calls`; its name says what it begins with."""
    several = (each if isinstance(each, tuple) else (each,) for each in effects)
    return tuple(Command(next(calls), f"vkCmd{type(each[0]).__name__}", None, each) for each in several)


def submitted(
    calls: Iterator[int],
    queue: int,
    effects: Sequence[Effects],
    waits: Sequence[SemaphoreOperation] = (),
    signals: Sequence[SemaphoreOperation] = (),
    fence: int = 0,
    flags: int = ALL_FLAGS,
    family: int = VK_QUEUE_FAMILY_IGNORED,
) -> Submitted:
    """A submit of one batch with one command buffer of these `commands`."""
    batch = Submission(
        0, ((next(calls) + 1000, commands(calls, *effects)),), waits=tuple(waits), signals=tuple(signals)
    )
    return Submitted(next(calls), "vkQueueSubmit2", None, queue, flags, (batch,), fence, family=family)
