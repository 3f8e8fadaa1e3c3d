"""Findings as SARIF 2.1.0, the form in which code hosts and editors take the results of tools: `--sarif FILE`.

A result stands where the later access was recorded, and names the earlier one as a related location. Of a program whose
source lines are unknown, as in most captures, it stands in the file that was judged. Findings that do not count for
the verdict are suppressed results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import vkharness
from vkharness.findings import ADVICE, Certainty, Hazard
from vkharness.generated_text import uri
from vkharness.report.printable import escape_json
from vkharness.report.rules import hazard_address, hazard_sections
from vkharness.whole_file import write_whole

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "SRCROOT"
"""The base of relative locations: the folder in which the command ran."""


def write_sarif(path: Path, documents: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Writes one SARIF run for each (what was judged, its document as `verdict_document` makes it). Raises `UserError`
    when the file cannot be written."""
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(subject, each) for subject, each in documents]}
    write_whole(path, escape_json(json.dumps(log, indent=2, ensure_ascii=False)) + "\n")


def _run(subject: str, document: Mapping[str, Any]) -> dict[str, Any]:
    findings = document["findings"]
    rules = sorted({each["hazard"] for each in findings})
    notes = [f"not modelled: {name} x{count}" for name, count in document["unmodelled"].items()]
    return {
        "tool": {
            "driver": {
                "name": "vkharness",
                "semanticVersion": vkharness.__version__,
                "rules": [_rule(each) for each in rules],
            }
        },
        "originalUriBaseIds": {ROOT: {"uri": f"{Path.cwd().as_uri()}/"}},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [{"level": "warning", "message": {"text": note}} for note in notes],
                "properties": {"verdict": document["verdict"]},
            }
        ],
        "results": [_result(subject, each, rules.index(each["hazard"])) for each in findings],
    }


def _rule(hazard: str) -> dict[str, Any]:
    level = "note" if hazard in ADVICE else "error"
    return {
        "id": hazard,
        "name": "".join(word.capitalize() for word in hazard.replace("-", "_").split("_")),
        "shortDescription": {"text": f"{hazard} ({Hazard(hazard).vuid})"},
        "help": _help(hazard),
        "helpUri": hazard_address(hazard),
        "defaultConfiguration": {"level": level},
    }


def _help(hazard: str) -> dict[str, str]:
    """What docs/hazards.md says of it, for those who cannot follow the link."""
    section = hazard_sections().get(hazard)
    text = f"vkharness explain-rule {hazard}: a smallest stream with it, and what is missing there."
    return {"text": text} if section is None else {"text": text, "markdown": section.text}


def _result(subject: str, finding: Mapping[str, Any], rule: int) -> dict[str, Any]:
    mild = finding["advice"] or finding["uncounted"]
    level = "note" if mild else "error" if finding["certainty"] == Certainty.EXACT else "warning"
    result: dict[str, Any] = {
        "ruleId": finding["hazard"],
        "ruleIndex": rule,
        "level": level,
        "message": {"text": finding["message"]},
        "locations": [_location(finding["site"], subject)],
        "relatedLocations": [
            {"id": 1, **_location(finding["prior_site"], subject), "message": {"text": f"the earlier {_use(finding)}"}}
        ],
        "occurrenceCount": max(1, finding["count"]),
        "partialFingerprints": {"lackedDependency/v1": _fingerprint(finding)},
        "properties": {
            key: finding.get(key)
            for key in (
                "vuid",
                "access",
                "prior_access",
                "call",
                "prior_call",
                "certainty",
                "uncounted",
                "missing",
                "nearest",
                "judges",
                "group",
            )
        },
    }
    muted = finding["ignored_reason"] or (finding["refuted"] and f"refuted on an observed run: {finding['refuted']}")
    if muted:
        result["suppressions"] = [{"kind": "external", "justification": muted}]
    return result


def _use(finding: Mapping[str, Any]) -> str:
    return f"{finding['prior_command'] or 'access of the host'} (call {finding['prior_call']})"


def _location(site: str | None, subject: str) -> dict[str, Any]:
    name, _, line = (site or "").rpartition(":")
    known = bool(name) and line.isdecimal() and int(line) > 0
    physical: dict[str, Any] = {"artifactLocation": _artifact(name if known else subject)}
    if known:
        physical["region"] = {"startLine": int(line)}
    return {"physicalLocation": physical}


def _artifact(name: str) -> dict[str, str]:
    """A file below the current folder relative to it, another one by its whole path."""
    path = Path(name)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    if path.is_absolute():
        return {"uri": f"file://{uri(str(path))}"}
    return {"uri": uri(path.as_posix()), "uriBaseId": ROOT}


def _fingerprint(finding: Mapping[str, Any]) -> str:
    """The same for what lacks the same dependency at the same two places, whichever run, frame or resource."""
    keys = ("hazard", "command", "access", "prior_command", "prior_access", "site", "prior_site", "missing")
    return sha256(json.dumps([finding[key] for key in keys]).encode()).hexdigest()[:32]
