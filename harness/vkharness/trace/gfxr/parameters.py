"""The parameters and the returned value of each command, as a capture encodes them: one after the other."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from vkharness.spec import _generated as tables
from vkharness.trace.gfxr import (
    special_structs,  # noqa: F401  (registers its structs)
    template_values,
)
from vkharness.trace.gfxr.decoders import code_of, plain
from vkharness.trace.gfxr.encoded_values import Decoder

RESULTS = {"void": "", "VkResult": "i", "VkBool32": "I", "VkDeviceAddress": "Q", "VkDeviceSize": "Q"}
"""Type that a command returns to the `struct` code of its encoding; other types are addresses."""


class CommandDecoder(NamedTuple):
    """How to read a call of one command."""

    parameters: Decoder
    returns: str
    """The `struct` code of what it returns, empty for nothing."""
    outputs: tuple[str, ...]
    """The parameters that a failed call does not fill; () for a command that cannot fail."""
    kept: bool
    """Whether what it returns is kept as `Call.result`: a VkResult or a device address."""


@cache
def command_decoder(name: str) -> CommandDecoder | None:
    """How to read a call; None for a command without a table."""
    command = tables.COMMANDS.get(name)
    if command is None:
        return None
    returns = RESULTS[command[0]] if command[0] in RESULTS else code_of(command[0]) or "Q"
    applied = template_values.parameters(name)
    decoder = plain(name, command[1], False) if applied is None else applied
    outputs = tuple(each[0] for each in command[1] if command[0] == "VkResult" and each[2] and not each[3])
    return CommandDecoder(decoder, returns, outputs, command[0] in ("VkResult", "VkDeviceAddress"))
