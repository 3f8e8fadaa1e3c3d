"""Layers that are broken on purpose: each keeps one class of its messages to itself, and rows must notice.

A row notices where the layer agreed with us, and without the class disagrees: we find a hazard of that class, and it is
silent. The rules that it lost are those of these findings. A difference that is known of the layer's version may
explain such a silence away; that is why rows are asked, and not only the layer's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from vkharness.device.process import DEFAULT_TIMEOUT
from vkharness.findings import LacksError
from vkharness.layer.compare import Comparison
from vkharness.layer.manifest import LayerInfo, find_layer
from vkharness.layer.subject import OURS, Subject
from vkharness.report.rules import rule_name, rule_of
from vkharness.suite.claims import Claim, Variant
from vkharness.suite.judge_scenario import compared, load_module, record
from vkharness.suite.mutation.judge_mutants import claims
from vkharness.suite.runner import NoAnswer, run_tasks
from vkharness.suite.twins import Twin

ENOUGH = 3
"""Rows that notice that a class is missing, after which no other is asked."""


@dataclass(frozen=True, slots=True)
class MessageClass:
    """A class of messages: what we call the hazards, and what layers call the messages."""

    name: str
    hazards: tuple[str, ...]
    ids: tuple[str, ...]
    """`pMessageIdName` of every version, old and today's."""

    @classmethod
    def of_hazard(cls, hazard: str) -> MessageClass:
        """The class of READ_AFTER_WRITE and its like."""
        name = hazard.replace("_", "-")
        return cls(name.lower(), (hazard,), (f"SYNC-HAZARD-{name}",))

    @classmethod
    def of_event(cls, name: str, rule: str, old: str) -> MessageClass:
        """The class of an event rule, in each form of the command. `rule` and `old` are as today's layers and ours, and
        as layers until 1.3.2xx name it."""
        forms = [f"vkCmd{name}Event{form}" for form in (("s", "s2") if name == "Wait" else ("", "2", "2KHR"))]
        ids = tuple(f"SYNC-{each}-{word}" for word in (rule, old) for each in forms)
        return cls(f"{name.lower()}-event-{rule}", tuple(f"{each}-{rule}" for each in forms), tuple(dict.fromkeys(ids)))


CLASSES = (
    MessageClass.of_hazard("READ_AFTER_WRITE"),
    MessageClass.of_hazard("WRITE_AFTER_READ"),
    MessageClass.of_hazard("WRITE_AFTER_WRITE"),
    MessageClass.of_hazard("READ_RACING_WRITE"),
    MessageClass.of_hazard("WRITE_RACING_READ"),
    MessageClass.of_hazard("WRITE_RACING_WRITE"),
    MessageClass.of_hazard("WRITE_AFTER_PRESENT"),
    MessageClass.of_hazard("PRESENT_AFTER_WRITE"),
    MessageClass.of_event("Set", "reset-race", "missingbarrier-reset"),
    MessageClass.of_event("Set", "set-race", "missingbarrier-set"),
    MessageClass.of_event("Set", "wait", "missingbarrier-wait"),
    MessageClass.of_event("Reset", "set-race", "missingbarrier-set"),
    MessageClass.of_event("Reset", "wait-race", "missingbarrier-wait"),
    MessageClass.of_event("Wait", "unsynchronized-setops", "unsynchronized-setops"),
)
"""The classes of messages that layers have about synchronization. Reads after a present and presents after a read are
left out: no layout of a swapchain image is for a read and for the engine, so that a transition, which writes, lies
between."""


@dataclass(slots=True)
class SilentLayer:
    """The suite's result on a layer without one class of messages: how many rows were asked, and those that notice."""

    version: str
    name: str
    """Of the class."""
    asked: int = 0
    """Rows at which the whole layer says such a message, and agrees."""
    noticed: dict[str, str] = field(default_factory=dict)
    """Those that notice, with the disagreement."""
    rules: list[str] = field(default_factory=list)
    """The rules that the layer lost, as rows show it: anchors in docs/rules.md."""
    explained: list[str] = field(default_factory=list)
    """Entries of known_differences.toml that explain the silence at other rows."""
    problem: str = ""
    """The reason why it was not judged: the driver died, the layer speaks all the same."""

    @property
    def lives(self) -> bool:
        """Whether it was asked about, and no row notices."""
        return bool(self.problem) or bool(self.asked and not self.noticed)

    def __str__(self) -> str:
        """One line: the class, the rules that are lost, how many rows notice, and the first of them."""
        told = f"layer {self.version} without {self.name}"
        if self.problem:
            return f"{told}: not judged: {self.problem}"
        if not self.asked:
            return f"{told}: nothing is lost, as it says this at no row"
        if not self.noticed:
            why = f", as differences are known: {', '.join(self.explained)}" if self.explained else ""
            return f"{told}: no row notices of {self.asked}{why}"
        lost = ", ".join(rule_name(each) for each in self.rules)
        return f"{told}: lost {lost}: {len(self.noticed)} of {self.asked} rows notice, first {next(iter(self.noticed))}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)


