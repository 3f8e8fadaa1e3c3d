"""A capture of RenderDoc as the blocks of `vkharness.trace.calls`, numbered one after the other.

What cannot be understood costs the chunk that it is in. The blocks are all in memory, since what a capture does not
keep follows from calls further on (`unkept_calls`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from vkharness.findings import UserError
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.spec.shapes import signature
from vkharness.trace.binaries import FolderReader
from vkharness.trace.calls import Block, Call, cut_off
from vkharness.trace.dialects import read_call, remarks
from vkharness.trace.found_writes import FoundWrites
from vkharness.trace.lines import Corrupt, open_trace
from vkharness.trace.printed.printed_shapes import PrintedShapes
from vkharness.trace.printed.printed_values import PrintedCall
from vkharness.trace.renderdoc import chunk_calls
from vkharness.trace.renderdoc.byte_archive import ByteArchive
from vkharness.trace.renderdoc.chunk_calls import ChunkCalls, HostBytes, host_bytes
from vkharness.trace.renderdoc.chunks import CaptureChunk, chunks
from vkharness.trace.renderdoc.frame_start import FrameStart
from vkharness.trace.renderdoc.unkept_calls import UnkeptCalls
from vkharness.trace.scalars import Reading
from vkharness.trace.work_budget import OverBudget

BYTES = "renderdoccmd writes them with -c zip.xml"
MOST_SAID = 160
"""Characters of a remark."""


class RenderDocReader:
    """Reads one capture. `notes` gets one line for each thing that the reader should know and that is no error."""

    def __init__(self, path: Path, notes: list[str], named: Path | None = None) -> None:
        """`named`: the file to speak of, where this one was made of it."""
        self.path, self._named = path, named or path
        self._notes = notes
        self._calls = ChunkCalls()
        self._shapes = PrintedShapes()
        self._memory = FoundWrites()
        self._start = FrameStart(self._shapes, self._calls.types, self._memory)
        self._reading = Reading(FolderReader(path), ours=False, with_bytes=BYTES)
        self._blocks: list[Block] = []
        self._begin: int | None = None
        """Where the frame's blocks begin."""
        self._mapped: set[int] = set()
        """Memory of which a mapping was told."""
        self._threads: dict[int, int] = {}
        self._skipped: Counter[str] = Counter()

    def read(self) -> Iterator[Block]:
        """The blocks. Raises UserError."""
        archive = ByteArchive(self.path)
        cut = ""
        with open_trace(self.path) as file:
            try:
                for chunk in chunks(file, archive):
                    self._read(chunk)
            except Corrupt as error:
                cut = str(error)
            except OverBudget:
                raise
            except UserError as error:
                raise UserError(f"{self._named}: {error}") from None
            finally:
                archive.close()
        self._told(self._calls.begun())
        if not self._blocks:
            raise UserError(f"{self._named}: {cut or 'no call in it'}: nothing to read")
        unkept = UnkeptCalls(self._blocks, len(self._blocks) if self._begin is None else self._begin)
        whole = unkept.whole()
        yield from (replace(block, index=number) for number, block in enumerate(whole, 1))
        if cut or self._begin is None:
            yield cut_off(len(whole))
        self._notes.extend(f"{self._named}: {remark}" for remark in self._remarks(archive, unkept, cut))

    def _read(self, chunk: CaptureChunk) -> None:
        if chunk.name != chunk_calls.IMAGES:
            self._told(self._calls.begun())
        try:
            if chunk.name == chunk_calls.INITIAL:
                self._require(chunk)
                self._blocks.extend(self._start.held(chunk))
            elif chunk.name == chunk_calls.BEGIN:
                self._begins(chunk)
            elif chunk.name == chunk_calls.COHERENT:
                self._require(chunk)
                self._host(chunk, host_bytes(chunk))
            elif chunk.name.startswith("vk") and chunk.name not in chunk_calls.WITHOUT_EFFECT:
                if chunk.name in (chunk_calls.FLUSH, *chunk_calls.UNMAPS) and not chunk.trouble:
                    self._host(chunk, host_bytes(chunk))
                self._told(self._calls.read(chunk))
            elif not chunk.name.startswith(chunk_calls.INTERNAL) and chunk.name not in chunk_calls.WITHOUT_EFFECT:
                self._skipped[f"of the name {chunk.name[:60]!r}"] += 1
        except Corrupt as error:
            self._skipped[f"that could not be read ({chunk.name[:60]}: {error})"[:MOST_SAID]] += 1

    def _told(self, several: Iterable[PrintedCall]) -> None:
        for printed in several:
            printed.thread = self._threads.setdefault(printed.thread, len(self._threads))
            self._call(printed)

    def _require(self, chunk: CaptureChunk) -> None:
        if chunk.trouble:
            raise Corrupt(chunk.trouble)

    def _begins(self, chunk: CaptureChunk) -> None:
        """Tells what images hold, and that the frame begins."""
        if self._begin is not None:
            raise Corrupt("a second frame")
        data = chunk.values[0].data if chunk.values and not chunk.trouble else None
        try:
            self._blocks.extend(self._start.begin(chunk.number, data))
        except Corrupt as error:
            self._skipped[f"of layouts that could not be read ({error})"[:MOST_SAID]] += 1
            self._blocks.extend(self._start.begin(chunk.number, None))
        self._begin = len(self._blocks)

    def _host(self, chunk: CaptureChunk, held: HostBytes | None) -> None:
        """What the host wrote to mapped memory. RenderDoc does not keep that it was mapped."""
        if held is None:
            return
        memory = self._shapes.handles.table("VkDeviceMemory").get(held.memory, 0)
        if not memory:
            raise Corrupt("bytes of memory that was not allocated")
        if held.offset + len(held.data) >= 1 << 63:
            raise Corrupt(f"{len(held.data)} bytes from byte {held.offset} of a memory object")
        if memory not in self._mapped:
            self._mapped.add(memory)
            device = self._shapes.handles.live[memory].parent
            args = {"device": device, "memory": memory, "offset": 0, "size": VK_WHOLE_SIZE, "flags": 0, "ppData": 0}
            self._add(Call(chunk.number, "vkMapMemory", args, 0))
        self._blocks.extend(self._memory.found(chunk.number, memory, held.offset, held.data))

    def _call(self, printed: PrintedCall) -> None:
        index = printed.line
        try:
            if printed.trouble:
                raise Corrupt(printed.trouble)
            function = {"name": printed.name, "thread": printed.thread, "args": self._shapes.arguments(printed)}
            if printed.result:
                function["return"] = self._shapes.result(printed)
            self._add(read_call({"index": index, "function": function}, function, self._reading))
        except (Corrupt, RecursionError, ValueError, OverflowError) as error:
            why = str(error) if isinstance(error, Corrupt) else "a value that is none"
            commands = self._shapes.command_buffer(printed)
            name = printed.name if signature(printed.name) is not None else f"vkUnknown{index}"
            unread = self._reading.unread.call(index, name, commands, why.removeprefix(f"{name}: "), printed.thread)
            if unread is not None:
                self._blocks.append(unread)

    def _add(self, call: Call) -> None:
        self._memory.follow(call)
        self._start.follow(call)
        if call.name.startswith("vkUnmapMemory"):
            self._mapped.discard((call.args.get("pMemoryUnmapInfo") or call.args).get("memory", 0))
        self._blocks.append(call)

    def _remarks(self, archive: ByteArchive, unkept: UnkeptCalls, cut: str) -> Iterator[str]:
        if cut:
            yield f"the capture ends in the middle: {cut}"
        if archive.trouble:
            yield f"{archive.trouble}: no bytes of shaders, memory and images are known; {BYTES}"
        if unkept.acquires:
            unclear = sum(not each.semaphore for each in unkept.acquires)
            yield (
                f"acquires of images are made up, since RenderDoc keeps none: {len(unkept.acquires)}, of which "
                f"{unclear} order everything, since nobody knows which semaphore they signaled"
            )
        if unkept.signals:
            yield f"signals of semaphores from before the frame are made up: {unkept.signals}"
        yield "reads of the host are not in a capture of RenderDoc, so that no hazard with one is found"
        yield from remarks(self._reading, self._skipped)


def read_renderdoc(path: Path, notes: list[str]) -> Iterator[Block]:
    """The blocks of a capture as XML. See `vkharness.trace.codec.read_trace`."""
    return RenderDocReader(path, notes).read()
