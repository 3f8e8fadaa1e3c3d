"""A copy of the mirror layer, read as a record, is what the struct in the program's memory is: for every struct."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from tests.replay.test_encode import Encodable
from tests.support.mirror_streams import compiled
from vkharness.live.record_memory import RecordMemory
from vkharness.mirror_layer import layer_build
from vkharness.mirror_layer.layer_tables import written
from vkharness.native.build import FOLDER as NATIVE
from vkharness.record.decode import Decoder
from vkharness.replay.objects.encode import Encoder, Handles
from vkharness.replay.objects.target import load
from vkharness.spec import _generated as tables
from vkharness.trace.handles import HandleRegistry

pytestmark = pytest.mark.driver  # the package's C declarations come with its import, which opens the loader


def test_a_copied_struct_is_read_as_the_struct_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "generated.hpp").write_text(written(), encoding="utf-8")
    include = (f"-I{tmp_path}", f"-I{layer_build.FOLDER}", f"-I{NATIVE}")
    made = compiled(
        "copied_struct.cpp", tmp_path, *include, "-std=c++17", "-shared", "-fPIC", "-pthread", compiler="c++"
    )
    monkeypatch.setenv("VKHARNESS_OUT", str(tmp_path / "out"))
    copied = ctypes.CDLL(str(made)).copied
    copied.restype, copied.argtypes = ctypes.c_uint64, [ctypes.c_uint32, ctypes.c_uint64]
    ffi, _ = load()
    encoder, memory, values = Encoder(ffi, Handles()), RecordMemory(), Encodable(29)
    differing = []
    for number, name in enumerate(tables.STRUCTS):
        if name in tables.UNIONS:
            continue
        held = encoder.struct(name, values.struct(name, 0), name)
        address = int(ffi.cast("uintptr_t", held))
        record = copied(number, address)
        memory.load(memoryview(ctypes.string_at(record, ctypes.c_uint32.from_address(record).value)), 1)
        (place,) = memory.many("Q", 40, 1)
        if Decoder(HandleRegistry(), None, memory).read(name, place) != Decoder(HandleRegistry()).read(name, address):
            differing.append(name)
    assert differing == []
