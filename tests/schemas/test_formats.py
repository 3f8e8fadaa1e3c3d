"""The formats: each has a schema, what is written has no other members, and files of every earlier state are read."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from tests.support import run_results
from tests.support.formats import require_documented
from tests.support.streams import Stream
from vkharness.campaign.plan import ChunkResult, Discovery, Plan
from vkharness.campaign.record import CampaignFile, read_campaign, totals
from vkharness.check import Analysis
from vkharness.cli import main
from vkharness.findings import UserError
from vkharness.ignore_file import read_ignore_file
from vkharness.refutation import Refutation
from vkharness.replay.outcomes.jobs import finding_from_dict
from vkharness.results.baseline import read_baseline
from vkharness.results.result_file import ResultFile
from vkharness.results.result_lines import RunEnd
from vkharness.results.states import RowState
from vkharness.schemas import FORMATS, schema
from vkharness.suite.kept_answers import MATRIX, KeptAnswers
from vkharness.suite.row import Row
from vkharness.trace.calls import Block, Call, HostRead, HostWrite
from vkharness.trace.codec import load, read_header, save
from vkharness.trace.observations import ALL, NOT_INSTRUMENTED, Observation, ObservedCommand, Spans, read_observations
from vkharness.trace.packed import PackedTrace
from vkharness.trace.packed_chunks import SUFFIX as PACKED

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "tests" / "data" / "formats"
HAZARDS = Counter(READ_AFTER_WRITE=3, WRITE_AFTER_WRITE=2)
"""The hazards of examples/two_submits.py; all kept traces and findings are of that program."""


def kept(name: str) -> list[Path]:
    return sorted(each for each in (KEPT / name).iterdir() if each.suffix != ".bin")


def each_kept(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", kept(name), ids=lambda path: path.stem)


def lists(folder: Path) -> dict[str, list[str]]:
    """The lines of the lists of a baseline, as their schema has them."""
    said: dict[str, list[str]] = {}
    for path in folder.iterdir():
        lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
        said.setdefault(path.stem.rpartition("-")[2], []).extend(lines)
    return said


def documents(path: Path) -> list[Any]:
    """Reads the documents that a schema describes from a file of any format."""
    if path.is_dir():
        return [lists(path)]
    if path.suffix == PACKED:
        return [json.loads(line) for _, line, _ in PackedTrace(path, []).lines()]
    text = path.read_text()
    if path.suffix == ".toml":
        return [json.loads(json.dumps(tomllib.loads(text), default=date.isoformat))]
    return [json.loads(text)] if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", FORMATS)
def test_schemas_are_schemas_and_every_format_has_kept_files(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    assert {path.name.partition(".")[0] for path in kept(name)} >= {"version-1"}
    assert {each.name.partition(".")[0] for each in (ROOT / "harness" / "vkharness" / "schemas").glob("*.json")} == set(
        FORMATS
    )


@pytest.mark.parametrize("path", [path for name in FORMATS for path in kept(name)], ids=lambda path: path.stem)
def test_kept_files_fit_their_schemas(path: Path) -> None:
    validator = Draft202012Validator(schema(path.parent.name))
    for value in documents(path):
        validator.validate(value)


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Each object in a value."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(each)


@pytest.mark.parametrize("name", FORMATS)
def test_a_schema_refuses_what_lacks_a_member_or_has_another_type(name: str) -> None:
    strict = Draft202012Validator(schema(name))
    (path,) = (each for each in kept(name) if each.name.partition(".")[0] == "version-1")
    first = documents(path)[0]
    refused = 0
    for holder in list(objects(first)):
        for key, before in list(holder.items()):
            holder[key] = {"neither": ["text", "nor", "number"]}
            refused += not strict.is_valid(first)
            holder[key] = before
    assert refused, f"anything is a {name}"
    assert strict.is_valid(first) and not strict.is_valid([first])


def test_the_page_is_made_from_the_schemas() -> None:
    made = subprocess.run([sys.executable, "ci/gen_formats.py", "--check"], cwd=ROOT, capture_output=True, check=False)
    assert made.returncode == 0, made.stderr


@each_kept("trace")
def test_kept_traces_have_their_verdict(path: Path) -> None:
    analysis = Analysis().follow(load(path))
    assert Counter(each.hazard for each in analysis.findings) == HAZARDS
    assert (analysis.verdict, read_header(path)["vkharness"]) == ("hazards", {"version": int(path.stem.split("-")[1])})
    assert {(each.place.site or "").partition(":")[0] for each in analysis.findings} == {"examples/two_submits.py"}


@each_kept("findings")
def test_kept_findings_are_read(path: Path) -> None:
    (document,) = documents(path)
    findings = [finding_from_dict(each) for each in document["findings"]]
    assert Counter(each.hazard for each in findings) == HAZARDS and document["verdict"] == "hazards"
    today = Analysis().follow(load(KEPT / "trace" / "version-1-first.jsonl")).findings
    assert sorted(each.key for each in findings) == sorted(each.key for each in today)
    assert {each.range for each in findings} == {(0, 256)}


@each_kept("campaign")
def test_kept_campaigns_are_read_and_gone_on_with(path: Path, tmp_path: Path) -> None:
    found = read_campaign(path)
    assert found.plan == Plan("agreement", 1, 6, 2, ("images",)) and found.results.keys() == {0, 1, 2}
    assert totals(found.results.values()) == Counter({"streams": 6, "with hazards": 2, "hazards": 2})
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    with CampaignFile(copy, found.plan) as record:
        assert record.results == found.results
    assert copy.read_bytes() == path.read_bytes()


@each_kept("answers")
def test_kept_answers_are_gone_on_with(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    plan = {"sample": [2, 3], "devices": ["lavapipe"], "layer": "off", "execute": False}
    with KeptAnswers(copy, MATRIX, plan, resume=True) as answers:
        rows = [Row.from_dict(each) for each in answers.answers.values()]
    assert [(each.device, each.status) for each in rows] == [("lavapipe", "passed")] * 2


@each_kept("observations")
def test_kept_observations_are_read_and_judged_with(path: Path) -> None:
    found = read_observations(path)
    assert [each.name for each in found.pieces] == ["vkCmdFillBuffer", "vkCmdCopyBuffer", *["vkCmdDispatch"] * 2]
    assert found.pieces[1].writes == {8: ((0, 256),)} or found.pieces[1].reads
    shaders = {each.shaders for each in found.pieces}
    assert shaders == ({NOT_INSTRUMENTED} if "first" in path.stem else {ALL, ""}), shaders
    refutation = Refutation(found, str(path))
    findings = Analysis().follow(refutation.follow(load(KEPT / "trace" / "version-1-first.jsonl"))).findings
    refutation.mark(findings)
    assert Counter(each.hazard for each in findings if each.counts) == HAZARDS


@each_kept("ignore")
def test_kept_lists_of_known_findings_cover_what_they_did(path: Path) -> None:
    findings = Analysis().follow(load(KEPT / "trace" / "version-1-first.jsonl")).findings
    for each in findings:
        each.place.site, each.prior.site = f"a/{each.place.site}", f"a/{each.prior.site}"
    ignored = read_ignore_file(path, date(2026, 1, 31))
    ignored.mark(findings)
    assert [each.matches for each in ignored.entries] == [3, 2] and not any(each.counts for each in findings)


@each_kept("baseline")
def test_kept_lists_of_known_results_hold_as_they_did(path: Path) -> None:
    lists = read_baseline(path, "lavapipe")
    assert lists.hold("copy/scenario_x[whole]", RowState.FAIL)[0] is RowState.EXPECTED_FAIL
    assert lists.hold("copy/scenario_x[without_a, b]", RowState.CRASH)[0] is RowState.EXPECTED_FAIL
    assert lists.hold("queue/scenario_y[whole]", RowState.FAIL)[0] is RowState.KNOWN_FLAKE
    assert lists.skip("query/scenario_z[whole]") and not lists.skip("copy/query/scenario_z[whole]")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "lavapipe-fails.txt",
            "# vkharness baseline, version 2\ncopy/x[a]\tFail\n",
            "fails.txt:1: version 2 of a newer",
        ),
        ("known.toml", "version = 2\n[[ignore]]\n", "known.toml: version 2 of a newer vkharness"),
        ("known.toml", "version = '1'\n", "nothing else but version = 1"),
    ],
)
def test_later_versions_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message):
        if name.endswith(".toml"):
            read_ignore_file(tmp_path / name, date(2026, 1, 31))
        else:
            read_baseline(tmp_path, "lavapipe")


def test_the_version_that_is_read_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "lavapipe-fails.txt").write_text("# vkharness baseline, version 1\ncopy/x[a],Fail\n")
    assert read_baseline(tmp_path, "lavapipe").fails.keys() == {"copy/x[a]"}
    entry = '[[ignore]]\nhazard = "*"\nreason = "known"\n'
    (tmp_path / "known.toml").write_text(f"version = 1\n{entry}")
    assert len(read_ignore_file(tmp_path / "known.toml", date(2026, 1, 31)).entries) == 1
    require_documented("ignore", documents(tmp_path / "known.toml"))


def test_a_written_trace_has_what_the_schema_names(tmp_path: Path) -> None:
    stream = Stream()
    a = stream.buffer(16)
    stream.begin()
    stream.fill(a, 7)
    stream.submit()
    blocks: list[Block] = [*stream.blocks, HostWrite(900, 3, 0, b"abcd", "a.py:1"), HostRead(901, 3, 0, 4, "a.py:2")]
    blocks += [HostWrite(902, 3, 4, b"efgh", None, True), Call(903, "vkCmdX", {"commandBuffer": 5}, unread="no data")]
    blocks[0].site = "a.py:7"
    save(tmp_path / "t.jsonl", blocks, {"reduced": {"from": "larger.jsonl", "finding": 1}})
    require_documented("trace", documents(tmp_path / "t.jsonl"))
    with pytest.raises(ValidationError):
        require_documented("trace", [{"index": 1, "function": {"name": "vkCmdX", "args": {}}, "of_mine": 1}])


def test_written_findings_have_what_the_schema_names(tmp_path: Path) -> None:
    for name, racy in (("buffers", True), ("images", True), ("clean", False)):
        stream = Stream()
        resource = stream.image((4, 4, 1)) if name == "images" else stream.buffer(16)
        stream.begin()
        for _ in range(2 if racy else 1):
            stream.clear(resource, (0, 0, 0, 1)) if name == "images" else stream.fill(resource, 7)
        stream.submit()
        save(tmp_path / f"{name}.jsonl", stream.blocks)
        with pytest.raises(SystemExit) as ended:
            main(["check", str(tmp_path / f"{name}.jsonl"), "--json", str(tmp_path / f"{name}.json")])
        assert ended.value.code == int(racy)
        require_documented("findings", documents(tmp_path / f"{name}.json"))


def test_written_results_have_what_the_schema_names(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "results.jsonl")
    file.begin(run_results.header(native=4))
    rows = [
        run_results.clean_row("copy/x"),
        run_results.failed_row("copy/y", "no"),
        run_results.hazardous_row(tmp_path),
    ]
    for row in rows:
        file.row(run_results.result(row))
    file.resume("2026-01-31T02:00:00+00:00")
    file.end(RunEnd(3, 1.5, 1))
    require_documented("results", documents(file.path))


def test_written_campaigns_and_observations_have_what_the_schemas_name(tmp_path: Path) -> None:
    plan = Plan("agreement", 1, 4, 2, ("images",))
    with CampaignFile(tmp_path / "campaign.jsonl", plan) as record:
        record.add(ChunkResult(0, {"streams": 2}, (Discovery("cause", 1, "text"),), 0.5))
    require_documented("campaign", documents(tmp_path / "campaign.jsonl"))
    with KeptAnswers(tmp_path / "answers.jsonl", MATRIX, {"seed": 1}, resume=False) as answers:
        answers.keep("a", {"status": "passed"})
    require_documented("answers", documents(tmp_path / "answers.jsonl"))
    spans: Spans = {5: ((0, 4),)}
    piece = Observation((ObservedCommand(1, "vkCmdX", 2, 0, 0),), spans, spans, spans, spans, spans, spans)
    piece.figures, piece.notes = (("vkCmdX", 1, 2, 3, 4),), ("a note",)
    require_documented("observations", [piece.to_dict()])
