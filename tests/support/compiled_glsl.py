"""GLSL that tests compile: many shaders, without the Python that the package puts around the compiler."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

from vkharness.shader.own_shader import COMPILER, compiler

GLSLANG = compiler()
OPTIONS = ("-V", "--quiet", "-g", "--target-env", "vulkan1.2", "--keep-uncalled")
LINES = "#extension GL_GOOGLE_cpp_style_line_directive : require\n"
FUNCTION_LINE = 10
"""The line of each function of `compile_functions` in the file that its debug information names, NAME.comp."""
HEADER, NAME, ENTRY_POINT, EXECUTION_MODE, FUNCTION, FUNCTION_END = 5, 5, 15, 16, 54, 56
"""Words before the instructions of a module, and opcodes."""
Words = tuple[int, ...]


def compile_all(folder: Path, sources: Mapping[str, str]) -> None:
    """Compiles compute shaders with their lines: NAME.comp and NAME.spv of each appear in a folder."""
    program, environment = _inside_wheel()
    for name, source in sources.items():
        (folder / f"{name}.comp").write_text(source)
    for name in sources:
        command = [program, *OPTIONS, f"{name}.comp", "-o", f"{name}.spv"]
        subprocess.run(command, cwd=folder, check=True, env=environment)


def compile_functions(folder: Path, head: str, bodies: Mapping[str, str]) -> None:
    """Compiles compute shaders that have all but the body of main() in common, in one process: NAME.spv of each.

    `head` is a shader with an empty main() that has `LINES` among its extensions.
    """
    lines = [f'#line {FUNCTION_LINE} "{name}.comp"\nvoid run_{name}() {{\n{body}\n}}' for name, body in bodies.items()]
    compile_all(folder, {"functions": "\n".join([head, *lines, ""])})
    code = (folder / "functions.spv").read_bytes()
    before, functions = _parts(struct.unpack(f"<{len(code) // 4}I", code))
    ids = {_text(each[2:]): each[1] for each in before if each[0] & 0xFFFF == NAME}
    for name in bodies:
        id = ids[f"run_{name}("]
        own = [_entered_at(each, id) for each in before] + functions[id]
        words = [word for each in own for word in each]
        (folder / f"{name}.spv").write_bytes(code[: HEADER * 4] + struct.pack(f"<{len(words)}I", *words))


def _parts(words: Words) -> tuple[list[Words], dict[int, list[Words]]]:
    """The instructions before the functions of a module, and those of each function by its id."""
    before: list[Words] = []
    functions: dict[int, list[Words]] = {}
    at, into = HEADER, before
    while at < len(words):
        instruction = words[at : at + (words[at] >> 16)]
        at += len(instruction)
        if instruction[0] & 0xFFFF == FUNCTION:
            into = functions[instruction[2]] = []
        into.append(instruction)
        if instruction[0] & 0xFFFF == FUNCTION_END:
            into = []
    return before, functions


def _entered_at(instruction: Words, function: int) -> Words:
    """An instruction before the functions, of a module whose entry point is this function."""
    opcode = instruction[0] & 0xFFFF
    if opcode == ENTRY_POINT:
        return (*instruction[:2], function, *instruction[3:])
    return (instruction[0], function, *instruction[2:]) if opcode == EXECUTION_MODE else instruction


def _text(words: Words) -> str:
    return struct.pack(f"<{len(words)}I", *words).split(b"\0")[0].decode()


def _inside_wheel() -> tuple[str, dict[str, str]]:
    """The compiler, and the environment in which it runs."""
    environment = dict(os.environ)
    for prefix in Path(str(GLSLANG)).parent.parent.glob("lib/python*/site-packages/cmeel.prefix"):
        if (prefix / "bin" / COMPILER).is_file():
            environment["LD_LIBRARY_PATH"] = str(prefix / "lib")
            return str(prefix / "bin" / COMPILER), environment
    return str(GLSLANG), environment
