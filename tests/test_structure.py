"""The structure of the project, kept by machine: who imports whom, names, sizes, what a bare machine must run."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HARNESS = ROOT / "harness" / "vkharness"
GENERATED = tuple(HARNESS / "spec" / name for name in ("_generated.py", "_newer_types.py", "enums.py"))

ALLOWED = {
    "native": "",
    "mirror_layer": "native spec",
    "spans": "native",
    "call_sites": "",
    "vuids": "",
    "queue_ids": "",
    "uncounted": "",
    "findings": "call_sites queue_ids uncounted vuids",
    "groups": "call_sites findings",
    "plain_file": "",
    "ignore_file": "call_sites findings plain_file",
    "schemas": "",
    "extras": "findings",
    "line_file": "findings",
    "whole_file": "findings",
    "planned_file": "findings line_file plain_file",
    "temporary": "",
    "rare_collections": "",
    "verdicts": "",
    "generated_text": "",
    "spec": "findings",
    "trace": "call_sites findings native plain_file spans spec temporary whole_file",
    "shader": "findings spans spec temporary",
    "commands": "findings native queue_ids shader spans spec trace",
    "model": "findings spans spec trace commands",
    "syncval": "findings native spans spec trace",
    "record": "call_sites findings native spans spec trace",
    "live": "call_sites findings native plain_file record spans spec trace",
    "device": "findings spec trace record",
    "capture": "extras findings device mirror_layer verdicts",
    "results": "findings line_file plain_file whole_file",
    "rig": "findings spec shader device",
    "replay": "findings spans spec trace shader commands model device",
    "computed": "findings shader spans spec trace commands replay",
    "races": "computed findings replay shader trace",
    "layer": "findings spans spec trace commands model device",
    "refutation": "findings spans trace",
    "needed_scopes": "findings spec trace",
    "nearest_dependency": "commands findings needed_scopes spans spec trace",
    "strictness": "commands findings needed_scopes spec trace uncounted",
    "check": "findings groups nearest_dependency spans spec strictness trace commands syncval report",
    "late_analysis": "check commands findings spec trace",
    "agreement": "findings verdicts trace model check report",
    "reduction": "agreement check commands findings replay shader spans spec trace",
    "mending": "agreement check device findings groups layer model needed_scopes reduction replay report spec "
    "temporary trace",
    "advising": "call_sites agreement check commands findings mending model needed_scopes reduction report spans spec "
    "trace",
    "reproduction": "agreement check findings generated_text mending rig shader spec trace",
    "joining": "commands findings spec trace",
    "text_form": "agreement check findings groups model needed_scopes report spec syncval trace",
    "fuzz": "agreement check device findings layer live mending model planned_file reduction replay report rig shader "
    "spec syncval temporary text_form trace",
    "campaign": "findings planned_file device fuzz suite verdicts",
    "report": "call_sites extras findings generated_text groups queue_ids races results spans verdicts spec trace "
    "model replay whole_file",
    "suite": "computed findings generated_text judged_replay verdicts spec trace commands model syncval device rig "
    "replay layer agreement report reproduction fuzz mending advising results check groups layered_replay plain_file "
    "planned_file temporary text_form whole_file",
    "lost_order": "check findings spec trace",
    "judged_replay": "check computed findings lost_order replay report spec trace verdicts",
    "failing_tests": "findings trace device",
    "layered_replay": "agreement check findings layer reduction replay report trace whole_file",
    "__main__": "cli",
    "pytest_plugin": "findings groups ignore_file record report suite failing_tests",
    "case": "agreement call_sites device findings generated_text groups layer mending model reduction report suite "
    "temporary trace whole_file",
    "cli": "advising agreement campaign capture case check device findings fuzz groups ignore_file joining "
    "layer live mending model native races rare_collections record reduction refutation replay report reproduction "
    "results shader suite temporary text_form trace verdicts whole_file",
}
"""Package (or module at the top) to what it may import. syncval and model never import each other: their agreement is
evidence only while they share nothing but the stream, the effects and the tables."""

THIRD_PARTY = {
    "vulkan": ("record device rig layer replay suite spec", "inside functions"),
    "click": ("cli", "anywhere"),
    "rich": ("report cli pytest_plugin suite", "anywhere"),
    "graphviz": ("report", "inside functions"),
    "jinja2": ("case report suite", "anywhere"),
    "PIL": ("report", "anywhere"),
    "pytest": ("pytest_plugin suite", "anywhere"),
    "watchdog": ("capture", "inside functions"),
    "glfw": ("device suite", "inside functions"),
    "numpy": ("commands computed live record device rig replay report shader suite", "anywhere"),
    "cffi": ("record device rig layer replay", "inside functions"),
    "_cffi_backend": ("record", "inside functions"),
    "hypothesis": ("fuzz", "inside functions"),
    "distributed": ("campaign", "inside functions"),
    "dask": ("campaign", "inside functions"),
    "msgspec": ("trace", "anywhere"),
    "symbolic": ("live", "inside functions"),
    "rust_demangler": ("live", "inside functions"),
    "sortedcontainers": ("spans commands syncval replay", "anywhere"),
    "lz4": ("fuzz trace", "inside functions"),
    "zstandard": ("fuzz trace", "inside functions"),
}
"""Third-party package to (the packages that may import it, where in them)."""

SAME_MODULE_NAME = {
    "barrier": "one noun of synchronization: what the command does, syncval's rule, the model's rule",
    "event": "as barrier",
    "host": "as barrier; in record, the host's memory as the mirror sees it",
    "memory": "what memory commands do; how the model sees memory",
    "ownership": "as barrier",
    "presentation": "as barrier",
    "query": "as barrier",
    "recording": "as barrier",
    "semaphore": "as barrier",
    "submit": "as barrier",
    "render_passes": "as the stream describes them; as the rig makes them",
    "check": "the command of that name, and what it calls",
    "completion": "the command of that name, and when work is complete",
    "compare": "the command of that name, of two runs; in layer, our findings beside its messages",
    "drivers": "the command of that name, and what it calls",
    "graph": "the command of that name, and what it calls",
    "join": "the command of that name, and what it calls",
    "mend": "the command of that name, and what it calls",
    "advise": "the command of that name, and what it calls",
    "reduce": "the command of that name, and what it calls",
    "observe": "the command of that name; in replay, what a run left",
}
"""Names of modules that stand in two packages, each with the reason."""

SAME_CLASS_NAME: dict[str, str] = {}
"""Names of classes that stand in two packages, each with the reason."""

LONGEST_FILE, LONGEST_FUNCTION, LONGEST_CLASS = 600, 50, 300
"""Lines."""

TOO_LONG = {
    "BoundSets": 478, "RangeStoreType": 345, "Slots": 339, "SpanTree": 434,
}  # fmt: skip
"""Files and types in C++ that are longer than that, with the lines that they may have: none may grow."""

NATIVE = sorted(path for kind in ("*.hpp", "*.cpp") for path in HARNESS.glob(f"*/{kind}"))
NATIVE_TYPE = re.compile(r"(?P<indent> *)(?:template <.*> )?(?:class|struct) (?P<name>\w+)[^;]*\{$")

SOURCES = sorted(path for path in HARNESS.rglob("*.py") if path not in GENERATED)
SUITE = "scenarios"
FOLDERS = ("harness", "tests", SUITE, "examples", "bench", "hunts", "ci")
PYTHON = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if path not in GENERATED)
"""Ours, written by hand."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def imports_of(tree: ast.Module) -> list[tuple[str, bool]]:
    """(module, whether at the top of the file) of each import; `from a import b` gives both a and a.b."""
    return list(_imports_of(tree))


