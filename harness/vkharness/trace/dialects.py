"""One block of a trace: from its JSON object to a `Call`, `HostWrite` or `HostRead`, and back.

Most differences between converters are in single values (`vkharness.trace.scalars`). This module has the differences in
the envelope: `vkFunc` (0.9.18) or `function` (1.x), and blocks that hold no call.
"""

from __future__ import annotations

import functools
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.trace import binaries as binary_files
from vkharness.trace.binaries import BinaryWriter, MissingBytes
from vkharness.trace.call_shapes import check_call
from vkharness.trace.calls import INDICES, Block, Call, HostRead, HostWrite, unread_call
from vkharness.trace.field_codecs import check_lengths, command_counts, command_forms, outputs, own_forms
from vkharness.trace.lines import Corrupt
from vkharness.trace.plain_calls import read_plain
from vkharness.trace.scalars import NOT_A_VALUE, Enumeration, Integer, Reading, named_values, unexpected
from vkharness.trace.templates import own_keys

SILENT = ("annotation", "state", "frame")
"""Names of blocks without a call: notes of the capture tool, and marks where trimming and frames begin and end."""

LOSSY_META = ("InitBufferCommand", "InitImageCommand", "InitTensorCommand", "ExecuteBlocksFromFile")
"""Meta commands that put contents into resources in a way that this reader does not follow."""

OWN = "vkharness"
"""The key of blocks that only vkharness writes."""
_RESULTS = Enumeration(tables.ENUMS["VkResult"])
_ADDRESSES = Integer(64, False)
_NAME = re.compile(r"[A-Za-z_]\w{0,127}\Z", re.ASCII)
IN_COMMAND_BUFFER = "vkCmd"
"""How the names of commands begin that go to a command buffer: programs record them again and again."""
_JUDGED = (IN_COMMAND_BUFFER, "vkQueue", "vkBegin")


def read_blocks(
    value: dict[str, Any], reading: Reading, skipped: Counter[str], keep: Callable[[Call], None]
) -> Iterable[Block]:
    """The blocks that `value` holds; none for one that holds no call, which is counted in `skipped`.

    `keep` gets plain calls that may come again with another index.

    A mistake in a call costs that call. In a converted capture, so does anything else that cannot be read. Raises
    Corrupt for the rest.
    """
    plain = read_plain(value, reading)
    if plain is not None and plain.name.startswith(IN_COMMAND_BUFFER):
        if reading.stacks.is_settled(value):
            keep(plain)
        return (plain,)
    block: Block | None
    try:
        block = plain or _read_block(value, reading, skipped)
    except Corrupt as error:
        if reading.ours and (isinstance(error, MissingBytes) or not _is_call(value)):
            raise
        block = _unread(value, reading, skipped, error)
    if block is None or (isinstance(block, Call) and block.unread):
        reading.stacks.learn(value)
    if block is None:
        return ()
    if not reading.ours:
        if isinstance(block, HostWrite):
            return reading.found_writes.found(block.index, block.memory, block.offset, block.data)
        if isinstance(block, Call) and not block.unread:
            reading.found_writes.follow(block)
    return (block,)


def remarks(reading: Reading, skipped: Counter[str]) -> Iterator[str]:
    """One line for each kind of thing that the trace lacks, or that the reader passed over with a loss."""
    if reading.without_bytes:
        yield f"{reading.without_bytes} values without their bytes ({reading.with_bytes})"
    if reading.newer_names:
        names = sorted(reading.newer_names)
        shown = f"{', '.join(names[:5])}{', …' * (len(names) > 5)}"
        yield f"names newer than this vkharness, which make the verdict unknown: {shown}"
    yield from reading.unread.remarks()
    for kind, count in sorted(skipped.items()):
        if kind in SILENT or (kind.startswith("meta ") and kind[5:] not in LOSSY_META):
            continue
        yield f"{count} blocks passed over: {kind}"


def _is_call(value: dict[str, Any]) -> bool:
    """Whether a block says which call it is, whatever else is wrong with it."""
    function = value.get("function", value.get("vkFunc"))
    name = function.get("name") if type(function) is dict else None
    index = value.get("index")
    return type(name) is str and bool(_NAME.match(name)) and type(index) is int and index in INDICES


