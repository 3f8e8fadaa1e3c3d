"""Holds captures of the Khronos layer's own synchronization tests against what each test expects.

    python bench/upstream.py expected SOURCES > expected.json
    python bench/upstream.py judge CAPTURES expected.json [said.json]

SOURCES is the folder with the layer's `sync_val*.cpp`. CAPTURES holds one capture for each test, named like it
(`NegativeSyncVal.BufferCopy.gfxr` or `.jsonl`), recorded with a callback that skips no command. Neither is part of
vkharness.

expected.json maps the name of each test to the kinds of hazard that it expects, `[]` for none. A test whose calls the
layer skips goes on differently in the capture. So said.json, of the same shape, may say what the layer itself reported
while the capture was made. `judge` prints the tests that agree with neither list, then how many are the same, show
more, show fewer, show others, are unknown to us or cannot be read.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vkharness.agreement import MOST_EVENTS, ask_model
from vkharness.check import UNKNOWN, Analysis
from vkharness.findings import UserError
from vkharness.trace.codec import read_trace

_TEST = re.compile(r"^TEST_F\((\w+),\s*(\w+)\)", re.M)
_EXPECTED = re.compile(
    r'SetDesired(?:Error|Warning|FailureMsg)(?:Regex)?\((?:k\w+,\s*)?"SYNC-(?:HAZARD-)?([\w-]+)"([^;]*);'
)
_COUNT = re.compile(r",\s*(\d+)\)\s*$")


def expected(sources: Path) -> dict[str, list[str]]:
    """Returns the messages that each test expects, in the order of its text."""
    found: dict[str, list[str]] = {}
    for path in sorted(sources.glob("sync_val*.cpp")):
        text = path.read_text(encoding="utf-8")
        starts = list(_TEST.finditer(text))
        for start, end in zip(starts, [*(each.start() for each in starts[1:]), len(text)], strict=True):
            kinds = found.setdefault(f"{start[1]}.{start[2]}", [])
            for each in _EXPECTED.finditer(text, start.end(), end):
                count = _COUNT.search(each[2])
                kinds += [_kind(each[1])] * (int(count[1]) if count else 1)
    return found


def _kind(name: str) -> str:
    return name if name.startswith("vkCmd") else name.replace("-", "_")


def judge(capture: Path) -> tuple[str, list[str]]:
    """Judges a capture: the verdict, and the kinds of its hazards and event rules. Raises UserError.

    Two stages of one command that meet the same access at the same place count once.
    """
    analysis = Analysis(keep_events=True, keep_at_most=MOST_EVENTS).follow(read_trace(capture))
    ask_model(analysis)
    told = (each for each in analysis.findings if each.counts or each.hazard.endswith("-race"))
    once = {(each.hazard, each.place, each.prior, each.resource, each.ranges, each.boxes): None for each in told}
    return analysis.verdict, [key[0].value for key in once]


def compare(verdict: str, found: list[str], wanted: list[str]) -> str:
    """One of "same", "more", "fewer", "others" and "unknown"."""
    ours, theirs = Counter(found), Counter(wanted)
    if ours == theirs:
        return "unknown" if verdict == UNKNOWN else "same"
    return "more" if ours >= theirs else "fewer" if ours <= theirs else "others"


def judge_all(captures: Path, lists: list[dict[str, list[str]]]) -> None:
    """Prints the tests that agree with none of the lists, then the table."""
    outcomes: Counter[str] = Counter()
    for test in sorted(lists[0]):
        outcome, text = _judge_one(captures, test, [each[test] for each in lists if test in each])
        outcomes[outcome] += 1
        if outcome != "same":
            print(f"{outcome}: {test}: {text}")
    for outcome, count in outcomes.most_common():
        print(f"{count:5} {outcome}")


def _judge_one(captures: Path, test: str, wanted: list[list[str]]) -> tuple[str, str]:
    """The outcome for one test, with what was found and expected."""
    path = next((each for ending in ("gfxr", "jsonl") if (each := captures / f"{test}.{ending}").exists()), None)
    if path is None:
        return "not recorded", f"expected: {_text(wanted[0])}"
    try:
        verdict, found = judge(path)
    except UserError as error:
        return "refused", str(error)
    compared = [compare(verdict, found, each) for each in wanted]
    outcome = "same" if "same" in compared else compared[-1]
    return outcome, f"{_text(found)}; expected: {_text(wanted[-1])}"


def _text(kinds: list[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(kinds).items())) or "none"


def main() -> None:
    """The two commands."""
    match sys.argv[1:]:
        case ["expected", sources]:
            json.dump(expected(Path(sources)), sys.stdout, indent=1, sort_keys=True)
        case ["judge", captures, *lists] if lists:
            judge_all(Path(captures), [json.loads(Path(each).read_text(encoding="utf-8")) for each in lists])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
