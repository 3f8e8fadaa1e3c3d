"""Random programs that record nearly the same in each frame, of all kinds: which one a seed stands for.

As many are of `frame_programs` as have more objects, have so many ranges that a tree of them has more than one leaf,
have what orders work, and set more state, draw more at once and push descriptors.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from hunts.dense_frames import DenseFrames
from hunts.frame_programs import FrameStream
from hunts.front_programs import CallProgram, told_of_program
from hunts.queue_frames import QueueFrames
from hunts.shader_frames import ShaderFrames
from hunts.state_frames import StateFrames

KINDS: tuple[type[FrameStream], ...] = (FrameStream, ShaderFrames, DenseFrames, QueueFrames, StateFrames)


def program_of(seed: int) -> CallProgram:
    """A seed's program. Its kind is no matter of whether the seed is odd: a hunt over several kinds of streams has
    every n-th seed alone."""
    ways = random.Random(f"ways {seed}")
    stream = ways.choice(KINDS)(seed)
    package, hostile, keeps_trace = ways.choice((0, 0.5, 1)), ways.choice((0, 0, 0, 0.01)), ways.random() < 0.2
    return CallProgram(stream.calls, stream.objects, package, hostile, keeps_trace)


def frames_of(seed: int) -> list[tuple[int, int]]:
    """The calls of a seed's program: the seed, with the number of each."""
    return [(seed, number) for number in range(len(program_of(seed).calls))]


def told_of_frames(calls: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yields the errors and the records of the calls of one program, and the findings about them."""
    yield from told_of_program(calls, program_of)
