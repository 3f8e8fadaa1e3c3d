"""The project's shaders: their SPIR-V is what their source compiles to, and is found by name."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from tests.support.spirv_text import complaint
from vkharness.findings import UserError
from vkharness.shader import library, own_shader
from vkharness.shader.reflect import reflect

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("compile_shaders", ROOT / "ci" / "compile_shaders.py")
assert _spec is not None and _spec.loader is not None
compile_shaders = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(compile_shaders)

SOURCES = compile_shaders.sources()


@pytest.mark.parametrize("source", SOURCES, ids=[source.name for source in SOURCES])
def test_recompiling_changes_nothing(source: Path) -> None:
    code = compile_shaders.compile_source(source)
    assert code == source.with_name(source.name + ".spv").read_bytes()
    assert complaint(code) == ""


def test_every_module_has_a_source() -> None:
    assert compile_shaders.orphans() == []
    assert library.names() == [source.name for source in SOURCES]


def test_a_broken_source_gives_the_compilers_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.comp"
    broken.write_text("#version 450\nvoid main() { nothing = 1; }\n")
    with pytest.raises(compile_shaders.click.ClickException, match="'nothing' : undeclared identifier"):
        compile_shaders.compile_source(broken)


def test_every_source_says_what_it_does() -> None:
    silent = [source.name for source in SOURCES if not source.read_text().splitlines()[1].startswith(("//", "#ext"))]
    assert silent == []


@pytest.mark.parametrize("name", library.names())
def test_every_shader_is_reflected_whole(name: str) -> None:
    entry = reflect(library.load(name), "main")
    assert entry.unmodelled == ()
    assert {use.set for use in entry.uses} <= {0, 1}


VARIED = ["array_constant_copy", "early_tests", "half_range_copy", "sampled_separate", "sum_uniform", "size_only"]


@pytest.mark.parametrize("target", ["vulkan1.0", "vulkan1.2 -g", "vulkan1.3 -gVS", "vulkan1.3 -O"])
@pytest.mark.parametrize("name", VARIED)
def test_uses_do_not_depend_on_how_a_shader_is_compiled(name: str, target: str, tmp_path: Path) -> None:
    """Old-style buffer blocks, debug information, SPIR-V 1.6 and the optimizer change the code, not what it touches."""
    (source,) = [path for path in SOURCES if path.stem == name]
    tools, made = compile_shaders.compiler().parent, tmp_path / "module.spv"
    options = [option for option in target.split() if option != "-O"]
    compile_it = [tools / "glslangValidator", "--quiet", "--target-env", *options, "-o", made, source]
    subprocess.run(compile_it, check=True, capture_output=True)
    if "-O" in target:
        subprocess.run([tools / "spirv-opt", "-O", made, "-o", made], check=True, capture_output=True)
    assert made.read_bytes() != library.load(name)
    assert reflect(made.read_bytes(), "main") == reflect(library.load(name), "main")


def test_a_shader_is_loaded_with_or_without_its_stage() -> None:
    assert library.load("fill_words") == library.load("fill_words.comp")
    assert library.load("fetch_ms_color") != library.load("fetch_ms_color_array")


@pytest.mark.parametrize("name", ["no_such", "", "../shaders/fill_words", "fill_words.comp.spv", "fill*", "fill"])
def test_an_unknown_name_gives_one_line(name: str) -> None:
    with pytest.raises(UserError, match="no shader is called") as raised:
        library.load(name)
    assert "\n" not in str(raised.value)


def test_an_installed_copy_comes_before_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.comp.spv").write_bytes(b"\x03\x02\x23\x07")
    monkeypatch.setattr(library, "FOLDERS", (tmp_path, *library.FOLDERS))
    assert library.names() == ["only_here.comp"]


DOUBLE = ROOT / "harness" / "vkharness" / "suite" / "project" / "scenarios" / "shaders" / "double_words.comp"


def test_a_shader_of_a_user_is_compiled_or_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = DOUBLE.with_name("double_words.comp.spv").read_bytes()
    source = tmp_path / "own.comp"
    source.write_bytes(DOUBLE.read_bytes())
    assert library.load(source) == library.load(DOUBLE) == made, "nothing but the source is here"
    monkeypatch.setattr(own_shader, "compiler", lambda: None)
    own_shader.load_file.cache_clear()
    assert library.load(DOUBLE) == made
    with pytest.raises(UserError, match=r"no glslangValidator here to compile it .*, and no own\.comp\.spv"):
        library.load(source)


def test_a_file_that_is_no_shader_gives_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.spv").write_text("no shader")
    for name, message in [("absent.comp", "no such file"), ("absent.spv", "No such file"), ("text.spv", "not SPIR-V")]:
        with pytest.raises(UserError, match=message) as raised:
            library.load(tmp_path / name)
        assert "\n" not in str(raised.value)


def test_missing_shaders_give_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "FOLDERS", (tmp_path / "absent",))
    with pytest.raises(UserError, match="the shaders are missing"):
        library.names()
