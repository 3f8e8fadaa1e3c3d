"""The attack on a clean verdict: legal orders other than submission order, which must all leave the serial bytes."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from vkharness.findings import FailedCallError, UserError
from vkharness.model import Opinion
from vkharness.replay.contents.observe import Outputs
from vkharness.replay.outcomes.legal_order_runs import OrderRun, run_reorders
from vkharness.report.pictures import write_pictures
from vkharness.report.replay_text import difference_line
from vkharness.suite.row import Row
from vkharness.trace.calls import Block
from vkharness.trace.codec import save
from vkharness.verdicts import BrokenOrder, OrdersVerdict

ORDERS = 2
"""The number of orders that are executed, if there are so many."""
DRAWS = 8
"""The number of random orders that are drawn to find an order that is neither submission order nor its reverse."""


def attack(row: Row, blocks: list[Block], opinion: Opinion, folder: Path | None) -> Outputs | None:
    """Fills in `row.orders`. Each row has seeds of its own, always the same. Returns what the serial run left, None
    when none was needed."""
    first = crc32(f"{row.scenario} {row.variant}".encode()) % 1_000_000
    chosen = [("reverse", 0), *(("random", first + draw) for draw in range(DRAWS))]
    try:
        found = run_reorders(blocks, chosen, row.device, opinion, most=ORDERS)
    except FailedCallError:
        raise
    except UserError as error:
        row.orders = OrdersVerdict(problem=str(error))
        return None
    broken = found.differing
    said = tuple(BrokenOrder(run.outcome, difference_line(run.differences[0].to_dict())) for run in broken)
    row.orders = OrdersVerdict(len(found.executed), said)
    if broken and folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        save(folder / "trace.jsonl", blocks)
        for run in broken:
            _draw(row, found.expected, run, folder)
    return found.expected


def _draw(row: Row, expected: Outputs | None, run: OrderRun, folder: Path) -> None:
    assert expected is not None and run.observed is not None
    record = {"row": row.scenario, "device": row.device, **run.to_dict()}
    place = folder / run.outcome.replace(" ", "-")
    write_pictures(place, expected, run.observed, run.differences, record)
    row.artifacts.append(str(place))
