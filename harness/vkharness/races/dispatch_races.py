"""Finds the races inside the dispatches of a trace.

Each dispatch is executed twice, first to last and last to first, from the bytes that the commands before it left. What
a trace does not decide (bytes that a file brought, shaders that are not interpreted) leaves a dispatch unjudged, with
the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from vkharness.computed.executed_shaders import BoundShaderResources, differing_bytes, keep_written, require_compute
from vkharness.computed.expected_bytes import follow_dispatches
from vkharness.computed.followed_transfers import KnownContents
from vkharness.findings import UserError
from vkharness.races.knowledge import MissingOrder, Semantics, Storage
from vkharness.races.noted_dispatch import BarrierSite, Inserted, NotedDispatch, run_noted
from vkharness.races.shared_words import WORD, Instruction, InvocationAccess, RacingPair, Word
from vkharness.replay.observation.shader_bindings import Bound
from vkharness.shader.execution.executed_module import refusing_malformed
from vkharness.shader.execution.outside import Allowance
from vkharness.shader.execution.work_groups import BOTH_ORDERS, Order, Size, place_of
from vkharness.shader.opcodes import Decoration
from vkharness.trace.calls import Block, Call

MOST_INSTRUCTIONS = 1 << 22
"""Of one dispatch, in each of its orders."""
MOST_IN_MENDS = 1 << 24
"""Of all tries to mend races of a trace."""
LONGER = 4
"""A dispatch with one more barrier may execute so many times the instructions of the one without."""
MOST_SITES = 64
"""Places where a barrier is tried."""
MOST_IN_ALL = 1 << 25
"""Of all dispatches of a trace."""
INDIRECT = "vkCmdDispatchIndirect"
NO_GROUPS = f"{INDIRECT}: its parameters are zero, or nothing in the trace writes them: no work group was executed"
NO_BARRIER = "no control barrier lies between them"
APART = "they are in different work groups, which nothing in a dispatch orders"
UNORDERED_CLASS = "the control barrier between them does not order {}"
NOT_MUTUAL = "both are atomics, but not each in the other's scope"
HALF_ATOMIC = "one of them alone is an atomic"
PRIVATE = "one of them is private: the Vulkan memory model orders NonPrivate accesses alone"
LACKING = {
    MissingOrder.AVAILABILITY: "the write happens before the other access, and is not made available to it",
    MissingOrder.VISIBILITY: "the write happens before the read, and is made available, but not visible to it",
    MissingOrder.REFERENCE: "they go through different descriptors: what a shader orders holds for one",
}
"""Of accesses that one happens before the other."""
MENDED = Semantics.ACQUIRE_RELEASE | Semantics.MAKE_AVAILABLE | Semantics.MAKE_VISIBLE
"""Semantics of the barrier that mends."""
BARRIERS = {
    Storage.SHARED: "barrier()",
    Storage.BUFFER: "memoryBarrierBuffer(); barrier()",
    Storage.IMAGE: "memoryBarrierImage(); barrier()",
}
"""In GLSL."""
BARRIER_OF_MODEL = (
    "controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemantics{},"
    " gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible)"
)
"""In GLSL of the Vulkan memory model, for one class."""
SEMANTICS_OF_MODEL = {Storage.SHARED: "Shared", Storage.BUFFER: "Buffer", Storage.IMAGE: "Image"}
SAMPLED = "it samples image {} and stores to it: which texels a sample reads is not noted"
CLASSES = {Storage.SHARED: "shared memory", Storage.BUFFER: "buffers", Storage.IMAGE: "images"}


class RaceAccess(NamedTuple):
    """One side of a race."""

    kind: str
    """`read`, `write`, or `atomic read` and so on."""
    line: tuple[str, int] | None
    """File and line of the shader, where its debug information says so."""
    instruction: int
    """Which access of the shader it is, in the order of its code, from 1."""
    invocation: Size
    """LocalInvocationId."""
    group: Size
    """WorkgroupId."""


class InvocationRace(NamedTuple):
    """A race between two invocations of one dispatch."""

    call: int
    """The number of the dispatch's call in the trace."""
    command: str
    site: str | None
    storage: Storage
    variable: str
    """The name of the variable, or its set and binding."""
    first: RaceAccess
    second: RaceAccess
    why: str
    """Why nothing orders the two."""
    places: int
    """Words of memory in which these instructions race."""
    example: str
    """The first of them: bytes of a buffer, or a texel, or an element."""
    mend: str = ""
    """The barrier that orders the two, and where: executed with it, the dispatch has this race no more. Empty where
    none was found."""


class _UndefinedError(UserError):
    """A dispatch was judged, and what it leaves is not known."""


