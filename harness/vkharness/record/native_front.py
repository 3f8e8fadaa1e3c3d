"""Native functions for the commands that programs record most, in place of the package's and of those of `lib`.

One native function does what otherwise three of Python do: it converts arguments as the package (or cffi) does, reads
them from C memory, calls the driver, finds the call site and hands the call to the recorder. Which commands have one
follows from the registry: all that are recorded and return nothing, and whose arguments `Shapes` can read. What a
native function does not take (a call that does not fit, an argument that the package converts in a rare way or refuses)
it leaves to the Python function that it stands in for, so that results and errors are that one's.

Without the native core, and where cffi is not as the core knows it, everything goes the Python way.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any

from vkharness.native import core
from vkharness.record import struct_layout as layout
from vkharness.record.decode import Decoder
from vkharness.record.forward import CallSink
from vkharness.record.native_shapes import Shapes
from vkharness.record.sites import Sites
from vkharness.spec.shapes import main_name, signature
from vkharness.trace.templates import own_keys

UPDATES_SETS = "vkUpdateDescriptorSets"


@cache
def available() -> bool:
    """Whether this process has a native front end."""
    if core is None:
        return False
    import _cffi_backend

    ffi = layout.package_ffi()
    struct = ffi.new("VkOffset2D *")
    array = ffi.new("uint32_t[3]")
    samples = [
        (value, ffi.typeof(value), int(ffi.cast("uintptr_t", at)))
        for value, at in ((ffi.cast("void *", 0x1234), 0x1234), (struct, struct), (struct[0], struct), (array, array))
    ]
    return bool(core.front_ready(_cffi_backend._C_API, ffi.CData, samples))


def may_be_native(name: str) -> bool:
    """Whether a command, under any of its names, may have a native function: it changes nothing but its command buffer
    or descriptor sets, and its arguments say all that it does."""
    main = main_name(name)
    return (main.startswith("vkCmd") or main == UPDATES_SETS) and not own_keys(main)


def is_native(name: str) -> bool:
    """Whether a command has a native function in this process, if all of its arguments have a native form."""
    return may_be_native(name) and available()


def new_target(pointer: Any, arm: Callable[[], Any]) -> Any:
    """Makes the callable that Python reaches when it calls a function pointer of ours, where a session lets it.

    `arm` gives the session's command when there is none yet.
    """
    assert core is not None
    return core.Target(pointer, arm)


def call_directly(on: bool) -> None:
    """Whether function pointers lead to their targets when Python calls them."""
    if available():
        assert core is not None
        core.direct_calls(on)


def new_function(real: Callable[..., Any], arm: Callable[[], Any] = lambda: None) -> Any:
    """Makes the native function that stands in for the Python function `real`. `arm` is as for `new_target`."""
    assert core is not None
    return core.Function(real, arm)


def arm(target: Any, command: Any) -> None:
    """Gives a native function its command, or takes it away (None)."""
    assert core is not None
    core.arm(target, command)


def replaceable(package: types.ModuleType) -> dict[str, Callable[..., Any]]:
    """The package's own functions of such commands; not those that a program has put in their place."""
    names = package.__dict__ if available() else {}
    return {
        name: held
        for name, held in names.items()
        if isinstance(held, types.FunctionType)
        and held.__globals__ is names
        and signature(name)
        and may_be_native(name)
    }


class NativeCommands:
    """The native commands of one session."""

    def __init__(self, decoder: Decoder, recorder: CallSink, sites: Sites) -> None:
        self._recorder = recorder
        self._made: dict[tuple[str, Any], Any] = {}
        self._shapes = Shapes(decoder, accesses_alone=recorder.log is not None)
        self._sites = core.Sites(sites.explain, sites.none) if core is not None else None

    def of(self, name: str, real: Any) -> Any:
        """The command whose C function is `real`; None where it goes the Python way."""
        if not is_native(name):
            return None
        if (name, real) not in self._made:
            self._made[name, real] = self._new(name, real)
        return self._made[name, real]

    def _new(self, name: str, real: Any) -> Any:
        recorder, shape, kind = self._recorder, signature(name), layout.prototype(name)
        hooks = (recorder.before(name), recorder.after(name), recorder.cancelled(name))
        if shape is None or shape.returns != "void" or any(hook is not None for hook in hooks):
            return None
        parameters = tuple(_parameter(p.name, kind) for p, kind in zip(shape.params, kind.args, strict=True))
        address = int(layout.package_ffi().cast("uintptr_t", real))
        assert core is not None
        try:
            return core.Command(
                name, parameters, self._shapes.of_command(name, shape), "".join(map(_letter, kind.args)), address,
                self._sites, recorder.record_at, recorder.lost, recorder.log,
            )  # fmt: skip
        except LookupError:
            return None


def _parameter(name: str, kind: Any) -> tuple[Any, ...]:
    """Describes a parameter for the native core, which converts its argument: name, type, whether it is a pointer, the
    type that it points at, whether that is a struct or union, whether it is a pointer, and the type of arrays of it."""
    if kind.kind != "pointer":
        return name, kind, False, None, False, False, None
    item = kind.item.kind
    return name, kind, True, kind.item, item in ("struct", "union"), item == "pointer", _arrays(kind)


def _arrays(pointer: Any) -> Any:
    """The type of arrays of what a pointer of this type points at; None where there are no such arrays."""
    import _cffi_backend

    try:
        return _cffi_backend.new_array_type(pointer, None)
    except ValueError:  # of what nobody knows the size
        return None


def _letter(kind: Any) -> str:
    """How C passes an argument: see `front_signatures.hpp`."""
    if kind.kind == "pointer":
        return "Q"
    if kind.cname == "float":
        return "f"
    return {2: "H", 4: "I", 8: "Q"}[layout.package_ffi().sizeof(kind)]
