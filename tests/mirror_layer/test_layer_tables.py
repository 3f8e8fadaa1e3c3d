"""The tables that the layer is built of: C's layouts computed from the registry, and what pointers lead to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.mirror_streams import PROGRAMS, compiled
from vkharness.mirror_layer import layer_build
from vkharness.mirror_layer.c_layouts import layout_of
from vkharness.mirror_layer.layer_tables import Tables, written
from vkharness.native.build import FOLDER as NATIVE
from vkharness.spec._generated import COMMAND_ALIASES, COMMANDS, STRUCTS


@pytest.mark.driver
def test_layouts_are_those_of_the_declarations() -> None:
    """Of every struct and union of the registry."""
    from vkharness.record import struct_layout

    wrong = []
    for name in STRUCTS:
        found = layout_of(name)
        if found.size != struct_layout.size_of(name):
            wrong.append(f"{name}: {found.size} bytes")
        for member, field in struct_layout.fields_of(name).items():
            at = field.offset // 4 * 4 if field.bits else field.offset
            if found.places[member].offset != at:
                wrong.append(f"{name}.{member} at {found.places[member].offset}")
    assert wrong == [] and len(STRUCTS) > 1000


def test_every_command_has_a_row_and_its_aliases_too() -> None:
    tables = Tables()
    assert set(tables.names) == {*COMMANDS, *COMMAND_ALIASES} - {"vkGetInstanceProcAddr", "vkGetDeviceProcAddr"}
    assert len(tables.commands) == len(tables.names) and tables.names == sorted(tables.names)


def test_pointers_of_structs_within_structs_are_found() -> None:
    """Also those in the member of a union that its selector chooses, with the guards of structs inside."""
    tables = Tables()
    rows = tables.rows_of("VkAccelerationStructureGeometryKHR")
    chains = [row for row in rows if row.what == "CHAIN"]
    outer, *inner = sorted(chains, key=lambda row: (row.guard is not None, row.at))
    assert outer.guard is None and outer.at == 8
    selector = layout_of("VkAccelerationStructureGeometryKHR").places["geometryType"].offset
    assert {row.guard for row in inner} == {(selector, (kind,)) for kind in (0, 1, 2)}
    assert all(row.in_union and row.at == 32 for row in inner)
    image = layout_of("VkDeviceImageMemoryRequirements").places["pCreateInfo"].offset
    assert [row.what for row in tables.rows_of("VkDeviceImageMemoryRequirements") if row.at == image] == ["STRUCTS"]


def test_the_same_tables_give_the_same_text() -> None:
    assert written() == written()


@pytest.mark.slow
def test_garbage_is_copied_without_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the sanitizers: structs of all kinds that lead into each other, into holes and nowhere."""
    import subprocess

    assert (PROGRAMS / "copied_garbage.cpp").exists()
    (tmp_path / "generated.hpp").write_text(written(), encoding="utf-8")
    include = (f"-I{tmp_path}", f"-I{layer_build.FOLDER}", f"-I{NATIVE}")
    sanitized = ("-std=c++17", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-pthread")
    program = compiled("copied_garbage.cpp", tmp_path, *include, *sanitized, compiler="c++")
    monkeypatch.setenv("VKHARNESS_OUT", str(tmp_path / "out"))
    for seed in ("1", "2"):
        done = subprocess.run([str(program), seed], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        count = int(done.stdout.split()[0])
        assert count > 1000
