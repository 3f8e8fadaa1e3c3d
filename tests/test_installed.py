"""The installed wheel as its user has it: no checkout, and every command in a folder of their own.

The environment has the wheel, and the other packages of the environment that runs this test. That `pip` brings these
packages is not tested here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from vkharness import native
from vkharness.native import build

pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed (ci/setup installs it)")

ROOT = Path(__file__).resolve().parents[1]
TRACE = ROOT / "tests" / "data" / "gfxrecon" / "upstream-1.x.jsonl"
SUITE = "scenarios"
ONE = ("-k", "repeating_a_barrier_adds_nothing", "--vk-device", "lavapipe", "--vk-layer", "off", "-q")
"""Four rows of the suite."""


def run(*command: object, folder: Path = ROOT, variables: dict[str, str] | None = None) -> tuple[int, str]:
    """Exit code and output. The checkout is not where Python looks for modules."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    ran = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=inherited | (variables or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout


def built(target: str, folder: Path) -> Path:
    """The wheel or sdist of this checkout."""
    code = f"import hatchling.build as b; print(b.build_{target}({str(folder)!r}))"
    status, output = run(sys.executable, "-P", "-c", code, variables=stand_in_for_the_compiler(folder))
    assert status == 0, output
    return folder / output.splitlines()[-1]


def stand_in_for_the_compiler(folder: Path) -> dict[str, str]:
    """A compiler that hands out the native core of the checkout, which ci/setup made of the same sources by the same
    hook: to compile it takes half a minute. Nothing where there is none, or none of these sources."""
    if native.core is None:
        return {}
    program = folder / "compiler"
    core = build.FOLDER / build.file_name()
    program.write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nexec cp \'{core}\' "$2"\n')
    program.chmod(0o755)
    return {"CXX": str(program)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("installed")
    assert run(sys.executable, "-m", "venv", "--without-pip", folder)[0] == 0
    python = folder / "bin" / "python"
    status, output = run(
        sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-compile", wheel
    )
    assert status == 0, output
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    # A path in a .pth file is searched last, and the .pth file of the checkout that is in it does not count.
    (Path(run(python, "-c", where)[1].strip()) / "others.pth").write_text(sysconfig.get_path("purelib"))
    _, found = run(python, "-P", "-c", "import vkharness; print(vkharness.__file__)", folder=folder)
    assert found.startswith(str(folder)), found
    return python.parent


def files(folder: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("no git, or no git checkout: nothing says which files belong to it")
    return set(listed.stdout.splitlines())


def test_the_wheel_has_every_file_of_the_package_and_of_the_suite(wheel: Path) -> None:
    there = set(zipfile.ZipFile(wheel).namelist())
    sources = {name.replace("shaders/", "vkharness/_shaders/", 1) for name in files("shaders")}
    suite = {f"vkharness/_suite/{name}" for name in files(SUITE)}
    assert len(suite) > 80 and len(sources) > 100
    package = {name.removeprefix("harness/") for name in files("harness")}
    assert (package | sources | suite) - there == set()
    assert {name.partition("/")[0] for name in there if ".dist-info/" not in name} == {"vkharness"}


def test_the_sdist_has_what_the_tests_need(tmp_path: Path) -> None:
    with tarfile.open(built("sdist", tmp_path)) as archive:
        there = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in files(".") if not name.startswith(".")} - there == set()


def a_project_with_a_folder_called_harness(folder: Path) -> Path:
    """Many projects have a package of that name for their tests."""
    (folder / "harness").mkdir()
    (folder / "harness" / "__init__.py").touch()
    (folder / "harness" / "mine.py").write_text("X = 1\n")
    return folder


@pytest.mark.driver
def test_the_suite_runs_without_a_checkout(programs: Path, tmp_path: Path) -> None:
    a_project_with_a_folder_called_harness(tmp_path)
    status, output = run(programs / "vkharness", "suite", *ONE, folder=tmp_path)
    assert status == 0 and "4 passed" in output and "warning" not in output, output
    assert (tmp_path / "artifacts" / "results.jsonl").exists()
    row = f"{SUITE}/barrier/scenario_chains.py::nothing"
    status, output = run(programs / "vkharness", "suite", row, *ONE, folder=tmp_path)
    assert status == pytest.ExitCode.USAGE_ERROR and "::nothing" in output, "exit codes are pytest's"


@pytest.mark.driver
def test_the_other_commands_need_no_checkout(programs: Path, tmp_path: Path) -> None:
    for status, *arguments in [
        (1, "check", TRACE),
        (0, "drivers"),
        (0, "matrix", "--sample", "1", "--device", "lavapipe", "--layer", "off", "--jobs", "1"),
        (0, "mutate", "--sample", "1", "--layer", "off", "--jobs", "1"),
    ]:
        found, output = run(programs / "vkharness", *arguments, folder=tmp_path)
        assert found == status, output


@pytest.mark.driver
def test_a_new_project_runs_with_the_wheel_alone(programs: Path, tmp_path: Path) -> None:
    status, output = run(programs / "vkharness", "init", "mine", folder=tmp_path)
    assert status == 0, output
    written = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "mine").rglob("*") if path.is_file()}
    assert written == set(output.splitlines()[:-1]) and "mine/.gitlab-ci.yml" in written
    command = output.splitlines()[-1].partition("&& pytest ")[2].split()
    status, output = run(programs / "python", "-P", "-m", "pytest", *command, folder=tmp_path / "mine")
    assert status == 0 and "2 passed" in output, output
    assert (tmp_path / "mine" / "report" / "index.html").exists()
    for file in (".github/workflows/scenarios.yml", ".gitlab-ci.yml"):
        assert f"pytest {' '.join(command[:4])}" in (tmp_path / "mine" / file).read_text()
    before = {path: path.read_bytes() for path in (tmp_path / "mine").rglob("*.yml")}
    status, output = run(programs / "vkharness", "init", "mine", folder=tmp_path)
    assert status == 2 and len(output.splitlines()) == 1 and "nothing was written" in output
    assert {path: path.read_bytes() for path in before} == before


