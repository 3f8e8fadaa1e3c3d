"""Call sites of native code: the stacks of a stream, made into files and lines when somebody looks at one.

A stack is the addresses that calls return to. Which file is mapped there the stream says, and `line_tables` which line
an address of that file is of. Equal stacks have one number, so that a site is one object for all of its calls.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from vkharness.call_sites import DEEPEST, CallSite, CallStacks, Frame
from vkharness.live.line_tables import Line, LineTables

MOST_ADDRESSES = 256
"""Addresses of a stack that are looked at."""
MOST_STACKS = 1 << 20
"""Stacks of a stream that are kept; calls with others have no site."""
MOST_MODULES = 1 << 14
LONGEST_PATH = 4096
_MODULE = struct.Struct("<QQQII")
_STACK = struct.Struct("<II")
NO_CALL_SITES = re.compile(
    r"/(libvulkan(_\w+)?|libvkharness\w*|libVkLayer\w*|libVkICD\w*|libGLX?\w*|libEGL\w*|libgallium\w*|libzink\w*"
    r"|ld-linux\S*|libc|libpthread)[.-]\S*$"
)
"""Files whose frames are no call site: the loader, layers, drivers, and OpenGL over Vulkan."""
INTERPRETERS = re.compile(r"/(python|libpython|_cffi_backend|_ctypes|libffi)[\w.+-]*$")
"""Files of an interpreter, whose C code says nothing of the line of the program that runs."""
SYSTEM = ("/usr/lib/", "/lib/", "/usr/lib64/", "/lib64/")
"""Where libraries are that are not the program's own."""


class MappedFile(NamedTuple):
    """A file that is mapped."""

    begin: int
    end: int
    base: int
    """What is added to the addresses in the file."""
    path: str
    build: str
    """Its build id, in hexadecimal digits; empty where it has none."""


class NativeSite(CallSite):
    """A call site whose lines are looked up when somebody looks at them. The text says only which stack it is."""

    look_up: Callable[[], tuple[Frame, ...]]

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = str.__hash__

    @cached_property
    def frames(self) -> tuple[Frame, ...]:  # type: ignore[override]
        """The innermost first."""
        return self.look_up()


class NativeSites:
    """The stacks and modules of one process."""

    def __init__(self, tables: LineTables, skipped: Sequence[re.Pattern[str]] = (), *, at_once: bool = False) -> None:
        """`skipped` are frames that are no call sites: the text `function at file:line` is searched. `at_once`: all
        sites are asked for their lines, as for a trace that is written."""
        self._tables, self._skipped, self._at_once = tables, skipped, at_once
        self._modules: list[MappedFile] = []
        self._stacks: dict[int, tuple[int, ...]] = {}
        self._sites: dict[int, str | None] = {}
        self._known = CallStacks()
        self._executable = ""

    def module(self, payload: bytes) -> None:
        """Takes the payload of a record: a file is mapped. One that cannot be read is left out."""
        if len(payload) < _MODULE.size or len(self._modules) >= MOST_MODULES:
            return
        base, begin, end, path, build = _MODULE.unpack_from(payload)
        if path <= LONGEST_PATH and build <= 64 and _MODULE.size + path + build <= len(payload) and begin < end:
            at = _MODULE.size
            name = payload[at : at + path].rstrip(b"\0").decode("utf-8", "backslashreplace")
            self._executable = self._executable or name
            insort(self._modules, MappedFile(begin, end, base, name, payload[at + path : at + path + build].hex()))

    @property
    def executable(self) -> str:
        """The file that the process ran, which the layer names first; empty where it names none."""
        return self._executable

    def stack(self, payload: bytes) -> None:
        """Takes the payload of a record: the addresses of a stack."""
        if len(payload) >= _STACK.size and len(self._stacks) < MOST_STACKS:
            number, count = _STACK.unpack_from(payload)
            count = min(count, MOST_ADDRESSES, (len(payload) - _STACK.size) // 8)
            self._stacks[number] = struct.unpack_from(f"<{count}Q", payload, _STACK.size)

    def site(self, number: int) -> str | None:
        """The call site with the number of a stack; None where it is not known, and where an interpreter made the
        call."""
        if number not in self._sites and self._stacks.get(number):
            self._sites[number] = None if self._is_interpreted(number) else self._made(number)
        return self._sites.get(number)

    def _is_interpreted(self, number: int) -> bool:
        files = (each.path for address in self._stacks[number] if (each := self._file(address)) is not None)
        own = (path for path in files if not NO_CALL_SITES.search(path) and not path.startswith(SYSTEM))
        return INTERPRETERS.search(next(own, "")) is not None

    def _made(self, number: int) -> str:
        if self._at_once:
            return self._known.site(self._frames(number))
        made = NativeSite(f"stack {number}")
        made.stacks = self._known
        made.look_up = lambda: self._frames(number)
        return made

    def _frames(self, number: int) -> tuple[Frame, ...]:
        """The frames of a stack from the call site on; one at least. What is kept knows who calls whom."""
        lines = [line for address in self._stacks[number] for line in self._lines(address)]
        first = next((at for at, each in enumerate(lines) if self._counts(each, own=True)), None)
        if first is None:
            first = next((at for at, each in enumerate(lines) if self._counts(each, own=False)), 0)
        own = [lines[first], *(each for each in lines[first + 1 :] if each.is_known and self._counts(each, own=False))]
        frames = tuple(Frame(each.site, each.function) for each in islice(own, DEEPEST))
        self._known.site(frames)
        return frames

    def _counts(self, line: Line, own: bool) -> bool:
        """Whether a frame may be a call site; with `own` only one of the program itself."""
        if NO_CALL_SITES.search(line.module) or any(each.search(str(line)) for each in self._skipped):
            return False
        return not own or not line.module.startswith(SYSTEM)

    def _lines(self, address: int) -> Sequence[Line]:
        """The lines that an address returns to, the innermost of inlined ones first."""
        file = self._file(address)
        if file is None:
            return (Line(f"{address:#x}", "", ""),)
        return self._tables.lines(file.path, file.build, address - 1 - file.base)

    def _file(self, address: int) -> MappedFile | None:
        """The file that an address returns to."""
        at = bisect_right(self._modules, address - 1, key=lambda each: each.begin) - 1
        found = self._modules[at] if at >= 0 else None
        return None if found is None or address > found.end else found
