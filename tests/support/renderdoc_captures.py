"""The captures of RenderDoc in tests/data, and changed copies of them."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from vkharness.trace.calls import Block
from vkharness.trace.codec import load

DATA = Path(__file__).resolve().parents[1] / "data" / "renderdoc"
SHAPES, PRESENT, RELY = (DATA / f"{name}.zip.xml" for name in ("many_shapes", "window_present", "frames_that_rely"))


def changed(folder: Path, capture: Path, *changes: tuple[str, str]) -> Path:
    """A copy of a capture with its bytes, in which each text is another one. All of them must be there."""
    text = capture.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return copied(folder, capture, lambda _: text.encode())


def copied(folder: Path, capture: Path, change: Callable[[bytes], bytes]) -> Path:
    """A copy of a capture with its bytes, the XML changed."""
    shutil.copy(capture.with_suffix(""), folder)
    path = folder / capture.name
    path.write_bytes(change(capture.read_bytes()))
    return path


def read(path: Path) -> tuple[list[Block], list[str]]:
    """The blocks of a capture, and what is noted."""
    notes: list[str] = []
    return load(path, notes), notes


def with_layouts(folder: Path, capture: Path, change: Callable[[bytes], bytes]) -> Path:
    """A copy of a capture, in which the bytes that say the layouts of images are changed."""
    text = capture.read_text(encoding="utf-8")
    found = re.search(r'(Beginning of Capture.*?<buffer byteLength=")\d+">(\d+)<', text, re.DOTALL)
    assert found is not None
    number = f"{int(found[2]):06}"
    with zipfile.ZipFile(capture.with_suffix("")) as opened:
        files = {each.filename: opened.read(each) for each in opened.infolist()}
    files[number] = change(files[number])
    said = f'{found[1]}{len(files[number])}">{found[2]}<'
    path = copied(folder, capture, lambda _: text.replace(found[0], said, 1).encode())
    with zipfile.ZipFile(path.with_suffix(""), "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return path
