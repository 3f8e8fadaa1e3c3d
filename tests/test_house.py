"""The rules of the house, kept by machine: what imports what, what files may hold, what a bare machine must run."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HARNESS = ROOT / "harness"
GENERATED = HARNESS / "spec" / "_generated.py"

ROOMS = (
    "spans",
    "findings",
    "spec",
    "trace",
    "shader",
    "commands",
    "model",
    "syncval",
    "record",
    "device",
    "explore",
    "layer",
    "report",
    "check",
    "agreement",
    "scenario",
    "mutation",
    "matrix",
    "pytest_plugin",
    "cli",
)
"""Imports go up this list: a room imports itself and the rooms above it."""

THIRD_PARTY = {
    "vulkan": (("record", "device", "layer", "explore/executor", "scenario"), "inside functions"),
    "click": (("cli",), "anywhere"),
    "rich": (("report", "cli", "pytest_plugin", "scenario", "mutation", "matrix"), "anywhere"),
    "graphviz": (("report",), "anywhere"),
    "jinja2": (("report", "matrix"), "anywhere"),
    "PIL": (("report",), "anywhere"),
    "pytest": (("pytest_plugin", "scenario"), "anywhere"),
    "glfw": (("device", "scenario"), "inside functions"),
    "numpy": (("record", "device", "explore", "report", "scenario"), "anywhere"),
    "cffi": (("record", "device", "layer", "explore"), "inside functions"),
}
"""Third-party package to (the rooms or modules that may import it, where in them)."""

LONGEST_FILE, LONGEST_FUNCTION = 500, 70
"""Lines."""

SOURCES = sorted(path for path in HARNESS.rglob("*.py") if path != GENERATED)
SUITE = "scenarios"
FOLDERS = ("harness", "tests", SUITE, "bench", "ci")
PYTHON = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if path != GENERATED)
"""Ours, written by hand."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports_of(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """(module, whether at the top of the file) of each import; `from a import b` gives both a and a.b."""
    inside = {id(node) for function in ast.walk(tree) if is_function(function) for node in ast.walk(function)}
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test).endswith("TYPE_CHECKING")
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        top = id(node) not in inside and id(node) not in typing_only
        if isinstance(node, ast.Import):
            yield from ((alias.name, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield node.module, top
            yield from ((f"{node.module}.{alias.name}", top) for alias in node.names)


def is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def room_of(path: Path) -> str:
    """The room that a file of harness/ belongs to; '' for harness/__init__.py, which wires them."""
    part = path.relative_to(HARNESS).parts[0].removesuffix(".py")
    return "" if part == "__init__" else part


def test_every_room_is_in_the_list() -> None:
    assert {room_of(path) for path in SOURCES} - {""} <= set(ROOMS)


def test_imports_go_one_way() -> None:
    wrong = []
    for path in SOURCES:
        room = room_of(path)
        allowed = ROOMS[: ROOMS.index(room) + 1] if room else ROOMS
        used = {module.split(".")[1] for module, _ in imports_of(tree_of(path)) if module.startswith("harness.")}
        wrong += [f"{name_of(path)} imports {other} from below" for other in used & set(ROOMS) - set(allowed)]
    assert wrong == []


def test_the_model_expands_masks_by_itself() -> None:
    """It comes before syncval in the list; nor may it use the expansions that syncval uses."""
    used = {
        f"{name_of(path)} imports {module}"
        for path in SOURCES
        if room_of(path) == "model"
        for module, _ in imports_of(tree_of(path))
        if module.startswith(("harness.spec.scopes", "harness.spec.masks"))
    }
    assert used == set()


def test_third_party_packages_stay_in_their_rooms() -> None:
    standard = sys.stdlib_module_names | {"harness"}
    wrong = []
    for path in SOURCES:
        module = path.relative_to(HARNESS).with_suffix("").as_posix()
        for name, top in imports_of(tree_of(path)):
            package = name.split(".")[0]
            if package in standard:
                continue
            rooms, where = THIRD_PARTY.get(package, ((), "nowhere"))
            at_home = any(module == room or module.startswith((f"{room}/", f"{room}_")) for room in rooms)
            if not at_home:
                wrong.append(f"{name_of(path)} imports {package}, whose rooms are {', '.join(rooms) or 'none'}")
            elif top and where != "anywhere":
                wrong.append(f"{name_of(path)} must import {package} {where}")
    assert wrong == []


def test_files_and_functions_are_short_and_say_what_they_are() -> None:
    wrong = []
    for path in PYTHON:
        text = path.read_text(encoding="utf-8")
        tree = tree_of(path)
        if (lines := len(text.splitlines())) > LONGEST_FILE:
            wrong.append(f"{name_of(path)} has {lines} lines")
        if text.strip() and not ast.get_docstring(tree):
            wrong.append(f"{name_of(path)} has no docstring")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length >= LONGEST_FUNCTION:
                    wrong.append(f"{name_of(path)}: {node.name} has {length} lines")
    assert wrong == []


def test_no_drawer_for_everything() -> None:
    assert [name_of(path) for path in PYTHON if path.stem in {"utils", "util", "helpers", "misc", "common"}] == []


def test_the_word_that_selects_the_suite_selects_nothing_else() -> None:
    word = SUITE.removesuffix("s")
    command = [sys.executable, "-m", "pytest", "-k", word, "--collect-only", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    selected = [line for line in result.stdout.splitlines() if "::" in line]
    assert selected, result.stdout + result.stderr
    assert [line for line in selected if not line.startswith(f"{SUITE}/")] == []


def tracked_text() -> Iterator[tuple[str, str]]:
    """(name, text) of every tracked text file."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("no git, or no git checkout: nothing is tracked")
    listing = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in listing.stdout.decode().split("\0"):
        path = ROOT / name
        if not name or not path.is_file() or path == GENERATED:
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            yield name, content.decode("utf-8", "replace")


