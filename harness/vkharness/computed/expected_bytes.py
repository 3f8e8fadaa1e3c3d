"""The bytes that a trace must leave when its commands run one after the other in submission order.

>>> from tests.support.streams import Stream
>>> stream = Stream()
>>> a, b = stream.buffer(8), stream.buffer(8)
>>> begun, fill, copy, last = stream.begin(), stream.fill(a, 0x01020304), stream.copy(a, b, 4), stream.submit()
>>> computed = compute(stream.blocks)
>>> computed.cells[b, None].data.tobytes().hex(), computed.cells[b, None].known.tolist()
('04030201aeaeaeae', [True, True, True, True, True, True, True, True])

The last four bytes of `b` are those with which a replay begins (`vkharness.replay.contents.fill`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vkharness.commands.handlers import folded
from vkharness.commands.synchronization.bind_sparse import UNORDERED
from vkharness.computed.bound_resources import bound_resources, device_addresses, page_size
from vkharness.computed.executed_shaders import execute
from vkharness.computed.fetched_samples import fetched
from vkharness.computed.followed_rendering import FollowedRendering
from vkharness.computed.followed_transfers import FOLLOWED, KnownContents, can_follow, is_followed
from vkharness.computed.known_cells import Cells, Mask
from vkharness.computed.query_results import KnownQueries
from vkharness.computed.sampled_images import Sampler
from vkharness.computed.shared_memory import SharedMemory
from vkharness.computed.sparse_windows import SparseWindows
from vkharness.findings import UserError
from vkharness.replay.contents.observe import Key, Outputs, Surface
from vkharness.replay.observation.declared import DeclaredAccesses
from vkharness.replay.observation.shader_bindings import Bound
from vkharness.replay.schedule.layouts import HOST_TRANSITION, UNDEFINED, transitions
from vkharness.replay.schedule.replayable import replayable
from vkharness.replay.schedule.steps import Step, StepKind, flatten
from vkharness.shader.execution.work_groups import Size
from vkharness.spec.command_classes import CONDITIONAL, RUNS_INVOCATIONS, RUNS_SHADERS
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, HostRead, HostWrite, reading
from vkharness.trace.effects import StreamEvent
from vkharness.trace.first_bytes import first_byte
from vkharness.trace.resources import Buffer
from vkharness.trace.sparse_effects import BIND_SPARSE

IMAGES_OF_HOST_CALLS = ("image", "srcImage", "dstImage")
Executor = Callable[[Call, KnownContents, Bound, Size, Size], None]
"""Follows one dispatch of so many groups from a base, with what was bound. Raises `UserError` where it cannot."""
Left = Callable[[str], None]
"""Told of a command that may run invocations as a dispatch does and is not given to the executor: why."""
DISPATCHES = ("vkCmdDispatch", "vkCmdDispatchBase", "vkCmdDispatchIndirect")
MOST_REASONS = 16
"""Reasons that are told of one trace."""
MOST_BYTES = 1 << 28
"""Of memory and texels of a trace that are computed; a larger trace is not."""


@dataclass(slots=True)
class ComputedBytes:
    """Contents that each surface must have at the end, by the keys of `Outputs`."""

    cells: dict[Key, Cells] = field(default_factory=dict)
    reasons: dict[str, None] = field(default_factory=dict)
    """Why bytes are unknown, each reason once: a command, and what is not followed of it."""
    undefined: dict[Key, Mask] = field(default_factory=dict)
    """Units whose bytes the specification leaves undefined: of images without contents, and what was copied from
    these."""

    def beside(self, observed: Outputs) -> Outputs:
        """Returns the right outputs of a run: the computed bytes, and the run's own where these are unknown."""
        expected = Outputs()
        for key, surface in observed.surfaces.items():
            cells = self._shown(key, surface)
            data = surface.data
            if cells is not None:
                known = cells.known if key[1] is None else cells.known[..., None]
                data = np.where(known, cells.data, data)
            expected.surfaces[key] = Surface(
                surface.resource, surface.subresource, data, surface.format, surface.samples
            )
        return expected

    def defined(self, expected: Outputs, observed: Outputs) -> Outputs:
        """Returns the outputs `expected` of one run for comparison with `observed`, which gives the undefined units."""
        found = Outputs()
        for key, surface in expected.surfaces.items():
            data, undefined, other = surface.data, self.undefined.get(key), observed.surfaces.get(key)
            shape = data.shape if key[1] is None else data.shape[:-1]
            if (
                undefined is not None
                and undefined.shape == shape
                and other is not None
                and other.data.shape == data.shape
            ):
                data = np.where(undefined if key[1] is None else undefined[..., None], other.data, data)
            found.surfaces[key] = Surface(surface.resource, surface.subresource, data, surface.format, surface.samples)
        return found

    def count(self, observed: Outputs) -> tuple[int, int]:
        """(bytes of a run's surfaces that are known, all of its bytes without those that are left undefined)."""
        known = total = 0
        for key, surface in observed.surfaces.items():
            total += surface.data.size
            cells = self._shown(key, surface)
            if cells is not None:
                unit = surface.data.size // max(1, cells.known.size)
                known += int(np.count_nonzero(cells.known)) * unit
                samples = surface.samples if surface.subresource is not None else 1
                undefined = self.undefined.get(key)
                total -= 0 if undefined is None else int(np.count_nonzero(undefined)) * samples * unit
        return known, total

    def why_unknown(self, observed: Outputs) -> tuple[str, ...]:
        """Why bytes of a run's surfaces are unknown: surfaces that are not followed at all, and `reasons`. Empty where
        all are known."""
        known, total = self.count(observed)
        if known == total:
            return ()
        absent = {each.kind: None for key, each in observed.surfaces.items() if self._shown(key, each) is None}
        several = [*(f"{kind}s of a sort that is not followed" for kind in absent), *self.reasons]
        return tuple(several[:MOST_REASONS]) or ("contents that nothing wrote, or that a command leaves open",)

    def _shown(self, key: Key, surface: Surface) -> Cells | None:
        """Returns the known contents of a surface in the shape in which it is observed; None without any."""
        cells = self.cells.get(key)
        if cells is not None and surface.samples > 1:
            cells = fetched(cells, surface)
        return cells if cells is not None and cells.data.shape == surface.data.shape else None


