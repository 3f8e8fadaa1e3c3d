"""Which signals, waits and resets of fences stay in a stream from which pieces were taken.

A signal that nobody waits for is taken off its submit. A wait stays while there is a signal that nothing waited for
before. A reset stays where a fence is to be signaled again. Specification: "Fences".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vkharness.reduction.paths import Path
from vkharness.spec.command_classes import ACQUIRES, QUEUE_WORK
from vkharness.spec.names import flags_value
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call

_SIGNALED_BIT = flags_value("VkFenceCreateFlags", "VK_FENCE_CREATE_SIGNALED_BIT")
_SIGNAL, _WAIT, _RESET = "signal", "wait", "reset"


@dataclass(frozen=True, slots=True)
class FenceUse:
    """One use of a fence by a call."""

    what: str
    path: Path


def needless_fences(blocks: Iterable[Block], gone: Callable[[Path], bool]) -> set[Path] | None:
    """The places of fences that must go from a stream; None where a fence would be signaled twice.

    `gone` says which places are left out already.
    """
    uses: dict[int, list[FenceUse]] = defaultdict(list)
    signaled: set[int] = set()
    for block in blocks:
        if isinstance(block, Call):
            if block.name == "vkCreateFence" and block.args["pCreateInfo"]["flags"] & _SIGNALED_BIT:
                signaled.add(block.args["pFence"])
            for fence, use in _uses(block):
                if fence and not gone(use.path):
                    uses[fence].append(use)
    found: set[Path] = set()
    for fence, several in uses.items():
        needless = _needless(several, fence in signaled)
        if needless is None:
            return None
        found |= needless
    return found


def _uses(call: Call) -> Iterable[tuple[int, FenceUse]]:
    name, args = main_name(call.name), call.args
    if name in QUEUE_WORK or name in ACQUIRES:
        info = args.get("pAcquireInfo")
        yield (info or args)["fence"], FenceUse(_SIGNAL, (call.index, *(["pAcquireInfo"] if info else []), "fence"))
    elif name == "vkGetFenceStatus":
        yield args["fence"], FenceUse(_WAIT, (call.index,))
    elif name in ("vkWaitForFences", "vkResetFences"):
        what = _WAIT if name == "vkWaitForFences" else _RESET
        for at, fence in enumerate(args["pFences"] or ()):
            yield fence, FenceUse(what, (call.index, "pFences", at))


def _needless(uses: list[FenceUse], signaled: bool) -> set[Path] | None:
    found: set[Path] = set()
    resets: list[Path] = []
    waited = True
    for at, use in enumerate(uses):
        if use.what == _RESET:
            resets.append(use.path)
        elif use.what == _WAIT:
            if waited:
                found.add(use.path)
            waited = True
        elif not _is_waited_for(uses[at + 1 :]):
            found.add(use.path)
        else:
            if signaled and not resets:
                return None
            found.update(resets[: -1 if signaled else None])
            signaled, waited, resets = True, False, []
    return found | set(resets)


def _is_waited_for(later: list[FenceUse]) -> bool:
    following = next((use.what for use in later if use.what != _RESET), _SIGNAL)
    return following == _WAIT