def _unread(value: dict[str, Any], reading: Reading, skipped: Counter[str], error: Corrupt) -> Block | None:
    """Returns an unread call with the name of a block that cannot be read; counts any other block in `skipped`."""
    if not _is_call(value):
        skipped[f"that cannot be read ({error})"] += 1
        return None
    function: dict[str, Any] = value["function" if "function" in value else "vkFunc"]
    name, args = function["name"], function.get("args")
    handle = args.get("commandBuffer") if type(args) is dict else None
    known = type(handle) is int and 0 <= handle < 1 << 64
    return reading.unread.call(value["index"], name, handle if known else None, str(error).removeprefix(f"{name}: "))


def _read_block(value: dict[str, Any], reading: Reading, skipped: Counter[str]) -> Block | None:
    for key in ("function", "vkFunc"):
        if key in value:
            return read_call(value, _object(value, key), reading)
    if OWN in value:
        return _read_own(value, _object(value, OWN), reading)
    if "meta" in value:
        return _read_meta(value, _object(value, "meta"), reading, skipped)
    for key in SILENT:
        if key in value:
            skipped[key] += 1
            return None
    if "header" in value:
        raise Corrupt("a second header: two traces in one file")
    skipped[f"with the keys {sorted(value)}"[:120]] += 1
    return None


def write_block(block: Block, binaries: BinaryWriter) -> dict[str, Any]:
    """The JSON object of a block, in upstream's 1.x shape with `site` beside it."""
    if isinstance(block, Call):
        value = _write_call(block, binaries)
    elif isinstance(block, HostRead):
        args = {"memory_id": block.memory, "offset": block.offset, "size": block.size}
        value = {"index": block.index, OWN: {"name": "HostRead", "args": args}}
    else:
        value = {
            "index": block.index,
            "meta": {
                "name": "FillMemoryCommand",
                "args": {
                    "memory_id": block.memory,
                    "offset": block.offset,
                    "size": len(block.data),
                    "data": binaries.store(block.data),
                },
            },
        }
        if block.initial:
            value["initial"] = True
    if block.site is not None:
        value["site"] = block.site
    return value


def _write_call(call: Call, binaries: BinaryWriter) -> dict[str, Any]:
    if call.unread:
        args = {"command": call.name, "why": call.unread, **call.args}
        return {"index": call.index, OWN: {"name": "UnreadCall", "args": args}}
    function: dict[str, Any] = {"name": call.name, "thread": call.thread}
    if call.result is not None:
        function["return"] = _return_form(call.name).write(call.result, binaries)
    forms = command_forms(call.name)
    if forms is None:
        function["args"] = call.args
    else:
        returned = outputs(call.name) if not call.succeeded else frozenset()
        function["args"] = {
            name: None if name in returned else form.write(call.args[name], binaries) for name, form in forms
        }
        for key, form in own_forms(call.name):
            if key in call.args:
                function["args"][key] = form.write(call.args[key], binaries)
    return {"index": call.index, "function": function}


def read_call(value: dict[str, Any], function: dict[str, Any], reading: Reading) -> Call:
    """The call of a block; `function` is the part of it that says which. Raises Corrupt."""
    name = function.get("name")
    if type(name) is not str or not _NAME.match(name):
        raise unexpected("the name of a C function", name)
    try:
        result = _return_form(name).read(function["return"], reading) if _returns_result(name, function) else None
        args = _read_args(name, _object(function, "args"), result, reading)
        check_call(name, args, result)
    except Corrupt as error:
        raise type(error)(f"{name}: {error}") from None
    return Call(_index(value), name, args, result, reading.stacks.site(value), _count(function, "thread", 0))


def _returns_result(name: str, function: dict[str, Any]) -> bool:
    command = tables.COMMANDS.get(name)
    if command is None:
        text = function.get("return")
        return type(text) is int or (type(text) is str and text.startswith("VK_"))
    if command[0] == "VkResult" and "return" not in function:
        raise Corrupt("no 'return', though it returns a VkResult")
    return command[0] == "VkResult" or (command[0] == "VkDeviceAddress" and "return" in function)


def _return_form(name: str) -> Enumeration | Integer:
    """The form of a call's return value: a VkResult, or a device address, which later commands may use. Others are not
    kept."""
    command = tables.COMMANDS.get(name)
    return _ADDRESSES if command is not None and command[0] == "VkDeviceAddress" else _RESULTS


