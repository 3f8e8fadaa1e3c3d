"""The table of the matrix's operations, and what one is.

An operation is a function that readies what it needs beside the part (recorded before the pair and waited for, so that
two operations meet in the part alone) and answers with what records it. A write writes `value`, or what follows from
it: small words, since they may be parameters of an indirect command next. Adding one is adding one decorated function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.suite.matrix.resource_kinds import ResourcePart

DEVICE, HOST, ENGINE = "device", "host", "presentation engine"
"""Who makes the access."""
Record = Callable[[Any], None]
"""Records an operation of the device into a command buffer. The host's takes None and acts at once; the presentation
engine's takes the semaphores that it waits for."""
Prepare = Callable[[Commands, ResourcePart, int], Record]


@dataclass(frozen=True, slots=True)
class MatrixOperation:
    """One operation. `scope` is the stage and access with which it meets the part, `other_access` another one that is
    legal at that stage and does not cover it (empty: there is none), `command` the call that makes the access, `last`
    the one that makes it last."""

    name: str
    kinds: tuple[str, ...]
    scope: str
    command: str
    last: str
    again: str
    """A later command that makes the same access again, and meets every hazard, too."""
    prepare: Prepare
    other_access: str
    observable: bool
    """Whether what it reads reaches memory, and what it writes any reader, so that a hazard can be shown."""
    variant: bool
    """It differs from another operation in its shader stage, or in how it is launched."""
    place: str
    needs: tuple[str, ...]
    """Device extensions that it takes."""

    @property
    def writes(self) -> bool:
        """Whether its access is a write."""
        return "WRITE" in self.scope.partition("/")[2]

    @property
    def stages(self) -> str:
        """The stages of its scope."""
        return self.scope.partition("/")[0]


OPERATIONS: dict[str, MatrixOperation] = {}


def operation(
    *kinds: str,
    scope: str,
    command: str,
    last: str = "",
    again: str = "",
    other: str = "",
    observable: bool = True,
    variant: bool = False,
    place: str = DEVICE,
    needs: tuple[str, ...] = (),
) -> Callable[[Prepare], Prepare]:
    """Registers an operation under its function's name, underscores as spaces."""

    def register(function: Prepare) -> Prepare:
        name = function.__name__.replace("_", " ")
        OPERATIONS[name] = MatrixOperation(
            name, kinds, scope, command, last or command, again, function, other, observable, variant, place, needs
        )
        return function

    return register
