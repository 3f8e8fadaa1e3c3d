"""Builds the synchronization part of VK-GL-CTS from a checkout.

The suite's own build takes every test, and copies of glslang and SPIRV-Tools. This one writes a Ninja file for the
groups `memory`, `synchronization` and `synchronization2` alone and takes the libraries of the system. Nothing in the
checkout changes: a file that needs a change is written, changed, into the build folder.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from vkharness.findings import UserError

GROUPS = ("memory", "synchronization", "synchronization2")
PACKAGES = "g++ ninja-build libpng-dev libjsoncpp-dev glslang-dev spirv-tools spirv-headers"
MODULES = "external/vulkancts/modules/vulkan"
VULKAN = "external/vulkancts/framework/vulkan"
TESTS = tuple(f"{MODULES}/{name}" for name in ("util", "memory", "synchronization"))
DELIBS = tuple(f"framework/delibs/{name}" for name in ("debase", "decpp", "depool", "dethread", "destream", "deutil"))
SOURCES = (
    *DELIBS,
    "framework/delibs/dethread/unix",
    "framework/qphelper",
    "framework/common",
    "framework/xexml",
    "framework/referencerenderer",
)
INCLUDES = (
    *DELIBS,
    *(
        f"framework/{name}"
        for name in ("qphelper", "common", "xexml", "platform", "opengl", "opengl/wrapper", "referencerenderer")
    ),
    VULKAN,
    f"{VULKAN}/generated/vulkan",
    MODULES,
    *TESTS,
)
FILES = (
    "framework/platform/tcuMain.cpp",
    *(f"framework/opengl/glu{name}.cpp" for name in ("ShaderProgram", "ShaderUtil", "VarType")),
    f"{MODULES}/image/vktImageTestsUtil.cpp",
)
HARNESS = (
    "TestPackage",
    "TestPackageEntry",
    "TestCase",
    "TestCaseUtil",
    "TestGroupUtil",
    "ContextManager",
    "CustomInstancesDevices",
)
LEFT_OUT = re.compile(r"(Test\.c|^pch\.cpp|Mach\.c|standalone_test\.c|^vkRenderDocUtil\.cpp)$")
HERE = Path(__file__).resolve().parent
# The suite's header of the whole harness, which nearly every file of the tests includes, is compiled once.
COMMON = "vktTestCase.hpp"
NINJA = """
flags = -O0 -w -DDE_ASSERT_FAILURE_CALLBACK -DCTS_USES_VULKAN -DDEQP_SUPPORT_DRM=0 -DQP_SUPPORT_PNG $
  -DDEQP_TARGET_NAME="\"vkharness\"" -I/usr/include/jsoncpp -I/usr/include/glslang
cflags = -std=gnu11 -D_XOPEN_SOURCE=700 -D_DEFAULT_SOURCE
rule c
  command = gcc $cflags $flags $includes -MMD -MF $out.d -c $in -o $out
  description = $out
  depfile = $out.d
rule cxx
  command = g++ -std=c++17 $flags $with $includes -MMD -MF $out.d -c $in -o $out
  description = $out
  depfile = $out.d
rule common
  command = g++ -std=c++17 $flags $includes -MMD -MF $out.d -x c++-header -c $in -o $out
  description = $out
  depfile = $out.d
rule link
  command = g++ -Wl,--gc-sections -s @$out.rsp -o $out $libraries
  rspfile = $out.rsp
  rspfile_content = $in_newline
libraries = -lglslang -lMachineIndependent -lGenericCodeGen -lOSDependent -lOGLCompiler -lHLSL -lSPIRV $
  -lSPIRV-Tools-opt -lSPIRV-Tools -lpng -ljsoncpp -ldl -lpthread