@dataclass
class RacesFound:
    """The answer for a trace."""

    races: list[InvocationRace] = field(default_factory=list)
    judged: int = 0
    """Dispatches that were executed."""
    unjudged: dict[str, int] = field(default_factory=dict)
    """Why others were not, with their number."""
    unmended: bool = False
    """Whether the work ran out before a barrier was tried for each race."""
    differing: dict[int, int] = field(default_factory=dict)
    """Call of a dispatch to the bytes that it leaves different in the two orders."""


def find_races(blocks: list[Block]) -> RacesFound:
    """The races between invocations of each dispatch. Raises `UserError` for a trace that cannot be replayed."""
    found = RacesFound()
    allowance, mends = Allowance(MOST_IN_ALL, "the trace"), Allowance(MOST_IN_MENDS, "mending")

    def executor(call: Call, contents: KnownContents, bound: Bound, groups: Size, base: Size) -> None:
        try:
            if 0 not in groups:
                _Judged(call, contents, bound, (groups, base), allowance, mends).into(found)
                found.judged += 1
            elif call.name.startswith(INDIRECT):
                left(NO_GROUPS)
        except _UndefinedError:
            found.judged += 1
            raise
        except UserError as error:
            left(str(error))
            raise

    def left(reason: str) -> None:
        found.unjudged[reason] = found.unjudged.get(reason, 0) + 1

    follow_dispatches(blocks, executor, left)
    return found


class _Judged:
    """One dispatch, executed in both orders."""

    def __init__(
        self,
        call: Call,
        contents: KnownContents,
        bound: Bound,
        extent: tuple[Size, Size],
        allowance: Allowance,
        mends: Allowance,
    ) -> None:
        require_compute(bound)
        self._call, self._contents, self._bound = call, contents, bound
        self._extent, self._allowance, self._mends = extent, allowance, mends
        self._sites: list[BarrierSite] = []
        self._vulkan_model = False
        self._executed = 0
        """Instructions of the longer order."""
        self._left: dict[Inserted, set[frozenset[int]] | None] = {}
        """Barriers that were tried, with the pairs of instructions that race beside each; None where it cannot be."""

    def into(self, found: RacesFound) -> None:
        """Adds its races, and leaves in the contents what it writes. Raises `UserError` where it cannot be followed to
        its end; the races until then count."""
        seen: dict[frozenset[int], InvocationRace] = {}
        runs = []
        try:
            for order in BOTH_ORDERS:
                runs.append(self._run(order, seen))
        finally:
            found.races += (each._replace(mend=self._mend(each)) for each in seen.values())
            found.unmended = found.unmended or (bool(seen) and self._mends.is_spent)
        (first, _), (last, _) = runs
        different = differing_bytes(first, last)
        if different:
            found.differing[self._call.index] = different
        if any(is_undefined for _, is_undefined in runs):
            raise _UndefinedError("it reads shared memory that nothing has written")
        keep_written(self._contents, first, last)

    def _run(self, order: Order, seen: dict[frozenset[int], InvocationRace]) -> tuple[BoundShaderResources, bool]:
        """What it leaves in one order, and whether that depends on what is undefined."""
        allowance = self._allowance.part(MOST_INSTRUCTIONS)
        dispatch, resources = self._made(allowance)
        self._sites, self._vulkan_model = dispatch.reader.sites, dispatch.names.vulkan_model
        try:
            run_noted(dispatch, order)
        finally:
            self._executed = max(self._executed, allowance.spent)
            told = _Told(self._call, self._contents, resources, dispatch)
            for pair, places in dispatch.notes.found.values():
                race = told.race(pair, len(places))
                key = frozenset(each.instruction for each in (race.first, race.second))
                before = seen.get(key)
                if before is None or before.places < race.places:
                    seen[key] = race
        told.refuse_sampled()
        return resources, dispatch.notes.is_undefined

    def _made(self, limit: Allowance, inserted: Inserted | None = None) -> tuple[NotedDispatch, BoundShaderResources]:
        stage, resources = self._bound.stages[0], BoundShaderResources(self._contents, self._bound)
        extent, constants = self._extent, stage.specialization
        with refusing_malformed():
            return NotedDispatch(stage.code, stage.entry, extent, resources, constants, limit, inserted), resources

    def _mend(self, race: InvocationRace) -> str:
        """The first barrier that leaves the dispatch without a race: before one of the two accesses, else at the begin
        of a block."""
        whys = (NO_BARRIER, HALF_ATOMIC, UNORDERED_CLASS.format(CLASSES[race.storage]), *LACKING.values())
        if race.why not in whys or race.first.group != race.second.group:
            return ""
        semantics = MENDED | race.storage.value
        pair = frozenset((race.first.instruction, race.second.instruction))
        sites = [each for each in self._sites if each.access in pair] + [
            each for each in self._sites if not each.access
        ]
        for site in sites[:MOST_SITES]:
            left = self._with(Inserted(site.at, semantics))
            if left is not None and pair not in left:
                return f"{self._barrier(race.storage)} before {_where(site)}"
        return ""

    def _barrier(self, storage: Storage) -> str:
        return BARRIER_OF_MODEL.format(SEMANTICS_OF_MODEL[storage]) if self._vulkan_model else BARRIERS[storage]

    def _with(self, inserted: Inserted) -> set[frozenset[int]] | None:
        """The pairs of instructions that race with one more barrier; None where not all invocations reach it."""
        if inserted not in self._left:
            left: set[frozenset[int]] = set()
            self._left[inserted] = left
            try:
                most = min(MOST_INSTRUCTIONS, LONGER * self._executed)
                for order in BOTH_ORDERS:
                    dispatch, _ = self._made(self._mends.part(most), inserted)
                    run_noted(dispatch, order)
                    left.update(frozenset(each.number for each in key) for key in dispatch.notes.found)
            except UserError:
                self._left[inserted] = None
        return self._left[inserted]


