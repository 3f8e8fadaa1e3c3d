"""Changes of a trace that keep it JSON: values, members, lists with their counts, calls, their order."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from vkharness.spec import _generated as tables

INTEGERS = (0, 1, 2, 3, 7, 16, 255, 4096, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 40) + 4,
            1 << 63, (1 << 64) - 2, (1 << 64) - 1, -1)  # fmt: skip
TEXTS = (
    "",
    "\ud800",
    "\x1b[2J\x07",
    "x" * 500,
    "0x0",
    "0xffffffffffffffff",
    "NaN",
    "VK_FORMAT_D32_SFLOAT",
    "../x",
    "\0",
)
OTHERS: tuple[Any, ...] = (None, {}, [], True, 1.5, "x", [None], [{}], -1, {"sType": 0, "pNext": None})
LARGE = ("width", "height", "depth", "mipLevels", "arrayLayers", "levelCount", "layerCount", "size", "offset", "count",
         "Count", "range", "Offset", "Index", "Size", "Stride", "stride", "bufferRowLength")  # fmt: skip
_COMMANDS: list[str] = []
ENCODED = 0.03
"""The part of inputs whose bytes are changed beyond JSON."""

Place = tuple[Any, Any]
"""A container and the key or index in it."""


def changed_trace(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A trace with one to six changes. `other` is a trace from which calls may be taken."""
    lines = data.split(b"\n")
    if lines and lines[-1] == b"":
        lines.pop()
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        if len(lines) < 2:
            break
        at = rng.randrange(1, len(lines)) if rng.random() < 0.99 else 0
        what = rng.randrange(28)
        if what < 13:
            lines[at] = changed_line(rng, lines[at])
        elif what == 13:
            del lines[at]
        elif what == 14:
            lines.insert(rng.randrange(1, len(lines) + 1), lines[at])
        elif what == 15:
            lines.insert(rng.randrange(1, len(lines)), lines.pop(at))
        elif what == 16:
            lines[at:at] = [lines[at]] * rng.choice((2, 10, 60))
        elif what == 17:
            lines.insert(at, rng.choice(other.split(b"\n")))
        elif what == 18:
            lines[at] = renamed(rng, lines[at])
        elif what > 19:
            change = CHANGES[(what - 20) % len(CHANGES)]
            lines[at] = change(rng, lines[at], lines[rng.randrange(1, len(lines))])
        else:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)] if rng.random() < 0.2 else lines[at]
    data = b"\n".join(lines) + b"\n"
    return encoded(rng, data) if rng.random() < ENCODED else data