build common.hpp.gch: common common.hpp
"""


def sources(checkout: Path) -> Iterator[Path]:
    """The files of the checkout that are compiled, in order."""
    for folder in (*SOURCES, VULKAN, *TESTS):
        found = [path for path in sorted((checkout / folder).glob("*.c*")) if path.suffix in (".c", ".cpp")]
        if not found:
            raise UserError(f"{checkout}: no sources in {folder}; give a checkout of KhronosGroup/VK-GL-CTS")
        yield from (path for path in found if not LEFT_OUT.search(path.name))
    yield from (checkout / each for each in FILES)
    yield from (checkout / f"{MODULES}/vkt{each}.cpp" for each in HARNESS)


def trim_package(text: str, checkout: Path) -> str:
    """vktTestPackage.cpp with the groups of `GROUPS` alone, and without the headers of the others."""
    folders = [checkout / each for each in INCLUDES]

    def kept(line: str) -> bool:
        include = re.match(r'#include "(vkt\w+\.hpp)"', line)
        group = re.match(r'\s*addRootChild\("(\w+)"', line)
        if include:
            return any((folder / include[1]).exists() for folder in folders)
        return not group or group[1] in GROUPS

    text = re.sub(r"^(?:void|tcu::TestCaseGroup \*)\s*createGlslTests\(.*?^}\n", "", text, flags=re.M | re.S)
    return "".join(line for line in text.splitlines(keepends=True) if kept(line))


def fit_tools(text: str, headers: str) -> str:
    """A file of the suite without the options and the targets that the system's SPIRV-Tools lack."""

    def kept(call: re.Match[str]) -> str:
        return call[0] if call[1] in headers else ";"

    text = re.sub(r"validator_options\.(\w+)\([^;]*\);", kept, text)
    text = re.sub(r"(spvValidatorOptionsSet\w+)\([^;]*\);", kept, text)
    return text if "SPV_ENV_VULKAN_1_4" in headers else text.replace("SPV_ENV_VULKAN_1_4", "SPV_ENV_VULKAN_1_3")


def silence_structures(text: str) -> str:
    """vkStrUtilImpl.inl with structures that print nothing. They are for logs that nobody keeps, and take the compiler
    minutes."""
    return re.sub(
        r"^(std::ostream& operator<< \([^\n]*, const Vk\w+& value\)\n){.*?^}$",
        r"\1{ return s; }",
        text,
        flags=re.M | re.S,
    )


def write(checkout: Path, folder: Path) -> Path:
    """Writes the Ninja file and the changed sources into the folder. Returns the program's path. Raises UserError."""
    folder.mkdir(parents=True, exist_ok=True)
    headers = "".join(path.read_text() for path in sorted(Path("/usr/include/spirv-tools").glob("libspirv.h*")))
    _put(folder / "common.hpp", f'#include "{COMMON}"\n')
    names = checkout / VULKAN / "generated/vulkan/vkStrUtilImpl.inl"
    _put(folder / names.name, silence_structures(names.read_text(encoding="utf-8")))
    lines = [f"includes = -I. {' '.join(f'-I{checkout / each}' for each in INCLUDES)}", NINJA]
    objects = []
    for path in (*sources(checkout), HERE / "platform.cpp"):
        text = path.read_text(encoding="utf-8")
        changed = trim_package(text, checkout) if path.name == "vktTestPackage.cpp" else fit_tools(text, headers)
        if changed != text:
            path = folder / path.name
            _put(path, changed)
        objects.append(f"{path.name}.o")
        lines.append(f"build {path.name}.o: {'c' if path.suffix == '.c' else 'cxx'} {path}")
        if path.name.startswith("vk"):
            lines[-1] += " | common.hpp.gch\n  with = -include common.hpp"
    lines.append(f"build deqp-sync: link {' '.join(objects)}\n")
    _put(folder / "build.ninja", "\n".join(lines))
    return folder / "deqp-sync"


def _put(path: Path, text: str) -> None:
    """Writes a file unless it has that text already: what depends on it is not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def build(checkout: Path, folder: Path, jobs: int) -> Path:
    """Builds the program. Raises UserError if it cannot be."""
    program = write(checkout.resolve(), folder.resolve())
    try:
        ran = subprocess.run(["ninja", "-C", str(folder), "-j", str(jobs)], check=False)
    except FileNotFoundError:
        raise UserError(f"ninja is not installed; the build needs {PACKAGES}") from None
    if ran.returncode:
        raise UserError(f"{folder}: the build failed; it needs {PACKAGES} (Debian's names)")
    return program
