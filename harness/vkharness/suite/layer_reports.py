"""The report for a layer team of a row at which its layer disagrees: the row is recorded below that layer once more.

It runs in a worker and after the row, so that a driver that dies of a smaller trace does not take the row with it.
"""

from __future__ import annotations

from dataclasses import replace
from inspect import cleandoc
from pathlib import Path
from typing import Any

from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.layer.compare import compare
from vkharness.layer.known_differences import known_differences
from vkharness.layer.manifest import find_layer
from vkharness.layered_replay import LayerAnswer, report_differences, write_report
from vkharness.report.layer_report import LayerCase
from vkharness.suite.claims import Claim
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.twins import Twin


def report_job(
    module: str, scenario: str, variant: str, device: str, layer: str, folder: str, repeat: str, smaller: bool = True
) -> dict[str, Any]:
    """Writes the report of one row and the layer of that manifest into `folder`, with the smallest trace that a replay
    below the layer shows it in; else with the whole trace, the reason, and `repeat`, the command of the row.

    JSON-able, for a `Worker`: `{"report": path}`. Raises `UserError` when the row cannot be recorded, or a file not be
    written.
    """
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    chosen = claim.variant(variant)
    asked = find_layer(layer)
    twin = Twin(chosen)
    session, listener, _ = record(claim, twin.amend, asked)
    twin.finish()
    assert listener is not None
    blocks = session.blocks or []
    case = LayerCase(
        f"{Path(module).parent.name}/{scenario} [{variant}]",
        cleandoc(claim.function.__doc__ or ""),
        tuple(map(str, claim.expected(chosen))),
        tuple(filter(None, claim.rule.split(","))),
    )
    try:
        report = report_differences(blocks, device, layer, Path(folder), case, smaller=smaller)
        refusal = "" if report else "a replay of it does not show the difference"
    except UserError as error:
        report, refusal = "", str(error)
    if not report:
        analysis = Analysis().follow(blocks)
        known = known_differences(listener.layer.version)
        said = compare(analysis.findings, listener.messages, known, blocks)
        invalid = tuple(dict.fromkeys(id for id, _ in listener.other_messages))
        heard = LayerAnswer(listener.layer, device, blocks, analysis, listener.heard, said, invalid)
        case = replace(case, refusal=refusal, repeat=repeat)
        report = write_report(heard, Path(folder), case, len(blocks))
    return {"report": report}
