"""Every command of today's registry is accounted for: modelled, named with a reason, or with nothing to model."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from vkharness.commands.coverage import HARMLESS, NAMED, accountable, handled
from vkharness.commands.handlers import CALLS, COMMANDS
from vkharness.commands.interpret import Interpreter
from vkharness.fuzz.filled_calls import default
from vkharness.replay.objects.encode import parameters
from vkharness.spec import _generated as tables
from vkharness.spec.command_classes import ANSWERED
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call
from vkharness.trace.effects import Command, Recorded, Unmodelled, UnmodelledCall
from vkharness.trace.unread_calls import only_asks

ROOT = Path(__file__).resolve().parents[2]
LIMITS = ROOT / "docs" / "limits.md"


def place_of(name: str) -> list[str]:
    """Where a command stands; one entry when all is well."""
    places = {"modelled": handled(name), "named": name in NAMED, "harmless": name in HARMLESS}
    return [place for place, there in places.items() if there]


def zeroed(name: str) -> Call:
    """The command with nothing but zeros."""
    args = {parameter.name: default(parameter) for parameter in parameters(name)}
    return Call(1, name, {**args, "commandBuffer": 7} if "commandBuffer" in args else args)


def test_every_command_stands_in_one_place() -> None:
    wrong = {name: places for name in accountable() if len(places := place_of(name)) != 1}
    assert wrong == {}, "neither modelled nor listed in harness/vkharness/commands/coverage.py, or both"


def test_the_lists_hold_commands_of_the_registry() -> None:
    known = set(accountable())
    assert [name for name in (*NAMED, *HARMLESS) if name not in known] == []
    assert all(len(reason.split()) >= 3 for reason in {*NAMED.values(), *HARMLESS.values()})


ACTING = {"action", "synchronization", "indirection"}


def acting_commands() -> list[str]:
    """The vkCmd* that touch memory, order accesses or run other commands, by the registry."""
    return [name for name in accountable() if ACTING & set(tables.TASKS.get(name, ()))]


def test_all_that_the_registry_says_acts_is_accounted_for() -> None:
    """The registry speaks of vkCmd* alone; some of the other calls that act are looked at by name."""
    tasked = {tables.COMMAND_ALIASES.get(name, name) for name, tasks in tables.TASKS.items() if tasks != ("state",)}
    assert tasked and tasked == set(acting_commands())
    hosts = [name for name in accountable() if not name.startswith("vkCmd")]
    for name in ("vkQueueSubmit2", "vkWaitSemaphores", "vkSetEvent", "vkCopyMemoryToImageEXT", "vkQueuePresentKHR"):
        assert name in hosts and handled(name)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_named_command_is_named(name: str) -> None:
    (found,) = Interpreter().step(zeroed(name))
    if name.startswith("vkCmd"):
        assert isinstance(found, Recorded)
        assert found.command == Command(1, name, None, (Unmodelled(name),))
    else:
        assert found == UnmodelledCall(name)


def test_commands_newer_than_the_binding_are_followed() -> None:
    assert COMMANDS["vkCmdEndRendering2KHR"] is COMMANDS["vkCmdEndRendering"]
    chosen = Call(1, "vkCmdSetRenderingInputAttachmentIndices", {"commandBuffer": 7, "pInputAttachmentIndexInfo": None})
    assert list(Interpreter().step(chosen)) == []


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_a_harmless_command_does_nothing(name: str) -> None:
    assert list(Interpreter().step(zeroed(name))) == []


def test_the_page_of_commands_is_made_from_the_tables() -> None:
    made = subprocess.run([sys.executable, "ci/gen_commands.py", "--check"], cwd=ROOT, capture_output=True, check=False)
    assert made.returncode == 0, made.stderr


def test_the_page_of_limits_says_the_count() -> None:
    count = Counter(place_of(name)[0] for name in acting_commands())
    print(f"\nacting vkCmd* of the registry: {sum(count.values())}, of which {dict(count)}")
    text = " ".join(LIMITS.read_text(encoding="utf-8").split())
    said = re.search(r"Of the (\d+) `vkCmd\*` that act, synchronize or run others .*?, (\d+) are modelled, "
                     r"(\d+) touch nothing and (\d+) are named", text)  # fmt: skip
    assert said is not None, "docs/limits.md lacks the sentence"
    expected = (sum(count.values()), count["modelled"], count["harmless"], count["named"])
    assert tuple(map(int, said.groups())) == expected


def test_no_query_with_a_handler_is_passed_over() -> None:
    """What it answered is needed, so that a verdict without it is unknown. So is what makes an object or exports."""
    queries = {name for name in CALLS if name.startswith(("vkGet", "vkEnumerate"))}
    assert {main_name(name) for name in queries} == ANSWERED
    needed = (
        "vkEnumeratePhysicalDevices",
        "vkGetMemoryMetalHandleEXT",
        "vkGetSemaphoreZirconHandleFUCHSIA",
        "vkGetNew",
    )
    assert not any(only_asks(name) for name in queries.union(needed))
    assert only_asks("vkGetPhysicalDeviceFeatures2KHR") and only_asks("vkEnumerateDeviceExtensionProperties")
