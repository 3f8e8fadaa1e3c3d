"""Traces made of the registry alone: a device and some objects, then any calls with values of their types.

Values are mostly small and handles mostly alive, so that many calls mean something. Nothing is valid on purpose.
"""

from __future__ import annotations

import json
import random
from typing import Any

from vkharness.fuzz.hostile.json_changes import INTEGERS
from vkharness.spec import _generated as tables
from vkharness.spec.shapes import struct_types

HEADER = {"header": {"vulkan-version": "1.3.275", "vkharness": {"version": 1}}}
DEEPEST = 6
MOST_CALLS = 60
PRELUDE = (
    "vkCreateDevice", "vkGetDeviceQueue", "vkCreateCommandPool", "vkAllocateCommandBuffers", "vkAllocateMemory",
    "vkCreateBuffer", "vkBindBufferMemory", "vkCreateImage", "vkBindImageMemory", "vkCreateImageView",
    "vkCreateRenderPass", "vkCreateFramebuffer", "vkCreateFence", "vkCreateSemaphore", "vkCreateEvent",
    "vkBeginCommandBuffer",
)  # fmt: skip
ENDINGS = ("vkEndCommandBuffer", "vkQueueSubmit", "vkQueueSubmit2", "vkQueueWaitIdle", "vkBeginCommandBuffer")
SMALL = (0, 0, 1, 1, 1, 2, 3, 4, 8, 16, 64, 256)


def add_call(lines: list[dict[str, Any]], name: str, args: dict[str, Any], result: int | None) -> None:
    """Adds a call to the lines of a trace; `result` is what it returns, None for nothing."""
    function: dict[str, Any] = {"name": name, "thread": 0, "args": args}
    if result is not None:
        function["return"] = result
    lines.append({"index": len(lines), "function": function})


def trace_of(lines: list[dict[str, Any]]) -> bytes:
    """The trace of some lines."""
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


class CallStream:
    """One stream; `text` is its trace."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._alive: dict[str, list[int]] = {}
        self._next = 0
        self._lines: list[dict[str, Any]] = [HEADER]

    def text(self, calls: int | None = None) -> bytes:
        """A new stream as a trace, with so many calls behind those that make the objects; any number without one."""
        judged = [name for name in tables.COMMANDS if name.startswith("vkCmd")]
        every = [
            *judged,
            *judged,
            *(name for name in tables.COMMANDS if name.startswith(("vkCreate", "vkBind", "vkQueue"))),
        ]
        for name in PRELUDE:
            self._call(name)
        some = self._rng.sample(every, 8)
        for _ in range(self._rng.randint(4, MOST_CALLS) if calls is None else calls):
            choice = self._rng.random()
            names = some if choice < 0.6 else every if choice < 0.85 else ENDINGS
            self._call(self._rng.choice(names))
        return trace_of(self._lines)

    def _call(self, name: str) -> None:
        returns, params, _ = tables.COMMANDS[name]
        args, result = self._members(params, 0), None
        if returns == "VkResult":
            result = self._rng.choice((0, 0, 0, 0, 0, 0, 0, 1, -1))
        elif returns == "VkDeviceAddress":
            result = self._integer()
        add_call(self._lines, name, args, result)

    def _members(self, members: tuple[tables.Member, ...], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        counts: dict[str, int] = {}
        for member in members:
            length = member[4][1] if isinstance(member[4], tuple) and member[4][0] == "bytes" else member[4]
            if isinstance(length, str) and length not in counts:
                counts[length] = self._rng.choice((0, 1, 1, 1, 2, 3)) if depth < DEEPEST else 0
        for member in members:
            name = member[0]
            if name in counts and not member[2]:
                made[name] = counts[name]
            else:
                made[name] = self._member(member, counts, depth)
        return made

    def _member(self, member: tables.Member, counts: dict[str, int], depth: int) -> Any:
        name, base, stars, const, length, dims, terminated, *_ = member
        if name == "pNext":
            return self._chain(depth)
        if terminated:
            text = self._rng.choice((None, "", "main", "a name"))
            return [text] * counts.get(str(length), 0) if stars == 2 or (length is not None and stars) else text
        if dims:
            return self._fixed(base, dims, depth)
        if not stars:
            return self._value(base, depth, False)
        if depth >= DEEPEST or self._rng.random() < 0.05:
            return None
        if base == "void":
            return [7] * counts.get(str(length), 0) if length is not None else None
        if length is not None:
            size = counts.get(length[1] if isinstance(length, tuple) else str(length), self._rng.choice((0, 1, 2)))
            if isinstance(length, tuple) and length[0] == "bytes":
                return [7] * size
            return [self._value(base, depth, not const) for _ in range(size)]
        return self._value(base, depth, not const)

    def _fixed(self, base: str, dims: tuple[int, ...], depth: int) -> Any:
        if base == "char":
            return "text"
        size = min(dims[0], 8) if self._rng.random() < 0.1 else dims[0]
        return [
            self._fixed(base, dims[1:], depth) if dims[1:] else self._value(base, depth, False) for _ in range(size)
        ]

    def _chain(self, depth: int) -> Any:
        if depth >= DEEPEST or self._rng.random() < 0.9:
            return None
        return self._value(self._rng.choice(list(tables.STYPES.values())), depth + 1, False)

    def _value(self, base: str, depth: int, created: bool) -> Any:
        base = tables.TYPE_ALIASES.get(base, base)
        if base in tables.HANDLES:
            return self._handle(base, created)
        if base in tables.STRUCTS:
            made = self._members(tables.STRUCTS[base], depth + 1)
            if base in tables.UNIONS:
                made = {key: made[key] for key in self._rng.sample(sorted(made), 1)} if "Clear" not in base else made
            elif "sType" in made and base in struct_types():
                made["sType"] = struct_types()[base]
            return made
        if base in tables.ENUMS:
            return self._rng.choice(list(tables.ENUMS[base].values()) or [0])
        if base in tables.BITMASKS:
            bits = list(tables.BITMASKS[base].values()) or [0]
            return self._rng.choice(bits) | self._rng.choice(bits) if self._rng.random() < 0.9 else 0
        if base in ("float", "double"):
            return self._rng.choice((0.0, 1.0, -1.0, 0.5, "NaN", "Infinity"))
        return self._integer() if base not in ("void", "char") else None

    def _integer(self) -> int:
        return self._rng.choice(SMALL) if self._rng.random() < 0.93 else abs(self._rng.choice(INTEGERS)) & 0x7F

    def _handle(self, base: str, created: bool) -> int:
        alive = self._alive.setdefault(base, [])
        if created or not alive:
            self._next += 1
            alive.append(self._next)
            return self._next
        return self._rng.choice(alive) if self._rng.random() < 0.95 else self._rng.choice((0, self._rng.randint(1, 40)))
