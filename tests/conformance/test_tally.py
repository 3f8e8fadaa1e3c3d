"""How cases are counted, and what is told of them."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.conformance import __main__ as command_line
from bench.conformance.__main__ import Tally, main
from bench.conformance.known import Bug, Said, known_bugs
from bench.conformance.run import UNJUDGED, Judged

SAID = Said("READ_AFTER_WRITE", "A", "B", "one reads what the other wrote")
BUG = Bug("one", ("*.known",), ("READ_AFTER_WRITE",), "A", "B", "a sentence", "page.md")


@pytest.mark.parametrize(
    ("judged", "kind", "told"),
    [
        (Judged("a.x", "Pass", "clean", "agrees"), "clean", False),
        (Judged("a.x", "NotSupported", UNJUDGED), "not judged: NotSupported", False),
        (Judged("a.known", "Pass", "hazards", "agrees", (SAID,)), "bug of the suite", False),
        (Judged("a.x", "Pass", "hazards", "agrees", (SAID,)), "unexplained", True),
        (Judged("a.known", "Pass", "hazards", "differs", (SAID,), "the judges differ"), "no verdict", True),
        (
            Judged("a.known", "Pass", "hazards", "differs", (SAID,), "not modelled: vkCmdX; the judges differ"),
            "no verdict",
            True,
        ),
        (Judged("a.x", "Pass", "unknown", "", (), "no verdict"), "no verdict", True),
    ],
)
def test_a_case_counts_as_one_kind_and_is_told_if_nothing_explains_it(
    judged: Judged, kind: str, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Tally(tmp_path / "results.jsonl", [BUG]) as tally:
        tally.take(judged)
    assert tally.kind(judged) == kind
    assert capsys.readouterr().out.startswith(judged.case) is told


def test_a_file_of_results_goes_on_behind_a_line_that_was_cut_off(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    first, second = Judged("a.one", "Pass", "clean", "agrees"), Judged("a.two", "Pass", "clean", "agrees")
    results.write_text(first.line() + '\n{"case": "a.th')
    with Tally(results, []) as tally:
        tally.take(second)
    with Tally(results, []) as again:
        assert again.done == [first, second]
        assert again.summary()["kinds"] == {"clean": 2}


@pytest.mark.parametrize(
    ("problem", "code"), [("", 0), ("the judges differ", 1), ("not modelled: vkCmdX; the judges differ", 1)]
)
def test_a_known_bug_hides_no_disagreement_in_the_exit_code(
    problem: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cases are done before: the program is asked for its list alone, with no driver."""
    monkeypatch.setattr(command_line, "environment", lambda _: {})
    program, results = tmp_path / "suite", tmp_path / "results.jsonl"
    program.write_text("#!/bin/sh\necho 'TEST: a.known' > dEQP-VK-cases.txt\n")
    program.chmod(0o755)
    bug = known_bugs()[0]
    case, access, prior = (each.replace("*", "x") for each in (bug.cases[0], bug.access, bug.prior_access))
    said = Said(bug.hazards[0], access, prior, "one reads what the other wrote")
    judged = Judged(case, "Pass", "hazards", "differs" if problem else "agrees", (said,), problem)
    results.write_text(judged.line() + "\n")
    done = CliRunner().invoke(main, ["run", str(program), "--cases", "0", "--results", str(results)])
    assert (done.exit_code, case in done.output.partition("{")[0]) == (code, bool(problem)), done.output
