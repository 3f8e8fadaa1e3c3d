"""Modules that have to be loaded before anything happens. Each figure is a set of modules or a count, never a time; how
long the same starts take says `bench/start.py`."""

from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TRACE = ROOT / "tests" / "data" / "gfxrecon" / "upstream-1.x.jsonl"
CLAIM = "_".join(["scenario", "repeating_a_barrier_adds_nothing"])
"""Not in one piece, which would make this module one that names it."""
COLLECT = ["--collect-only", "-q", "-p", "no:cacheprovider"]
STARTED = """
import sys
children = []
sys.addaudithook(lambda event, _: children.append(event) if event in ("subprocess.Popen", "os.posix_spawn") else None)
"""
"""Begins a program that says, in `children`, which processes it started."""


def modules_after(code: str, *arguments: str, cwd: Path = ROOT) -> set[str]:
    """Returns the modules that a new Python has loaded when `code` is done; `arguments` are in `sys.argv`."""
    code = f"{STARTED}\ntry:\n    exec({code!r})\nfinally:\n    print('MODULES', *sys.modules, *children)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    line = next((each for each in done.stdout.splitlines() if each.startswith("MODULES")), None)
    assert line is not None, done.stderr
    return set(line.split()[1:])


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "vkharness"}


def packages(modules: set[str]) -> set[str]:
    """Third-party packages, and packages of ours as `vkharness.x`."""
    names = {".".join(name.split(".")[: 2 if name.startswith("vkharness.") else 1]) for name in modules}
    return names - set(sys.stdlib_module_names)


def test_the_package_itself_loads_nothing() -> None:
    bare = modules_after("pass")
    assert packages(modules_after("import vkharness") - bare) == {"vkharness"}


def test_the_facts_of_synchronization_load_no_large_table() -> None:
    code = "import vkharness.spec.scopes, vkharness.spec.masks, vkharness.spec._generated as g; print(sorted(vars(g)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "'SYNC_ACCESSES'" in done.stdout
    assert not any(f"'{name}'" in done.stdout for name in ("STRUCTS", "COMMANDS", "ENUMS", "BITMASKS"))


def test_a_check_loads_both_judges_and_nothing_that_runs_or_draws() -> None:
    loaded = modules_after("from vkharness.cli import main; main(sys.argv[1:])", "check", str(TRACE))
    assert {"vkharness.syncval.validator", "vkharness.model.judge", "vkharness.report.text"} <= loaded
    beside = {"numpy", "PIL", "jinja2", "graphviz", "vulkan", "cffi", "_cffi_backend", "pytest", "hypothesis"}
    beside |= {f"vkharness.{each}" for each in ("record", "device", "rig", "replay", "layer", "suite")}
    assert not packages(loaded) & beside


def test_a_check_without_the_model_does_not_load_it() -> None:
    loaded = modules_after(
        "from vkharness.cli import main; main(sys.argv[1:])", "check", "--model", "never", str(TRACE)
    )
    assert "vkharness.syncval.validator" in loaded and "vkharness.model" not in loaded


def test_what_judges_reads_no_shader_before_a_pipeline_has_one() -> None:
    assert "vkharness.shader.reflect" not in modules_after("import vkharness.check")


def test_a_run_of_pytest_that_asks_for_nothing_loads_the_plugin_alone(tmp_path: Path) -> None:
    (tmp_path / "test_anything.py").write_text("def test_a() -> None:\n    pass\n")
    code = "import pytest; assert pytest.main(['-q', '-p', 'no:cacheprovider']) == 0"
    assert ours(modules_after(code, cwd=tmp_path)) == {"vkharness", "vkharness.pytest_plugin"}


@pytest.mark.parametrize(
    "chosen", [["scenarios/barrier/scenario_chains.py", "-k", CLAIM], ["-k", CLAIM]], ids=["in", "all"]
)
def test_to_collect_one_claim_is_to_import_its_module(chosen: list[str]) -> None:
    code = "import pytest; assert pytest.main(sys.argv[1:]) == 0"
    loaded = modules_after(code, *chosen, *COLLECT)
    collected = {name for name in loaded if name.split(".")[-1].startswith(("scenario_", "test_"))}
    assert collected == {"scenarios.barrier.scenario_chains"}
    judges = {f"vkharness.{each}" for each in ("model", "replay", "commands", "syncval", "record")}
    assert packages(loaded) & (judges | {"numpy", "vulkan", "jinja2", "PIL"}) == set()
    assert not loaded & {"subprocess.Popen", "os.posix_spawn"}, "no driver and no layer is asked before a row runs"


@pytest.mark.parametrize("module", ["click", "vkharness.findings", "vkharness.cli.graph", "vkharness.check"])
@pytest.mark.parametrize("as_module", [False, True])
def test_an_interrupt_while_it_loads_ends_it_as_the_signal_would(module: str, as_module: bool) -> None:
    """Ctrl-C comes as the command, or what a subcommand needs, is about to be imported."""
    script = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["vkharness"]
    start = "runpy.run_module('vkharness', run_name='__main__')"
    if not as_module:
        start = "getattr(importlib.import_module({!r}), {!r})()".format(*script.split(":"))
    code = f"""if True:
        import importlib, os, runpy, signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
        class Interrupts:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}:
                    os.kill(os.getpid(), signal.SIGINT)
        sys.meta_path.insert(0, Interrupts())
        {start}"""
    ended = subprocess.run([sys.executable, "-c", code, "graph", "t.jsonl"], cwd=ROOT, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr, ended.stdout) == (-signal.SIGINT, b"", b"")