def shortened(rng: random.Random, data: bytes) -> bytes:
    """A trace without most of its commands and submits: a run of them stays, with all calls that make objects."""
    lines = data.split(b"\n")
    work = [at for at, line in enumerate(lines) if b'"vkCmd' in line or b'"vkQueue' in line]
    if len(work) < 4:
        return data
    size = rng.randint(2, max(2, len(work) // 4))
    begin = rng.randrange(len(work) - size)
    dropped = {*work[:begin], *work[begin + size : -1]}
    return b"\n".join(line for at, line in enumerate(lines) if at not in dropped)


def renamed(rng: random.Random, line: bytes) -> bytes:
    """A call whose arguments are another function's."""
    if not _COMMANDS:
        _COMMANDS.extend(sorted(tables.COMMANDS))
    value = _parsed(line)
    function = value.get("function") if isinstance(value, dict) else None
    if isinstance(function, dict):
        function["name"] = rng.choice(_COMMANDS)
        return _text(value)
    return line


def changed_line(rng: random.Random, line: bytes) -> bytes:
    """A block with one value changed, dropped, or put elsewhere."""
    value = _parsed(line)
    places = list(_places(value))
    if not places:
        return line
    container, key = rng.choice(places)
    if rng.random() < 0.25:
        large = [place for place in places if isinstance(place[1], str) and place[1].endswith(LARGE)]
        container, key = rng.choice(large or places)
    if isinstance(container[key], list) and rng.random() < 0.8:
        _resize(rng, container, key)
    elif isinstance(container, dict) and rng.random() < 0.08:
        del container[key]
    else:
        container[key] = changed_value(rng, container[key], places)
    try:
        return _text(value)
    except (ValueError, RecursionError):  # a value that was put into itself
        return line


def with_large_numbers(rng: random.Random, line: bytes, _: bytes) -> bytes:
    """A call with half of its whole numbers replaced by small and by huge ones."""
    value = _parsed(line)
    for container, key in list(_places(value)):
        if type(container[key]) is int and key != "index" and rng.random() < 0.5:
            container[key] = rng.choice(INTEGERS)
    return _text(value) if value is not None else line


def with_other_ids(rng: random.Random, line: bytes, other: bytes) -> bytes:
    """A call in which whole numbers are those of another call: mostly handles, of other types or in another order."""
    value = _parsed(line)
    numbers = [held[key] for held, key in _places(_parsed(other)) if type(held[key]) is int and held[key] > 0]
    places = [
        (held, key) for held, key in _places(value) if type(held[key]) is int and held[key] > 0 and key != "index"
    ]
    for container, key in rng.sample(places, min(len(places), 2)) if numbers else ():
        container[key] = rng.choice(numbers)
    return _text(value) if value is not None else line


def nested(rng: random.Random, line: bytes, _: bytes) -> bytes:
    """A call with a value that is nested deeply, or with a chain of the same structure again and again."""
    value = _parsed(line)
    places = list(_places(value))
    if not places:
        return line
    chains = [place for place in places if place[1] == "pNext"]
    container, key = rng.choice(chains if chains and rng.random() < 0.7 else places)
    held, container[key] = container[key], "@@"
    held_by = container if isinstance(container, dict) else {}
    own = json.dumps({name: each for name, each in held_by.items() if name in ("sType", "flags")})
    inner = held if isinstance(held, dict) and "sType" in held else None
    link = '["@@"]' if len(own) == 2 else own[:-1] + ', "pNext": "@@"}'
    link = json.dumps({**inner, "pNext": "@@"}) if inner else link
    before, behind = link.split('"@@"')[:2]
    depth = rng.choice((2, 10, 63, 64, 65, 200, 3000))
    return _text(value).replace(b'"@@"', f"{before * depth}null{behind * depth}".encode())


def chained(rng: random.Random, line: bytes, other: bytes) -> bytes:
    """A call with a structure of another call, or of any type, in a chain."""
    value = _parsed(line)
    holders = [held for held, key in _places(value) if key == "pNext"]
    links = [held for held, key in _places(_parsed(other)) if key == "sType" and isinstance(held, dict)]
    if not holders:
        return line
    link = dict(rng.choice(links)) if links and rng.random() < 0.5 else {}
    if not link or rng.random() < 0.5:
        link |= {"sType": rng.choice(sorted(tables.STYPES)), "pNext": None}
    rng.choice(holders)["pNext"] = link
    return _text(value)


CHANGES = (with_large_numbers, with_other_ids, nested, chained)
"""Functions that change one call, given as its line; the last argument is the line of another call."""


def encoded(rng: random.Random, data: bytes) -> bytes:
    """A text in another encoding, or with what no encoding has."""
    what = rng.randrange(7)
    if what == 0:
        return b"\xef\xbb\xbf" + data
    if what == 1:
        return data.decode(errors="replace").encode("utf-16")
    if what == 2:
        return data.replace(b"\n", b"\r\n")
    if what == 3:
        return data + bytes(rng.choice((1, 1000)))
    if what == 4:
        return data.replace(b"\n", rng.choice((b"\r", b"\n\n", b" ", b"\x0b", b"\xe2\x80\xa8")))
    texts = data.split(b'"')
    at = 2 * rng.randrange(len(texts) // 2) + 1 if len(texts) > 2 else 0
    texts[at] += rng.choice((b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\x1b]0;x\x07"))
    return b'"'.join(texts)


def changed_value(rng: random.Random, value: Any, places: list[Place]) -> Any:
    """Another value, mostly of the same JSON type."""
    if rng.random() < 0.12:
        return rng.choice(OTHERS)
    if rng.random() < 0.15:
        container, key = rng.choice(places)
        return container[key]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice(
            (*INTEGERS, value + 1, value - 1, value * 2, value ^ (1 << rng.randrange(32)), rng.randrange(40))
        )
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 1e30, "NaN", "Infinity"))
    if isinstance(value, str):
        return rng.choice((*TEXTS, value + "x", value.partition("|")[0]))
    return rng.choice(OTHERS)


def _resize(rng: random.Random, container: Any, key: Any) -> None:
    """Makes a list shorter or longer, mostly together with the member that counts it."""
    held = container[key]
    size = len(held)
    new = list(held)
    what = rng.randrange(5)
    if what == 0 or not new:
        new = []
    elif what == 1:
        new.pop(rng.randrange(size))
    elif what == 2:
        new.append(rng.choice(new))
    elif what == 3:
        new = new * rng.choice((2, 30, 300))
    else:
        rng.shuffle(new)
    container[key] = new
    if isinstance(container, dict) and rng.random() < 0.85:
        for name, value in container.items():
            if type(value) is int and value == size and "ount" in name:
                container[name] = len(new)


def _places(value: Any) -> Iterator[Place]:
    pending = [value]
    while pending:
        each = pending.pop()
        pairs = each.items() if isinstance(each, dict) else enumerate(each) if isinstance(each, list) else ()
        for key, inner in pairs:
            yield each, key
            if isinstance(inner, (dict, list)) and len(inner) < 500:
                pending.append(inner)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
