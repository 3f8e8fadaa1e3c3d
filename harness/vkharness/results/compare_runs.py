"""Changes from one run of the suite to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import sqrt
from typing import Any

from vkharness.results.baseline import EXPECTABLE, row_name
from vkharness.results.read_results import Results
from vkharness.results.result_lines import DeviceIdentity, RowResult, reason_of
from vkharness.results.states import GOOD, RowState
from vkharness.results.stories import Story, stories_of

SLOWER, SECONDS = 2.0, 1.0
"""A row is slower when an attempt takes that many times as long, and that many seconds longer."""
CONFIDENCE = 1.959964
"""The quantile of the normal distribution for a two-sided interval of 95 %."""
IMPROVED = frozenset({RowState.IMPROVED_PASS, RowState.IMPROVED_SKIP, RowState.IMPROVED_FAIL})
STOPPED = (2, 3)
"""Exit codes of pytest for a run that was interrupted, by a user or by an error of its own."""
JUDGES = ("syncval", "unmodelled", "model", "witness", "problem")
"""Members of a row of which another value is another verdict, beside the layers."""


class ChangeKind(StrEnum):
    """Kinds of changes of a row, in the order of reports. The first five are worse."""

    NEW_FAILURE = "new failure"
    """The row fails, crashes, times out or loses the device, and did not."""
    OTHER_FAILURE = "other failure"
    """It failed and fails in another way."""
    NEW_FLAKE = "new flake"
    """Attempts differ, and did not."""
    NEW_SKIP = "new skip"
    """It ran and is skipped."""
    WENT = "went"
    """The row is missing."""
    UNEXPECTED = "unexpected improvement"
    """The baseline of the later run expects a failure that is none. pytest fails for it; the list has to change."""
    FIXED = "fixed"
    """It failed or was a flake, and passes."""
    VERDICT = "changed verdict"
    """The result is the same, and a judge says something else."""
    RATE = "changed native corruption rate"
    """Runs as recorded are corrupt more or less often; the interval of the difference leaves out zero."""
    CAME = "came"
    """The earlier run has no such row."""
    SLOWER = "slower"


WORSE = frozenset(list(ChangeKind)[:5])


@dataclass(frozen=True, slots=True)
class Rate:
    """Corrupt runs out of all, with the Wilson score interval of 95 % for their share."""

    corrupt: int
    times: int

    @property
    def interval(self) -> tuple[float, float]:
        """The bounds, between 0 and 1."""
        if not self.times:
            return 0.0, 1.0
        share, square = self.corrupt / self.times, CONFIDENCE**2
        middle = share + square / (2 * self.times)
        width = CONFIDENCE * sqrt(share * (1 - share) / self.times + square / (4 * self.times**2))
        whole = 1 + square / self.times
        return max(0.0, (middle - width) / whole), min(1.0, (middle + width) / whole)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.corrupt}/{self.times} (95 %: {low:.1%} to {high:.1%})"


def difference_interval(before: Rate, after: Rate) -> tuple[float, float]:
    """The interval of 95 % for the difference of two shares, by Newcombe's method from the two Wilson intervals."""
    shares = [each.corrupt / each.times if each.times else 0.5 for each in (before, after)]
    (low, high), (later_low, later_high) = before.interval, after.interval
    middle = shares[1] - shares[0]
    return (
        middle - sqrt((shares[1] - later_low) ** 2 + (high - shares[0]) ** 2),
        middle + sqrt((later_high - shares[1]) ** 2 + (shares[0] - low) ** 2),
    )


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change of one row."""

    kind: ChangeKind
    name: str
    """The row: `copy/scenario_x[whole] on lavapipe`."""
    nodeid: str
    """Its id for pytest in the later run, or in the earlier one where it is missing."""
    before: str
    after: str
    reason: str = ""
    """Why the row fails, where it does."""

    @property
    def is_worse(self) -> bool:
        """Whether a nightly job should be red for it."""
        return self.kind in WORSE

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "kind": str(self.kind),
            "row": self.name,
            "nodeid": self.nodeid,
            "before": self.before,
            "after": self.after,
            "reason": self.reason,
            "worse": self.is_worse,
        }


@dataclass(slots=True)
class RunComparison:
    """Two runs side by side."""

    set_up: list[str] = field(default_factory=list)
    """Differences of the set-ups of the runs (versions, devices, layers, options), a line each."""
    changes: list[RowChange] = field(default_factory=list)
    rows: tuple[int, int] = (0, 0)
    incomplete: list[str] = field(default_factory=list)
    """A line for each run that did not come to its end."""
    stories: list[Story] = field(default_factory=list)
    """The causes of what is worse in the later run, the one of the most rows first."""

    @property
    def is_worse(self) -> bool:
        """Whether anything is worse. A later run that did not come to its end is worse."""
        return any(each.is_worse for each in self.changes) or any(each.startswith("later") for each in self.incomplete)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "version": 1,
            "worse": self.is_worse,
            "rows": list(self.rows),
            "set_up": self.set_up,
            "incomplete": self.incomplete,
            "changes": [each.to_dict() for each in self.changes],
            "stories": [each.to_dict() for each in self.stories],
        }


def compare_runs(before: Results, after: Results) -> RunComparison:
    """Lists the changes from `before` to `after`. Rows of one scenario, variant and device are held against each other.

    Of every row the first kind that fits is told, and beside it a changed rate and that it is slower.
    """
    told = RunComparison(list(_set_up(before, after)), rows=(len(before.rows), len(after.rows)))
    told.incomplete = [
        f"{which} run, {each.path}: {len(each.rows)} rows are done, and then it was ended"
        for which, each in (("earlier", before), ("later", after))
        if each.end is None or each.end.exit in STOPPED
    ]
    earlier, later = ({_name(row): row for row in each.rows.values()} for each in (before, after))
    for name in sorted(earlier.keys() | later.keys()):
        told.changes += _changes(name, earlier.get(name), later.get(name))
    order = list(ChangeKind)
    told.changes.sort(key=lambda change: order.index(change.kind))
    worse = {change.nodeid for change in told.changes if change.is_worse}
    told.stories = stories_of(row for row in after.rows.values() if row.nodeid in worse)
    return told


def _name(row: RowResult) -> str:
    return f"{row_name(row.row)} on {row.row['device']}"


def _changes(name: str, before: RowResult | None, after: RowResult | None) -> Iterator[RowChange]:
    if after is None:
        assert before is not None
        yield RowChange(ChangeKind.WENT, name, before.nodeid, before.state, RowState.MISSING)
        return
    if before is None:
        if _fails(after):
            yield RowChange(ChangeKind.NEW_FAILURE, name, after.nodeid, RowState.MISSING, after.state, _reason(after))
        else:
            yield RowChange(ChangeKind.CAME, name, after.nodeid, RowState.MISSING, after.state)
        return
    kind = _kind(before, after)
    if kind is not None:
        yield RowChange(kind, name, after.nodeid, before.state, after.state, _reason(after))
    elif said := _said(before.row, after.row):
        yield RowChange(ChangeKind.VERDICT, name, after.nodeid, *said)
    if kind is None and after.attempt_seconds > max(before.attempt_seconds * SLOWER, before.attempt_seconds + SECONDS):
        yield RowChange(ChangeKind.SLOWER, name, after.nodeid, _seconds(before), _seconds(after))
    rates = [_rate(each.row) for each in (before, after)]
    if rates[0] is not None and rates[1] is not None:
        low, high = difference_interval(rates[0], rates[1])
        if low > 0 or high < 0:
            yield RowChange(ChangeKind.RATE, name, after.nodeid, str(rates[0]), str(rates[1]))


def _kind(before: RowResult, after: RowResult) -> ChangeKind | None:
    """Returns how the result of a row changed; None when it is the same."""
    flaky = (RowState.FLAKE, RowState.KNOWN_FLAKE)
    if after.state in IMPROVED and before.state not in IMPROVED:
        return ChangeKind.UNEXPECTED
    if _fails(after) and not _fails(before):
        # A failure that the earlier run's baseline expected is none that is new.
        return ChangeKind.NEW_FAILURE if before.result is not after.result or before.state in flaky else None
    if _fails(after) and before.result is not after.result:
        return ChangeKind.OTHER_FAILURE
    if after.state is RowState.FLAKE and before.state not in flaky:
        return ChangeKind.NEW_FLAKE
    if after.result is RowState.SKIP and before.result is not RowState.SKIP:
        return ChangeKind.NEW_SKIP
    if after.result is RowState.PASS and before.result in EXPECTABLE | {RowState.FLAKE}:
        return ChangeKind.FIXED
    return None


def _seconds(row: RowResult) -> str:
    return f"{row.attempt_seconds:.1f} s"


def _fails(row: RowResult) -> bool:
    return row.state not in GOOD and row.state not in IMPROVED


def _reason(row: RowResult) -> str:
    return row.retried if row.result is RowState.FLAKE else reason_of(row.row)


def _said(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns the earlier and later answers of judges that changed them. A layer is compared with its own version."""
    keys = [key for key in JUDGES if before[key] != after[key]]
    shared = [version for version in before["layers"] if version in after["layers"]]
    versions = [version for version in shared if before["layers"][version] != after["layers"][version]]
    if not keys and not versions:
        return None
    return _words(before, keys, versions), _words(after, keys, versions)


