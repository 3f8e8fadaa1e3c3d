"""Code of calls, in C and in Python, is what was meant to whoever reads it: texts, bytes and odd numbers stay data."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.test_generated_text import BREAKS, EVERYTHING
from vkharness.fuzz.filled_calls import arguments, struct
from vkharness.generated_text import c_string
from vkharness.replay.objects.encode import EncodedMember, members
from vkharness.report.call_code import C, Language, Python, handle_name
from vkharness.spec._generated import BITMASKS, ENUMS, HANDLES, STYPES, TYPE_ALIASES

HEADER = Path("/usr/include/vulkan/vulkan_core.h")
INCLUDES = "#define VK_ENABLE_BETA_EXTENSIONS\n" + "".join(
    f"#include <{each}.h>\n" for each in ("math", "vulkan/vulkan")
)
DEEPEST = 3
CODE = '"); system("touch pwned"); //\n*/ #error \\'


def value_of(member: EncodedMember, text: str, depth: int) -> Any:
    """A value of a member, with this text wherever one may stand; None for what this test leaves out."""
    type = TYPE_ALIASES.get(member.type, member.type)
    if member.name == "pNext" or member.type.startswith("PFN_") or member.kind == "union":
        return None
    if member.kind == "text":
        made: Any = [text] * 2 if member.pointer > 1 else text if member.pointer else text[:40]
        return made
    if member.kind == "void":
        return b'\x00\xff"\n\\' if member.pointer == 1 else None
    if member.kind == "struct":
        if depth == DEEPEST or member.pointer > 1:
            return None
        made = filled(member.type, text, depth + 1)
        several = member.dims[0] if member.dims else 2
        return [made] * several if member.dims or (member.pointer and member.length) else made
    one: float = 7 if type in HANDLES else min(ENUMS[type].values()) if type in ENUMS else 3 if type in BITMASKS else 1
    if member.kind == "float":
        one = float("inf") if "max" in member.name else 0.5
    if member.dims:
        return None if len(member.dims) > 1 or not isinstance(member.dims[0], int) else [one] * member.dims[0]
    return [one] * 2 if member.pointer and member.length else None if member.pointer else one


def filled(name: str, text: str, depth: int = 0) -> dict[str, Any]:
    """A struct with a value in each member, and counts that fit."""
    values = {each.name: value_of(each, text, depth) for each in members(TYPE_ALIASES.get(name, name))}
    lengths = {each.length: values[each.name] for each in members(TYPE_ALIASES.get(name, name)) if each.length}
    counts = {each: len(held) if held else 0 for each, held in lengths.items() if each in values}
    given = {key: held for key, held in values.items() if held is not None and key != "sType"}
    return {**struct(name), **given, **counts}


def barrier(chain: dict[str, Any] | None) -> dict[str, Any]:
    """A barrier with something in the chain of a struct."""
    memory = struct("VkMemoryBarrier2", srcStageMask=1, dstStageMask=1 << 60, pNext=chain)
    info = struct("VkDependencyInfo", pMemoryBarriers=[memory])
    return arguments("vkCmdPipelineBarrier2", commandBuffer=5, pDependencyInfo=info)


def chained(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A barrier with each struct that may be in a chain."""
    for name in sorted(set(STYPES.values())):
        yield name, barrier(filled(name, text))


def code(language: type[Language], args: dict[str, Any]) -> str:
    return "\n".join(language().call("vkCmdPipelineBarrier2", args))


def shape(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            node.value = type(node.value)()
    return ast.dump(tree)


def test_python_is_the_same_program_whatever_a_text_says() -> None:
    texts = 0
    for (name, hostile), (_, plain) in zip(chained(EVERYTHING), chained("plain"), strict=True):
        ours, theirs = code(Python, hostile), code(Python, plain)
        assert shape(ours) == shape(theirs), name
        assert ours.isprintable(), name
        said = {each.value for each in ast.walk(ast.parse(ours)) if isinstance(each, ast.Constant)}
        if "'plain'" in theirs or '"plain"' in theirs:
            assert said & {EVERYTHING, EVERYTHING[:40]}, name
            texts += 1
    assert texts > 10


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (ci/setup installs g++)")
def test_a_compiler_reads_a_text_as_it_is(tmp_path: Path) -> None:
    texts = [EVERYTHING, CODE, *BREAKS, "??/", "\ud800"]
    lines = "".join(
        f'    fwrite({each}, 1, sizeof {each} - 1, stdout); putchar(0); puts("--");\n' for each in map(c_string, texts)
    )
    source, program = tmp_path / "texts.c", tmp_path / "texts"
    source.write_text(f"#include <stdio.h>\nint main(void) {{\n{lines}}}\n", encoding="ascii")
    subprocess.run(["cc", "-std=c99", "-trigraphs", "-o", program, source], check=True)
    said = subprocess.run([program], capture_output=True, check=True).stdout.split(b"\0--\n")[:-1]
    bytes_of = [each.encode("utf-8", "surrogatepass" if each == "\ud800" else "surrogateescape") for each in texts]
    assert said == bytes_of


def without_strings(text: str) -> str:
    return re.sub(r'"(\\.|[^"\\])*"', "", text)


def known_to(header: set[str], text: str) -> bool:
    """Whether all names of Vulkan and all members in the code stand in the header, which may be an older one."""
    return set(re.findall(r"\bV[Kk]\w+|(?<=\.)[a-z]\w+(?= =)", without_strings(text))) <= header


def handles_in(text: str) -> dict[str, str]:
    """The handles that the code names, with their types."""
    named = {handle_name(each, 7): each for each in (*HANDLES, *TYPE_ALIASES)}
    used = set(re.findall(r"\b[a-z]\w*7\b", without_strings(text)))
    return {each: named[each] for each in used if each in named}


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (ci/setup installs g++)")
@pytest.mark.skipif(not HEADER.exists(), reason="there are no headers of Vulkan (ci/setup installs libvulkan-dev)")
def test_a_compiler_takes_all_code_in_c(tmp_path: Path) -> None:
    header, functions = set(re.findall(r"\w+", HEADER.read_text())), []
    for number, (name, args) in enumerate(chained(EVERYTHING + CODE)):
        text = code(C, args)
        assert all(each.isprintable() or each == "\n" for each in text), name
        if known_to(header, text):
            parameters = "".join(f", {type} {handle}" for handle, type in sorted(handles_in(text).items()))
            functions.append(f"void f{number}(VkCommandBuffer commandBuffer5{parameters}) {{ // {name}\n{text}\n}}\n")
    assert len(functions) > 300
    source = tmp_path / "barriers.c"
    source.write_text(
        "#define VK_ENABLE_BETA_EXTENSIONS\n#include <math.h>\n#include <stddef.h>\n#include <vulkan/vulkan.h>\n"
        + "".join(functions)
    )
    told = subprocess.run(
        ["cc", "-std=c99", "-fsyntax-only", "-w", source], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr[:6000]


@pytest.mark.parametrize("language", [C, Python])
def test_a_struct_of_a_chain_that_nobody_knows_is_none_in_code(language: type[Language]) -> None:
    text = code(language, barrier({"sType": 1 << 30, "pNext": None}))
    assert "VkBaseInStructure" in text and str(1 << 30) in text
