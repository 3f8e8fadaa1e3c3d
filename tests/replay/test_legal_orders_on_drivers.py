"""Legal orders on real drivers: what is clean leaves the serial bytes in each, and a race shows by order alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.drivers_here import on_each_driver
from tests.support.streams import Stream, two_buffers, words
from vkharness.check import Analysis
from vkharness.commands.handlers import COMMANDS
from vkharness.findings import UserError
from vkharness.judged_replay import replay_job
from vkharness.model import judge
from vkharness.model.stages import ACCESS_KINDS
from vkharness.replay.contents.observe import OutputDifference, Outputs, Surface
from vkharness.replay.outcomes.legal_order_runs import OrderRun, Reorders, _leave_out_the_unstable, run_reorders
from vkharness.replay.strategies import names
from vkharness.suite.attack import attack
from vkharness.suite.row import Row, settle
from vkharness.trace.codec import save
from vkharness.trace.effects import Access, Effect
from vkharness.verdicts import Status

REVERSE = [("reverse", 0)]


def raced(kind: str) -> tuple[Stream, int]:
    """Two commands with nothing between, and the buffer that their order shows in."""
    stream = Stream()
    a, b, c = stream.buffer(64), stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.fill(c, 9)
    stream.barrier()
    if kind == "read after write":
        stream.fill(a, 7)
        stream.copy(a, b, 64)
    elif kind == "write after read":
        stream.copy(a, b, 64)
        stream.fill(a, 7)
    else:
        stream.fill(b, 7)
        stream.copy(c, b, 64)
    stream.submit()
    return stream, b


def clean() -> Stream:
    """Dispatches with pipelines, sets and push constants of their own, and copies, ordered in two chains."""
    stream = Stream()
    chains = []
    for value in (100, 500):
        a, b, c = stream.buffer(16), stream.buffer(16), stream.buffer(16)
        fill, copy = stream.compute("fill_words", [a], words(value)), stream.compute("copy_words", [a, b])
        chains.append((fill, copy, b, c))
    stream.begin()
    for fill, *_ in chains:
        fill.run()
    stream.barrier()
    for _, copy, *_ in chains:
        copy.run()
    stream.barrier()
    for _, _, b, c in chains:
        stream.copy(b, c, 16)
    stream.submit()
    return stream


def row(blocks_of: Stream, driver: str, folder: Path | None = None) -> Row:
    """Returns the row after the attack on a stream that is taken for clean."""
    made = Row("folder/claim", "whole", driver, [])
    attack(made, blocks_of.blocks, judge(blocks_of.blocks), folder)
    return made


@on_each_driver
class TestOnDrivers:
    @pytest.mark.parametrize("strategy", names())
    def test_moved_commands_take_their_state_along(self, driver: str, strategy: str) -> None:
        stream = clean()
        found = run_reorders(stream.blocks, [(strategy, seed) for seed in range(6)], driver)
        assert found.executed and all(run.moved for run in found.executed)
        assert found.differing == []
        assert found.expected is not None
        for run in found.executed:
            assert run.observed is not None and run.observed.surfaces.keys() == found.expected.surfaces.keys()

    @pytest.mark.parametrize("kind", ["read after write", "write after read", "write after write"])
    def test_a_race_shows_and_its_outcome_repeats_it(self, driver: str, kind: str) -> None:
        stream, buffer = raced(kind)
        found = run_reorders(stream.blocks, [("random", seed) for seed in range(8)], driver)
        (run,) = found.differing
        assert [each.resource for each in run.differences] == [buffer]
        word, strategy, seed = run.outcome.split()
        assert (word, seed[:5]) == ("reorder", "seed=")
        again = run_reorders(stream.blocks, [(strategy, int(seed[5:]))], driver)
        assert [each.to_dict() for each in again.runs] == [run.to_dict()]

    def test_each_order_is_executed_once(self, driver: str) -> None:
        stream, _ = raced("read after write")
        found = run_reorders(stream.blocks, [*REVERSE, *(("random", seed) for seed in range(8))], driver)
        assert [run.outcome for run in found.executed] == ["reorder reverse"]
        assert {run.same_as for run in found.runs} == {"", "serial", "reorder reverse"}
        assert run_reorders(clean().blocks, [("random", n) for n in range(9)], driver, most=2).executed[2:] == []

    def test_transitions_and_clears_of_two_images_swap(self, driver: str) -> None:
        stream = Stream()
        images, buffers = [stream.image((4, 4, 1)) for _ in range(2)], [stream.buffer(64) for _ in range(2)]
        stream.begin()
        for image in images:
            stream.transition(image, 0, 1)
        for value, image in enumerate(images):
            stream.clear(image, (value, 1, 0, 1), layout=1)
        stream.barrier()
        for image, buffer in zip(images, buffers, strict=True):
            stream.image_to_buffer(image, buffer, (4, 4, 1), layout=1)
        stream.submit()
        (run,) = run_reorders(stream.blocks, REVERSE, driver).executed
        assert (run.moved, run.differences) == (2, [])

    def test_a_host_write_that_nothing_waits_for(self, driver: str) -> None:
        stream = Stream()
        memory = stream.memory(256)
        a, b = stream.buffer(16, memory), stream.buffer(16)
        stream.begin()
        stream.copy(a, b, 16)
        stream.submit(wait=False)
        stream.host_write(memory, 0, words(1, 2, 3, 4))
        (run,) = run_reorders(stream.blocks, REVERSE, driver).executed
        (difference,) = run.differences
        assert (difference.resource, difference.observed) == (b, "01000000")

    def test_nothing_moves_where_all_is_ordered_or_something_is_not_modelled(self, driver: str) -> None:
        stream, a, b = two_buffers()
        stream.begin()
        stream.fill(a, 1)
        stream.barrier()
        stream.copy(a, b, 16)
        stream.submit()
        found = run_reorders(stream.blocks, REVERSE, driver)
        assert (found.executed, found.expected, found.unmodelled) == ([], None, [])
        assert found.reason == "nothing was reordered: the orders drawn are submission order"
        stream.cmd("SubpassShadingHUAWEI")
        stream.submit(stream.commands)
        found = run_reorders(stream.blocks, REVERSE, driver)
        assert (found.runs, found.unmodelled) == ([], ["vkCmdSubpassShadingHUAWEI"])
        assert found.reason.endswith("not modelled: vkCmdSubpassShadingHUAWEI")

    def test_a_clean_row_holds_or_has_nothing_to_reorder(self, driver: str) -> None:
        assert row(clean(), driver).to_dict()["witness"] == "held 2/2"
        stream = Stream()
        stream.buffer(16)
        assert row(stream, driver).to_dict()["witness"] == "nothing to reorder"

    def test_a_race_taken_for_clean_breaks_and_fails_the_row(self, driver: str, tmp_path: Path) -> None:
        stream, buffer = raced("write after write")
        broken = row(stream, driver, tmp_path)
        said = f"broken 1/1 (reorder reverse: buffer {buffer}: 16 of 16 differ"
        assert broken.to_dict()["witness"].startswith(said)
        settle(broken, [])
        assert broken.status is Status.FAILED
        assert (tmp_path / "trace.jsonl").exists()
        assert (tmp_path / "reorder-reverse" / "record.json").exists()
        held = row(clean(), driver)
        settle(held, [])
        assert held.status is Status.PASSED

    def test_an_access_that_every_judge_overlooks_breaks(self, driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The effects of a command are written in one place: if it is wrong there, only the bytes can tell."""
        stream, buffer = raced("read after write")
        handler = COMMANDS["vkCmdCopyBuffer"]

        def writes_alone(*given: Any) -> list[Effect]:
            return [
                each for each in handler(*given) if isinstance(each, Access) and ACCESS_KINDS[each.access_kind].write
            ]

        monkeypatch.setitem(COMMANDS, "vkCmdCopyBuffer", writes_alone)
        assert judge(stream.blocks).clean and not Analysis().follow(stream.blocks).findings
        assert row(stream, driver).to_dict()["witness"].startswith(f"broken 1/1 (reorder reverse: buffer {buffer}: ")

    def test_the_job_of_a_trace_file(self, driver: str, tmp_path: Path) -> None:
        stream, buffer = raced("write after read")
        trace = tmp_path / "race.jsonl"
        save(trace, stream.blocks)
        found = replay_job(str(trace), "reorder", driver, None, str(tmp_path / "out"), 20, "priority", 3)
        assert found["differing_runs"] == 1
        assert [order["outcome"] for order in found["orders"]] == [f"reorder priority seed={3 + n}" for n in range(20)]
        (differing,) = [order for order in found["orders"] if order["differences"]]
        assert differing["differences"][0]["resource"] == buffer
        (folder,) = (tmp_path / "out").iterdir()
        assert folder.name == differing["outcome"].replace(" ", "-")
        assert replay_job(str(trace), "reorder", driver, iterations=20, strategy="reverse")["orders"][1:] == []
        with pytest.raises(UserError, match="unknown strategy 'sideways'"):
            replay_job(str(trace), "reorder", driver, strategy="sideways")


def test_what_two_serial_runs_leave_differently_is_not_compared() -> None:
    def outputs(*values: int) -> Outputs:
        surfaces = {(id, None): Surface(id, None, np.full(4, value, np.uint8)) for id, value in enumerate(values, 1)}
        return Outputs(surfaces)  # type: ignore[arg-type]

    def difference(resource: int) -> OutputDifference:
        return OutputDifference(resource, "buffer", None, 1, 1, (0,), "00000000", "01010101")

    found = Reorders([OrderRun("x", 1, differences=[difference(1), difference(2)])], outputs(0, 0))
    _leave_out_the_unstable(found, outputs(0, 5))
    assert found.unstable == [2]
    assert [each.resource for each in found.runs[0].differences] == [1]
