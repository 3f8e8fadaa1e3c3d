"""Jobs that a test of rows runs in a child process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from vkharness.commands.interpret import Interpreter
from vkharness.suite.judge_scenario import run
from vkharness.trace.calls import Block, block_name
from vkharness.trace.effects import StreamEvent

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


def interpretations(module: str, scenario: str, variant: str, device: str) -> dict[str, object]:
    """A row that no layer is asked about, and each name of a block with how often one such block was interpreted."""
    times: Counter[tuple[int, str]] = Counter()
    real = Interpreter.step

    def step(self: Interpreter, block: Block) -> Iterable[StreamEvent]:
        times[block.index, block_name(block)] += 1
        return real(self, block)

    Interpreter.step = step  # type: ignore[method-assign]
    try:
        row = run(str(SCENARIOS / module), scenario, variant, device, None, ["off"], 0)
    finally:
        Interpreter.step = real  # type: ignore[method-assign]
    most: dict[str, int] = {}
    for (_, name), count in times.items():
        most[name] = max(count, most.get(name, 0))
    return {"row": row, "most": most}
