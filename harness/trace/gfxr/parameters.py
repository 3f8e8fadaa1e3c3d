"""The parameters and the returned value of each command, as a capture encodes them: one after the other."""

from __future__ import annotations

from functools import cache

from harness.spec import _generated as tables
from harness.trace.gfxr import (
    special_structs,  # noqa: F401  (registers its structs)
    template_values,
)
from harness.trace.gfxr.decoders import code_of, plain
from harness.trace.gfxr.encoded_values import Decoder

RESULTS = {"void": "", "VkResult": "i", "VkBool32": "I", "VkDeviceAddress": "Q", "VkDeviceSize": "Q"}
"""Type that a command returns to the `struct` code of its encoding; other types are addresses."""


@cache
def command_decoder(name: str) -> tuple[Decoder, str] | None:
    """The decoder of a command's parameters, and the code of what it returns; None for a command without a table."""
    command = tables.COMMANDS.get(name) or tables.NEWER_COMMANDS.get(name)
    if command is None:
        return None
    returns = RESULTS[command[0]] if command[0] in RESULTS else code_of(command[0]) or "Q"
    applied = template_values.parameters(name)
    return (plain(name, command[1], False) if applied is None else applied), returns