def _words(row: Mapping[str, Any], keys: list[str], versions: list[str]) -> str:
    values = [", ".join(row[key]) if isinstance(row[key], list) else row[key] for key in keys]
    said = [f"{key}: {value or 'none'}" for key, value in zip(keys, values, strict=True)]
    return "; ".join([*said, *(f"layer {version}: {row['layers'][version]}" for version in versions)])


def _rate(row: Mapping[str, Any]) -> Rate | None:
    native = row["verdicts"].get("native")
    return None if native is None else Rate(native["corrupt"], native["times"])


def _set_up(before: Results, after: Results) -> Iterator[str]:
    one, other = before.header, after.header
    for what in ("harness", "python", "loader", "seed", "shard"):
        yield from _differs(what, getattr(one, what), getattr(other, what))
    devices, later = ({each.device: each for each in header.devices} for header in (one, other))
    for name in sorted(devices.keys() | later.keys()):
        yield from _differs(f"device {name}", _device(devices.get(name)), _device(later.get(name)))
    layers, now = ([each.version for each in header.layers] for header in (one, other))
    yield from _differs("layers", ", ".join(layers) or None, ", ".join(now) or None)
    for name in sorted(one.options.keys() | other.options.keys()):
        if name not in ("device", "layer"):
            yield from _differs(f"--vk-{name}", one.options.get(name), other.options.get(name))


def _device(device: DeviceIdentity | None) -> str | None:
    return (
        None
        if device is None
        else f"{device.name}, API {device.api_version}, {device.driver_version}, UUID {device.uuid}"
    )


def _differs(what: str, before: object, after: object) -> Iterator[str]:
    if before != after:
        yield f"{what}: {'none' if before is None else before} -> {'none' if after is None else after}"
