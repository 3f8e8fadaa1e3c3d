"""Every command of the registry, printed as api_dump prints it and read again."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_dump_printer import parameters, printed_json, printed_text
from tests.support.normal_form import Generator
from vkharness.spec import _generated as tables
from vkharness.trace.binaries import FolderReader
from vkharness.trace.calls import Call
from vkharness.trace.dialects import read_call
from vkharness.trace.handles import HandleRegistry
from vkharness.trace.lines import Corrupt
from vkharness.trace.printed.api_dump_json import json_calls
from vkharness.trace.printed.api_dump_text import TextCalls
from vkharness.trace.printed.printed_shapes import PrintedShapes
from vkharness.trace.printed.printed_values import PrintedCall
from vkharness.trace.scalars import Reading

OWN_FORM = {"vkGetMemoryRemoteAddressNV", "vkGetDescriptorEXT"}
"""Commands with types of other headers, or of which the union holds what no selector of the tables names."""
COMMANDS = sorted(tables.COMMANDS.keys() - OWN_FORM)


class Same(HandleRegistry):
    """Handles that are their own ids."""

    def create(self, type_name: str, raw: int, parent: int) -> int:
        return raw

    def see(self, type_name: str, raw: int, parent: int) -> int:
        return raw


def read(printed: PrintedCall) -> Call:
    shapes = PrintedShapes(Same())
    function: dict[str, Any] = {"name": printed.name, "thread": printed.thread, "args": shapes.arguments(printed)}
    if printed.result:
        function["return"] = shapes.result(printed)
    reading = Reading(FolderReader(Path("x")), ours=False)
    return read_call({"index": 1, "function": function}, function, reading)


def from_text(text: str) -> list[PrintedCall]:
    return list(TextCalls().read(enumerate(text.split("\n"), 1)))


def from_json(call: Call) -> list[PrintedCall]:
    text = json.dumps([{"frameNumber": "0", "apiCalls": [printed_json(call)]}], indent=4)
    return list(json_calls(io.BytesIO(text.encode())))


@pytest.mark.parametrize("form", ["text", "text without types", "json"])
@pytest.mark.parametrize("seed", range(2))
def test_every_command_is_read_as_it_was_printed(seed: int, form: str) -> None:
    print(f"seed {seed}")
    made = Generator(seed)
    refused: list[str] = []
    for name in COMMANDS:
        call = made.call(name)
        found = from_json(call) if form == "json" else from_text(printed_text(call, types=form == "text"))
        assert [each.name for each in found] == [name]
        expected = parameters(call)[1]
        try:
            got = read(found[0])
        except Corrupt as error:
            refused.append(str(error))
            continue
        shown = {key: got.args[key] for key in expected}
        assert (name, shown, got.result, got.thread) == (name, expected, call.result, call.thread)
    empty = "the call does not say what it gave"  # an empty array is printed as NULL
    assert [each for each in refused if not each.endswith(empty)] == []
