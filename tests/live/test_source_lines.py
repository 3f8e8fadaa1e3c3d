"""Source lines of native programs: the first line of a finding is the file and the line of the call."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.mirror_streams import CPP, PROGRAMS, compiled
from vkharness.call_sites import shown
from vkharness.capture.layer import mirror_layer
from vkharness.device.drivers import environment, find_driver
from vkharness.live.line_tables import LineTables, demangled
from vkharness.live.native_sites import NativeSites

pytestmark = pytest.mark.driver
VKHARNESS = Path(sys.executable).with_name("vkharness")


def line_of(source: str, comment: str) -> str:
    """`file:line` of the line with this comment."""
    path = PROGRAMS / source
    lines = path.read_text().splitlines()
    return f"{path}:{next(at for at, line in enumerate(lines, 1) if line.endswith(f'// {comment}'))}"


def run(program: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """What is printed beside a program, and the one finding."""
    if mirror_layer() is None:
        pytest.skip("the mirror layer is not built")
    found = program.with_suffix(".json")
    command = [str(VKHARNESS), "run", "--recorder", "mirror", *options, "--json", str(found), "--", str(program)]
    own = environment(find_driver("lavapipe"))
    ended = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stderr
    (finding,) = json.loads(found.read_text())["findings"]
    return ended.stderr, finding


def test_the_line_of_a_program_in_cpp(tmp_path: Path) -> None:
    program = compiled(CPP, tmp_path, "-lvulkan", compiler="c++")
    printed, finding = run(program, "--live")
    copy, fill = line_of(CPP, "the copy"), line_of(CPP, "the fill")
    assert printed.startswith(f"{copy}: READ_AFTER_WRITE: ")
    assert (finding["site"], finding["prior_site"]) == (copy, fill)
    functions = [each["function"] for each in finding["stack"]]
    assert functions[0].startswith("void app::Commands::copy<VkBuffer_T*>(") and functions[-1] == "main"
    assert finding["prior_stack"][0]["function"].startswith("app::Commands::fill("), "it is inlined"


def test_frames_that_are_skipped_are_no_call_site(tmp_path: Path) -> None:
    program = compiled(CPP, tmp_path, "-lvulkan", compiler="c++")
    _, finding = run(program, "--skip", "app::Commands::")
    lines = [line_of(CPP, f"the {which}") for which in ("copy", "fill")]
    assert finding["site"] not in lines and finding["prior_site"] not in lines
    assert finding["stack"][0]["function"].startswith("app::record(")


def test_the_line_of_a_stripped_program_is_in_its_debug_file(tmp_path: Path) -> None:
    if shutil.which("objcopy") is None:
        pytest.skip("no objcopy (binutils)")
    program = compiled(CPP, tmp_path, "-lvulkan", compiler="c++")
    debug = program.with_suffix(".debug")
    for arguments in (
        ["--only-keep-debug", str(program), str(debug)],
        ["--strip-all", str(program)],
        [f"--add-gnu-debuglink={debug}", str(program)],
    ):
        subprocess.run(["objcopy", *arguments], check=True)
    _, finding = run(program)
    assert finding["site"] == line_of(CPP, "the copy")
    debug.unlink()
    _, finding = run(program)
    assert finding["site"].startswith(f"{program}+0x"), "without debug information, the place in the file"


def test_the_line_of_a_program_in_rust(tmp_path: Path) -> None:
    rustc = shutil.which("rustc")
    if rustc is None:
        pytest.skip("no rustc")
    program = tmp_path / "planted_race"
    made = [rustc, "-g", "-O", "-o", str(program), str(PROGRAMS / "planted_race.rs")]
    linked = subprocess.run(made, capture_output=True, text=True, check=False)
    if linked.returncode:
        pytest.skip(f"rustc does not build here: {linked.stderr.splitlines()[0]}")
    printed, finding = run(program, "--live")
    copy, fill = line_of("planted_race.rs", "the copy"), line_of("planted_race.rs", "the fill")
    assert printed.startswith(f"{copy}: READ_AFTER_WRITE: ")
    assert (finding["site"], finding["prior_site"]) == (copy, fill)
    assert (
        finding["stack"][0]["function"].endswith("renderer::Frame<T>::copy")
        or "copy" in finding["stack"][0]["function"]
    )
    assert not any("17h" in each["function"] for each in finding["stack"]), "names are as in the source"


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
        ("_RNvC6_123foo3bar", "123foo::bar"),
        ("_ZN3app6recordEii", "app::record(int, int)"),
        ("main", "main"),
        ("_ZN", "_ZN"),
    ],
)
def test_names_are_as_in_the_source(symbol: str, name: str) -> None:
    assert demangled(symbol) == name


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + bytes(100), os.urandom(4096)])
def test_a_file_that_is_no_program_has_no_lines(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    (line,) = LineTables().lines(str(path), "00ff", 0x10)
    assert (line.site, line.is_known) == (f"{path}+0x10", False)
    (line,) = LineTables().lines(str(tmp_path / "nothing"), "", 0x10)
    assert not line.is_known


def test_a_call_that_an_interpreter_makes_has_no_line() -> None:
    sites = NativeSites(LineTables())
    for begin, path in (
        (0x1000, "/usr/lib/libvulkan.so.1"),
        (0x2000, "/env/lib/_cffi_backend.so"),
        (0x3000, "/home/app"),
    ):
        name = path.encode()
        sites.module(struct.pack("<QQQII", begin, begin, begin + 0x1000, len(name), 0) + name)
    sites.stack(struct.pack("<IIQQQ", 1, 3, 0x1010, 0x2010, 0x3010))
    sites.stack(struct.pack("<IIQQ", 2, 2, 0x1010, 0x3010))
    assert sites.site(1) is None and sites.site(3) is None
    found = sites.site(2)
    assert found is not None and shown(found) == "/home/app+0xf"
    assert sites.site(2) is found


@pytest.mark.parametrize(
    "payload", [b"", b"\0" * 7, struct.pack("<QQQII", 0, 9, 3, 1 << 31, 4), struct.pack("<II", 5, 1 << 31)]
)
def test_a_stack_or_a_file_that_cannot_be_read_is_left_out(payload: bytes) -> None:
    sites = NativeSites(LineTables())
    sites.module(payload)
    sites.stack(payload)
    assert sites.site(5) is None and sites.executable == ""
