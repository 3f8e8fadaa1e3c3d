"""docs/rules.md, the code that cites it and the scenarios that claim its rules fit together."""

import ast
import re
import subprocess
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from vkharness.findings import Finding, Hazard, HostStep, Place
from vkharness.report.rules import DESTROYED, OF_PRESENT, OTHERWISE, RULE_OF_FINDING, SUBPASS, WAITED_FOR, rule_of
from vkharness.spec.scopes import ACCESS_KINDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "rules.md"
OF_THE_MODEL = {"what-is-made-visible-should-be-available", "a-write-should-not-race-with-a-barrier"}
"""The rules of advice that the model alone gives."""
CITATION = re.compile(r"\brules\.md#([\w-]*)")
SPECIFICATION = re.compile(r"\]\(https://docs\.vulkan\.org/spec/latest/(?:chapters|appendices)/[\w/]+\.html#[\w-]+\)")


@cache
def sections() -> dict[str, str]:
    """The text under each heading of the page, by anchor; a heading's anchor is what GitHub and MkDocs make of it."""
    parts = re.split(r"^##+ (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in parts[::2]]
    assert len(anchors) == len(set(anchors))
    return dict(zip(anchors, parts[1::2], strict=True))


@cache
def rules() -> dict[str, str]:
    """The sections that are rules: those with scenarios."""
    return {anchor: text for anchor, text in sections().items() if "* Specification:" in text or "* Scenarios:" in text}


@cache
def claims() -> dict[str, list[str]]:
    """The anchors that each scenario claims, by `folder/file.py::function`, as its decorator says."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "scenarios").rglob("scenario_*.py")):
        for function in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(function, ast.FunctionDef) and function.name.startswith("scenario_"):
                found[f"{file.parent.name}/{file.name}::{function.name}"] = _rule(function)
    return found


def _rule(function: ast.FunctionDef) -> list[str]:
    for decorator in function.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == "rule" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value).split(",")
    return []


def test_every_citation_resolves() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    files = [ROOT / name for name in listed.split("\0") if name.endswith((".py", ".md", ".toml", ".txt"))]
    cited = {
        (file.relative_to(ROOT).as_posix(), anchor)
        for file in files
        if file.exists()
        for anchor in CITATION.findall(file.read_text(encoding="utf-8"))
    }
    assert len(cited) > 30
    assert sorted(each for each in cited if each[1] not in sections()) == []


@pytest.mark.parametrize("judge", ["syncval", "model"])
def test_each_judge_cites_the_rule_of_each_finding(judge: str) -> None:
    files = (ROOT / "harness" / "vkharness" / judge).rglob("*.py")
    trees = [ast.walk(ast.parse(file.read_text(encoding="utf-8"))) for file in files]
    functions = [node for tree in trees for node in tree if isinstance(node, ast.FunctionDef)]
    cited = {anchor for each in functions for anchor in CITATION.findall(ast.get_docstring(each) or "")}
    rules_of_judge = {anchor for *_, anchor in RULE_OF_FINDING} - (OF_THE_MODEL if judge == "syncval" else set())
    assert sorted(rules_of_judge - cited) == []


def test_every_claim_is_of_a_rule() -> None:
    assert len(claims()) > 400
    assert {name: each for name, each in claims().items() if not each or not set(each) <= set(rules())} == {}


def test_every_rule_is_claimed_and_names_who_claims_it() -> None:
    assert len(rules()) > 80
    for anchor, text in rules().items():
        named = re.findall(r"`([\w/]+\.py::\w+)`", text)
        assert named, f"{anchor} names no scenario"
        assert [name for name in named if anchor not in claims().get(name, ())] == [], anchor


def test_every_rule_links_to_the_specification() -> None:
    assert [anchor for anchor, text in rules().items() if not SPECIFICATION.search(text)] == []


@pytest.mark.parametrize("row", RULE_OF_FINDING, ids=lambda row: "-".join(row[:3]))
def test_a_finding_leads_to_its_rule(row: tuple[str, str, str, str]) -> None:
    hazard, access, prior_access, anchor = row
    assert anchor in rules()
    place = Place(1, "vkCmdX", None, queue=1)
    prior = replace(place, queue=1 if hazard.endswith(SUBPASS) else 2)
    if hazard.endswith(DESTROYED):
        place = replace(place, command="vkDestroySemaphore")
    if hazard.endswith(OF_PRESENT):
        prior = replace(prior, command="vkQueuePresentKHR")
    fitting = [each for each in Hazard if fnmatchcase(each, hazard.partition("/")[0])]
    gap = HostStep.DEPENDENCY_TO_WRITE if hazard.endswith(WAITED_FOR) else None
    names = access.replace("*", "X"), prior_access.replace("*", "X")
    assert anchor in {rule_of(Finding(each, *names, place, prior, 0, "VkBuffer", gap=gap)) for each in fitting}


@pytest.mark.parametrize("hazard", Hazard)
def test_every_hazard_has_a_rule(hazard: Hazard) -> None:
    place = Place(1, "vkCmdX", None)
    engine = "SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_PRESENTED_SYNCVAL" if hazard.endswith("_AFTER_PRESENT") else ""
    for kind in [each.name for each in ACCESS_KINDS]:
        assert rule_of(Finding(hazard, kind, engine or kind, place, place, 0, "VkImage")) != OTHERWISE
