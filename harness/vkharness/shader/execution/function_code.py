"""Functions of a module as Python closures over registers, and how they run.

A register holds an int of the type's bits, a bool, a tuple or a pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vkharness.shader.execution.access_chains import Registers, Step

Running = Generator[int, None, Any]
"""Yields at each control barrier a number that tells which it is, and `PAUSE` where it waits for others; returns the
function's registers."""
PAUSE = 0
UNWATCHED = 16
"""Blocks of a function that are executed before its registers are looked at."""


class RunningState(Protocol):
    """State of one invocation: its module-scope variables, and the limit of instructions that it counts against."""

    def pointer(self, variable: int) -> Any:
        """The pointer that a module-scope variable is."""

    def spend(self, amount: int) -> None:
        """Count instructions. Raises NotInterpreted when the limit is passed."""


@dataclass(slots=True)
class BlockCode:
    """One block."""

    weight: int = 1
    phis: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    """Label of the block before -> registers to write, registers to read."""
    parts: list[tuple[list[Step], Callable[[Registers, RunningState], Running] | None]] = field(default_factory=list)
    """Instructions, and the call or barrier after them."""
    leave: Callable[[Registers], int] = lambda _: 0
    """The label of the block after this one; 0 to return."""
    value: int = 0
    """The register that a return gives; 0 for none."""


@dataclass(slots=True)
class FunctionCode:
    """One function."""

    registers: Registers = field(default_factory=lambda: [None])
    """Their values when the function is called."""
    parameters: list[int] = field(default_factory=list)
    variables: list[tuple[int, int]] = field(default_factory=list)
    """(register, module-scope variable)."""
    blocks: dict[int, BlockCode] = field(default_factory=dict)
    entry: int = 0


def run_function(code: FunctionCode, arguments: Sequence[Any], state: RunningState) -> Running:
    """Executes a function, up to the next control barrier or pause each time.

    It pauses where a block is reached with the registers that it was reached with before: what a loop reads, it reads
    into registers, so nothing but another invocation ends this one. A loop that counts goes on to its end.
    """
    registers = code.registers[:]
    for register, variable in code.variables:
        registers[register] = state.pointer(variable)
    for register, argument in zip(code.parameters, arguments, strict=True):
        registers[register] = argument
    before, label = 0, code.entry
    executed, next_kept = 0, UNWATCHED
    kept_at, kept = (0, 0), registers
    while True:
        executed += 1
        if executed == next_kept:  # a loop of any length is found, as by Brent
            kept_at, kept, next_kept = (before, label), registers[:], 2 * next_kept
        elif label == kept_at[1] and before == kept_at[0] and registers == kept:
            yield PAUSE
        block = code.blocks[label]
        state.spend(block.weight)
        if block.phis:
            targets, sources = block.phis[before]
            values = [registers[source] for source in sources]
            for target, value in zip(targets, values, strict=True):
                registers[target] = value
        for steps, special in block.parts:
            for step in steps:
                step(registers)
            if special is not None:
                yield from special(registers, state)
        before, label = label, block.leave(registers)
        if not label:
            registers[0] = registers[block.value]
            return registers
