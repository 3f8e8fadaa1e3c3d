"""One row of the verdict table: what was expected, what each judge said, and whether that passes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from harness.scenario.expectations import Entry

PASSED, FAILED, DIED, UNAVAILABLE = "passed", "failed", "died", "unavailable"


@dataclass(slots=True)
class Row:
    """The outcome of one variant of one scenario on one device. Plain data: it travels between processes as JSON."""

    scenario: str
    variant: str
    device: str
    expected: list[str]
    syncval: list[str] = field(default_factory=list)
    unmodelled: list[str] = field(default_factory=list)
    layer: str = "-"
    layer_disagreements: list[str] = field(default_factory=list)
    witness: str = "-"
    native: str = "-"
    messages: list[str] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    problem: str = ""
    """Why there is no verdict: the driver died, the device lacks something, the scenario itself failed."""
    status: str = PASSED
    reasons: list[str] = field(default_factory=list)
    """Each judge that disagrees, in words."""
    excused: list[str] = field(default_factory=list)
    """Reasons from the expectation file that explain a disagreement."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Row:
        """Inverse of `to_dict`."""
        return cls(**value)


def settle(row: Row, entries: list[Entry]) -> None:
    """Sets `status` and `reasons`: the judges must agree, or an entry must say why not; a needless entry fails."""
    if row.problem:
        return
    disagreements = dict(_disagreements(row))
    for entry in entries:
        if not entry.covers(row.scenario, row.variant, row.device) or not _asked(row, entry.judge):
            continue
        if disagreements.pop(entry.judge, None) is None:
            row.reasons.append(f"expectation for {entry.judge} is no longer needed: delete it ({entry.reason})")
        else:
            row.excused.append(f"{entry.judge}: {entry.reason}")
    row.reasons += disagreements.values()
    row.status = FAILED if row.reasons else PASSED


def _asked(row: Row, judge: str) -> bool:
    """Whether a judge took part: what it did not say proves no entry needless."""
    said = {"layer": row.layer, "witness": row.witness, "native": row.native}
    return said.get(judge) != "-"


def _disagreements(row: Row) -> list[tuple[str, str]]:
    found = []
    missing = sorted(set(row.expected) - set(row.syncval))
    extra = sorted(set(row.syncval) - set(row.expected))
    if missing or extra:
        parts = [*(f"missing {each}" for each in missing), *(f"unexpected {each}" for each in extra)]
        found.append(("syncval", "syncval: " + "; ".join(parts)))
    if row.unmodelled:
        found.append(("unmodelled", "not modelled: " + ", ".join(row.unmodelled)))
    if row.layer_disagreements:
        found.append(("layer", "layer: " + "; ".join(row.layer_disagreements)))
    if row.witness.startswith(("benign", "part")):
        found.append(("witness", f"witness: {row.witness}"))
    if row.native.startswith("corrupt") and not row.expected:
        found.append(("native", f"native: {row.native} although nothing is expected"))
    return found
