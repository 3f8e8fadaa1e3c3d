"""One row of the verdict table: what was expected, what each judge said, and whether that passes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from harness.suite.expectations import KnownDisagreement

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
    model: str = "-"
    """What the model makes of our findings: agrees, agrees (named differences), disagrees."""
    model_disagreements: list[str] = field(default_factory=list)
    layers: dict[str, str] = field(default_factory=dict)
    """What each Khronos layer makes of our findings, by its version: agrees, agrees (2 by version), disagrees; or why
    it was not asked."""
    layer_disagreements: dict[str, list[str]] = field(default_factory=dict)
    witness: str = "-"
    """Of hazards, whether their outcomes were shown; of a clean stream, whether it held in other legal orders."""
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

    @property
    def layer(self) -> str:
        """The layers' verdicts in short, versions named where they differ: a star for differences by version."""
        verdicts = {version: said.split(" (")[0] for version, said in self.layers.items()}
        if len(set(verdicts.values())) > 1:
            return ", ".join(f"{version} {said}" for version, said in verdicts.items())
        star = "*" if any(said.startswith("agrees (") for said in self.layers.values()) else ""
        return next((said + star for said in verdicts.values()), "-")

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Row:
        """Inverse of `to_dict`."""
        return cls(**value)


def settle(row: Row, entries: list[KnownDisagreement]) -> None:
    """Sets `status` and `reasons`: the judges must agree, or an entry must say why not; a needless entry fails."""
    if row.problem:
        return
    disagreements = dict(_disagreements(row))
    for entry in entries:
        if not entry.covers(row.scenario, row.variant, row.device):
            continue
        for judge in _asked(row, entry):
            if disagreements.pop(judge, None) is None:
                row.reasons.append(f"expectation is not needed for {judge}: delete or limit it ({entry.reason})")
            else:
                row.excused.append(f"{judge}: {entry.reason}")
    row.reasons += disagreements.values()
    row.status = FAILED if row.reasons else PASSED


def _asked(row: Row, entry: KnownDisagreement) -> list[str]:
    """The judges that an entry is about and that took part: what one did not say proves no entry needless."""
    if entry.judge == "layer":
        asked = [version for version, said in row.layers.items() if not said.startswith("not asked")]
        return [f"layer {version}" for version in asked if entry.holds_for(version)]
    said = {"witness": row.witness, "native": row.native}
    return [] if said.get(entry.judge) == "-" else [entry.judge]


def _disagreements(row: Row) -> list[tuple[str, str]]:
    found = []
    missing = sorted(set(row.expected) - set(row.syncval))
    extra = sorted(set(row.syncval) - set(row.expected))
    if missing or extra:
        parts = [*(f"missing {each}" for each in missing), *(f"unexpected {each}" for each in extra)]
        found.append(("syncval", "syncval: " + "; ".join(parts)))
    if row.unmodelled:
        found.append(("unmodelled", "not modelled: " + ", ".join(row.unmodelled)))
    if row.model_disagreements:
        found.append(("model", "model: " + "; ".join(row.model_disagreements)))
    for version, several in row.layer_disagreements.items():
        if several:
            found.append((f"layer {version}", f"layer {version}: " + "; ".join(several)))
    if row.witness.startswith(("benign", "part", "broken")):
        found.append(("witness", f"witness: {row.witness}"))
    if row.native.startswith("corrupt") and not row.expected:
        found.append(("native", f"native: {row.native} although nothing is expected"))
    return found
