"""One row of the verdict table: what was expected, what each judge said, and whether that passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from vkharness.layer.manifest import parse_version
from vkharness.report import rows
from vkharness.suite.expectations import KnownDisagreement
from vkharness.verdicts import (
    BrokenOrder,
    BrokenPromise,
    BytesVerdict,
    LayerVerdict,
    ModelVerdict,
    NativeVerdict,
    OrdersVerdict,
    Status,
    StrategyRuns,
    Unshown,
    WitnessVerdict,
)

HEADING = "layer "
"""The beginning of a row's reason that comes from a Khronos layer."""


@dataclass(slots=True)
class Row:
    """The outcome of one variant of one scenario on one device. Plain data: it travels between processes as JSON."""

    scenario: str
    variant: str
    device: str
    expected: list[str]
    syncval: list[str] = field(default_factory=list)
    unmodelled: list[str] = field(default_factory=list)
    model: ModelVerdict | None = None
    layers: dict[str, LayerVerdict] = field(default_factory=dict)
    """The layer's verdict by version of the Khronos layer."""
    witness: WitnessVerdict | None = None
    """The result of executing the hazards, for a stream with hazards."""
    orders: OrdersVerdict | None = None
    """The result of running other legal orders, for a clean stream."""
    native: NativeVerdict | None = None
    bytes: BytesVerdict | None = None
    """The result of comparing the bytes that the driver left with bytes that no driver computed; None where they were
    not compared."""
    messages: list[str] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    problem: str = ""
    """The reason why there is no verdict: the driver died, the device lacks something, the scenario itself failed."""
    status: Status = Status.PASSED
    reasons: list[str] = field(default_factory=list)
    """A phrase for each judge that disagrees."""
    excused: list[str] = field(default_factory=list)
    """Reasons from the expectation file that explain a disagreement."""
    driver: str = ""
    """The driver's own name and version, `llvmpipe Mesa 22.3.6 (LLVM 15.0.6)`; empty where it was not asked."""
    storing_shaders: bool = False
    """Whether shaders store to memory, so that invocations of one command may race, which is not judged."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form: every judge in words, and again as data under `verdicts`."""
        value = asdict(self)
        return {
            **{key: value[key] for key in ("scenario", "variant", "device", "driver", "storing_shaders")},
            **{key: value[key] for key in ("expected", "syncval", "unmodelled")},
            "model": rows.model_text(self.model),
            "model_disagreements": list(self.model.disagreements) if self.model else [],
            "layers": {version: rows.layer_text(verdict) for version, verdict in self.layers.items()},
            "layer_disagreements": {v: list(each.disagreements) for v, each in self.layers.items() if each.asked},
            "witness": rows.witness_text(self.witness, self.orders),
            "native": rows.native_text(self.native),
            "bytes": rows.bytes_text(self.bytes),
            **{key: value[key] for key in ("messages", "artifacts", "problem", "status", "reasons", "excused")},
            "verdicts": {key: value[key] for key in _VERDICTS},
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Row:
        """Inverse of `to_dict`."""
        earlier: dict[str, Any] = {"driver": "", "storing_shaders": False, **value}
        plain = {each.name: earlier[each.name] for each in fields(cls) if each.name not in _VERDICTS}
        said = value["verdicts"]
        return cls(
            **{**plain, "status": Status(value["status"])},
            **{key: said.get(key) and _verdict(kind, said[key]) for key, kind in _VERDICTS.items() if key != "layers"},
            layers={version: _verdict(LayerVerdict, each) for version, each in said["layers"].items()},
        )


_VERDICTS: dict[str, type] = {
    "model": ModelVerdict,
    "layers": LayerVerdict,
    "witness": WitnessVerdict,
    "orders": OrdersVerdict,
    "native": NativeVerdict,
    "bytes": BytesVerdict,
}


def _verdict(kind: type, value: dict[str, Any]) -> Any:
    """A verdict from its dictionary: JSON has lists where it has tuples."""
    parts: dict[str, Callable[[Any], object]] = {
        "unshown": Unshown._make,
        "broken": BrokenOrder._make,
        "strategies": lambda each: StrategyRuns(**each),
    }
    if kind is BytesVerdict:
        value = {**value, "broken": BrokenPromise(value["broken"])}
    return kind(
        **{
            key: tuple(parts[key](each) if key in parts else each for each in member)
            if isinstance(member, list | tuple)
            else member
            for key, member in value.items()
        }
    )


def settle(row: Row, entries: list[KnownDisagreement]) -> None:
    """Sets `status` and `reasons`: the judges must agree, or an entry must say why not; a needless entry fails. What a
    layer says of whose version nothing is known fails no row."""
    if row.problem:
        return
    disagreements = dict(_disagreements(row))
    for entry in entries:
        if not entry.covers(row.scenario, row.variant, row.device, row.driver):
            continue
        for judge in _asked(row, entry):
            if disagreements.pop(judge, None) is not None:
                row.excused.append(f"{judge}: {entry.reason}")
            elif not entry.may:
                row.reasons.append(rows.needless_text(judge, entry.reason))
    for judge, said in disagreements.items():
        if judge.startswith(HEADING) and not _is_known(judge.removeprefix(HEADING)):
            row.excused.append(rows.unknown_text(judge, said))
        else:
            row.reasons.append(f"{_HEADINGS.get(judge, judge)}: {said}")
    row.status = Status.FAILED if row.reasons else Status.PASSED


_HEADINGS = {"unmodelled": "not modelled"}


def _is_known(version: str) -> bool:
    """Whether our account of the layer's differences is about that version."""
    from vkharness.layer.known_differences import asked_versions

    return parse_version(version) in asked_versions()


def _asked(row: Row, entry: KnownDisagreement) -> list[str]:
    """The judges that an entry is about and that took part: what one did not say proves no entry needless."""
    if entry.judge == "layer":
        asked = [version for version, verdict in row.layers.items() if verdict.asked and _is_known(version)]
        return [f"layer {version}" for version in asked if entry.holds_for(version)]
    absent = {
        "witness": row.witness is None and row.orders is None,
        "native": row.native is None,
        "bytes": row.bytes is None,
    }
    return [] if absent.get(entry.judge) else [entry.judge]


def _disagreements(row: Row) -> Iterator[tuple[str, str]]:
    """(judge, what it said) of those that disagree with what is expected."""
    missing, extra = sorted(set(row.expected) - set(row.syncval)), sorted(set(row.syncval) - set(row.expected))
    if missing or extra:
        yield "syncval", rows.expectation_text(missing, extra)
    if row.unmodelled:
        yield "unmodelled", ", ".join(row.unmodelled)
    if row.model is not None and row.model.disagreements:
        yield "model", "; ".join(row.model.disagreements)
    for version, verdict in row.layers.items():
        if verdict.disagreements:
            yield f"layer {version}", "; ".join(verdict.disagreements)
    if (row.witness is not None and not row.witness.is_complete) or (row.orders is not None and row.orders.broken):
        yield "witness", rows.witness_text(row.witness, row.orders)
    if row.bytes is not None and row.bytes.broken in (BrokenPromise.COMPUTATION, BrokenPromise.BARRIER):
        yield "bytes", rows.bytes_text(row.bytes)
    if row.native is not None and row.native.corrupt and not row.expected:
        said = rows.bytes_text(row.bytes) if row.bytes is not None and row.bytes.broken else "nothing is expected"
        yield "native", f"{rows.native_text(row.native)}: {said}"


def versions_of(row: Row) -> Iterator[str]:
    """The layers whose disagreement fails a row: what an expectation explains needs no report."""
    if row.status is not Status.FAILED:
        return
    for version, verdict in row.layers.items():
        if verdict.disagreements and any(each.startswith(f"{HEADING}{version}: ") for each in row.reasons):
            yield version
