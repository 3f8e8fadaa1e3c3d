"""Which function says what a call does. Adding a command means adding one decorated function to a family module.

A *command* handler answers with the effects of one vkCmd*, or with a plan of `ObjectState.plans`; a *call* handler
answers with stream events and keeps the objects up to date. `vkCmdX`, `vkCmdX2` and their suffixed aliases fold to one
function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from vkharness.spec._generated import COMMAND_ALIASES

if TYPE_CHECKING:
    from vkharness.commands.object_state import CommandBuffer, ObjectState
    from vkharness.trace.calls import Call
    from vkharness.trace.effects import Effect, StreamEvent

CommandHandler = Callable[["ObjectState", "CommandBuffer", dict[str, Any]], "Iterable[Effect]"]
CallHandler = Callable[["ObjectState", "Call"], "Iterable[StreamEvent]"]

COMMANDS: dict[str, CommandHandler] = {}
CALLS: dict[str, CallHandler] = {}
BY_ARGUMENTS: set[str] = set()
"""Commands of which the plan, where their handler gives one, follows from their arguments alone."""

ACTS_THOUGH: dict[str, frozenset[int]] = {}
"""Calls that have an effect although they return one of these errors (VkResult)."""

_ALIASES_OF: dict[str, list[str]] = {}
for _alias, _name in COMMAND_ALIASES.items():
    _ALIASES_OF.setdefault(_name, []).append(_alias)


def command(*names: str, by_arguments: bool = False) -> Callable[[CommandHandler], CommandHandler]:
    """Registers the function that gives the effects of these vkCmd* (aliases follow by the registry). `by_arguments`:
    a plan that it gives follows from the arguments, and the buffers and images that they name, alone."""

    def register(handler: CommandHandler) -> CommandHandler:
        _add(COMMANDS, names, handler)
        BY_ARGUMENTS.update(name for name, each in COMMANDS.items() if each is handler and by_arguments)
        return handler

    return register


def call(*names: str) -> Callable[[CallHandler], CallHandler]:
    """Registers the function that follows these calls outside command buffers (aliases follow by the registry)."""

    def register(handler: CallHandler) -> CallHandler:
        _add(CALLS, names, handler)
        return handler

    return register


def _add(table: dict[str, Any], names: tuple[str, ...], handler: Any) -> None:
    for name in names:
        main = COMMAND_ALIASES.get(name, name)
        for each in {name, main, *_ALIASES_OF.get(main, ())}:
            assert each not in table, f"{each} has two handlers"
            table[each] = handler


def folded(args: dict[str, Any], info: str) -> dict[str, Any]:
    """The parameters of a command whichever form was called. The parameters of a `2` form lie in
    the structure `info`."""
    inner = args.get(info)
    return args if inner is None else inner
