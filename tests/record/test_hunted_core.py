"""The core in which allocations fail: what the hunt of `interrupted_program` found, in places."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.record.hunted_core import build_hunted
from vkharness.native import core

pytestmark = pytest.mark.skipif(core is None, reason="the native core is what is hunted")
ROOT = Path(__file__).parents[2]

FRESH = """
import gc, json, sys
from pathlib import Path
from tests.record.hunted_core import load

hunted = load(Path(sys.argv[1]))

def each_fails(act):
    hunted.hunted_fail(sys.maxsize)
    act()
    made = hunted.hunted_made()
    for at in range(made):
        hunted.hunted_fail(at)
        try:
            act()
        except MemoryError:
            pass
        hunted.hunted_fail(-1)
    return made
"""

COLLECTS = """
import vkharness
from tests.record.interrupted_program import calls_of
from hunts.front_programs import deaf_driver
from vkharness.record.critical import critical

with deaf_driver() as vk:
    session = vkharness.attach()
    for call in calls_of(vk):
        call()
    collect = critical(gc.collect)
    collect()
    each_fails(collect)
    collect()
    print(json.dumps([session.verdict, session.internal_errors]))
    session.detach()
"""

ITERATES = """
import vkharness
from hunts.front_programs import deaf_driver
from vkharness.record.critical import critical

held = [(at, at) for at in range(3000)]  # none is left over

@critical
def pairs():
    return [iter(each) for each in [{1: 2}.items()] * 3]

with deaf_driver(), vkharness.attach():
    print(json.dumps([each_fails(pairs) > 0]))
"""


JUDGES = """
import vkharness
from tests.support.streams import ALL_COMMANDS, Stream, struct
from vkharness.check import Analysis
from hunts.front_programs import deaf_driver
from vkharness.record.critical import critical

stream = Stream()
buffers = [stream.buffer(4096) for _ in range(2)]
shader = stream.compute("copy_words", buffers, bytes(8))
stream.begin()
for at in range(8):
    stream.fill(buffers[0], 1, 512 * at, 256)
for at in range(4):
    region = struct("VkBufferCopy", srcOffset=1024 * at, size=768)
    stream.cmd("CopyBuffer", srcBuffer=buffers[0], dstBuffer=buffers[1], pRegions=[region])
    stream.barrier()
    shader.run()
    stream.barrier()
stream.submit()
found = critical(lambda: len(Analysis().follow(stream.blocks).findings))

with deaf_driver(), vkharness.attach():
    print(json.dumps([found(), (hunted.hunted_only_new(1), each_fails(found))[1] > 100, found()]))
"""

WALKS = """
import weakref
from collections import namedtuple
import vkharness
from hunts.front_programs import deaf_driver
from vkharness.native import core
from vkharness.record.critical import critical

Stack = namedtuple("Stack", "ends site held")  # the garbage collector takes nothing out of a tuple

class Held:
    pass

def trial(at):
    held = Held()
    sites = core.Sites(lambda stack, frame: Stack(True, "app.py:1", (sites, held)), Stack(False, None, ()))
    ask = critical(lambda: sites.caller())
    hunted.hunted_fail(at)
    try:
        ask()
    except MemoryError:
        pass
    made = hunted.hunted_made()
    hunted.hunted_fail(-1)
    found, gone = {ask(), ask()}, weakref.ref(held)
    del held, sites, ask
    gc.collect()
    return made, found == {"app.py:1"}, gone() is None

with deaf_driver(), vkharness.attach():
    hunted.hunted_only_new(1)
    first = trial(sys.maxsize)
    print(json.dumps([first[0] > 2, [first[1:], *(trial(at)[1:] for at in range(first[0]))]]))
"""

COUNTS = """
import tests.record.interrupted_program as hunt

hunt.hunted = hunted
program = hunt.Program(1)
known, counted = set(), hunt.Allocations()
hunt.carried_out(program, counted)
with_some = sum(bool(each) for each in counted.paths.values())
points = [*hunt.allocations(program, hunt.KINDS, known)]
place = next(each for each in points if each.step > 0)
fails = hunt.Allocations(place.step, place.at)
told = hunt.carried_out(program, fails).told
print(json.dumps([with_some, len(counted.paths), len(points), sum("MemoryError" in each for each in told)]))
"""


@pytest.fixture(scope="module")
def hunted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    flags = pytest.MonkeyPatch()
    flags.setenv("CXXFLAGS", "-O0")
    try:
        return build_hunted(tmp_path_factory.mktemp("hunted"))
    finally:
        flags.undo()


def said(core: Path, program: str) -> list[object]:
    """Runs a program in a process of its own, in which allocations fail, and returns its output."""
    command = [sys.executable, "-c", FRESH + program, str(core)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MALLOC_PERTURB_": "165"}  # what is freed holds nothing
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_garbage_is_collected_without_memory(hunted: Path) -> None:
    """The garbage collector asks the types of the core what they hold, and none of them may raise then."""
    assert said(hunted, COLLECTS) == ["clean", []]


@pytest.mark.slow
def test_an_allocation_that_ends_python_does_not_fail(hunted: Path) -> None:
    """CPython 3.11 frees an iterator over the items of a dictionary that it has not told the garbage collector of."""
    assert said(hunted, ITERATES) == [True]


@pytest.mark.slow
def test_a_store_of_which_nobody_knows_what_it_holds_is_used_no_more(hunted: Path) -> None:
    """Where C++ finds no memory in the middle of a change, what is judged next is judged as ever."""
    before, enough, behind = said(hunted, JUDGES)
    assert before == behind and enough


@pytest.mark.slow
def test_call_sites_are_found_after_one_for_which_there_was_no_memory(hunted: Path) -> None:
    """Nothing leads to a part of a stack that was not kept, and what nobody has any more goes."""
    several, trials = said(hunted, WALKS)
    assert several and isinstance(trials, list) and all(each == [True, True] for each in trials)


@pytest.mark.slow
def test_allocations_of_the_calls_of_a_program_fail(hunted: Path) -> None:
    """In its calls, and not in the begin and the end of the session alone."""
    with_some, steps, points, failed = said(hunted, COUNTS)
    assert isinstance(with_some, int) and isinstance(steps, int) and with_some > steps // 2
    assert isinstance(points, int) and points > 1000 and failed == 1