def steps_of(file: str, text: str) -> list[str]:
    """The scripts of a file for continuous integration, each for a shell of its own."""
    jobs = yaml.safe_load(text)
    if "gitlab" in file:
        (job,) = jobs.values()
        return ["\n".join(job["script"])]
    (job,) = jobs["jobs"].values()
    assert all(len({"uses", "run"} & step.keys()) == 1 for step in job["steps"])
    return [step["run"] for step in job["steps"] if "run" in step]


def stand_ins(folder: Path, wheel: Path) -> dict[str, str]:
    """The whole environment of a new machine. `pip` takes the wheel in place of the index, and the other packages of
    this environment with it; apt-get only notes what it was asked for."""
    (folder / "bin").mkdir()
    assert run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")[0] == 0
    python = folder / "venv" / "bin" / "python"
    where = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")[1].strip()
    others = f"echo {sysconfig.get_path('purelib')} > {where}/others.pth"
    for name, text in {
        "sudo": 'exec "$@"',
        "apt-get": f'echo "$@" >> {folder}/apt-get',
        "pip": f'{sys.executable} -m pip --python {python} "$@" && {others}',
        "pytest": f'exec {python} -P -m pytest "$@"',
    }.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    return {
        "PATH": f"{folder}/bin:{folder}/venv/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_COMPILE": "1",
        "PIP_FIND_LINKS": str(wheel.parent),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@pytest.mark.driver
@pytest.mark.slow
@pytest.mark.parametrize("file", [".github/workflows/scenarios.yml", ".gitlab-ci.yml"], ids=["GitHub", "GitLab"])
def test_the_steps_for_continuous_integration_run_as_written(
    wheel: Path, programs: Path, tmp_path: Path, file: str
) -> None:
    project, machine = tmp_path / "mine", tmp_path / "machine"
    assert run(programs / "vkharness", "init", project, folder=tmp_path)[0] == 0
    machine.mkdir()
    environ = stand_ins(machine, wheel)
    if "gitlab" in file:  # the wheel by its path, and no index that has it
        del environ["PIP_FIND_LINKS"]
        environ["VKHARNESS"] = str(wheel)
    for step in steps_of(file, (project / file).read_text()):
        ran = subprocess.run(
            ["bash", "-e", "-c", step],
            cwd=project,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{step}\n{ran.stdout}"
    assert "2 passed" in ran.stdout
    update, install = (machine / "apt-get").read_text().splitlines()
    asked = {word for word in install.split()[1:] if not word.startswith("-")}
    assert update == "update" and asked == {"libvulkan1", "mesa-vulkan-drivers", "vulkan-validationlayers"}
    brought = (ROOT / "harness" / "vkharness" / "device" / "bring_drivers.bash").read_text()
    assert [name for name in asked if name not in brought] == []
    assert (project / "report" / "index.html").exists() and (project / "artifacts" / "results.jsonl").exists()
    assert (project / "junit.xml").exists() == ("gitlab" in file)


@pytest.mark.driver
@pytest.mark.parametrize("how", [(), ("-P",)], ids=["python -m pytest", "pytest"])
def test_a_project_with_a_folder_called_harness_is_checked(
    programs: Path, tmp_path: Path, how: tuple[str, ...]
) -> None:
    """`-P` keeps the current folder out of the path, as the program pytest does."""
    a_project_with_a_folder_called_harness(tmp_path)
    test = "import sys; sys.path.insert(0, '.')\nfrom harness.mine import X\n\n\ndef test_x():\n    assert X == 1\n"
    (tmp_path / "test_mine.py").write_text(test)
    command = (programs / "python", *how, "-m", "pytest", "-p", "no:cacheprovider", "--vk-sync")
    status, output = run(*command, folder=tmp_path)
    assert status == 0 and "1 passed" in output, output
