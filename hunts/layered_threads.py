"""Threads at once below both mirrors: does the mirror layer hear what Python's mirror hears, and judge it alike?

A round runs the programs of `thread_hunt` on one queue, in a process that records by itself (`VKHARNESS_OUT`). Its
stream is judged when the process has ended, and held against what Python's mirror kept of the same run. Between calls
that two threads make at once either mirror may see either first, so that calls are compared in the order of each
thread: their names and arguments, but no numbers of objects, which go by the order between threads.
Reads of the host that a program declares are told to Python's mirror alone, and left out.
Logical queues would lie between both mirrors: there is one queue.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from hunts.thread_hunt import MOST_TOLD, OBJECT, ThreadTally, ask, at_once, record
from vkharness.capture.layer import mirror_environment, mirror_layer
from vkharness.check import Analysis
from vkharness.device.drivers import Driver, environment, find_driver
from vkharness.device.manifests import Layer
from vkharness.device.process import Worker
from vkharness.findings import Finding, UserError
from vkharness.fuzz.process_memory import resident_bytes
from vkharness.live.line_tables import LineTables
from vkharness.live.native_sites import NativeSites
from vkharness.live.process_judge import judge_folder
from vkharness.live.records import streams_in
from vkharness.spec._generated import STYPES
from vkharness.temporary import temporary_folder
from vkharness.trace.calls import Block, Call, HostRead
from vkharness.trace.codec import load, save
from vkharness.trace.references import HandleField, members_of, parameters_of

OF_LOADER = "vkEnumerate"
"""How the names of calls begin that the loader makes, too."""
STREAMS, TRACE = "streams", "trace.jsonl"
MOST_SAID = 300
"""Characters of a call that are told."""
ADDRESSES = ("ppData", "pAllocator")
THREAD, BY_ORDER = "thread", ("finding", "not modelled", "verdict")
TRIES = 3
"""Runs of a round in which nothing differs but what is found, before the round is one that differs. What is known
of memory when a command is recorded may follow from what another thread had waited for by then, which the two mirrors
may see in either order. The tally tells each run that was repeated."""


def judge(seed: int, threads: int, jobs: int, trace: str) -> dict[str, Any]:
    """Runs the programs of a seed at once on this process' driver, and keeps what Python's mirror heard."""
    together = record(seed, threads, jobs, at_once, ())
    save(Path(trace), together.session.blocks or [])
    problems = together.session.internal_errors + together.origins.problems
    calls, findings = len(together.origins.of_blocks), len(together.session.findings)
    return {"calls": calls, "findings": findings, "problems": problems, "memory": resident_bytes()}


def run(device: str, seed: int, threads: int, jobs: int, count: int, told: Callable[[], object]) -> ThreadTally:
    """Judges so many seeds from `seed` on, each in a process of its own. `told` is called after each round."""
    layer = mirror_layer()
    if layer is None:
        raise UserError("threads --layered: the mirror layer is not built; ci/setup builds it")
    tally = ThreadTally()
    for number in range(seed, seed + count):
        for left in reversed(range(TRIES)):
            answer = _round(layer, find_driver(device), number, threads, jobs)
            problems = answer["problems"]
            if not left or not problems or not all(each.startswith(BY_ORDER) for each in problems):
                break
            tally.repeated.append((number, problems))
        tally.add(number, answer)
        told()
    return tally


def _round(layer: Layer, driver: Driver, seed: int, threads: int, jobs: int) -> dict[str, Any]:
    """One round, in a process of its own."""
    with temporary_folder() as folder:
        variables = mirror_environment(layer, folder / STREAMS, {**os.environ, **environment(driver)})
        own = {name: value for name, value in variables.items() if os.environ.get(name) != value}
        with Worker(driver, packages=("hunts",), variables=own) as worker:
            answer = ask(worker, seed, threads, jobs, "hunts.layered_threads:judge", trace=str(folder / TRACE))
        if not answer["problems"]:
            answer["problems"] = [*differences(folder)]
    return answer


def differences(folder: Path) -> Iterator[str]:
    """What the two mirrors heard otherwise, in words."""
    blocks: list[Block] = []
    streams = [*streams_in(folder / STREAMS)]
    if len(streams) != 1:
        yield f"streams of the layer: {len(streams)} in place of one"
        return
    (stream,) = streams
    session = judge_folder(stream, Analysis(), NativeSites(LineTables()), blocks.append)
    yield from session.internal_errors
    kept = [block for block in load(folder / TRACE) if not isinstance(block, HostRead)]
    python = Analysis().follow(kept)
    if python.verdict != session.verdict:
        yield f"verdict: {python.verdict} by Python's mirror, {session.verdict} by the layer"
    ours, theirs = _by_thread(kept), _by_thread(blocks)
    for whose, own, others in (("Python's mirror", ours - theirs, theirs), ("the layer", theirs - ours, ours)):
        yield from (f"{THREAD} of {whose} alone: {_parting(each, others)}" for each in [*own][:MOST_TOLD])
    for what, found, other in (
        ("not modelled", _kinds(python.unmodelled), _kinds(session.unmodelled)),
        ("finding", _subjects(python.findings), _subjects(session.findings)),
    ):
        yield from (f"{what} of Python's mirror alone: {each}" for each in [*(found - other)][:MOST_TOLD])
        yield from (f"{what} of the layer alone: {each}" for each in [*(other - found)][:MOST_TOLD])


def _by_thread(blocks: Iterable[Block]) -> Counter[tuple[str, ...]]:
    """The calls of each thread in its order."""
    found: dict[int, list[str]] = {}
    for each in blocks:
        if isinstance(each, Call) and not each.name.startswith(OF_LOADER):
            found.setdefault(each.thread, []).append(f"{each.name} {_members(parameters_of(each.name), each.args)}")
    return Counter(tuple(each) for each in found.values())


def _parting(calls: tuple[str, ...], others: Iterable[tuple[str, ...]]) -> str:
    """The first call of a thread in which it differs from the thread that is most like it."""
    pairs = (zip(calls, each, strict=False) for each in others)
    same = max((sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], each)) for each in pairs), default=0)
    return f"call {same + 1} of {len(calls)}: {calls[same][:MOST_SAID] if same < len(calls) else 'none'}"


def _members(fields: Iterable[HandleField], values: Mapping[str, Any]) -> dict[str, Any]:
    """Members or arguments without the numbers of objects, and without addresses of the host."""
    known = {each.name: each for each in fields}
    return {name: _value(known.get(name), each) for name, each in values.items() if name not in ADDRESSES}


def _value(field: HandleField | None, value: Any) -> Any:
    if isinstance(value, list):
        return [_value(field, each) for each in value]
    if isinstance(value, dict):
        struct = STYPES.get(value.get("sType", -1), field.type if field is not None else "")
        return _members(members_of(struct), value)
    return bool(value) if field is not None and not field.struct else value


def _kinds(unmodelled: Mapping[str, int]) -> Counter[Hashable]:
    """What is not modelled, without the numbers of objects: these depend on which thread made its own first."""
    found = Counter[Hashable]()
    for text, times in unmodelled.items():
        found[OBJECT.sub(r"\1", text)] += times
    return found


def _subjects(findings: Iterable[Finding]) -> Counter[Hashable]:
    return Counter({each.key for each in findings})
