"""The classes of commands, held against the registry's tables."""

from __future__ import annotations

import re

import pytest

from vkharness.spec import _generated as tables
from vkharness.spec import command_classes as classes
from vkharness.spec.shapes import main_name, signature

BATCHES = {"VkSubmitInfo", "VkSubmitInfo2", "VkBindSparseInfo"}


def beginning(*words: str) -> set[str]:
    return {name for name in tables.COMMANDS if name.startswith(words)}


def test_queue_work_is_what_takes_batches() -> None:
    made = {name: signature(name) for name in tables.COMMANDS}
    taking = {name for name, each in made.items() if each and BATCHES & {member.type for member in each.params}}
    assert {main_name(name) for name in taking} == classes.QUEUE_WORK
    assert {name for name in tables.COMMANDS if classes.is_submit(name)} == taking - {"vkQueueBindSparse"}


@pytest.mark.parametrize("words", [classes.RUNS_SHADERS, classes.TRANSFERS, classes.DRAWS])
def test_these_classes_are_actions(words: tuple[str, ...]) -> None:
    for word in words:
        assert beginning(word), word
    assert all("action" in tables.TASKS[name] for name in beginning(*words))


def test_rendering_begins_ends_and_advances() -> None:
    for word in (*classes.RENDERING, *classes.RENDERING_OBJECTS):
        assert beginning(word), word
    assert {classes.nesting(name) for name in beginning(classes.BEGINS_RENDERING)} == {1}
    assert {classes.nesting(name) for name in beginning(classes.ENDS_RENDERING)} == {-1}
    assert {classes.nesting(name) for name in beginning(classes.NEXT_SUBPASS)} == {0}


def test_what_is_opened_is_closed_and_labels_nest_apart() -> None:
    opened, closed = (
        {
            re.sub(r"2?(KHR|EXT)?$", "", name.removeprefix(word))
            for name in tables.COMMANDS
            if classes.nesting(name) == way
        }
        for word, way in ((classes.OPENS, 1), (classes.CLOSES, -1))
    )
    assert opened == closed
    assert classes.nesting("vkCmdBeginCustomResolveEXT") == 0
    assert classes.nesting("vkCmdBeginDebugUtilsLabelEXT") == 0


def test_sets_hold_main_names_that_exist() -> None:
    for name in classes.QUEUE_WORK | classes.HOST_WAITS | classes.HOST_POLLS | classes.HOST_PUBLISHES:
        assert name in tables.COMMANDS
        assert main_name(name) == name


def test_what_is_recorded_takes_a_command_buffer_first() -> None:
    for name in tables.COMMANDS:
        made = signature(name)
        assert made is not None
        if classes.is_recorded(name):
            assert made.params[0].type == "VkCommandBuffer", name
