"""Scenarios: one claim each, recorded on a real device, and the twins that the harness makes of it.

| module | what it holds |
|---|---|
| `claims`, `twins` | what a scenario declares; what becomes of its named dependencies in each variant |
| `items`, `selection` | scenarios as pytest items; which of them a run runs |
| `suite_run`, `preflight` | one run: its drivers, layers and results file; starting all of them once |
| `baseline_update` | the lists of known results after a run |
| `whole_suite`, `new_project` | the scenarios that come with the harness; a project to begin with (`project/`) |
| `runner` | the work of many scenarios, cells or mutants in processes of their driver |
| `judge_scenario`, `attack` | one variant recorded and judged by everybody; a clean one run in other legal orders |
| `row`, `row_table`, `expectations` | what came of a variant, the table of all, the disagreements that are known |
| `matrix`, `mutation` | pairs of operations with each defect; dependencies with one piece dropped |
| `faults` | rows, cells and replays on a driver that fails |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vkharness.suite.claims import (
    Claim,
    ExpectedHazard,
    race,
    read_after_write,
    scenario,
    write_after_read,
    write_after_write,
)

if TYPE_CHECKING:
    from vkharness.rig.rig import Rig

__all__ = [
    "Claim",
    "ExpectedHazard",
    "Rig",
    "race",
    "read_after_write",
    "scenario",
    "write_after_read",
    "write_after_write",
]


def __getattr__(name: str) -> Any:
    """`Rig` is loaded when it is first named: reports and collection of other tests do without it."""
    if name == "Rig":
        from vkharness.rig.rig import Rig

        return Rig
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
