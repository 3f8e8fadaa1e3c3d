"""What mends a text, what in it is too wide, and all that the playground says of one."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from vkharness.fuzz import random_text
from vkharness.text_form.playground import answer, words
from vkharness.text_form.text_mends import judged, mends, wider

RACE = """\
submit q1
    CLEAR_TRANSFER_WRITE a
    COPY_TRANSFER_READ a; COPY_TRANSFER_WRITE b
"""
CLEAN = """\
submit q1
    CLEAR_TRANSFER_WRITE a
    barrier CLEAR|COPY/TRANSFER_WRITE > COPY/TRANSFER_READ|TRANSFER_WRITE
    COPY_TRANSFER_READ a; COPY_TRANSFER_WRITE b
"""


def told(text: str, line: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer(text, line))
    return found


def test_a_barrier_is_put_before_the_later_command() -> None:
    (mend,) = mends(RACE)
    assert (mend.line, mend.what) == (3, "barrier CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ before line 3")
    assert judged(mend.text) == []
    assert mends(CLEAN) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("submit q1", "submit q1 signal s8@ALL_COMMANDS"),
        ("submit q1 signal s7@CLEAR fence f1", "submit q1 signal s8@ALL_COMMANDS, s7@CLEAR fence f1"),
        ("submit q1 wait s6@COPY fence f1", "submit q1 wait s6@COPY signal s8@ALL_COMMANDS fence f1"),
    ],
)
def test_two_queues_get_a_semaphore_of_a_new_number(before: str, after: str) -> None:
    first = "submit q3 signal s6@COPY" if "s7" in before else "submit q3 signal s6@COPY, s7@COPY"
    text = f"{first}\n{before}\n    CLEAR_TRANSFER_WRITE a\nsubmit q2\n    COPY_TRANSFER_READ a\n"
    (mend,) = [each for each in mends(text) if "signal s8" in each.what]
    assert after in mend.text.splitlines()
    assert "submit q2 wait s8@COPY" in mend.text.splitlines()
    assert "READ_RACING_WRITE" not in [each.hazard for each in judged(mend.text)]


def test_the_host_waits_before_it_writes() -> None:
    text = "submit q1 fence f1\n    VERTEX_SHADER_UNIFORM_READ a\nhost writes a\n"
    (mend,) = mends(text)
    assert mend.what == "host waits before line 3"
    assert judged(mend.text) == []


def test_what_orders_nothing_is_too_wide() -> None:
    assert [each.what.partition(" of ")[0] for each in wider(CLEAN)] == ["COPY", "TRANSFER_WRITE"]
    for each in wider(CLEAN):
        assert judged(each.text) == []
    (alone,) = wider("submit q1\n    CLEAR_TRANSFER_WRITE a\n    barrier CLEAR > COPY\n    CLEAR_TRANSFER_WRITE b\n")
    assert alone.what == "the barrier of line 3 orders nothing that is accessed"
    assert wider(CLEAN.replace("CLEAR|COPY/", "CLEAR/").replace("|TRANSFER_WRITE", "")) == []


def test_mends_of_random_texts_take_a_finding_away_and_bring_none() -> None:
    rng, seen = random.Random(7), 0
    for _ in range(40):
        text = random_text.make(rng.choice, ())
        before = len(judged(text))
        for each in mends(text):
            seen += 1
            assert len({(f.hazard, f.access, f.prior_access) for f in judged(each.text)}) <= before
        for each in wider(text):
            assert {f.hazard for f in judged(each.text)} == {f.hazard for f in judged(text)}
    assert seen > 5


def test_the_playground_says_all_of_a_text() -> None:
    said = told(RACE, 3)
    assert (said["verdict"], said["model"], len(said["findings"])) == ("hazards", "agrees", 1)
    (found,) = said["findings"]
    assert (found["hazard"], found["rule"], found["uncounted"]) == ("READ_AFTER_WRITE", "read-after-write", "")
    assert [each["line"] for each in found["accesses"]] == [3, 2]
    assert said["svg"].startswith("<svg") and "CONFLICT unordered" in said["pairs"][0]
    assert said["mends"][0]["text"] == mends(RACE)[0].text
    clean = told(CLEAN, 4)
    assert (clean["verdict"], clean["findings"], len(clean["wider"])) == ("clean", [], 2)
    assert "ordered" in clean["pairs"][0]


def test_the_playground_counts_what_check_counts() -> None:
    said = told(2 * "submit q1\n    COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE a\n")
    (found,) = said["findings"]
    assert (said["verdict"], found["hazard"]) == ("clean", "WRITE_AFTER_WRITE")
    assert found["uncounted"].startswith("two render pass instances on one attachment")


def test_the_playground_names_the_place_of_what_it_cannot_read() -> None:
    assert told("submit q1\n  FOO a")["error"] == {"line": 2, "column": 3, "why": "'FOO' is no command and no access"}
    assert "vkharness check takes more" in told("#" * (1 << 17))["error"]["why"]
    assert "pasted.jsonl:1" in told('{"header": nothing')["error"]["why"]


def test_the_words_of_the_playground_are_those_of_the_text() -> None:
    found = json.loads(words())
    assert "COPY_TRANSFER_READ" in found["access"] and "submit" in found["event"] and "barrier" in found["command"]
    assert "COPY" in found["stage"] and "TRANSFER_READ" in found["mask"]
    for each in found["stage"]:
        assert "error" not in told(f"submit q1\n  barrier {each} > COPY")
    for each in found["mask"]:
        assert "error" not in told(f"submit q1\n  barrier COPY/{each} > COPY")
