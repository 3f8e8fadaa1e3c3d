"""The chunks of a capture's XML. A document type, and so any entity of its own, is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO
from xml.parsers import expat

from vkharness.findings import UserError
from vkharness.trace.lines import Corrupt
from vkharness.trace.printed.printed_values import MOST_DEPTH, PrintedValue
from vkharness.trace.renderdoc.byte_archive import ByteArchive, decimal
from vkharness.trace.work_budget import spend_reading

_READ = 1 << 16
"""Bytes that are parsed at a time."""
_LONGEST_TAG = 1 << 20
"""Bytes of one tag with its attributes. RenderDoc writes some hundred."""
_LONGEST_TEXT = 16 << 20
"""Characters of one text."""
_UNITS_A_VALUE = 2
_PLAIN = ("uint", "int", "enum", "float", "bool", "char", "string", "ResourceId", "buffer", "null")
_NESTED = ("struct", "array")
_PATH = ("rdc", "chunks")
"""The elements around a chunk."""
_DRIVER = ["rdc", "header", "driver"]
VULKAN = "Vulkan"


@dataclass(slots=True)
class Element(PrintedValue):
    """A value, with the name of its XML element."""

    tag: str = ""
    count: int = 0
    """The bytes that a buffer is said to have."""


@dataclass(slots=True)
class CaptureChunk:
    """One chunk. `number` counts from 1."""

    number: int
    name: str
    thread: int
    values: list[Element] = field(default_factory=list)
    trouble: str = ""
    """Why its values are not known."""


class _Parser:
    """Gathers chunks as expat reads them."""

    def __init__(self, archive: ByteArchive) -> None:
        self.ready: list[CaptureChunk] = []
        self.driver = ""
        self._archive = archive
        self._path: list[str] = []
        self._open: list[Element] = []
        self._chunk: CaptureChunk | None = None
        self._text: list[str] = []
        self._characters = 0
        self._count = 0
        self._expat = expat.ParserCreate("utf-8")  # whatever the file declares: a codec of Python may raise anything
        self._expat.StartElementHandler = self._begin
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._data
        self._expat.StartDoctypeDeclHandler = self._refuse

    def feed(self, data: bytes, fed: int) -> None:
        """Reads on; `fed` is the number of bytes with these. Raises Corrupt."""
        try:
            self._expat.Parse(data, not data)
        except expat.ExpatError as error:
            raise Corrupt(f"line {error.lineno}: {expat.errors.messages[error.code]}") from None
        if fed - self._expat.CurrentByteIndex > _LONGEST_TAG + _READ:
            raise Corrupt(f"line {self._expat.CurrentLineNumber}: a tag of more than {_LONGEST_TAG >> 20} MiB")

    def _refuse(self, *_: object) -> None:
        raise Corrupt(f"line {self._expat.CurrentLineNumber}: a document type, which RenderDoc does not write")

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._path) > MOST_DEPTH:
            raise Corrupt(f"line {self._expat.CurrentLineNumber}: more than {MOST_DEPTH} elements inside one another")
        self._path.append(tag)
        self._text, self._characters = [], 0
        if self._chunk is not None:
            spend_reading(_UNITS_A_VALUE, "values of a capture")
            self._open.append(Element(attributes.get("name", ""), "", tag=tag, count=_number(attributes, "byteLength")))
        elif tag == "chunk" and tuple(self._path[:-1]) == _PATH:
            self._count += 1
            self._chunk = CaptureChunk(self._count, attributes.get("name", "")[:200], _number(attributes, "threadID"))

    def _data(self, text: str) -> None:
        self._characters += len(text)
        if self._characters > _LONGEST_TEXT:
            raise Corrupt(
                f"line {self._expat.CurrentLineNumber}: a text of more than {_LONGEST_TEXT >> 20} M characters"
            )
        self._text.append(text)

    def _end(self, tag: str) -> None:
        if self._path == _DRIVER:
            self.driver = "".join(self._text)
        self._path.pop()
        if self._chunk is None:
            return
        if not self._open:
            self.ready.append(self._chunk)
            self._chunk = None
            return
        value = self._open.pop()
        into: list[PrintedValue] | list[Element] = self._open[-1].parts if self._open else self._chunk.values
        if tag in _PLAIN or tag in _NESTED:
            self._fill(value)
            if not _is_repeated(value, into):
                into.append(value)
        self._text, self._characters = [], 0

    def _fill(self, value: Element) -> None:
        """Gives a value its text, and the bytes that it refers to."""
        text = "".join(self._text)
        match value.tag:
            case "null":
                value.text = "NULL"
            case "array" | "struct":
                value.text = "" if value.parts else "NULL"
            case "string":
                value.text = f'"{text}"'
            case "ResourceId":
                number = decimal(text)
                value.text = text if number is None else hex(number)
            case "buffer":
                self._refer(value, text)
            case _:
                value.text = text

    def _refer(self, value: Element, text: str) -> None:
        assert self._chunk is not None
        value.text = "0x1"
        try:
            value.data = self._archive.load(text, value.count, self._chunk.number)
        except Corrupt as error:
            self._chunk.trouble = self._chunk.trouble or str(error)


def _is_repeated(value: Element, beside: Sequence[PrintedValue]) -> bool:
    """Whether RenderDoc wrote a member twice, as it does with `constantID` of VkSpecializationMapEntry."""
    return (
        bool(value.name)
        and not value.parts
        and any(each.name == value.name and each.text == value.text for each in beside[-2:])
    )


def _number(attributes: dict[str, str], name: str) -> int:
    return decimal(attributes.get(name, ""), 18) or 0


def chunks(file: BinaryIO, archive: ByteArchive) -> Iterator[CaptureChunk]:
    """The chunks of an open file, in order. Raises Corrupt where it is no XML any more, and UserError."""
    parser = _Parser(archive)
    fed = 0
    while True:
        data = file.read(_READ)
        fed += len(data)
        trouble = None
        try:
            parser.feed(data, fed)
        except Corrupt as error:
            trouble = error
        if parser.driver and parser.driver != VULKAN:
            raise UserError(f"a capture of {parser.driver[:40]!r}, and not of Vulkan")
        yield from parser.ready
        parser.ready.clear()
        if trouble is not None:
            raise trouble
        if not data:
            return
