"""GLSL that tests compile: many shaders, without the Python that the package puts around the compiler."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from vkharness.shader.own_shader import COMPILER, compiler

GLSLANG = compiler()
OPTIONS = ("-V", "--quiet", "-g", "--target-env", "vulkan1.2")


def compile_all(folder: Path, sources: Mapping[str, str]) -> None:
    """Compiles compute shaders with their lines: NAME.comp and NAME.spv of each appear in a folder."""
    program, environment = _inside_wheel()
    for name, source in sources.items():
        (folder / f"{name}.comp").write_text(source)
    for name in sources:
        command = [program, *OPTIONS, f"{name}.comp", "-o", f"{name}.spv"]
        subprocess.run(command, cwd=folder, check=True, env=environment)


def _inside_wheel() -> tuple[str, dict[str, str]]:
    """The compiler, and the environment in which it runs."""
    environment = dict(os.environ)
    for prefix in Path(str(GLSLANG)).parent.parent.glob("lib/python*/site-packages/cmeel.prefix"):
        if (prefix / "bin" / COMPILER).is_file():
            environment["LD_LIBRARY_PATH"] = str(prefix / "lib")
            return str(prefix / "bin" / COMPILER), environment
    return str(GLSLANG), environment