def test_nothing_of_one_machine_is_tracked() -> None:
    """No path outside the checkout, no package host: a clone works wherever registries' ordinary clients do."""
    banned = {
        "a path of one machine": r"/(?:work|root|home)/(?:main|shared|\.[a-z]|[a-z]+/)|/opt/(?:pypi|wheels)",
        "a folder beside the checkout": r"\.\./" + "shared",
        "a package host": r"(?:pypi|pythonhosted|debian|ubuntu|npmjs)\.(?:org|com)",
    }
    for name, text in tracked_text():
        for what, pattern in banned.items():
            found = re.search(pattern, text)
            assert found is None, f"{name} holds {what}: {found and found.group()}"


def bare(program: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a process where `import vulkan` fails and no Vulkan library can be opened."""
    prelude = (
        "import sys, ctypes\n"
        "sys.modules['vulkan'] = None\n"
        "def refuse(event, args):\n"
        "    if event == 'ctypes.dlopen' and 'vulkan' in str(args[0]): raise OSError('no loader here')\n"
        "sys.addaudithook(refuse)\n"
    )
    command = [sys.executable, "-c", prelude + program]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_package_imports_with_no_loader() -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in SOURCES
        if path.stem != "worker"
    ]
    result = bare("import importlib\n" + "".join(f"importlib.import_module({name!r})\n" for name in modules))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["run", "--help"], ["replay", "--help"]])
def test_the_command_starts_with_no_loader(arguments: list[str]) -> None:
    result = bare(f"from harness.cli import main\nmain({arguments!r})")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: vkharness")


def test_starting_the_command_loads_nothing_slow() -> None:
    result = bare("import harness.cli, sys\nprint(*sorted(sys.modules))")
    loaded = {name.split(".")[0] for name in result.stdout.split()}
    assert not loaded & {"numpy", "rich", "PIL", "pytest", "cffi", "_cffi_backend"}


def test_what_the_readme_tells_to_type_exists() -> None:
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    for script in set(re.findall(r"\bci/[a-z]+\b", text)):
        assert (ROOT / script).stat().st_mode & 0o111, f"{script} is not executable"
    from harness.cli import COMMANDS

    for command in set(re.findall(r"\bvkharness ([a-z]+)\b", text)):
        assert command in COMMANDS, f"README names vkharness {command}"
    assert "ci/scenarios" in text
    assert "ci/test" in text
