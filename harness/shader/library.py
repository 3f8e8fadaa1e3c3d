"""The project's own shaders: SPIR-V by name, from the checkout or from an installed copy."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from harness.findings import UserError

PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = (PACKAGE / "_shaders", PACKAGE.parent / "shaders")
"""In an installed package, and in a checkout."""

_NAME = re.compile(r"[a-z0-9_]+(\.(comp|vert|frag))?")


@cache
def load(name: str) -> bytes:
    """SPIR-V of one shader: 'fill_words', or with its stage 'fill_words.comp'. Raises UserError for an unknown name."""
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