def compute(
    blocks: list[Block], events: Iterable[StreamEvent] | None = None, *, reads_zeros: bool = False
) -> ComputedBytes:
    """The bytes that the commands of a trace leave, one after the other in submission order.

    `events` are those of the trace, if somebody has interpreted it already and left no access out. `reads_zeros`: the
    device reads zeros where sparse resources have no memory (residencyNonResidentStrict). Raises `UserError` for a
    trace that cannot be replayed or is too large, and for sparse memory that is not followed (`sparse_windows`).
    """
    blocks = replayable(blocks)
    if events is None or any(isinstance(each, Call) and each.name.startswith(RUNS_SHADERS) for each in blocks):
        declared = DeclaredAccesses(blocks)
    else:
        declared = DeclaredAccesses.of_events(events)
    steps = flatten(blocks)
    computed = _computed(blocks, steps, declared, reads_zeros, takes_undefined=False)
    if not all(cells.known.all() for cells in computed.cells.values()):
        assumed = _computed(blocks, steps, declared, reads_zeros, takes_undefined=True)
        for key, cells in computed.cells.items():
            other = assumed.cells.get(key)
            if other is not None:
                computed.undefined[key] = other.known & ~cells.known
    return computed


def compute_steps(blocks: list[Block], steps: list[Step]) -> ComputedBytes:
    """The bytes that these steps of a trace leave in this order, with texels of undefined contents as unknown. The
    blocks are `replayable`. Raises `UserError` as `compute`."""
    return _computed(blocks, steps, DeclaredAccesses(blocks), reads_zeros=False, takes_undefined=False)


def follow_dispatches(blocks: list[Block], executor: Executor, left: Left) -> ComputedBytes:
    """As `compute`, with each dispatch given to `executor`, which leaves in the contents what it writes, or told to
    `left` with the reason."""
    blocks = replayable(blocks)
    run = _Run(blocks, DeclaredAccesses(blocks), False, False, executor, left)
    return run.all(flatten(blocks))