class _Told:
    """Puts races of one execution into words."""

    def __init__(
        self, call: Call, contents: KnownContents, resources: BoundShaderResources, dispatch: NotedDispatch
    ) -> None:
        self._call, self._contents, self._dispatch = call, contents, dispatch
        self._memory = {id(copy): space for space, copy in resources.memory.items()}
        self._copies = resources.texels
        self._texels = {id(copy.written): key for key, copy in resources.texels.items()}

    def refuse_sampled(self) -> None:
        """Raises `UserError` where an image was sampled and stored to."""
        stored = {key[0] for key, copy in self._copies.items() if copy.written.any()}
        for name in self._dispatch.notes.sampled:
            if name in self._texels and self._texels[name][0] in stored:
                raise UserError(SAMPLED.format(self._texels[name][0]))

    def race(self, pair: RacingPair, places: int) -> InvocationRace:
        """One race."""
        storage = pair.first.instruction.storage
        variable = self._variable(pair.first.instruction) or self._variable(pair.second.instruction)
        return InvocationRace(
            self._call.index, self._call.name, self._call.site, storage, variable, self._access(pair.first),
            self._access(pair.second), self._why(pair), places, self._place(storage, pair.place),
        )  # fmt: skip

    def _variable(self, instruction: Instruction) -> str:
        id, declarations, names = instruction.variable, self._dispatch.declarations, self._dispatch.names
        name = names.variable(id)
        if not name and id in self._dispatch.reader.storage:
            name = names.variable(declarations.types.inside_arrays(self._dispatch.reader.storage[id].element)[0])
        held = declarations.decorations(id)
        if Decoration.Binding not in held:
            return name
        place = f"set {held.get(Decoration.DescriptorSet, 0)}, binding {held[Decoration.Binding]}"
        return f"{name} ({place})" if name else place

    def _access(self, access: InvocationAccess) -> RaceAccess:
        instruction = access.instruction
        kind = "read and write" if instruction.reads and instruction.writes else ("read", "write")[instruction.writes]
        kind = f"atomic {kind}" if instruction.atomic is not None else kind
        group, local = divmod(access.invocation, self._dispatch.group_size)
        at, of_group = place_of(local, self._dispatch.size), self._dispatch.group_at(group)
        return RaceAccess(kind, instruction.line, instruction.number, at, of_group)

    def _why(self, pair: RacingPair) -> str:
        first, second = pair.first, pair.second
        one, other = first.instruction, second.instruction
        if pair.lacks in LACKING:
            return LACKING[pair.lacks]
        if not (one.non_private and other.non_private):
            return PRIVATE
        if one.atomic is not None and other.atomic is not None:
            return NOT_MUTUAL
        if one.atomic is not None or other.atomic is not None:
            return HALF_ATOMIC
        size = self._dispatch.group_size
        if first.invocation // size != second.invocation // size:
            return APART
        return NO_BARRIER if first.interval == second.interval else UNORDERED_CLASS.format(CLASSES[one.storage])

    def _place(self, storage: Storage, place: Word) -> str:
        if storage is Storage.SHARED:
            return f"scalar {place.word} of the variable"
        if place.space in self._texels:
            image, _, mip, layer = self._texels[place.space]
            return f"texel {place.word} (z, y, x) of image {image}, mip level {mip}, layer {layer}"
        begin, space = place.word * WORD, self._memory.get(place.space)
        for buffer in self._contents.buffers.values():
            if buffer.space == space and buffer.offset <= begin < buffer.offset + buffer.size:
                return f"bytes [{begin - buffer.offset}, {begin - buffer.offset + WORD}) of buffer {buffer.id}"
        return f"bytes [{begin}, {begin + WORD}) of memory {space}"


def _where(site: BarrierSite) -> str:
    if site.line:
        return f"{site.line[0]}:{site.line[1]}"
    return f"access {site.access}" if site.access else f"instruction {site.at}"
