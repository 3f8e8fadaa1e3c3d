"""Which commands of vkharness are given an input of a kind, and how often; and what each path of each command is.

`PATHS` names every option and argument of `vkharness` that is a path. A test holds it against the parsers of the
commands, so that no new command is forgotten.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from vkharness.fuzz.hostile import samples as kinds
from vkharness.fuzz.hostile.samples import Sample

SUBJECT = "{}"
"""Stands for the file that is changed."""
ON = "ON"
"""Stands for `--device NAME`."""
OTHER = "other.jsonl"
"""Another trace beside the one that is changed."""
WRITTEN = "written"
"""A file or folder that the command makes."""
TRUSTED = "trusted"
"""Code that the user asks to be run, or a folder of it."""
ANY = "any"
"""Files of every kind that this hunt changes itself."""

PATHS: dict[tuple[str, str], str] = {
    ("run", "json_path"): WRITTEN,
    ("run", "sarif_path"): WRITTEN,
    ("run", "trace_path"): WRITTEN,
    ("run", "ignore_path"): kinds.IGNORE,
    ("check", "trace"): kinds.TRACE,
    ("check", "json_path"): WRITTEN,
    ("check", "sarif_path"): WRITTEN,
    ("check", "observed"): kinds.OBSERVATIONS,
    ("check", "ignore_path"): kinds.IGNORE,
    ("convert", "source"): kinds.TRACE,
    ("convert", "target"): WRITTEN,
    ("replay", "trace"): kinds.TRACE,
    ("replay", "artifacts"): WRITTEN,
    ("replay", "observed"): kinds.OBSERVATIONS,
    ("replay", "ignore_path"): kinds.IGNORE,
    ("replay", "json_path"): WRITTEN,
    ("races", "trace"): kinds.TRACE,
    ("races", "json_path"): WRITTEN,
    ("join", "first"): kinds.TRACE,
    ("join", "second"): kinds.TRACE,
    ("join", "output"): WRITTEN,
    ("mend", "trace"): kinds.TRACE,
    ("mend", "out"): WRITTEN,
    ("mend", "json_path"): WRITTEN,
    ("advise", "trace"): kinds.TRACE,
    ("advise", "json_path"): WRITTEN,
    ("reduce", "trace"): kinds.TRACE,
    ("reduce", "output"): WRITTEN,
    ("reduce", "scenario"): WRITTEN,
    ("reproduce", "subject"): kinds.TRACE,
    ("reproduce", "output"): WRITTEN,
    ("reproduce", "ignore_path"): kinds.IGNORE,
    ("observe", "trace"): kinds.TRACE,
    ("observe", "output"): WRITTEN,
    ("observe", "scenarios"): TRUSTED,
    ("mutate", "scenarios"): TRUSTED,
    ("fuzz faults", "scenarios"): TRUSTED,
    ("mutate", "json_path"): WRITTEN,
    ("mutate", "out"): kinds.ANSWERS,
    ("init", "folder"): WRITTEN,
    ("report", "results"): kinds.RESULTS,
    ("report", "output"): WRITTEN,
    ("report", "sources"): TRUSTED,
    ("report", "since"): kinds.RESULTS,
    ("graph", "trace"): kinds.TRACE,
    ("graph", "output"): WRITTEN,
    ("explain", "trace"): kinds.TRACE,
    ("fmt", "file"): kinds.TRACE,
    ("fmt", "output"): WRITTEN,
    ("matrix", "page"): WRITTEN,
    ("matrix", "json_path"): WRITTEN,
    ("matrix", "out"): kinds.ANSWERS,
    ("fuzz hostile", "output"): kinds.HUNT,
    ("fuzz hostile", "total"): kinds.HUNT,
    ("fuzz hostile", "keep"): ANY,
    ("fuzz hostile", "files"): ANY,
    ("campaign fuzz", "output"): kinds.CAMPAIGN,
    ("campaign matrix", "output"): kinds.CAMPAIGN,
    ("compare", "earlier"): kinds.RESULTS,
    ("compare", "later"): kinds.RESULTS,
    ("compare", "json_path"): WRITTEN,
    ("drivers", "json_path"): WRITTEN,
    ("shown", "run"): kinds.RESULTS,
    ("computed", "run"): kinds.RESULTS,
    ("computed", "json_path"): WRITTEN,
}
"""(Command, parameter) to the kind of what is there."""


class Asking(NamedTuple):
    """How an input is given to a command."""

    weight: float
    arguments: tuple[str, ...]

    @property
    def on_device(self) -> bool:
        """Whether a driver runs something."""
        return ON in self.arguments


def _asking(weight: float, text: str) -> Asking:
    return Asking(weight, tuple(text.split()))


OF_STREAMS = (
    _asking(40, "check {}"),
    _asking(24, "check --model always --bounds --json v.json --sarif v.sarif {}"),
    _asking(8, "graph -o g.svg {}"),
    _asking(1, "graph -o g.dot --conflict 1 --commands 200 {}"),
    _asking(8, "explain {}"),
    _asking(2, "fmt {}"),
    _asking(2, "check --as-text {}"),
    _asking(6, "advise --json a.json {}"),
    _asking(3, "races --json r.json {}"),
    _asking(3, "mend --apply mended.jsonl --json m.json {}"),
    _asking(1, "mend --finding 1 --code c {}"),
    _asking(3, "reduce --finding 1 -o small.jsonl {}"),
    _asking(0.5, "reduce --finding 1 -o small.jsonl {}"),
    _asking(0.5, "read-claim {}"),
    _asking(6, "convert {} made.vkt"),
    _asking(2, "convert --frames 2-3 {} made.jsonl"),
    _asking(3, "join -o joined.jsonl {} {}"),
    _asking(2, "join -o joined.jsonl other.jsonl {}"),
    _asking(1, "join -o joined.jsonl --pair 5=5 {} other.jsonl"),
)
"""Commands that take a trace or a capture, and need no driver."""
ON_A_DEVICE = (
    _asking(0.2, "replay ON --mode serial --timeout 20 --json r.json {}"),
    _asking(0.1, "replay ON --mode witness --timeout 20 --artifacts pictures {}"),
    _asking(0.1, "replay ON --mode reorder --iterations 2 --timeout 20 {}"),
    _asking(0.1, "replay ON --mode native --iterations 2 --timeout 20 {}"),
    _asking(0.1, "observe ON --runs 2 --budget 64 --timeout 20 -o seen.jsonl {}"),
    _asking(0.05, "mend ON --finding 1 {}"),
    _asking(0.05, "reduce ON --finding 1 --seconds 5 -o small.jsonl --scenario scenario_small.py {}"),
    _asking(0.05, "reproduce ON --first 1 --seconds 5 -o case {}"),
)
"""The same on a driver. Each starts a process, and takes a hundred times as long as a check."""
OTHERS: dict[str, tuple[Asking, ...]] = {
    kinds.IGNORE: (
        _asking(3, "check t.jsonl --ignore {}"),
        _asking(0.1, "replay ON t.jsonl --mode witness --timeout 20 --ignore {}"),
    ),
    kinds.OBSERVATIONS: (
        _asking(3, "check t.jsonl --observed {}"),
        _asking(0.1, "replay ON t.jsonl --mode witness --timeout 20 --observed {}"),
    ),
    kinds.RESULTS: (
        _asking(3, "compare --json c.json before.jsonl {}"),
        _asking(1, "compare {} before.jsonl"),
        _asking(1, "shown {}"),
        _asking(1, "computed --json c.json {}"),
        _asking(2, "report -o page {}"),
        _asking(1, "report -o page --since {} before.jsonl"),
    ),
    kinds.EXPECTATIONS: (_asking(1, "read-expectations {}"),),
    kinds.BASELINE: (_asking(1, "read-baseline {}"),),
    kinds.TEXT: (
        _asking(6, "check {}"),
        _asking(3, "check --as-text --model always --json v.json --sarif v.sarif {}"),
        _asking(2, "explain {}"),
        _asking(2, "graph -o g.svg {}"),
        _asking(4, "fmt {}"),
        _asking(1, "fmt --check {}"),
        _asking(0.5, "mend {}"),
    ),
    kinds.STREAMS: (_asking(1, "read-streams {}"),),
    kinds.CAMPAIGN: (_asking(1, "read-campaign {}"),),
    kinds.ANSWERS: (_asking(1, "read-answers {}"),),
    kinds.SHADER: (_asking(1, "read-shader {}"),),
    kinds.HUNT: (_asking(1, "read-hunt {}"),),
    kinds.RECORDS: (
        _asking(3, f"check {kinds.PROCESS}"),
        _asking(1, "check --model always --bounds --json v.json --sarif v.sarif ."),
    ),
}
"""Commands that read files which are no streams, by kind. The words that begin with `read-` are functions of
`vkharness.cli.hostile_readers`: they read what the suite, a campaign and resumed runs read, and do nothing with it."""


def ways(kind: str) -> tuple[Asking, ...]:
    """All ways for one kind."""
    return OF_STREAMS + ON_A_DEVICE if kind in kinds.STREAM_KINDS else OTHERS[kind]


def command_for(rng: random.Random, sample: Sample, device: str) -> tuple[str, ...]:
    """The arguments of `vkharness` for an input. Without a device nothing is replayed."""
    chosen = [each for each in ways(sample.kind) if device or not each.on_device]
    way = rng.choices(chosen, [each.weight for each in chosen])[0]
    said = {SUBJECT: (sample.subject,), ON: ("--device", device)}
    return tuple(word for part in way.arguments for word in said.get(part, (part,)))
