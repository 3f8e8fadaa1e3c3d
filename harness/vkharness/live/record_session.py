"""The records of one process as the calls of a session."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from vkharness.findings import Finding
from vkharness.live.copied_memory import CopiedMemory
from vkharness.live.record_commands import (
    LONGEST_NAME,
    RecordCommand,
    RecordCommands,
    arguments_at,
    native_form,
    result_of,
)
from vkharness.live.record_memory import RecordMemory
from vkharness.live.records import BYTES_A_UNIT, Kind, Record, RecordStream
from vkharness.native import core
from vkharness.record.call_recorder import Recorder
from vkharness.record.decode import Decoder
from vkharness.record.native_shapes import Shapes
from vkharness.record.session_stream import StreamJudge
from vkharness.spec.command_classes import PRESENT
from vkharness.trace.calls import Block
from vkharness.trace.handles import HandleRegistry
from vkharness.trace.unread_calls import MOST_NAMED
from vkharness.trace.work_budget import OverBudget, spend_reading

_HEAD = 24
_CALL = struct.Struct("<QII")
_DATA = struct.Struct("<QQQQ")
_THREE, _TWO = struct.Struct("<QQQ"), struct.Struct("<QQ")
UNNAMED = "vkUnknown"
"""The name of a call of which the stream does not say what it is."""


class RecordSession(Recorder):
    """The calls of one process, as its records tell them."""

    def __init__(
        self,
        mirror: StreamJudge | None,
        site: Callable[[int], str | None],
        *,
        sink: Callable[[Block], None] | None = None,
        on_finding: Callable[[Finding], None] | None = None,
    ) -> None:
        """`site` gives the call site with the number of a stack."""
        self._memory, self._copies = RecordMemory(), CopiedMemory()
        self._record: Record | None = None
        super().__init__(mirror, self._thread, sink=sink, on_finding=on_finding, pages=self._copies)
        self._caller = lambda ours: None if self._record is None else site(self._record.stack)
        self._copies.size_of = self.host.size_of
        self._objects = HandleRegistry()
        self._decoder = Decoder(self._objects, self.cut_chains, self._memory)
        self._commands = RecordCommands(self._decoder, self)
        self._files: dict[int, dict[int, str]] = {}
        """By thread: what is known of descriptors for its next call."""
        self.last = 0
        """Serial number of the record that was taken last."""
        self._native = None if core is None or self.log is None else core.RecordCalls(self.log, site)
        self._shapes = Shapes(self._decoder, accesses_alone=True)
        self._unreadable: dict[str, int] = {}
        self.calls = self.frames = 0
        """Calls that were taken; those of them that present."""
        self._kinds: dict[int, Callable[[Record], None]] = {
            Kind.DATA: self._data,
            Kind.COMMAND: self._named,
            Kind.UNSEEN: lambda record: self.unseen(_text(record)),
            Kind.FILE: self._file,
            Kind.LOST: self._lost_by_layer,
            Kind.PROPERTY: self._property,
        }

    def take(self, record: Record, returned: int | None = None) -> None:
        """Takes a record that is no part of another one; `returned` is the result of a call that began with it."""
        spend_reading(record.size // BYTES_A_UNIT, "bytes of records")
        self._record, self.last = record, record.serial
        if record.kind in (Kind.CALL, Kind.ENTER):
            self._call(record, returned)
            return
        action = self._kinds.get(record.kind)
        if action is not None:
            try:
                action(record)
            except (struct.error, BufferError) as error:
                self._cannot_read(f"a record of the kind {Kind(record.kind).name}", str(error))

    def take_many(self, stream: RecordStream, most: int) -> int:
        """Takes the next records that the native core can take, by which nobody but the judge learns of a call. How
        many; `last` is the serial number of the last one then."""
        if self._native is None:
            return 0
        size, count, serial = stream.take_many(self._native.take, most)
        if count:
            spend_reading(size // BYTES_A_UNIT, "bytes of records")
            self.calls += count
            self.last = serial
        return count

    def name_of(self, record: Record) -> str:
        """The name of the command that a record is of."""
        command = self._commands.of(record.command)
        return UNNAMED if command is None else command.name

    def record(self, name: str, args: dict[str, Any], result: int | None) -> None:
        """Takes one finished call."""
        self.record_at(name, args, result, self._caller(0))

    def lost(self, name: str, error: BaseException) -> None:
        """A call cannot be read: it is kept as that."""
        if isinstance(error, OverBudget) or not isinstance(error, Exception):
            raise error
        self._cannot_read(name, str(error) or type(error).__name__)

    def refused(self, name: str, error: BaseException) -> None:
        """Nothing: each call of a stream was made."""

    def _thread(self) -> int:
        return 0 if self._record is None else self._record.thread

    def _call(self, record: Record, returned: int | None) -> None:
        self.calls += 1
        command = self._commands.of(record.command)
        if command is None or command.form is None:
            self._cannot_read(self.name_of(record), "a command that this vkharness does not have in its tables")
            return
        try:
            raw = self._load(record, command)
        except (struct.error, BufferError) as error:
            self._cannot_read(command.name, str(error))
            return
        self.frames += command.name == PRESENT
        self._commands.result = result_of(raw if returned is None else returned, command)
        self._commands.files = self._files.pop(record.thread, {})
        try:
            self._commands.call(command, arguments_at(self._memory.view, command))
        except OverBudget:
            raise
        except Exception as error:  # what the generated function did not hand to `lost`
            self._cannot_read(command.name, str(error) or type(error).__name__)

    def _load(self, record: Record, command: RecordCommand) -> int:
        """Makes a record the memory that is read; the 64 bits of its result."""
        result, count, _ = _CALL.unpack_from(record.segment, record.at + _HEAD)
        wanted = 0 if command.form is None else command.form.arity
        if count != wanted or _HEAD + _CALL.size + 8 * count > record.size:
            raise BufferError(f"a record with {count} arguments of a command that has {wanted}")
        with memoryview(record.segment) as whole, whole[record.at : record.at + record.size] as source:
            self._memory.load(source, count)
        return int(result)

    def _cannot_read(self, name: str, why: str) -> None:
        times = self._unreadable[name] = self._unreadable.get(name, 0) + 1
        where = "" if self._record is None else f"record {self._record.serial}: "
        self.unread(name, f"{where}{why}" if times <= MOST_NAMED else "further calls", self._caller(0))

    def _data(self, record: Record) -> None:
        _, memory, offset, size = _DATA.unpack_from(record.segment, record.at + _HEAD)
        begin = record.at + _HEAD + _DATA.size
        if size > record.size - _HEAD - _DATA.size:
            raise BufferError(f"{size} bytes of memory in a record of {record.size}")
        self._copies.changed(
            self._objects.table("VkDeviceMemory")[memory], offset, record.segment[begin : begin + size]
        )

    def _named(self, record: Record) -> None:
        name = _text(record)
        if len(name) > LONGEST_NAME or not name.isidentifier() or not name.startswith("vk"):
            raise BufferError("no name of a command")
        self._commands.named(record.command, name)
        if self._native is not None:
            self._native.know(record.command, name, *native_form(name, self._shapes, self))

    def _file(self, record: Record) -> None:
        descriptor, device, inode = _THREE.unpack_from(record.segment, record.at + _HEAD)
        self._files.setdefault(record.thread, {})[descriptor] = f"{device}:{inode}"

    def _property(self, record: Record) -> None:
        physical, value = _TWO.unpack_from(record.segment, record.at + _HEAD)
        self._commands.separate[physical] = int(value != 0)

    def _lost_by_layer(self, record: Record) -> None:
        name, _, why = _text(record).partition(" ")
        self._cannot_read(name if name.startswith("vk") else UNNAMED, why or "the layer could not record it")


def _text(record: Record) -> str:
    """The text that a record has, up to the first NUL."""
    return record.payload().split(b"\0", 1)[0].decode("utf-8", "backslashreplace")
