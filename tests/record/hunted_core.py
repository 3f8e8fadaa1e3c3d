"""Builds the core that `hunted_core.cpp` describes, and puts it in the place of the core of this process."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import sysconfig
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "vkharness.native._core"
SOURCE = Path(__file__).with_suffix(".cpp")
BUILD = Path(__file__).parents[2] / "harness/vkharness/native/build.py"


def build_hunted(folder: Path) -> Path:
    """Builds the file, without the package, which would choose a core."""
    made = folder / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    builder: Any = _loaded("hunted_build", SourceFileLoader("hunted_build", str(BUILD)))
    builder.build(made, SOURCE)
    return made


def load(file: Path) -> ctypes.PyDLL:
    """Makes a built file the core of this process; what lets allocations fail. Before anybody asks for a core."""
    assert "vkharness.native" not in sys.modules
    sys.modules[NAME] = _loaded(NAME, ExtensionFileLoader(NAME, str(file)))
    import vkharness.native

    vkharness.native._core = sys.modules[NAME]
    assert vkharness.native.core is sys.modules[NAME], vkharness.native.in_use
    hunted = ctypes.PyDLL(str(file))
    hunted.hunted_fail.argtypes = [ctypes.c_long]
    hunted.hunted_made.restype = ctypes.c_long
    hunted.hunted_path.argtypes, hunted.hunted_path.restype = [ctypes.c_long], ctypes.c_size_t
    hunted.hunted_begin()
    return hunted


def _loaded(name: str, loader: Any) -> ModuleType:
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
