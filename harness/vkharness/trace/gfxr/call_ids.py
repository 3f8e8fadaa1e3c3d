"""The numbers by which a capture names Vulkan's commands.

GFXReconstruct gives each command a number when it first supports it, and never changes it. `call_ids.json` lists those
in use in August 2026; a later capture may hold numbers without a name. No rule leads from a command to its number.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from vkharness.spec import _generated as tables

VULKAN = 1
"""The upper half of a call's number: the API. The lower half is the command."""


@cache
def call_names() -> dict[int, str]:
    """Number to command: the header's name of it, or its own name where the header has none."""
    listed = json.loads(Path(__file__).with_name("call_ids.json").read_bytes())
    known = tables.COMMANDS
    found = {}
    for number, name in listed.items():
        main = tables.COMMAND_ALIASES.get(name, name)
        found[VULKAN << 16 | int(number, 16)] = name if name in known else main if main in known else name
    return found