def silence(
    several: Sequence[tuple[LayerInfo, MessageClass]],
    paths: Sequence[Path],
    device: str,
    processes: int,
    advance: Callable[[int], object] = lambda _: None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Iterator[SilentLayer]:
    """Judges each of these layers, with that class of messages taken away, by the rows of these files and folders.

    The rows are recorded on `device`. Those that expect a hazard of the class are asked until `ENOUGH` notice, for
    `timeout` seconds at most.
    """
    rows = [*suite_rows(paths)]
    tasks = [
        {"layer": str(layer.manifest), "name": each.name, "rows": [row for row, of in rows if of & {*each.hazards}]}
        for layer, each in several
    ]
    for at, answer in run_tasks(f"{__name__}:run", tasks, device, processes, advance, timeout):
        layer, each = several[at]
        if isinstance(answer, NoAnswer):
            yield SilentLayer(layer.version_text, each.name, problem=str(answer))
        else:
            yield SilentLayer(**answer)


def suite_rows(paths: Sequence[Path]) -> Iterator[tuple[list[str], set[str]]]:
    """([file, scenario, variant], the hazards that it expects) of each row with a hazard; from each file in turn, so
    that the first ones are of many kinds."""
    files: dict[Path, list[tuple[list[str], set[str]]]] = {}
    for file, name in claims(paths, every=True):
        claim = getattr(load_module(file), name)
        assert isinstance(claim, Claim)
        for variant, expected in claim.variants.items():
            row = [str(file), name, variant.name], {str(each.hazard) for each in expected}
            files.setdefault(file, []).extend([row] if expected else [])
    yield from (row for turn in zip_longest(*files.values()) for row in turn if row is not None)


def run(layer: str, name: str, rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A layer without the class of that name, asked about these rows until `ENOUGH` notice: `SilentLayer.to_dict`.

    It runs in a worker. A row that the device cannot record counts for nothing; raises what else a scenario raises.
    """
    [silenced] = [each for each in CLASSES if each.name == name]
    whole = find_layer(layer)
    assert whole is not None
    told = SilentLayer(whole.version_text, name)
    for file, scenario, variant in rows:
        claim = getattr(load_module(Path(file)), scenario)
        assert isinstance(claim, Claim)
        try:
            if not _says(claim, claim.variant(variant), whole, silenced):
                continue
            ids, said = _recorded(claim, claim.variant(variant), replace(whole, silenced=silenced.ids))
        except LacksError:
            continue
        if not ids.isdisjoint(silenced.ids):
            told.problem = "it does not keep the messages to itself"
            break
        told.asked += 1
        _note(told, f"{Path(file).parent.name}/{scenario}[{variant}]", said, silenced)
        if len(told.noticed) == ENOUGH:
            break
    return told.to_dict()


def _says(claim: Claim, variant: Variant, layer: LayerInfo, silenced: MessageClass) -> bool:
    """Whether the whole layer says something of the class at a row, and agrees: then what is silenced is missed."""
    ids, said = _recorded(claim, variant, layer)
    return said.agrees and not ids.isdisjoint(silenced.ids)


def _recorded(claim: Claim, variant: Variant, layer: LayerInfo) -> tuple[set[str], Comparison]:
    """The identifiers that a layer said at a row, and what it makes of our findings; nothing where queues are emulated,
    as the layer sees another stream then."""
    twin = Twin(variant)
    session, listener, logical = record(claim, twin.amend, layer)
    twin.finish()
    assert listener is not None
    if logical:
        return set(), Comparison()
    return {each.id for each in listener.heard}, compared(session, listener)


def _note(told: SilentLayer, row: str, said: Comparison, silenced: MessageClass) -> None:
    """Takes down what a row without the class says: our findings of it about which the layer is silent."""
    for each in said.disagreements:
        if _is_lost(each, silenced) and each.finding is not None:
            told.noticed.setdefault(row, each.line)
            told.rules = [*dict.fromkeys([*told.rules, rule_of(each.finding)])]
    if row not in told.noticed:
        known = [each.difference.id for each in said.expected if each.difference and _is_lost(each.subject, silenced)]
        told.explained = [*dict.fromkeys([*told.explained, *known])]


def _is_lost(subject: Subject, silenced: MessageClass) -> bool:
    return subject.side == OURS and subject.key[0] in silenced.hazards
