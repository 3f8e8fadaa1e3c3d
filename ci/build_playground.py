"""Builds the playground of the documentation site: Pyodide, and the judges as its byte code.

Pyodide comes from npm and is not in the repository. Without npm, node or a network there is no playground, and ci/docs
says so.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

from ci.npm_packages import CACHE, NotFetched, fetched, locked, replaced

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "ci" / "playground"
HARNESS = ROOT / "harness" / "vkharness"
DATA = HARNESS / "spec" / "data"
BUILT = CACHE / "playground"
"""Where the site and the tests have it built."""
SOURCES = CACHE / "sources.zip"
VERSION = "314.0.7"
INTEGRITY = "sha512-0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
"""Of the package, as npm's registry has it."""
SERVED = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
"""Files of Pyodide that a browser asks for."""
OF_OURS = ("worker.js", "playground.js", "playground.css")
JUDGES = "judges.zip"
STAMP = "built.txt"
_LIST = """
import json, sys
sys.path.insert(0, sys.argv[1])
from vkharness.text_form import playground
playground.answer("submit q1\\n CLEAR_TRANSFER_WRITE a\\n barrier CLEAR > COPY\\n COPY_TRANSFER_READ a\\nhost reads a")
playground.answer(open(sys.argv[2]).read())
print(json.dumps({name: module.__file__ for name, module in sys.modules.items()
    if name.split(".")[0] in ("vkharness", "sortedcontainers") and getattr(module, "__file__", None)}))
"""


class NotBuilt(Exception):
    """Why there is no playground."""


def build(folder: Path) -> None:
    """Puts the playground into a folder. Raises `NotBuilt`."""
    pyodide = unpacked()
    with locked("playground"):
        key, stamp = digest_of(sources()), folder / STAMP
        if stamp.is_file() and stamp.read_text() == key:
            return
        with replaced(folder) as made:
            for name in SERVED:
                shutil.copyfile(pyodide / name, made / name)
            for name in OF_OURS:
                shutil.copyfile(PARTS / name, made / name)
            compile_judges(pyodide, made / JUDGES)
            (made / STAMP).write_text(key)


def sources() -> list[Path]:
    """The files that the playground is made of. Python puts a folder of compiled modules beside them where it may."""
    parts = (each for each in sorted(PARTS.iterdir()) if each.is_file())
    return [*sorted(modules().values()), *sorted(DATA.iterdir()), *parts, Path(__file__)]


def digest_of(paths: list[Path]) -> str:
    """Of all that the playground is made of."""
    return hashlib.sha256(b"".join(hashlib.sha256(each.read_bytes()).digest() for each in paths)).hexdigest()


def unpacked() -> Path:
    """The folder of Pyodide, which is fetched where it is not there."""
    if shutil.which("node") is None:
        raise NotBuilt("node is not installed")
    try:
        return fetched("pyodide", VERSION, INTEGRITY)
    except NotFetched as why:
        raise NotBuilt(str(why)) from None


def compile_judges(pyodide: Path, target: Path) -> None:
    """Writes the modules that judging loads, and no others, as byte code of Pyodide's Python."""
    with zipfile.ZipFile(SOURCES, "w") as archive:
        for name, path in sorted(modules().items()):
            inner = Path(*name.split("."))
            archive.write(path, inner / "__init__.py" if path.name == "__init__.py" else inner.with_suffix(".py"))
        for path in DATA.iterdir():
            archive.write(path, path.relative_to(HARNESS.parent))
        archive.write(PARTS / "msgspec.py", "msgspec.py")
    command = ["node", str(PARTS / "compile.mjs"), str(pyodide), str(SOURCES), str(target)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if ran.returncode:
        raise NotBuilt(f"node cannot run Pyodide: {ran.stderr.strip().splitlines()[-1:]}")


@cache
def modules() -> dict[str, Path]:
    """The modules by name. They are found out in Python alone: a browser has no native core."""
    import os

    trace = ROOT / "tests" / "data" / "queues" / "timeline-chain_submitted_backwards-without_second.jsonl"
    command = [sys.executable, "-c", _LIST, str(PARTS), str(trace)]
    environment = os.environ | {"VKHARNESS_PURE": "1"}
    listed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    return {name: Path(path) for name, path in json.loads(listed).items()}


if __name__ == "__main__":
    build(Path(sys.argv[1]))