def _computed(
    blocks: list[Block], steps: list[Step], declared: DeclaredAccesses, reads_zeros: bool, takes_undefined: bool
) -> ComputedBytes:
    """The bytes, with texels of undefined contents as known, or as unknown."""
    return _Run(blocks, declared, reads_zeros, takes_undefined).all(steps)


def _execute(_: Call, contents: KnownContents, bound: Bound, groups: Size, base: Size) -> None:
    execute(contents, bound, groups, base)


@dataclass(frozen=True, slots=True)
class _Condition:
    """Conditional rendering: the predicate, and what it was at the begin.

    An implementation may read it there or before each command ("Conditional Rendering"), so both must say the same.
    """

    buffer: int
    offset: int
    inverted: bool
    at_begin: int | None

    @classmethod
    def begin(cls, contents: KnownContents, info: Mapping[str, Any]) -> _Condition:
        """That of a VkConditionalRenderingBeginInfoEXT."""
        buffer, offset = info["buffer"], info["offset"]
        return cls(buffer, offset, bool(info["flags"] & 1), contents.word(buffer, offset))

    def holds(self, contents: KnownContents) -> bool | None:
        """Whether a command is executed; None where that is open."""
        now = contents.word(self.buffer, self.offset)
        if now is None or self.at_begin is None or bool(now) != bool(self.at_begin):
            return None
        return bool(now) != self.inverted