def _read_args(name: str, given: dict[str, Any], result: int | None, reading: Reading) -> dict[str, Any]:
    forms = command_forms(name)
    if forms is None:
        return {key: _untyped(value) for key, value in given.items()}
    reading.judged = name.startswith(_JUDGED)
    returned = outputs(name)
    failed = result is not None and (result < 0 or result == NOT_A_VALUE)
    args: dict[str, Any] = {}
    for key, form in forms:
        if key in returned and (failed or key not in given):
            args[key] = None
            continue
        if key == "set" and key not in given and own_keys(name) and not reading.ours:
            args[key] = 0  # gfxrecon-convert 0.9.18 leaves it out, and the data without which nothing is known
            continue
        if key not in given:
            raise Corrupt(f"the argument {key!r} is missing")
        try:
            args[key] = form.read(given[key], reading)
        except Corrupt as error:
            raise error.inside("." + key) from None
    for key, form in own_forms(name):
        if key in given:
            try:
                args[key] = form.read(given[key], reading)
            except Corrupt as error:
                raise error.inside("." + key) from None
    check_lengths(command_counts(name), args)
    _find_shader(name, args, reading)
    return args


def _find_shader(name: str, args: dict[str, Any], reading: Reading) -> None:
    """Adds SPIR-V that the converter left out, from the file in which gfxrecon-extract puts it."""
    info = args.get("pCreateInfo")
    if name == "vkCreateShaderModule" and info and info["pCode"] is None and args["pShaderModule"]:
        info["pCode"] = reading.binaries.shader(args["pShaderModule"], info["codeSize"])
        reading.without_bytes -= info["pCode"] is not None


def _untyped(value: Any) -> Any:
    """Values of a function that is newer than the tables, as far as they explain themselves: names, hex texts as
    integers."""
    if type(value) is dict:
        return {key: _untyped(item) for key, item in value.items()}
    if type(value) is list:
        return [_untyped(item) for item in value]
    if type(value) is bool:
        return int(value)
    if type(value) is str and re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value):
        return int(value, 16)
    if type(value) is str and value.startswith("VK_"):
        numbers = [named_values().get(name.strip()) for name in value.split("|")]
        known = [number for number in numbers if number is not None]
        if len(known) == len(numbers):  # one name may be an enum's, negative too; several are bits
            return functools.reduce(operator.or_, known)
    return value


def _read_meta(
    value: dict[str, Any], meta: dict[str, Any], reading: Reading, skipped: Counter[str]
) -> HostWrite | None:
    if meta.get("name") != "FillMemoryCommand":
        skipped[f"meta {meta.get('name')!s}"[:80].replace("\n", " ")] += 1
        return None
    args = _object(meta, "args")
    memory, offset, size = (_count(args, key) for key in ("memory_id", "offset", "size"))
    name = args.get("data")
    if type(name) is not str:
        raise unexpected("the name of the file with the bytes of a host write", name)
    if name.startswith("["):  # upstream's placeholders for bytes that were not asked for, or could not be written
        skipped["host write"] += 1
        return None
    data, initial = reading.binaries.load(name, size, binary_files.MAX_BINARY), value.get("initial") is True
    return HostWrite(_index(value), memory, offset, data, reading.stacks.site(value), initial)


def _read_own(value: dict[str, Any], own: dict[str, Any], reading: Reading) -> HostRead | Call:
    """A block that only traces of vkharness have."""
    if own.get("name") == "UnreadCall":
        return _read_unread(value, _object(own, "args"), reading)
    if own.get("name") != "HostRead":
        raise unexpected("the name of a block of vkharness", own.get("name"))
    args = _object(own, "args")
    memory, offset, size = (_count(args, key) for key in ("memory_id", "offset", "size"))
    return HostRead(_index(value), memory, offset, size, reading.stacks.site(value))


def _read_unread(value: dict[str, Any], args: dict[str, Any], reading: Reading) -> Call:
    """A call that could not be read in the trace from which this one was made."""
    name, why = args.get("command"), args.get("why")
    if type(name) is not str or not _NAME.match(name):
        raise unexpected("the name of a C function", name)
    if type(why) is not str or not why or len(why) > 4096 or "\n" in why:
        raise unexpected("why a call could not be read", why)
    buffer = _count(args, "commandBuffer") if "commandBuffer" in args else None
    return unread_call(_index(value), name, why, buffer, reading.stacks.site(value))


def _object(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    if type(found) is not dict:
        raise unexpected("an object", found).inside(key)
    return found


def _index(value: dict[str, Any]) -> int:
    found = value.get("index")
    if type(found) is not int or found not in INDICES:
        raise unexpected("an integer from 0 on, of 63 bits", found).inside("index")
    return found


def _count(value: dict[str, Any], key: str, missing: int | None = None) -> int:
    found = value.get(key, missing)
    if type(found) is not int or not 0 <= found < 1 << 64:
        raise unexpected("an integer from 0", found).inside(key)
    return found
