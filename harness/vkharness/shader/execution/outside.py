"""Inputs of the shader interpreter: memory, resources, a limit of work; and the error by which it refuses."""

from __future__ import annotations

from typing import Any, Protocol

from vkharness.findings import UserError


class NotInterpreted(UserError):
    """The result of this shader is not computed: it is not known, not defined, or too much work. One line."""


class ShaderMemory(Protocol):
    """Bytes that a shader reaches through one descriptor or address. Offsets and sizes are bytes."""

    @property
    def size(self) -> int:
        """Bytes in all."""

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes; the caller has checked that they lie inside. May raise a UserError."""

    def write(self, offset: int, data: bytes) -> None:
        """Replace bytes; the caller has checked that they lie inside. May raise a UserError."""

    def located(self, offset: int) -> tuple[int, int]:
        """A name of the memory behind a byte, and the byte's number in it: the same for each way to the byte. May raise
        a UserError."""


class ShaderImage(Protocol):
    """Texels that a shader reaches through one descriptor."""

    @property
    def texel_bytes(self) -> int:
        """Bytes of a texel."""

    def size(self, level: int) -> tuple[int, ...]:
        """Width, height and what else the view has, of a mip level of the view. May raise a UserError."""

    def read(self, coordinates: tuple[int, ...], at: int) -> tuple[int, int, int, int]:
        """The bits of the four components; `at` is a mip level or a sample. May raise a UserError."""

    def sample(self, coordinates: tuple[int, ...], lod: int | None) -> tuple[int, int, int, int]:
        """The bits of a sample at floats, whichever sampler is used; `lod` is the bits of a level of detail, None for
        one that follows from derivatives. May raise a UserError."""

    def write(self, coordinates: tuple[int, ...], texel: tuple[int, ...]) -> None:
        """Replace a texel by what the bits of these components give. May raise a UserError."""

    def located(self, coordinates: tuple[int, ...], at: int) -> tuple[int, Any]:
        """A name of the memory behind a texel, and the texel's place in it. May raise a UserError."""


class ShaderResources(Protocol):
    """Resources that are bound for a command. Each method may raise a UserError, which ends the execution."""

    @property
    def push_constants(self) -> ShaderMemory:
        """The push constants, from offset 0. No shader writes them."""

    def buffer(self, set: int, binding: int, element: int) -> ShaderMemory:
        """The bound range of one buffer descriptor; `element` is flattened, 0 for no array."""

    def image(self, set: int, binding: int, element: int) -> ShaderImage:
        """The image view of one descriptor; `element` as for a buffer."""

    def address(self, pointer: int) -> tuple[ShaderMemory, int]:
        """The memory behind a device address, and the offset of the address in it."""


class Allowance:
    """How much may still be executed of one command, or of several commands together."""

    def __init__(
        self, limit: int, what: str = "the dispatch", whole: Allowance | None = None, together: int = 1
    ) -> None:
        """`what` may execute no more than `limit` instructions. So many `together` count as one for `whole`, too."""
        self._limit = self._left = limit
        self._what, self._whole, self._together = what, whole, together

    def spend(self, amount: int) -> None:
        """Count `amount` instructions. Raises NotInterpreted when the limit is passed."""
        self._left -= amount
        if self._left < 0:
            raise NotInterpreted(f"{self._what} executes more than {self._limit} instructions")
        if self._whole is not None:
            self._whole.spend(-(-amount // self._together))

    @property
    def spent(self) -> int:
        """How much was counted."""
        return self._limit - self._left

    @property
    def is_spent(self) -> bool:
        """Whether the limit was passed."""
        return self._left < 0

    def part(self, limit: int, together: int = 1) -> Allowance:
        """That of one of the commands, which executes so many instructions `together` in the time of one."""
        return Allowance(limit, whole=self, together=together)


class AddressMemory:
    """All device addresses as one memory, whose offsets are the addresses."""

    size = 1 << 64

    def __init__(self, resources: ShaderResources) -> None:
        self._resources = resources

    def read(self, offset: int, size: int) -> bytes:
        """`size` bytes from the address `offset`."""
        memory, at = self._resources.address(offset)
        return read_inside(memory, at, size)

    def write(self, offset: int, data: bytes) -> None:
        """Replace bytes from the address `offset`."""
        memory, at = self._resources.address(offset)
        write_inside(memory, at, data)

    def located(self, offset: int) -> tuple[int, int]:
        """The byte at the address `offset`."""
        memory, at = self._resources.address(offset)
        return memory.located(at)


class BufferTable:
    """The buffers of one variable, looked up when the shader first reaches them."""

    def __init__(self, resources: ShaderResources, set: int, binding: int, count: int) -> None:
        """`count` is the number of descriptors, 0 when the shader does not say."""
        self._resources, self._set, self._binding, self._count = resources, set, binding, count
        self._known: dict[int, ShaderMemory] = {}

    def memory(self, element: int) -> ShaderMemory:
        """The buffer of one descriptor. Raises NotInterpreted for one outside the array."""
        if element not in self._known:
            if self._count and not 0 <= element < self._count:
                raise NotInterpreted(f"descriptor {element} of set {self._set}, binding {self._binding} does not exist")
            self._known[element] = self._resources.buffer(self._set, self._binding, element)
        return self._known[element]


class ImageTable:
    """The images of one variable, looked up when the shader first reaches them."""

    def __init__(self, resources: ShaderResources, set: int, binding: int) -> None:
        self._resources, self._set, self._binding = resources, set, binding

    def image(self, element: int) -> ShaderImage:
        """The image of one descriptor."""
        return self._resources.image(self._set, self._binding, element)


def read_inside(memory: ShaderMemory, at: int, size: int) -> bytes:
    """`size` bytes at `at`. Raises NotInterpreted where they do not all lie in the memory."""
    _check(memory, at, size, "reads")
    return memory.read(at, size)


def write_inside(memory: ShaderMemory, at: int, data: bytes) -> None:
    """Replace bytes at `at`. Raises NotInterpreted where they do not all lie in the memory."""
    _check(memory, at, len(data), "writes")
    memory.write(at, data)


def _check(memory: ShaderMemory, at: int, size: int, what: str) -> None:
    if at < 0 or at + size > memory.size:
        raise NotInterpreted(f"the shader {what} {size} bytes at {at} of a memory of {memory.size}")
