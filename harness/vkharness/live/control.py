"""The page that the layer and the judge share: who reads, how far each is, whether anybody waits."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from vkharness.plain_file import open_plain

MAGIC, VERSION, SIZE = 0x4D484B56, 1, 4096
_PROCESS, _BEGUN, _CONSUMED, _JUDGE, _WAITING, _ENDED = 8, 16, 24, 32, 36, 44
_ANSWERED, _STOP, _BREAKS, _STOPPED = 48, 56, 64, 68
BELL = "bell"


class KeptPage(NamedTuple):
    """What the page of a stream that was kept says."""

    process: int
    """0 where there is no page, or none of the mirror layer."""
    ended: bool
    """Whether the process said that nothing follows."""


def kept_page(folder: Path) -> KeptPage:
    """Reads the page as the process left it."""
    with suppress(OSError, struct.error), open_plain(folder / "control") as file:
        page = file.read(SIZE)
        if struct.unpack_from("<II", page) == (MAGIC, VERSION):
            (process,), (ended,) = struct.unpack_from("<I", page, _PROCESS), struct.unpack_from("<I", page, _ENDED)
            return KeptPage(process, bool(ended))
    return KeptPage(0, False)


class Control:
    """The page of one process, and its bell: a named pipe in which the layer puts a byte when the judge waits."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError, and ValueError where it is no such page."""
        # Read and written, not mapped: the program may cut its file off, and then to touch it would be a signal.
        self._file = os.open(folder / "control", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if (self._number("<I", 0), self._number("<I", 4)) != (MAGIC, VERSION):
                raise ValueError("the page of the mirror layer has another form: is that layer of this vkharness?")
            self.process: int = self._number("<I", _PROCESS)
            self.bell = os.open(folder / BELL, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except BaseException:
            os.close(self._file)
            raise

    def judges(self) -> None:
        """From here on this process reads the stream."""
        self._set("<I", _JUDGE, os.getpid())

    def leave(self) -> None:
        """Nobody reads any more, and nobody will: the program waits for nothing, and records nothing."""
        self._set("<I", _STOPPED, 1)
        self._set("<I", _JUDGE, 0)
        self.waits(False)
        self.answer((1 << 64) - 1)
        for each in (self.bell, self._file):
            with suppress(OSError):
                os.close(each)

    def waits(self, on: bool) -> None:
        """Whether the judge waits for the bell."""
        self._set("<I", _WAITING, int(on))

    def hear(self) -> None:
        """Takes what is in the bell."""
        with suppress(BlockingIOError):
            while len(os.read(self.bell, 4096)) == 4096:
                pass

    def consumed(self, segments: int) -> None:
        """So many segments are done with."""
        self._set("<Q", _CONSUMED, segments)

    def answer(self, serial: int) -> None:
        """All is judged up to this record."""
        self._set("<Q", _ANSWERED, serial)

    def stop_at(self, serial: int) -> None:
        """The program stops in the call that this record is of."""
        self._set("<Q", _STOP, serial)

    @property
    def breaks(self) -> bool:
        """Whether each call waits for its verdict."""
        return bool(self._number("<I", _BREAKS))

    @property
    def ended(self) -> bool:
        """Whether the process said that nothing follows."""
        return bool(self._number("<I", _ENDED))

    def _number(self, form: str, at: int) -> int:
        held = os.pread(self._file, struct.calcsize(form), at)
        found: int = struct.unpack(form, held.ljust(struct.calcsize(form), b"\0"))[0]
        return found

    def _set(self, form: str, at: int, value: int) -> None:
        with suppress(OSError):  # a disk that is full has no room for a page that was cut off
            os.pwrite(self._file, struct.pack(form, value), at)
