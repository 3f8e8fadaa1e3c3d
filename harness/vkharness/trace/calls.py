"""The recorded stream, as a sequence of blocks.

A `Call` is one C call, a `HostWrite` a change that the host made to mapped memory, and a `HostRead` a read of mapped
memory that the program declared. Values are in normal form, whatever the caller's style: handles are ids that are never
reused (0 is `VK_NULL_HANDLE`), structs are dictionaries, arrays are lists, byte blobs are `bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from vkharness.findings import UserError

MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, UserError, ValueError)
"""The exceptions that reading a call raises when its values do not fit its command."""


@dataclass(slots=True)
class Call:
    """One C call. `args` maps C parameter names to values; output parameters hold what the call returned."""

    index: int
    name: str
    args: dict[str, Any]
    result: int | None = None
    site: str | None = None
    thread: int = 0
    unread: str = ""
    """Where and why this call could not be read. Of its arguments, at most `commandBuffer` is there then."""

    @property
    def succeeded(self) -> bool:
        """Whether the call did not return an error (a negative VkResult). Positive results are successes."""
        return self.result is None or self.result >= 0


class _UnreadArguments(dict[str, Any]):
    """What was read of the arguments of a call that could not be read. Asking for another raises `UserError`, so that
    nobody who needs it has to look whether it is there."""

    __slots__ = ("_why",)

    def __init__(self, read: dict[str, Any], why: str) -> None:
        super().__init__(read)
        self._why = why

    def __missing__(self, key: str) -> NoReturn:
        raise UserError(self._why)


def unread_call(
    index: int, name: str, why: str, buffer: int | None = None, site: str | None = None, thread: int = 0
) -> Call:
    """Makes the call that stands for one that could not be read. `why` says where and why; `buffer` is the command
    buffer that it is about, if that is known."""
    read = {} if buffer is None else {"commandBuffer": buffer}
    args = _UnreadArguments(read, f"{name} could not be read ({why}), and its arguments are needed")
    return Call(index, name, args, None, site, thread, why)


SEPARATE_ASPECTS = "separateDepthStencilAttachmentAccess"
"""The argument that vkharness adds to vkCreateDevice: the property of the device, of which the program need not ask."""

FOUND_WRITES = "hostWritesFound"
"""The argument that vkharness adds to vkCreateDevice in a capture of GFXReconstruct, which holds what mapped memory
held and not what the host wrote. Its host writes are the words that changed. Some may be the device's."""

UNSEEN_WRITES = "hostWritesUnseen"
"""The argument that vkharness adds to the calls by which the host may write to memory from then on (it is mapped, or a
pointer of the host is imported), in a stream of a kind that holds no such writes."""

PAYLOAD = "payload"
"""The argument that vkharness adds to a call that exports or imports a payload by a file descriptor: the device and the
inode of the file behind it, as text. It is the same in every process. It is left out where several payloads may have
one, as those of anonymous files have."""


@dataclass(slots=True)
class HostWrite:
    """Bytes that the host wrote to mapped memory; `offset` is in bytes from the start of the memory object."""

    index: int
    memory: int
    offset: int
    data: bytes
    site: str | None = None
    initial: bool = False
    """Whether these are the first contents of non-coherent memory. A replay starts from them; the host did not write
    them."""


@dataclass(slots=True)
class HostRead:
    """A read of mapped memory that the program declared. Offset and size are bytes in the memory object."""

    index: int
    memory: int
    offset: int
    size: int
    site: str | None = None


Block = Call | HostWrite | HostRead


def is_host_unseen(blocks: Iterable[Block]) -> bool:
    """Whether the host may have written to memory by what a stream does not hold (`UNSEEN_WRITES`)."""
    return any(isinstance(each, Call) and each.args.get(UNSEEN_WRITES) for each in blocks)


INDICES = range(1 << 63)
"""The numbers that a block may have: those of a signed integer of 64 bits, as which the native core keeps them."""

TOLD = "stream event"
"""The name of a block that holds a stream event as it is, and no call of Vulkan. No file of calls can have one: no
function of C has a name with a space, and no reader takes one."""

CUT_OFF = "rest_of_the_trace"
"""The name of what a trace lacks that was cut off."""


def cut_off(last: int, why: str = "cut off") -> Call:
    """Makes the call that stands for the rest of a trace that was cut off after this block. It cannot be read, so that
    no verdict is clean."""
    return unread_call(last + 1, CUT_OFF, f"{why} after call {last}")


def edited(blocks: Iterable[Block], edit: Callable[[Block], Block]) -> list[Block]:
    """The stream with each block edited. Raises `UserError` for a malformed one."""
    made: list[Block] = []
    for block in blocks:
        with reading(block):
            made.append(edit(block))
    return made


def block_name(block: Block) -> str:
    """The name of the C function, or of the host's access."""
    return block.name if isinstance(block, Call) else "host write" if isinstance(block, HostWrite) else "host read"


@contextmanager
def reading(block: Block) -> Iterator[None]:
    """Turns the errors of reading a malformed block into one line that names it."""
    try:
        yield
    except UserError:
        raise
    except MALFORMED as error:
        raise UserError(
            f"block {block.index}: {block_name(block)} is malformed ({type(error).__name__}: {error})"
        ) from None
