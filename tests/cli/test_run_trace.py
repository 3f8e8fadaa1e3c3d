"""Files of `vkharness run --trace` when the program fails to start, forks, or the disk is full."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from tests.support.recording import PROGRAMS
from vkharness.device.drivers import environment, find_driver
from vkharness.trace.calls import Call
from vkharness.trace.codec import load

FORKS = f"""
import os, runpy, sys
child = os.fork()
if not child:
    sys.exit(5)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.path.insert(0, {str(PROGRAMS)!r})
runpy.run_path({str(PROGRAMS / "fill_copy.py")!r}, run_name="__main__")
"""
GARBAGE_CHAIN = f"""
import sys
sys.path.insert(0, {str(PROGRAMS)!r})
import vulkan as vk
from rig import Rig
rig = Rig()
told = {{"sType": 39, "pNext": vk.ffi.cast("void *", 0x7EAD_BEEF_0000)}}
pool = vk.vkCreateCommandPool(rig.device, vk.ffi.new("VkCommandPoolCreateInfo *", told)[0], None)
vk.vkDestroyCommandPool(rig.device, pool, None)
"""
"""lavapipe does not look at the chain of a command pool."""
SMALL = 4096
"""The most bytes of a file in the test of a full disk: `write` fails beyond, as it does there. Compiled modules would
be cut off, too, and Python takes those for whole ones."""
MIDDLE = 2200
"""Bytes of a packed trace of `fill_copy.py` with its first chunk, and without its last one."""


def run(folder: Path, *arguments: str, most_bytes: int = resource.RLIM_INFINITY) -> subprocess.CompletedProcess[str]:
    # Memory of newer lavapipes is a file, too, and cut off where files are.
    driver = "lavapipe" if most_bytes == resource.RLIM_INFINITY else "swiftshader"
    return subprocess.run(
        [sys.executable, "-c", "from vkharness.cli import main; main()", "run", *arguments],
        cwd=folder,
        env={**os.environ, **environment(find_driver(driver)), "PYTHONPATH": str(PROGRAMS.parents[1])}
        | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_that_fails_to_start_leaves_the_earlier_trace(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys\nsys.exit('no configuration')\n")
    (tmp_path / "t.jsonl").write_text("the earlier trace\n")
    ran = run(tmp_path, "program.py", "--trace", "t.jsonl")
    assert ran.returncode == 1
    assert "no configuration" in ran.stderr
    assert (tmp_path / "t.jsonl").read_text() == "the earlier trace\n"
    assert {path.name for path in tmp_path.iterdir()} == {"program.py", "t.jsonl"}


def test_a_child_that_the_program_forks_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(FORKS)
    ran = run(tmp_path, "program.py", "--trace", "t.vkt", "--json", "found.json")
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.startswith("child 5\n")
    assert (ran.stderr.count("hazards - 1"), ran.stderr.count("unknown")) == (1, 0)
    blocks = load(tmp_path / "t.vkt")
    assert [block.index for block in blocks] == list(range(1, len(blocks) + 1))


def test_a_full_disk_costs_neither_the_verdict_nor_the_earlier_trace(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("the earlier trace\n")
    ran = run(tmp_path, str(PROGRAMS / "fill_copy.py"), "--trace", "t.jsonl", most_bytes=SMALL)
    assert ran.returncode == 1
    assert "hazards - 1" in ran.stderr
    assert "t.jsonl: cannot be written: File too large; what came before is in t.jsonl.partial-" in ran.stderr
    assert (tmp_path / "t.jsonl").read_text() == "the earlier trace\n"
    clean = run(tmp_path, "--trace", "t.jsonl", str(PROGRAMS / "fill_copy.py"), "--barrier", most_bytes=SMALL)
    assert clean.returncode == 2
    failed = run(tmp_path, "--trace", "t.jsonl", str(PROGRAMS / "fill_copy.py"), "--exit", most_bytes=SMALL)
    assert failed.returncode == 7


def test_what_a_full_disk_took_of_a_trace_in_one_file_is_read(tmp_path: Path) -> None:
    ran = run(tmp_path, str(PROGRAMS / "fill_copy.py"), "--trace", "t.vkt", most_bytes=MIDDLE)
    assert ran.returncode == 1 and "what came before is in t.vkt.partial-" in ran.stderr
    (part,) = tmp_path.glob("t.vkt.partial-*")
    *blocks, rest = load(part)
    assert blocks and isinstance(rest, Call) and rest.unread


def test_a_chain_that_cannot_be_followed_to_its_end_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(GARBAGE_CHAIN)
    ran = run(tmp_path, "program.py")
    assert ran.returncode == 0, ran.stderr
    said = [line for line in ran.stderr.splitlines() if line.startswith("vkharness: note:")]
    assert len(said) == 1
    assert "a pNext chain of VkCommandPoolCreateInfo leads to no memory or in a circle" in said[0]
