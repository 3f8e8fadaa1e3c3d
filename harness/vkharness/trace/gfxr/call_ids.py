"""The numbers by which a capture names Vulkan's commands.

GFXReconstruct gives each command a number when it first supports it, and never changes it. `call_ids.json` lists those
in use in August 2026; a later capture may hold numbers without a name. No rule leads from a command to its number.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

VULKAN = 1
"""The upper half of a call's number: the API. The lower half is the command."""


@cache
def call_names() -> dict[int, str]:
    """Number to command."""
    listed = json.loads(Path(__file__).with_name("call_ids.json").read_bytes())
    return {VULKAN << 16 | int(number, 16): name for number, name in listed.items()}
