"""Two traces of two processes as one: their objects side by side, what they share as one, their calls in one order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vkharness.commands.interpret import MOST_SAID
from vkharness.commands.synchronization.semaphore import initial_value
from vkharness.findings import UserError
from vkharness.joining.interleaving import interleaved
from vkharness.joining.pairing import OBJECTS, Pair, marked, pairs
from vkharness.joining.renumbering import last_id, renumbered
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import MALFORMED, Block, Call
from vkharness.trace.shared_payloads import transfer_of


@dataclass(frozen=True, slots=True)
class Joined:
    """The joined trace, numbered from 1, and what the two have in common."""

    blocks: list[Block]
    pairs: list[Pair]

    @property
    def shared(self) -> str:
        """Counts the shared objects, in words: `3 memory objects, 6 semaphores`."""
        counted = Counter(each.kind for each in self.pairs)
        return ", ".join(f"{counted[kind]} {what}" for kind, what in OBJECTS.items() if counted[kind])


def join(first: Sequence[Block], second: Sequence[Block], said: Mapping[int, int]) -> Joined:
    """Joins two traces. `said` maps exports or imports of the first to those of the second, by their blocks.

    Raises `UserError` for traces that share nothing, for what cannot stand side by side, and for calls that mean
    nothing.
    """
    try:
        return _joined(first, second, said)
    except MALFORMED as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"the traces cannot be joined: {type(error).__name__}: {error}"[:MOST_SAID]) from None


def _joined(first: Sequence[Block], second: Sequence[Block], said: Mapping[int, int]) -> Joined:
    if all(any(_has_address(block) for block in each) for each in (first, second)):
        raise UserError("both traces use device addresses, which mean different memory in two processes")
    found = pairs((first, second), said)
    one, other = marked((first, second), found)
    threads = max((block.thread for block in one if isinstance(block, Call)), default=-1) + 1
    other = renumbered(other, last_id(one), threads)
    needs: list[dict[int, tuple[int, int]]] = [{}, {}]
    for pair in found:
        needs[pair.to[0]][pair.to[1]] = pair.export
    blocks = interleaved((one, other), needs, _same_objects((one, other), found), _timelines((one, other)))
    return Joined([replace(block, index=number) for number, block in enumerate(blocks, 1)], found)


def _timelines(traces: Sequence[Sequence[Block]]) -> set[int]:
    """All timeline semaphores."""
    return {
        block.args["pSemaphore"]
        for blocks in traces
        for block in blocks
        if isinstance(block, Call) and main_name(block.name) == "vkCreateSemaphore" and block.succeeded
        if initial_value(block.args["pCreateInfo"]) is not None
    }


def _same_objects(traces: Sequence[Sequence[Block]], found: Sequence[Pair]) -> dict[int, int]:
    """The exported semaphore or fence of each one to which it was imported for good."""
    calls = [{block.index: block for block in blocks if isinstance(block, Call)} for blocks in traces]
    same = {}
    for pair in found:
        if pair.kind != "VkDeviceMemory":
            export, to = transfer_of(calls[pair.export[0]][pair.export[1]]), transfer_of(calls[pair.to[0]][pair.to[1]])
            if not export.copies and not to.temporary:
                same[to.object] = export.object
    return same


def _has_address(block: Block) -> bool:
    addresses = ("vkGetBufferDeviceAddress", "vkGetAccelerationStructureDeviceAddressKHR")
    return isinstance(block, Call) and main_name(block.name) in addresses
