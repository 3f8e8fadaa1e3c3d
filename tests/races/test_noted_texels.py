"""Texels among the noted accesses: those of texel buffers are words of memory, and samples are not noted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vkharness.computed.known_cells import Cells
from vkharness.computed.shader_images import BoundTexelBuffer, TexelCopy
from vkharness.findings import UserError
from vkharness.races.dispatch_races import _Told
from vkharness.races.knowledge import DispatchLayout, Invocation, Storage
from vkharness.races.noted_dispatch import Notes
from vkharness.races.shared_words import Instruction
from vkharness.spec.enums import VkFormat
from vkharness.spec.formats import format_of

WRITE, TEXEL = Instruction(1, Storage.BUFFER, 1, writes=True), Instruction(2, Storage.IMAGE, 2, writes=True)


class Memory:
    """64 bytes from a byte of one memory object."""

    size = 64

    def __init__(self, begin: int) -> None:
        self._begin = begin

    def located(self, offset: int) -> tuple[int, int]:
        return 7, self._begin + offset

    def read(self, offset: int, size: int) -> bytes:
        return bytes(size)

    def write(self, offset: int, data: bytes) -> None:
        raise AssertionError


@pytest.mark.parametrize(("texel", "byte", "races"), [(4, 16, 1), (4, 4, 0), (0, 64, 0)])
def test_a_texel_of_a_buffer_is_its_words(texel: int, byte: int, races: int) -> None:
    notes = Notes()
    notes.invocation = Invocation(0, DispatchLayout(1))
    notes.set(None, TEXEL)
    notes.texel(BoundTexelBuffer(Memory(0), format_of(VkFormat.R32_UINT)), (texel,), 0, True)
    notes.invocation = Invocation(1, DispatchLayout(1))
    notes.set(None, WRITE)
    notes.touch(Memory(0), byte, 4, True)
    assert len(notes.found) == races


@pytest.mark.parametrize("is_stored", [True, False])
def test_an_image_that_is_sampled_and_stored_to_is_refused(is_stored: bool) -> None:
    image: Any = SimpleNamespace()
    copy = TexelCopy(Cells(np.zeros((1, 1, 1, 4), np.uint8), np.ones((1, 1, 1), bool)), np.zeros((1, 1, 1), bool))
    image.located = lambda coordinates, at: (id(copy.written), coordinates)
    copy.written[...] = is_stored
    notes = Notes()
    notes.sample(image, 2)
    nothing: Any = SimpleNamespace(memory={}, texels={(5, 1, 0, 0): copy})
    dispatch: Any = SimpleNamespace(notes=notes)
    told = _Told(nothing, nothing, nothing, dispatch)
    if is_stored:
        with pytest.raises(UserError, match="it samples image 5 and stores to it"):
            told.refuse_sampled()
    else:
        told.refuse_sampled()
