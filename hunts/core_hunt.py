"""Hunts for streams of which the native core and Python alone say different things.

Each has a process of its own, in which all that exists in both ways is of that one. Both processes make the streams of
the same seeds and tell all that they say of them: findings in order with their words, verdicts, what is not modelled.
Of a stream of which they say different things the smallest that is left of it is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from hunts.core_answers import KINDS, Items, kind_of
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.findings import UserError
from vkharness.fuzz.random_steps import shrink, shrink_list

JOBS = "hunts.core_answers"
TOGETHER = 100
"""Streams that a process is asked about at once."""
Pair = tuple[dict[str, Any], dict[str, Any]]


class Difference(AssertionError):
    """The native core and Python say different things of a stream, or both fail at a hostile one."""


class CoreAndPython:
    """The two processes, as a context manager. Raises `UserError` where there is no native core."""

    def __init__(self, device: str | None = None) -> None:
        """With `device`, a driver's name, both may run programs."""
        self._device = device
        driver = None if device is None else find_driver(device)
        self._workers = [Worker(driver, packages=("hunts",), variables={"VKHARNESS_PURE": pure}) for pure in "01"]
        self._threads = ThreadPoolExecutor(2)

    def __enter__(self) -> Self:
        native, _ = (each["in use"] for each in self.ask(f"{JOBS}:in_use", {}))
        if native != "native core":
            self.close()
            raise UserError(f"there is no native core to compare with Python: {native}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends both processes."""
        for each in self._workers:
            each.close()
        self._threads.shutdown()

    def ask(self, target: str, arguments: Mapping[str, Any]) -> Pair:
        """Returns the answers of the native core and of Python to a job. A process that died is asked once more, since
        a driver may have died in it; `{"died": reason}` is the answer of one that dies again."""
        native, pure = self._threads.map(lambda worker: _asked(worker, target, arguments), self._workers)
        return native, pure

    def ask_anew(self, target: str, arguments: Mapping[str, Any]) -> Pair:
        """Returns the answers of two processes that have answered nothing before."""
        with CoreAndPython(self._device) as both:
            return both.ask(target, arguments)


def _asked(worker: Worker, target: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    answer = worker.call(target, arguments)
    if isinstance(answer, Died):
        answer = worker.call(target, arguments)
    return {"died": answer.reason} if isinstance(answer, Died) else answer


def hunt(
    ask: Callable[[str, Mapping[str, Any]], Pair],
    seeds: Sequence[int],
    kinds: Sequence[str],
    counts: Counter[str],
    judged: Callable[[int], object] = lambda count: None,
) -> None:
    """Compares what is said of the streams of seeds, of these kinds, and adds to `counts` how many there were.

    `judged` is called with how many streams were compared since it was called last. Raises `Difference` with the
    smallest stream of which different things are said.
    """
    for first in range(0, len(seeds), TOGETHER):
        several = list(seeds[first : first + TOGETHER])
        native, pure = ask(f"{JOBS}:digests", {"seeds": several, "kinds": list(kinds)})
        if _differ(native, pure):
            raise Difference(_told(ask, several, kinds))
        for seed, (_, lines, fault) in zip(several, native["digests"], strict=True):
            if fault:
                raise Difference(f"{kind_of(seed, kinds)}, seed {seed}\nboth ways: {fault}")
            counts[kind_of(seed, kinds)] += 1
            counts["lines said of them"] += lines
        judged(len(several))


def _differ(native: Mapping[str, Any], pure: Mapping[str, Any]) -> bool:
    """Whether two answers differ, or both processes died."""
    return native != pure or "died" in native


def _told(ask: Callable[[str, Mapping[str, Any]], Pair], seeds: Sequence[int], kinds: Sequence[str]) -> str:
    """The first of these streams that differs, as small as it can be, with the first lines that differ."""
    for seed in seeds:
        kind = kind_of(seed, kinds)

        def differs(items: Items, kind: str = kind) -> bool:
            return _differ(*ask(f"{JOBS}:answer", {"kind": kind, "items": items}))

        whole = KINDS[kind].make(seed)
        if differs(whole):
            items = shrink(whole, differs) if kind == "steps" else shrink_list(whole, differs)
            told = difference(*ask(f"{JOBS}:answer", {"kind": kind, "items": items}))
            return "\n".join([f"{kind}, seed {seed}", *told, "", *map(str, items)])
    return f"seeds {seeds[0]} to {seeds[-1]} together, and none of them alone"


def difference(native: Mapping[str, Any], pure: Mapping[str, Any]) -> list[str]:
    """The first of what two answers say differently."""
    lists = [each.get("lines", [str(dict(each))]) for each in (native, pure)]
    longest = max(map(len, lists))
    padded = [[*each, *["says no more"] * (longest - len(each))] for each in lists]
    for one, other in zip(*padded, strict=True):
        if one != other:
            return [f"native core: {one}", f"pure Python: {other}"]
    return [f"native core: {dict(native)}", f"pure Python: {dict(pure)}"]
