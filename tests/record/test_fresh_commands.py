"""How many Python handlers run for commands that come with other numbers each time, held against a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.gate_counts import text
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.native import core

TABLE = Path(__file__).resolve().parents[1] / "data" / "fresh_commands.json"


@pytest.mark.skipif(core is None, reason="without the native core each command runs its handler")
def test_no_more_handlers_run_for_fresh_commands_than_the_table_says() -> None:
    """The registry chooses commands and parameters (`bench/gate_frames.py`): the table has to have all of them.

    It takes some seconds, since it records some 1,500 frames: every common command with each of its parameters.
    """
    known = json.loads(TABLE.read_text(encoding="utf-8"))
    with Worker(find_driver("lavapipe"), packages=("bench",)) as worker:
        found = worker.call("bench.gate_counts:counts")
    assert not isinstance(found, Died), found.reason
    more = {
        (command, name): (known.get(command, {}).get(name), count)
        for command, each in found.items()
        for name, count in each.items()
        if count > known.get(command, {}).get(name, -1)
    }
    assert not more, "(in the table, now); a new command or parameter is added by python -m bench.gate_counts --write"
    assert text(found) == text(known), f"fewer handlers run: python -m bench.gate_counts --write {TABLE}"
