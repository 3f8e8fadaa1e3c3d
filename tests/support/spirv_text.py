"""SPIR-V assembled from text, for shaders that GLSL cannot express."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

HEADER = """
OpCapability Shader
{capabilities}
%glsl = OpExtInstImport "GLSL.std.450"
OpMemoryModel Logical GLSL450
OpEntryPoint {model} %main "main" {interface}
{modes}
OpDecorate %words ArrayStride 4
OpMemberDecorate %block 0 Offset 0
OpDecorate %block Block
OpDecorate %a DescriptorSet 0
OpDecorate %a Binding 0
OpDecorate %b DescriptorSet 0
OpDecorate %b Binding 1
{decorations}
%void = OpTypeVoid
%bool = OpTypeBool
%uint = OpTypeInt 32 0
%float = OpTypeFloat 32
%function = OpTypeFunction %void
%zero = OpConstant %uint 0
%one = OpConstant %uint 1
%two = OpConstant %uint 2
%four = OpConstant %uint 4
%true = OpConstantTrue %bool
%words = OpTypeRuntimeArray %uint
%block = OpTypeStruct %words
%block_pointer = OpTypePointer StorageBuffer %block
%word_pointer = OpTypePointer StorageBuffer %uint
%a = OpVariable %block_pointer StorageBuffer
%b = OpVariable %block_pointer StorageBuffer
{declarations}
%main = OpFunction %void None %function
%entry = OpLabel
{body}
OpReturn
OpFunctionEnd
{functions}
"""
"""Storage buffers %a (binding 0) and %b (binding 1) of words, and types and constants to use them."""


def module(
    body: str = "",
    *,
    capabilities: str = "",
    model: str = "GLCompute",
    interface: str = "",
    modes: str = "OpExecutionMode %main LocalSize 1 1 1",
    decorations: str = "",
    declarations: str = "",
    functions: str = "",
    target: str = "vulkan1.1",
) -> bytes:
    """A module whose entry point `main` has this body."""
    return assemble(
        HEADER.format(
            capabilities=capabilities,
            model=model,
            interface=interface,
            modes=modes,
            decorations=decorations,
            declarations=declarations,
            body=body,
            functions=functions,
        ),
        target,
    )


@cache
def tool(name: str) -> str:
    """A program of SPIRV-Tools, of the environment that runs the tests. What stands in its folder of programs is a
    Python script that starts the program, and takes 30 times as long."""
    program = Path(sysconfig.get_path("purelib"), "cmeel.prefix", "bin", name)
    return str(program if program.is_file() else Path(sys.executable).parent / name)


@cache
def assemble(text: str, target: str = "vulkan1.1") -> bytes:
    """The binary form of SPIR-V assembly, by spirv-as of the environment that runs the tests."""
    command = [tool("spirv-as"), "--target-env", target, "-o", "-", "-"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def complaint(code: bytes, target: str = "vulkan1.1") -> str:
    """Returns the complaint of spirv-val about the module; empty when it is valid."""
    command = [tool("spirv-val"), "--target-env", target, "-"]
    done = subprocess.run(command, input=code, capture_output=True, check=False)
    return done.stderr.decode() if done.returncode else ""
