"""Which functions of the judges a stream runs: a change of any other function is no change for that stream.

The judges remember what they once derived (a state knows its successors), so that a stream may run fewer functions when
others were judged before it. Each stream is judged here in a process that has judged nothing.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from vkharness.device.parent_death import kill_after_parent
from vkharness.findings import Finding
from vkharness.suite.mutation.rule_mutants import JUDGES, ROOT, module_of
from vkharness.syncval.evidence import Description
from vkharness.trace.effects import StreamEvent

Stream = Sequence[StreamEvent]
ASK_BOTH = ("vkharness.agreement", "vkharness.report.conflicts")
"""Modules that hold what the model's define."""


def functions_run(streams: Sequence[Stream], processes: int) -> list[frozenset[str]]:
    """For each stream what both judges run for it, as `RuleMutant.decider` names it."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_judge_all, args=(streams, processes, sender))
    child.start()
    sender.close()
    found: list[frozenset[str]] = receiver.recv()
    child.join()
    return found


def forget(*packages: str) -> None:
    """Lets the next import of these packages and modules, and of what is in them, make them anew."""
    for each in [each for each in sys.modules if each in packages or each.startswith(tuple(f"{p}." for p in packages))]:
        del sys.modules[each]


def findings_of(validator: Callable[..., Any], events: Stream) -> list[Finding]:
    """Gives the findings of a new validator of that class in a stream."""
    made = validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    return [*(found for each in events for found in made.consume(each)), *made.finish()]


_streams: list[Stream] = []
"""In a forked process: what to judge."""


def _judge_all(streams: Sequence[Stream], processes: int, sender: Connection) -> None:
    """In a process of its own: the judges are made anew, and a fork of that state judges each stream."""
    kill_after_parent()
    forget("vkharness.syncval", "vkharness.model", *ASK_BOTH)
    always = called_by(_judges)
    _streams[:] = streams
    with multiprocessing.get_context("fork").Pool(processes, kill_after_parent, maxtasksperchild=1) as pool:
        sender.send([each | always for each in pool.map(_run_by, range(len(streams)), chunksize=1)])


def _judges() -> list[Any]:
    return [importlib.import_module(name) for name in ("vkharness.syncval.validator", "vkharness.agreement")]


def _run_by(at: int) -> frozenset[str]:
    def ask() -> None:
        validator, agreement = _judges()
        findings = findings_of(validator.Validator, _streams[at])
        opinion = agreement.judge_stream_events(_streams[at])
        assert opinion.clean or agreement.compare(findings, opinion)

    return called_by(ask)


def called_by(what: Callable[[], object], packages: Sequence[str] = JUDGES) -> frozenset[str]:
    """The functions of some packages that are called meanwhile, as `RuleMutant.decider` names them."""
    called = set[CodeType]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    sys.setprofile(note)
    try:
        what()
    finally:
        sys.setprofile(None)
    return frozenset(rule for each in called if (rule := _rule(each.co_filename, each.co_qualname, packages)))


@cache
def _rule(file: str, name: str, packages: Sequence[str]) -> str:
    """The rule that code belongs to; a function inside another one belongs to that. Empty for code of others."""
    path = Path(file)
    if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in packages:
        return ""
    return f"{module_of(path)}:{name.partition('.<locals>')[0]}"
