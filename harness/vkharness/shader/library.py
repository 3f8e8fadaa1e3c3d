"""SPIR-V of shaders: those of the harness by name, from the checkout or from an installed copy, others by path."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from vkharness.findings import UserError
from vkharness.shader.own_shader import load_file

PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = (PACKAGE / "_shaders", PACKAGE.parents[1] / "shaders")
"""In an installed package, and in a checkout."""

_NAME = re.compile(r"[a-z0-9_]+(\.(comp|vert|tesc|tese|geom|frag))?")


def load(shader: str | Path) -> bytes:
    """SPIR-V of one shader: a name as 'fill_words', or with its stage 'fill_words.comp'; a path is a user's file.

    Raises UserError for an unknown name, and for a file that is no shader.
    """
    return load_file(shader) if isinstance(shader, Path) else _named(shader)


@cache
def _named(name: str) -> bytes:
    if _NAME.fullmatch(name):
        found = [path for path in _files() if path.name.startswith(f"{name}.")]
        if len(found) == 1:
            return found[0].read_bytes()
    raise UserError(f"no shader is called {name!r}; there are {', '.join(names())}")


def names() -> list[str]:
    """Names of all shaders, with their stage, in order."""
    return [path.name.removesuffix(".spv") for path in _files()]


def _files() -> list[Path]:
    for folder in FOLDERS:
        if folder.is_dir():
            return sorted(folder.glob("*.spv"))
    raise UserError(f"the shaders are missing: neither {' nor '.join(str(folder) for folder in FOLDERS)} exists")
