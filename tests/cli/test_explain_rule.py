"""`vkharness explain-rule`, the links that findings have, and names that are nearly right."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.streams import two_buffers
from vkharness.check import Analysis
from vkharness.cli import COMMANDS, main
from vkharness.findings import Finding, Hazard
from vkharness.record.session import Session
from vkharness.report import rules
from vkharness.report.text import finding_text


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    """Exit code, stdout and stderr of the command."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code, *capsys.readouterr()


@pytest.mark.parametrize("name", ["read-after-write", "docs/rules.md#read-after-write", "Read-After-Write"])
def test_a_rule_is_printed_with_its_sections_of_the_specification(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = told(capsys, "explain-rule", name)
    assert code == 0
    assert out.startswith("Read after write\n\nA read must see what the last write left.")
    assert "* Specification: [Memory Dependencies](https://docs.vulkan.org/" in out
    assert out.rstrip().endswith("/docs/rules.md#read-after-write")


def test_a_hazard_is_printed_with_its_stream(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "explain-rule", "write_after_read")
    assert code == 0
    assert out.startswith("WRITE_AFTER_READ\n")
    assert "```diff" in out


def test_every_hazard_and_every_rule_of_a_finding_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(capsys, "explain-rule")
    assert {str(each) for each in Hazard} | {row[-1] for row in rules.RULE_OF_FINDING} <= set(out.split())


def test_a_name_that_is_nearly_right(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(capsys, "explain-rule", "reed-after-write")
    assert (code, err.count("\n")) == (2, 1)
    assert "did you mean read-after-write" in err
    code, _, err = told(capsys, "chek")
    assert (code, err) == (2, "vkharness: No such command 'chek'; did you mean check?; see 'vkharness --help'\n")
    code, _, err = told(capsys, "check", "--jsn", "x")
    assert (code, err.count("\n")) == (2, 1)
    assert "--json" in err
    assert "chek" not in COMMANDS


def found() -> Finding:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 7)
    stream.blocks[-1].site = "<b>.py:3"
    stream.copy(a, b, 16)
    stream.submit()
    return Analysis().follow(stream.blocks).findings[0]


def printed() -> str:
    out = io.StringIO()
    Console(file=out, force_terminal=True, width=200).print(finding_text(found()))
    return out.getvalue()


def test_on_a_terminal_the_rule_leads_to_the_file_that_is_installed() -> None:
    where = Path(rules.FOLDERS[1] / "rules.md").as_uri()
    assert f"{where}#read-after-write" in printed()
    assert f'rule: <a href="{where}#read-after-write">docs/rules.md#read-after-write</a></pre>' in str(
        found()._repr_html_()
    )
    assert "docs/rules.md#read-after-write\x1b" in printed()


def test_with_an_address_the_rule_leads_to_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "SITE", "https://example.org/vkharness/")
    assert "https://example.org/vkharness/rules.html#read-after-write\x1b" in printed()
    assert rules.hazard_address("fence-in-use") == "https://example.org/vkharness/hazards.html#fence-in-use"


def test_a_notebook_shows_a_session_with_its_verdict_and_escapes_what_a_program_says() -> None:
    analysis = Analysis()
    session = Session(analysis)
    analysis.findings.extend([found()] * 21)
    shown = session._repr_html_()
    assert shown.startswith("<p>vkharness: <strong>hazards</strong></p><pre>READ_AFTER_WRITE on ")
    assert "&lt;b&gt;.py:3" in shown and "<b>" not in shown
    assert shown.endswith("</pre><p>1 more findings</p>")
