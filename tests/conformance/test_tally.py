"""How cases are counted, and what is told of them."""

from pathlib import Path

import pytest

from bench.conformance.__main__ import Tally
from bench.conformance.known import Bug, Said
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
