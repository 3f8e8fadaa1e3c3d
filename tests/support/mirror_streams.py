"""Programs under the mirror layer, and a small reader of the stream that they leave."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from vkharness import mirror_layer
from vkharness.device.drivers import environment, find_driver
from vkharness.mirror_layer.layer_build import NAME

PROGRAMS = Path(__file__).parents[1] / "programs"
CPP = str(PROGRAMS.parents[1] / "examples" / "planted_race.cpp")
"""The program in C++ of README, with a race."""
CALL, ENTER, RETURN, DATA, COMMAND, STACK, MODULE, UNSEEN, FILE, LOST, PROPERTY = range(1, 12)
GO_ON = 0xFFFFFFFF


@dataclass(frozen=True)
class Record:
    """One record; `name` of what is about a command."""

    kind: int
    name: str
    thread: int
    stack: int
    serial: int
    whole: bytes
    """All of it, as offsets count."""

    @property
    def payload(self) -> bytes:
        return self.whole[24:]

    @property
    def result(self) -> int:
        return int(struct.unpack_from("<q", self.payload)[0])

    @property
    def arguments(self) -> tuple[int, ...]:
        count = struct.unpack_from("<I", self.payload, 8)[0]
        return struct.unpack_from(f"<{count}Q", self.payload, 16)

    @property
    def text(self) -> str:
        return self.payload.rstrip(b"\0").decode()

    def numbers(self, form: str, at: int) -> tuple[int, ...]:
        """What lies at an offset."""
        return struct.unpack_from("<" + form, self.whole, at)


def records_of(folder: Path) -> list[Record]:
    """All records of a process, held against what the format promises of each."""
    found: list[Record] = []
    names: dict[int, str] = {}
    for number, path in enumerate(sorted(folder.glob("segment-*"))):
        held = path.read_bytes()
        assert struct.unpack_from("<IIQQ", held) == (0x53484B56, 1, number, len(held))
        at = 64
        while (size := struct.unpack_from("<I", held, at)[0]) not in (0, GO_ON):
            _, kind, command, thread, stack, serial = struct.unpack_from("<IHHIIQ", held, at)
            assert size % 8 == 0 and at + size < len(held)
            if kind == COMMAND:
                names[command] = held[at + 24 : at + size].rstrip(b"\0").decode()
            name = names[command] if kind in (CALL, ENTER, RETURN) else ""
            found.append(Record(kind, name, thread, stack, serial, held[at : at + size]))
            at += size
    assert [each.serial for each in found] == list(range(1, len(found) + 1))
    return found


def calls_of(records: list[Record]) -> list[Record]:
    """Those that are calls, each once."""
    return [each for each in records if each.kind in (CALL, ENTER)]


def layer_environment(out: Path | None, **more: str) -> dict[str, str]:
    """The environment of a program under the layer, on lavapipe."""
    manifest = mirror_layer.manifest()
    if manifest is None:
        pytest.skip("the mirror layer is not built here (ci/setup)")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VK_", "VKHARNESS_"))}
    own = {"VK_ADD_LAYER_PATH": str(manifest.parent), "VK_INSTANCE_LAYERS": NAME}
    driver = environment(find_driver("lavapipe"))
    return {**kept, **driver, **own, **({} if out is None else {"VKHARNESS_OUT": str(out)}), **more}


def compiled(source: str, folder: Path, *arguments: str, compiler: str = "cc") -> Path:
    """A program of tests/programs."""
    if shutil.which(compiler) is None or not Path("/usr/include/vulkan/vulkan.h").exists():
        pytest.skip("there is no C compiler, or Vulkan's headers are not there (ci/setup installs both)")
    made = folder / Path(source).stem
    subprocess.run([compiler, "-g", "-O1", str(PROGRAMS / source), "-o", str(made), *arguments], check=True)
    return made


def process_folders(out: Path) -> list[Path]:
    """The folders of all processes, in the order in which they came."""
    return sorted(out.glob("process-*"), key=lambda each: each.stat().st_mtime_ns)