class _Run:
    """The contents while the steps are followed."""

    def __init__(
        self,
        blocks: list[Block],
        declared: DeclaredAccesses,
        reads_zeros: bool,
        takes_undefined: bool,
        executor: Executor = _execute,
        left: Left = lambda _: None,
    ) -> None:
        self._declared, self._executor, self._left = declared, executor, left
        self._contents = KnownContents(addresses=device_addresses(blocks), takes_undefined=takes_undefined)
        self._reasons: dict[str, None] = {}
        self._condition: _Condition | None = None
        self._queries = KnownQueries(self._contents)
        self._rendering = FollowedRendering(self._contents, declared)
        self._reads: dict[int, Cells] = {}
        self._bytes = 0
        buffers, images, sparse = bound_resources(blocks)
        for buffer in sorted(buffers, key=lambda each: each.id):
            self._begin_buffer(buffer)
        self._contents.images = {image.id: image for image in images if is_followed(image)}
        self._sparse = SparseWindows(self._contents, sparse, reads_zeros)
        if self._sparse:
            self._begin_sparse(blocks, {each.memory or 0 for several in (buffers, images) for each in several} - {0})
        self._shared = SharedMemory(self._contents, buffers, images, page_size(blocks))

    def _begin_buffer(self, buffer: Buffer) -> None:
        contents, end = self._contents, buffer.offset + buffer.size
        contents.buffers[buffer.id] = buffer
        memory = contents.memory.setdefault(buffer.space, Cells.of_memory(0))
        self._charge(max(0, end - len(memory.data)))
        memory.grow(end)
        value = first_byte(buffer.id, buffer.usage)
        memory.put(buffer.offset, np.full(buffer.size, value, np.uint8))

    def _charge(self, bytes: int) -> None:
        self._bytes += bytes
        if self._bytes > MOST_BYTES:
            raise UserError("its buffers are too large: its bytes are not computed")

    def _begin_sparse(self, blocks: list[Block], others: set[int]) -> None:
        if UNORDERED in self._declared.unmodelled:
            raise UserError(f"{UNORDERED}: its bytes are not computed")
        calls = (each for each in blocks if isinstance(each, Call) and each.succeeded)
        self._sparse.prepare(calls, others, self._charge)

    def all(self, steps: Iterable[Step]) -> ComputedBytes:
        """Takes all steps in."""
        for step in steps:
            if step.kind is not StepKind.BEGIN:
                with reading(step.block):
                    self.follow(step)
        return self.result()

    def follow(self, step: Step) -> None:
        """Takes one step in."""
        self._take(step)
        if self._sparse:
            self._into_memory(step)

    def _into_memory(self, step: Step) -> None:
        """Copies the step's writes to sparse resources to the memory that is bound to them."""
        declared, images = self._declared.of(step), self._contents.images
        uses = declared.bindings | {id: spans for id, spans in declared.named_writes.items() if id in images}
        if step.kind is StepKind.HOST and isinstance(step.block, Call):
            touched = {each.image for each in transitions(step.block)} | set(_images_of_host_call(step.block))
            uses = {id: [images[id].whole] for id in touched if id in images}
        reason = self._sparse.after(uses, step.name.startswith(RUNS_SHADERS))
        if reason and step.kind is StepKind.ACTION:
            self._forget(step, reason)
            self._sparse.after(uses, runs_shaders=False)

    def _take(self, step: Step) -> None:
        block = step.block
        if isinstance(block, HostWrite):
            if block.memory in self._contents.memory:
                self._contents.memory[block.memory].put(block.offset, np.frombuffer(block.data, np.uint8))
            span = (block.offset, block.offset + len(block.data))
            self._shared.wrote(block.memory, (span,))
            self._sparse.load(block.memory, (span,))
        elif isinstance(block, HostRead):
            self._see(block.index, block.memory, block.offset, block.size)
        elif step.kind is StepKind.HOST:
            self._host_call(block)
        elif step.kind is StepKind.SYNC:
            self._transitions(block)
            self._wrote(step)
        elif step.kind is StepKind.STATE:
            self._rendering.set_state(step, block)
        elif step.kind is StepKind.ACTION:
            self._action(step, block)

    def _host_call(self, call: Call) -> None:
        self._transitions(call)
        self._queries.note(call)
        self._rendering.note(call)
        if call.name == "vkCreateBufferView":
            self._contents.views[call.args["pView"]] = call.args["pCreateInfo"]
        elif call.name == "vkCreateSampler":
            self._contents.samplers[Sampler.of(call.args["pCreateInfo"])] = None
        elif call.name.startswith("vkInvalidateMappedMemoryRanges"):
            for each in call.args["pMemoryRanges"] or ():
                self._see(call.index, each["memory"], each["offset"], each["size"])
        elif call.name == BIND_SPARSE:
            self._sparse.bind(call)
        else:
            self._forget_images(_images_of_host_call(call))

    def _transitions(self, call: Call) -> None:
        """Contents are lost where the old layout is UNDEFINED ("Image Layout Transitions")."""
        for each in transitions(call):
            if call.name.startswith(HOST_TRANSITION):
                self._shared.wrote(each.image, ())
            if each.old == UNDEFINED:
                for _, cells in self._contents.range(each.range, each.image):
                    self._contents.undefine(cells)

    def _action(self, step: Step, call: Call) -> None:
        self._rendering.set_state(step, call)
        self._queries.hear(call)
        if main_name(call.name) == "vkCmdBeginConditionalRenderingEXT":
            self._condition = _Condition.begin(self._contents, call.args["pConditionalRenderingBegin"])
        elif main_name(call.name) == "vkCmdEndConditionalRenderingEXT":
            self._condition = None
        runs: bool | None = True
        if self._condition is not None and call.name.startswith(CONDITIONAL):
            runs = self._condition.holds(self._contents)
        if runs is None:
            self._rendering.lose()
            self._leave(step, call, "the predicate of conditional rendering is not known")
        elif runs:
            self._run(step, call)
            for each in self._contents.doubts:
                self._reason(step, each)
            self._contents.doubts.clear()
        if runs is not False:
            self._wrote(step)

    def _wrote(self, step: Step) -> None:
        """A command leaves undefined what shares memory with what it wrote."""
        for space, spans in self._declared.of(step).named_writes.items() if self._shared else ():
            self._shared.wrote(space, spans)

    def _run(self, step: Step, call: Call) -> None:
        try:
            if self._rendering.follow(step, call) or self._queries.follow(call):
                return
        except UserError as error:
            self._leave(step, call, str(error))
            return
        name = main_name(call.name).removesuffix("2")
        if name in FOLLOWED:
            info, follower = FOLLOWED[name]
            args = folded(call.args, info) if info else call.args
            if can_follow(self._contents, args):
                follower(self._contents, args)
                return
            self._reason(step, "an image or a region of a sort that is not followed")
            self._forget_images(_images(args))
            if args.get("dstBuffer") in self._contents.buffers:
                cells, base, size = self._contents.cells(args["dstBuffer"])
                cells.forget(base, base + size)
        elif name in DISPATCHES:
            self._dispatch(step, call, name)
        else:
            self._leave(step, call, "not followed")

    def _leave(self, step: Step, call: Call, reason: str) -> None:
        """A command is not followed."""
        if call.name.startswith(RUNS_INVOCATIONS):
            self._left(f"{call.name}: {reason}")
        self._forget(step, reason)

    def _dispatch(self, step: Step, call: Call, name: str) -> None:
        bound = self._declared.bound.get(call.index)
        if bound is None:
            self._leave(step, call, "its shader is not known")
            return
        try:
            groups = self._groups(call.args, name)
        except UserError as error:
            self._leave(step, call, str(error))
            return
        try:
            self._executor(call, self._contents, bound, groups, _words(call.args, "baseGroup"))
        except UserError as error:
            self._forget(step, str(error))

    def _groups(self, args: Mapping[str, Any], name: str) -> Size:
        if name != "vkCmdDispatchIndirect":
            return _words(args, "groupCount")
        x, y, z = (self._contents.word(args["buffer"], args["offset"] + each) for each in (0, 4, 8))
        if x is None or y is None or z is None:
            raise UserError("its parameters are not known")
        return x, y, z

    def _reason(self, step: Step, reason: str) -> None:
        self._reasons[f"{step.name}: {reason}"] = None

    def _forget_images(self, images: Iterable[int]) -> None:
        for image in images:
            self._contents.forget_image(image)
            self._shared.wrote(image, ())

    def _forget(self, step: Step, reason: str) -> None:
        """Makes unknown the bytes that the command is declared to write."""
        declared, contents = self._declared.of(step), self._contents
        self._rendering.may_write(declared.writes)
        if declared.anything or declared.writes:
            self._reason(step, reason)
        if declared.anything:
            _forget_all([*contents.memory.values(), *contents.texels.values()])
            self._sparse.forget_all()
            return
        for space, spans in declared.writes.items():
            if space in contents.memory:
                for begin, end in spans:
                    contents.memory[space].forget(begin, end)
                self._sparse.load(space, spans)
            contents.forget_spans(space, spans)

    def _see(self, index: int, memory: int, offset: int, size: int) -> None:
        cells = self._contents.memory.get(memory)
        end = 0 if cells is None else len(cells.data)
        seen = Cells.of_memory(0) if cells is None else cells.take(offset, max(0, min(size, end - offset)))
        before = self._reads.get(index)
        self._reads[index] = seen if before is None else _joined(before, seen)

    def result(self) -> ComputedBytes:
        """The contents now, by surface."""
        found = ComputedBytes(reasons=self._reasons)
        for buffer in self._contents.buffers.values():
            found.cells[buffer.id, None] = self._contents.memory[buffer.space].take(buffer.offset, buffer.size)
        others: dict[int, list[int]] = {}
        for image, name in self._contents.names.items():
            others.setdefault(name, []).append(image)
        for (image, aspect, mip, layer), cells in self._contents.texels.items():
            for each in (image, *others.get(image, ())):
                found.cells[each, (aspect, mip, layer)] = cells
        for index, cells in self._reads.items():
            found.cells[-index, None] = cells
        return found


def _words(args: Mapping[str, Any], name: str) -> Size:
    """The three arguments of one name, 0 where the command has none."""
    return args.get(f"{name}X", 0), args.get(f"{name}Y", 0), args.get(f"{name}Z", 0)


def _images(args: Mapping[str, Any]) -> Iterator[int]:
    """The images that a command names."""
    return (args[key] for key in IMAGES_OF_HOST_CALLS if key in args)


def _images_of_host_call(call: Call) -> Iterator[int]:
    """The images that a copy of the host names."""
    if call.name.startswith(("vkCopyMemoryToImage", "vkCopyImageToImage")):
        for info in call.args.values():
            yield from _images(info) if isinstance(info, dict) else ()


def _forget_all(several: Iterable[Cells]) -> None:
    for cells in several:
        cells.known[...] = False


def _joined(first: Cells, second: Cells) -> Cells:
    return Cells(np.concatenate([first.data, second.data]), np.concatenate([first.known, second.known]))
