"""Random stream text of accesses of many small ranges of few resources: hundreds that touch, and some that join them.

A tree of ranges has more than one leaf then, and accesses and barriers of large ranges cut and join what lies
in several.
"""

from __future__ import annotations

from random import Random

RESOURCES = ("a", "a", "a", "b")
WRITES = ("COPY_TRANSFER_WRITE", "COMPUTE_SHADER_SHADER_STORAGE_WRITE")
READS = ("COPY_TRANSFER_READ", "VERTEX_ATTRIBUTE_INPUT_VERTEX_ATTRIBUTE_READ", "COMPUTE_SHADER_UNIFORM_READ")
SCOPES = ("ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE", "COPY/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_READ", "ALL_COMMANDS")
END = 2048
"""Addresses of a resource that are accessed."""
SUBMITS = 4
COMMANDS = 60
"""Of a submit."""


def make(random: Random) -> str:
    """The text of a stream."""
    dense = DenseText(random)
    for _ in range(SUBMITS):
        dense.submit()
    return "\n".join(dense.lines) + "\n"


class DenseText:
    """A stream in the making."""

    def __init__(self, random: Random) -> None:
        self.lines: list[str] = []
        self._random, self._next = random, 0
        self._apart = random.choice((4, 8, 12))

    def submit(self) -> None:
        """One more submit, which is waited for or not."""
        self.lines.append(f"submit {self._random.choice(('q1', 'q1', 'q2'))}")
        self.lines += [f"    {self._command()}" for _ in range(COMMANDS)]
        if self._random.random() < 0.5:
            self.lines.append("host waits")

    def _command(self) -> str:
        match self._random.choice(("stream", "stream", "stream", "several", "several", "large", "part", "everything")):
            case "stream":
                return self._access(4)
            case "several":
                return "; ".join(self._access(4) for _ in range(self._random.choice((2, 4, 8))))
            case "large":
                return self._access(self._random.choice((64, 256, 1024)))
            case "part":
                return f"barrier {self._range(self._random.choice((16, 64, 512)))} {self._dependency()}"
            case _:
                return f"barrier {self._dependency()}"

    def _access(self, size: int) -> str:
        return f"{self._random.choice(self._random.choice((WRITES, READS)))} {self._range(size)}"

    def _dependency(self) -> str:
        return f"{self._random.choice(SCOPES)} > {self._random.choice(SCOPES)}"

    def _range(self, size: int) -> str:
        """The next one behind the last one that was streamed, or one that lies anywhere."""
        if size > 4 or self._random.random() < 0.3:
            begin = 2 * self._random.randrange(END // 2)
        else:
            begin = self._next = (self._next + self._apart) % END
        return f"{self._random.choice(RESOURCES)}[{begin}:{begin + size}]"
