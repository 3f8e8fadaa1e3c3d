"""Builds the native core with the C++ compiler of this machine: `python harness/vkharness/native/build.py`. The mirror
layer is built after it.

`hatch_build.py` calls it when the project is installed. It needs a compiler and Python's headers and nothing else, and
it may run where the project is not installed. `$CXX` names another compiler, and `$CXXFLAGS` gives it more arguments.

The core is built for one version of CPython. One file for all versions (the "stable ABI") would be 3 to 15 % slower in
the map over spans. It also has no `PyFrame_GetLasti`, which tells call sites apart, and a free-threaded Python
loads no such file.
"""

from __future__ import annotations

import os
import sys
import zlib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")
QUIET = ("-Wno-missing-field-initializers", "-Wno-cast-function-type")
"""Python's tables of methods and slots need both."""


def is_refused() -> bool:
    """Whether `VKHARNESS_PURE` asks for Python alone."""
    return os.environ.get("VKHARNESS_PURE", "0") not in ("", "0")


class NotBuilt(Exception):
    """Why there is no native core, in one line."""


def checksum() -> int:
    """Of all sources. A core says of which it was built, so that none is used that is older than its sources."""
    found = 0
    for path in sorted(FOLDER.glob("*.[ch]pp")):
        found = zlib.crc32(path.read_bytes(), found)
    return found


def file_name() -> str:
    """The file name of the core for this Python."""
    import sysconfig

    return f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"


def build(target: Path, source: Path = FOLDER / "module.cpp") -> None:
    """Makes `target`, which appears whole or not at all; NotBuilt when that cannot be. Tests have another `source`."""
    compile_library(source, target, (*QUIET, f"-DVKHARNESS_SOURCES={checksum()}L", f"-I{_headers()}", f"-I{FOLDER}"))


def compile_library(source: Path, target: Path, arguments: tuple[str, ...]) -> None:
    """Compiles one source with all that it includes into a shared library, which appears whole or not at all."""
    import subprocess

    made = target.with_name(f".{os.getpid()}.{target.name}")
    same = f"-ffile-prefix-map={source.parent}=native"  # assertions name their file: two folders give the same bytes
    given = os.environ.get("CXXFLAGS", "").split()
    command = [*_compiler(), *FLAGS, same, *arguments, str(source), "-o", str(made), *given]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.stderr.write(done.stderr)
            raise NotBuilt(f"{command[0]} fails (exit {done.returncode})")
        made.replace(target)
    except OSError as error:
        raise NotBuilt(f"{command[0]}: {error.strerror}") from None
    finally:
        made.unlink(missing_ok=True)


def build_mirror_layer(folder: Path | None = None) -> str | None:
    """Builds the mirror layer, too, beside its sources or into another folder. Why there is none, in one line."""
    import subprocess

    script = FOLDER.parent / "mirror_layer" / "layer_build.py"
    if not script.exists():
        return None
    command = [sys.executable, "-I", "-B", str(script), *([] if folder is None else [str(folder)])]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def _compiler() -> list[str]:
    from shutil import which

    named = os.environ.get("CXX", "").split()
    found = named or [name for name in ("c++", "g++", "clang++") if which(name)][:1]
    if not found:
        raise NotBuilt("there is no C++ compiler (g++)")
    return found


def _headers() -> str:
    import sysconfig

    folder = sysconfig.get_path("include")
    if not Path(folder, "Python.h").exists():
        raise NotBuilt(f"Python's headers (python3-dev) are not in {folder}")
    return folder


def main() -> None:
    """Builds the core into the checkout, and the mirror layer. Says in one line for each when there is none."""
    try:
        build(FOLDER / file_name())
    except NotBuilt as why:
        sys.stderr.write(f"vkharness: pure Python, because the native core was not built: {why}\n")
    why_not = build_mirror_layer()
    if why_not is not None:
        sys.stderr.write(f"{why_not}\n")


if __name__ == "__main__":
    main()
