"""Findings as SARIF: what the schema allows, where results stand, what is suppressed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Log

from tests.support.streams import Stream, two_buffers
from vkharness.cli.check import check
from vkharness.findings import Hazard
from vkharness.report.sarif import write_sarif
from vkharness.trace.codec import save


def checked(folder: Path, stream: Stream, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code of `check --sarif`, and the log, which fits the schema."""
    save(folder / "trace.jsonl", stream.blocks)
    ran = CliRunner().invoke(check, [str(folder / "trace.jsonl"), "--sarif", str(folder / "out.sarif"), *options])
    text = (folder / "out.sarif").read_text()
    Log.model_validate_json(text)
    log: dict[str, Any] = json.loads(text)
    return ran.exit_code, log


def hazardous(
    site: str | None = "app/my app.py:7", prior_site: str | None = "/elsewhere/lib.py:3", before: int = 0
) -> Stream:
    stream = Stream()
    for _ in range(before):
        stream.buffer(64)
    a, b = stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.fill(a, 7)
    stream.blocks[-1].site = prior_site
    stream.copy(a, b, 64)
    stream.blocks[-1].site = site
    stream.submit()
    return stream


def test_a_finding_stands_at_the_later_access(tmp_path: Path) -> None:
    code, log = checked(tmp_path, hazardous())
    assert code == 1
    (run,) = log["runs"]
    (found,) = run["results"]
    assert (found["ruleId"], found["level"]) == ("READ_AFTER_WRITE", "error")
    assert run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"] == "READ_AFTER_WRITE"
    place, prior = found["locations"][0]["physicalLocation"], found["relatedLocations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "app/my%20app.py", "uriBaseId": "SRCROOT"}, "region": {"startLine": 7}}
    assert prior["artifactLocation"] == {"uri": "file:///elsewhere/lib.py"}
    assert "vkCmdFillBuffer" in found["relatedLocations"][0]["message"]["text"]
    assert run["invocations"][0]["properties"]["verdict"] == "hazards"


def test_without_a_source_line_a_finding_stands_in_the_trace(tmp_path: Path) -> None:
    _, log = checked(tmp_path, hazardous(None, None))
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": f"file://{tmp_path}/trace.jsonl"}}


def test_the_fingerprint_stays_when_calls_and_resources_move(tmp_path: Path) -> None:
    one, moved, other = (
        checked(tmp_path, stream)[1]["runs"][0]["results"][0]
        for stream in (hazardous(), hazardous(before=3), hazardous("app/other.py:9"))
    )
    assert one["properties"]["call"] != moved["properties"]["call"]
    assert one["partialFingerprints"] == moved["partialFingerprints"] != other["partialFingerprints"]


def test_what_is_ignored_is_suppressed(tmp_path: Path) -> None:
    ignore = tmp_path / "known.toml"
    ignore.write_text('[[ignore]]\nhazard = "READ_AFTER_WRITE"\nreason = "the fill is a test pattern"\n')
    code, log = checked(tmp_path, hazardous(), "--ignore", str(ignore))
    assert code == 0
    (found,) = log["runs"][0]["results"]
    assert found["suppressions"] == [{"kind": "external", "justification": "the fill is a test pattern"}]


def test_a_clean_trace_has_a_run_without_results(tmp_path: Path) -> None:
    stream, a, _ = two_buffers(64)
    stream.begin()
    stream.fill(a, 7)
    stream.submit()
    code, log = checked(tmp_path, stream)
    assert (code, log["runs"][0]["results"], log["runs"][0]["tool"]["driver"]["rules"]) == (0, [], [])


@pytest.mark.parametrize("hazard", list(Hazard))
def test_each_hazard_is_a_rule(tmp_path: Path, hazard: Hazard) -> None:
    """Also with a name and a message that a terminal would obey."""
    document = json.loads((json.dumps(DOCUMENT)).replace("READ_AFTER_WRITE", hazard))
    write_sarif(tmp_path / "out.sarif", [("program", document), ("another", document)])
    log = Log.model_validate_json((tmp_path / "out.sarif").read_text())
    assert [each.tool.driver.rules[0].id for each in log.runs] == [hazard] * 2
    assert "\x9b" not in (tmp_path / "out.sarif").read_text()


FINDING = {
    "hazard": "READ_AFTER_WRITE", "vuid": "SYNC", "command": "vkCmdCopyBuffer", "access": "read", "prior_command": "",
    "prior_access": "write", "site": "a.py:0", "prior_site": ":3", "call": 3, "prior_call": 2, "count": 0,
    "advice": False, "certainty": "declared",
    "missing": "\x9b2J", "message": "\x9b2J", "judges": [], "group": 1, "ignored_reason": "",
    "refuted": "it was observed",
    "uncounted": "",
}  # fmt: skip
DOCUMENT = {"verdict": "hazards", "findings": [FINDING], "unmodelled": {"vkCmdNew": 2}}