def _imports_of(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    left: list[tuple[ast.AST, bool]] = [(tree, True)]
    while left:
        node, top = left.pop()
        if isinstance(node, ast.expr):  # no import stands in an expression
            continue
        top = top and not is_function(node) and not is_for_types(node)
        left += [(child, top) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Import):
            yield from ((alias.name, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield node.module, top
            yield from ((f"{node.module}.{alias.name}", top) for alias in node.names)


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def package_of(path: Path) -> str:
    """The package (or module at the top) that a file of vkharness belongs to; '' for its own __init__.py."""
    part = path.relative_to(HARNESS).parts[0].removesuffix(".py")
    return "" if part == "__init__" else part


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(HARNESS.parent).with_suffix("").parts).removesuffix(".__init__")


def test_packages_import_what_the_table_allows() -> None:
    assert {package_of(path) for path in SOURCES} - {""} == set(ALLOWED)
    wrong = []
    for path in SOURCES:
        package = package_of(path)
        if package:
            allowed = {package, *ALLOWED[package].split()}
            used = {module.split(".")[1] for module, _ in imports_of(tree_of(path)) if module.startswith("vkharness.")}
            wrong += [f"{name_of(path)} imports {other}" for other in used & set(ALLOWED) - allowed]
    assert wrong == []


def test_the_table_has_no_circle_and_nothing_unused() -> None:
    used: dict[str, set[str]] = {package: set() for package in ALLOWED}
    for path in SOURCES:
        if package_of(path):
            modules = {module for module, _ in imports_of(tree_of(path)) if module.startswith("vkharness.")}
            used[package_of(path)] |= {module.split(".")[1] for module in modules}
    unused = {f"{one} -> {other}" for one in ALLOWED for other in set(ALLOWED[one].split()) - used[one]}
    assert unused == set()
    list(TopologicalSorter({package: allowed.split() for package, allowed in ALLOWED.items()}).static_order())


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for type checking count: a reader has to follow them, too."""
    modules = {module_of(path): path for path in SOURCES}
    graph = {
        module: {
            other
            for other, _ in imports_of(tree_of(path))
            if other in modules and other != module and not module.startswith(f"{other}.")
        }
        for module, path in modules.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_each_name_has_one_meaning() -> None:
    """No class name and no module name stands in two packages, except where the lists say why."""
    classes: dict[str, set[str]] = {}
    names: dict[str, set[str]] = {}
    for path in SOURCES:
        folder = path.parent.relative_to(HARNESS).as_posix()
        if path.stem != "__init__":
            names.setdefault(path.stem, set()).add(folder)
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.setdefault(node.name, set()).add(name_of(path))
    assert {name for name, places in classes.items() if len(places) > 1} == set(SAME_CLASS_NAME)
    assert {name for name, places in names.items() if len(places) > 1} == set(SAME_MODULE_NAME)


def test_the_model_expands_masks_by_itself() -> None:
    """It may not use the expansions that syncval uses."""
    used = {
        f"{name_of(path)} imports {module}"
        for path in SOURCES
        if package_of(path) == "model"
        for module, _ in imports_of(tree_of(path))
        if module.startswith(("vkharness.spec.scopes", "vkharness.spec.masks"))
    }
    assert used == set()


def test_third_party_packages_stay_where_they_belong() -> None:
    standard = sys.stdlib_module_names | {"vkharness"}
    wrong = []
    for path in SOURCES:
        for name, top in imports_of(tree_of(path)):
            third = name.split(".")[0]
            if third in standard:
                continue
            packages, where = THIRD_PARTY.get(third, ("", "nowhere"))
            if package_of(path) not in packages.split():
                wrong.append(f"{name_of(path)} imports {third}, which belongs to {packages or 'no package'}")
            elif top and where != "anywhere":
                wrong.append(f"{name_of(path)} must import {third} {where}")
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
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > (LONGEST_CLASS if isinstance(node, ast.ClassDef) else LONGEST_FUNCTION):
                    wrong.append(f"{name_of(path)}: {node.name} has {length} lines")
    assert wrong == []


def types_of(lines: list[str]) -> Iterator[tuple[str, int]]:
    """(name, number of lines) of the types that a source in C++ defines, by the indentation of their braces."""
    begun: list[tuple[str, str, int]] = []
    for number, line in enumerate(lines):
        if found := NATIVE_TYPE.match(line):
            begun.append((found["indent"], found["name"], number))
        elif begun and line.startswith(f"{begun[-1][0]}}}"):
            _, name, first = begun.pop()
            yield name, number - first + 1


def test_native_files_and_types_are_short_and_say_what_they_are() -> None:
    wrong = []
    long: dict[str, int] = {}
    for path in NATIVE:
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines[0].startswith("// "):
            wrong.append(f"{name_of(path)} does not begin with what it is")
        long |= {path.name: len(lines)} if len(lines) > LONGEST_FILE else {}
        long |= {name: length for name, length in types_of(lines) if length > LONGEST_CLASS}
    assert wrong == []
    assert {name: length for name, length in long.items() if length > TOO_LONG.get(name, 0)} == {}
    assert TOO_LONG.keys() - long.keys() == set(), "short by now: leave it out"


def test_no_drawer_for_everything() -> None:
    assert [name_of(path) for path in PYTHON if path.stem in {"utils", "util", "helpers", "misc", "common"}] == []


def test_the_word_that_selects_the_suite_selects_nothing_else() -> None:
    """Every module is read for that, here without the native core: each can be."""
    word = SUITE.removesuffix("s")
    command = [sys.executable, "-m", "pytest", "-k", word, "--collect-only", "-q", "-p", "no:cacheprovider"]
    pure = os.environ | {"VKHARNESS_PURE": "1"}
    result = subprocess.run(command, cwd=ROOT, env=pure, capture_output=True, text=True, check=False)
    selected = [line for line in result.stdout.splitlines() if "::" in line]
    assert selected and result.returncode == 0, result.stdout + result.stderr
    assert [line for line in selected if not line.startswith(f"{SUITE}/")] == []


def tracked_text() -> Iterator[tuple[str, str]]:
    """(name, text) of every tracked text file."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("no git, or no git checkout: nothing is tracked")
    listing = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in listing.stdout.decode().split("\0"):
        path = ROOT / name
        if not name or not path.is_file() or path in GENERATED:
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
    modules = [module_of(path) for path in SOURCES if path.stem != "worker"]
    result = bare("import importlib\n" + "".join(f"importlib.import_module({name!r})\n" for name in modules))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["run", "--help"], ["replay", "--help"]])
def test_the_command_starts_with_no_loader(arguments: list[str]) -> None:
    result = bare(f"from vkharness.cli import main\nmain({arguments!r})")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: vkharness")


def test_starting_the_command_loads_nothing_slow() -> None:
    result = bare("import vkharness.cli, sys\nprint(*sorted(sys.modules))")
    loaded = {name.split(".")[0] for name in result.stdout.split()}
    assert not loaded & {"numpy", "rich", "PIL", "pytest", "cffi", "_cffi_backend"}
