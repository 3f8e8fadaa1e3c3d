"""What a shader calls its variables and lines, where its debug information says so."""

from __future__ import annotations

from vkharness.shader.opcodes import Op
from vkharness.shader.spirv import Instruction, literal_text, read

VULKAN_MODEL = 3
"""The memory model of OpMemoryModel."""
DEBUG_SOURCE, DEBUG_LINE, DEBUG_NO_LINE = 35, 103, 104
"""Instructions of NonSemantic.Shader.DebugInfo.100."""
DEBUG_INFO = "NonSemantic.Shader.DebugInfo"
Line = tuple[str, int]


class ShaderNames:
    """Names of one module, read once."""

    def __init__(self, code: bytes) -> None:
        self._names: dict[int, str] = {}
        self._strings: dict[int, str] = {}
        self._sources: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self.vulkan_model = False
        """Whether the module declares the Vulkan memory model (`OpMemoryModel`)."""
        for op, operands in read(code)[1]:
            if op == Op.Name:
                self._names[operands[0]] = _text(operands[1:])
            elif op == Op.String:
                self._strings[operands[0]] = _text(operands[1:])
            elif op == Op.Constant and len(operands) == 3:
                self._numbers[operands[1]] = operands[2]
            elif op == Op.ExtInst and operands[3] == DEBUG_SOURCE and len(operands) > 4:
                self._sources[operands[1]] = self._strings.get(operands[4], "")
            elif op == Op.MemoryModel:
                self.vulkan_model = operands[1] == VULKAN_MODEL

    def variable(self, id: int) -> str:
        """The name of a variable, or of the struct or id behind it; empty without any."""
        return self._names.get(id, "")

    def line(self, instruction: Instruction, sets: dict[int, str], before: Line | None) -> Line | None:
        """The line of what follows an instruction, where `before` was that of the instruction."""
        op, operands = instruction
        if op == Op.Line:
            return self._strings.get(operands[0], ""), operands[1]
        if op == Op.NoLine:
            return None
        if op == Op.ExtInst and sets.get(operands[2], "").startswith(DEBUG_INFO):
            if operands[3] == DEBUG_LINE and len(operands) > 5:
                return self._sources.get(operands[4], ""), self._numbers.get(operands[5], 0)
            if operands[3] == DEBUG_NO_LINE:
                return None
        return before


def _text(words: tuple[int, ...]) -> str:
    return "".join(each if each.isprintable() else "?" for each in literal_text(words)[:200])
