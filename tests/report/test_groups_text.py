"""Groups in words and in JSON: a race in every frame takes as much text as one."""

from __future__ import annotations

from vkharness.findings import Finding, Hazard, Place, Unjudged
from vkharness.groups import groups_of
from vkharness.report.findings_json import verdict_document
from vkharness.report.printable import escape_json, printable, quoted
from vkharness.report.replay_text import caption
from vkharness.report.sentences import explain
from vkharness.report.text import failure_text, group_text, summary_text

READ, WRITE = "SYNC_FRAGMENT_SHADER_SHADER_SAMPLED_READ", "SYNC_LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE"


def race(frame: int, resource: int = 12, name: str = "shadow map") -> Finding:
    place, prior = (Place(call, "vkCmdDraw", None, 235) for call in (frame * 1000 + 2, frame * 1000 + 1))
    return Finding(
        Hazard.READ_AFTER_WRITE,
        READ,
        WRITE,
        place,
        prior,
        resource,
        "VkImage",
        frame=frame,
        prior_frame=frame,
        labels=("main pass", "opaque"),
        prior_labels=("shadow pass",),
        names={resource: name, 235: "frame commands"},
        explain=explain,
    )


def test_a_race_in_ten_thousand_frames_is_five_lines() -> None:
    groups = groups_of(race(frame) for frame in range(7, 10_007))
    (group,) = groups
    lines = group_text(group).plain.splitlines()
    assert lines[:3] == [
        '1. READ_AFTER_WRITE on VkImage 12 "shadow map", 10,000 times in frames 7 to 10006',
        f'        vkCmdDraw {READ} in "main pass / opaque" (call 7002, command buffer 235 "frame commands", frame 7)',
        f'  after vkCmdDraw {WRITE} in "shadow pass" (call 7001, command buffer 235 "frame commands", frame 7)',
    ]
    assert len(lines) == 5
    assert summary_text("hazards", groups, {}).plain == "hazards - 1 hazard: 1 READ_AFTER_WRITE; found 10,000 times"
    document = verdict_document("hazards", groups, {}, "not asked", Unjudged())
    (found,) = document["findings"]
    assert [found[key] for key in ("count", "first_frame", "last_frame", "group")] == [10_000, 7, 10_006, 1]
    assert (found["resource_name"], found["labels"]) == ("shadow map", ["main pass", "opaque"])


def test_further_resources_are_on_one_line() -> None:
    (group,) = groups_of(race(1, resource) for resource in range(12, 32))
    *_, also = group_text(group).plain.splitlines()
    assert also == '  also: VkImage 13 "shadow map"; VkImage 14 "shadow map"; VkImage 15 "shadow map"; and 16 more'
    assert also.strip() in failure_text(group)
    document = verdict_document("hazards", [group], {}, "not asked", Unjudged())
    assert document["groups"][0]["findings"] == list(range(20))
    assert (document["groups"][0]["count"], len(document["findings"])) == (20, 20)


def test_the_sentence_has_names_and_labels() -> None:
    assert race(1).message.startswith(
        'vkCmdDraw in "main pass / opaque" reads VkImage 12 "shadow map", which vkCmdDraw in "shadow pass" wrote.'
    )


def test_a_name_cannot_command_the_terminal() -> None:
    (group,) = groups_of([race(1, name="\x1b[2J\x9bevil\u202e\n")])
    for text in (group_text(group).plain, failure_text(group)):
        assert r'"\x1b[2J\x9bevil\u202e\n"' in text
        assert all(each.isprintable() for line in text.splitlines() for each in line)


def test_what_is_printable_stays() -> None:
    assert printable("Schattenkarte ü 影 (1)") == "Schattenkarte ü 影 (1)"
    assert quoted(["x" * 500]) == f'"{"x" * 119}…"'


def test_json_has_no_character_that_a_terminal_obeys() -> None:
    assert escape_json('"ü \x9b \u202e \U000e0001"') == r'"ü \u009b \u202e \udb40\udc01"'


def test_a_caption_says_who_what_where_and_when() -> None:
    found = race(7).to_dict() | {"site": "app.py:3"}
    assert caption(found) == (
        'READ_AFTER_WRITE on VkImage 12 "shadow map": vkCmdDraw in "main pass / opaque" (frame 7) at app.py:3 after '
        'vkCmdDraw in "shadow pass" (frame 7)'
    )
