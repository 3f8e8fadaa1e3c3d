"""Builds the fault driver for one driver: a library and its manifest, with the C compiler of this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vkharness.device.drivers import Driver
from vkharness.device.faults.broken_promises import BROKEN_DRIVERS
from vkharness.device.faults.fault_plan import KINDS
from vkharness.findings import UserError
from vkharness.spec import _generated as tables
from vkharness.spec.shapes import Member, Signature, members

SOURCE = Path(__file__).parent / "driver.c"
PLANNED = "planned.h"
COMPILERS = ("cc", "gcc", "clang")
OPTIONS = ("-std=gnu11", "-O1", "-w", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread")
SECONDS = 120
FIRST_PARAMETERS = frozenset({"VkDevice", "VkQueue", "VkCommandBuffer"})
NOT_WRAPPED = frozenset({"vkGetDeviceProcAddr", "vkDestroyDevice"})
"""The driver has functions of its own for these."""

MAY_LOSE = frozenset(
    {
        "vkAcquireNextImage2KHR",
        "vkAcquireNextImageKHR",
        "vkAcquireWinrtDisplayNV",
        "vkCreateDevice",
        "vkCreateSharedSwapchainsKHR",
        "vkCreateSwapchainKHR",
        "vkDeviceWaitIdle",
        "vkGetEventStatus",
        "vkGetFenceStatus",
        "vkGetPastPresentationTimingEXT",
        "vkGetPastPresentationTimingGOOGLE",
        "vkGetQueryPoolResults",
        "vkGetRefreshCycleDurationGOOGLE",
        "vkGetSemaphoreCounterValue",
        "vkGetSwapchainCounterEXT",
        "vkGetSwapchainStatusKHR",
        "vkGetWinrtDisplayNV",
        "vkQueueBindSparse",
        "vkQueuePresentKHR",
        "vkQueueSetPerfHintQCOM",
        "vkQueueSubmit",
        "vkQueueSubmit2",
        "vkQueueWaitIdle",
        "vkWaitForFences",
        "vkWaitForPresent2KHR",
        "vkWaitForPresentKHR",
        "vkWaitSemaphores",
    }
)
"""Commands that may return VK_ERROR_DEVICE_LOST, as the specification's list of return codes of each says."""


POINTER, OBJECT = "const void *", "uint64_t"
"""Dispatchable objects are pointers; the others have 64 bits."""
NUMBERS = frozenset({"int32_t", "uint16_t", "uint32_t", "uint64_t", "size_t", "float", "double", "int"})
"""Types of parameters that are neither objects nor pointers. A command with another one is not wrapped."""


def compiler() -> str | None:
    """The C compiler of this machine: `$CC`, else the first of `COMPILERS`."""
    found = (shutil.which(name) for name in (os.environ.get("CC", ""), *COMPILERS) if name)
    return next((each for each in found if each), None)


def build_fault_driver(driver: Driver, folder: Path) -> Driver:
    """Builds the driver that stands before `driver` into `folder`. It has the same name, so that what is expected of
    the one holds for the other.

    Raises `UserError` where there is no compiler, or where it fails.
    """
    command = compiler()
    if command is None:
        raise UserError(f"no C compiler here ({', '.join(COMPILERS)} or $CC): the fault driver is built with one")
    folder = folder.resolve()  # the loader looks for a library from elsewhere
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PLANNED).write_text("\n".join(_planned(driver)) + "\n")
    library = folder / f"libvk_faults_{driver.name}.so"
    arguments = [command, *OPTIONS, "-I", str(folder), "-o", str(library), str(SOURCE), "-ldl"]
    try:
        made = subprocess.run(arguments, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"the fault driver cannot be built: {error}") from None
    if made.returncode:
        raise UserError(f"the fault driver cannot be built: {command} says\n{made.stderr.strip()}")
    manifest = folder / f"faults_{driver.name}_icd.json"
    described = {"library_path": str(library), "api_version": driver.api_version or "1.3.0"}
    manifest.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": described}))
    return replace(driver, manifest=manifest, library=str(library))


def _planned(driver: Driver) -> Iterator[str]:
    """planned.h: the library of the driver, the kinds of fault, and the commands."""
    yield f"#define DRIVER {_c_text(driver.library)}"
    yield "static const struct kind kinds[] = {"
    for name, kind in KINDS.items():
        yield f"    {{{_c_text(name)}, {kind.action}, {kind.result}}},"
    yield "    {0},\n};"
    yield "#define PROMISES(X) \\"
    for promise in BROKEN_DRIVERS:
        yield f"    X({_c_text(promise.name)}, {promise.name.replace('-', '_')}) \\"
    yield ""
    yield from _structs()
    yield "#define COMMANDS(X) \\"
    for name, (returns, parameters, _) in tables.COMMANDS.items():
        line = _command(name, Signature(returns, tuple(Member(*each) for each in parameters), None))
        if line:
            yield f"    {line} \\"
    yield ""


def _structs() -> Iterator[str]:
    """The structs and unions that the files in C name, each after those that it holds."""
    done: set[str] = set()
    for file in sorted(SOURCE.parent.glob("*.h")):
        for name in re.findall(r"\bstruct (Vk[A-Za-z0-9]+)", file.read_text()):
            yield from _struct(name, done)
            yield from _struct(f"{name}2", done)  # as macros name them


def _struct(name: str, done: set[str]) -> Iterator[str]:
    held = members(name)
    if held is None or name in done:
        return
    done.add(name)
    for each in held:
        if not each.pointer:
            yield from _struct(each.type, done)
    yield f"{_kind(name)} {{"
    for each in held:
        within = not each.pointer and each.type in tables.STRUCTS
        kind = _kind(each.type) if within else _c_type(each._replace(dims=()))
        yield f"    {kind} {each.name}{''.join(f'[{size}]' for size in each.dims)};"
    yield "};"


def _kind(struct: str) -> str:
    return f"{'union' if struct in tables.UNIONS else 'struct'} {struct}"


def _c_text(text: str) -> str:
    return (
        '"'
        + "".join(
            f"\\{byte:03o}" if not 32 <= byte < 127 or byte in b'"\\?' else chr(byte) for byte in os.fsencode(text)
        )
        + '"'
    )


def _command(name: str, signature: Signature) -> str:
    """The line of a device command that returns a VkResult or nothing; empty for any other."""
    if signature.params[0].type not in FIRST_PARAMETERS or name in NOT_WRAPPED:
        return ""
    if signature.returns not in ("VkResult", "void"):
        return ""
    types = [_c_type(each) for each in signature.params]
    if not NUMBERS.union({POINTER, OBJECT}).issuperset(types):
        return ""
    core = tables.COMMAND_ALIASES.get(name, name)
    loses = "RESULT_OR_LOST" if core in MAY_LOSE else "RESULT"
    typed = ", ".join(f"{each} a{at}" for at, each in enumerate(types))
    given = ", ".join(f"a{at}" for at in range(len(types)))
    return f"X({name}, {core}, {'NOTHING' if signature.returns == 'void' else loses}, ({typed}), ({given}))"


def _c_type(parameter: Member) -> str:
    """A type that is passed as the parameter is, without Vulkan's headers."""
    kind = parameter.type
    if parameter.pointer or parameter.dims or kind in tables.FUNCPOINTERS or tables.HANDLES.get(kind):
        return POINTER
    if kind in tables.HANDLES:
        return OBJECT
    if kind in tables.ENUMS:
        return "int32_t"
    if kind in tables.FLAG_WIDTH:
        return f"uint{tables.FLAG_WIDTH[kind]}_t"
    return tables.BASETYPES.get(kind, kind)
