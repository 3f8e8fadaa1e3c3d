"""Bytes of sparse resources, held against values worked out by hand from their bindings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.commands.test_sparse_memory import BLOCK, RESIDENCY, Sparse
from tests.support.streams import extent, layers, struct, words
from vkharness.computed.expected_bytes import ComputedBytes, compute
from vkharness.findings import UserError
from vkharness.replay.contents.observe import Key, Outputs, Surface
from vkharness.trace.codec import load

DATA = Path(__file__).resolve().parents[1] / "data" / "sparse"
ALIASED = RESIDENCY | 4
COLOR = (1, 0, 0)


class Windows(Sparse):
    """A trace with sparse resources whose commands end, one submit after the other."""

    def ask(self, image: int) -> None:
        """Asks for the blocks of an image: 128 by 128 texels, without a mip tail."""
        granularity = struct("VkSparseImageFormatProperties", aspectMask=1, imageGranularity=extent((128, 128, 1)))
        needs = struct("VkSparseImageMemoryRequirements", formatProperties=granularity, imageMipTailFirstLod=1)
        self.call(
            "vkGetImageSparseMemoryRequirements",
            image=image,
            pSparseMemoryRequirementCount=1,
            pSparseMemoryRequirements=[needs],
        )

    def run(self, *commands: tuple[str, dict[str, object]]) -> None:
        """Submits commands and waits for them."""
        self.begin()
        for name, args in commands:
            self.cmd(name, **args)
        self.submit()
        self.wait_idle()

    def shader(self, name: str, *buffers: int, offset: int, push: bytes = b"") -> None:
        """Dispatches a shader over 256 bytes of its first buffer, and the whole of others."""
        dispatch = self.compute(name, buffers, push)
        part = struct("VkDescriptorBufferInfo", buffer=buffers[0], offset=offset, range=256)
        write = struct(
            "VkWriteDescriptorSet", dstSet=dispatch.set, descriptorCount=1, descriptorType=7, pBufferInfo=[part]
        )
        self.call("vkUpdateDescriptorSets", device=self.device, pDescriptorWrites=[write])
        dispatch.run()

    def upload(self, buffer: int, image: int, at: int, offset: int = 0) -> None:
        """Copies one texel of a buffer to texel (128 * at, 0) of an image."""
        region = struct(
            "VkBufferImageCopy",
            bufferOffset=offset,
            imageSubresource=layers(),
            imageOffset=struct("VkOffset3D", x=128 * at),
            imageExtent=extent((1, 1, 1)),
        )
        copy = {"srcBuffer": buffer, "dstImage": image, "dstImageLayout": 1, "regionCount": 1, "pRegions": [region]}
        self.run(("CopyBufferToImage", copy))


def filled(stream: Windows, buffer: int, value: int, block: int = 0) -> None:
    """Fills the first 16 bytes of a block."""
    stream.begin()
    stream.fill(buffer, value, block * BLOCK, 16)
    stream.submit()
    stream.wait_idle()


def word(computed: ComputedBytes, key: Key, offset: int) -> int | None:
    """A word of a buffer; None where it is not known."""
    cells = computed.cells[key]
    return int(cells.data[offset : offset + 4].view("<u4")[0]) if cells.known[offset : offset + 4].all() else None


def texel(computed: ComputedBytes, image: int, x: int) -> int | None:
    """The texel (x, 0) as a word; None where it is not known."""
    cells = computed.cells[image, COLOR]
    return int(cells.data[0, 0, x].view("<u4")[0]) if cells.known[0, 0, x] else None


def counted(stream: Windows, key: Key, *, reads_zeros: bool) -> tuple[int, int]:
    """(known, all) bytes of a surface that a run left."""
    computed = compute(stream.blocks, reads_zeros=reads_zeros)
    seen = Surface(key[0], key[1], np.zeros_like(computed.cells[key].data))
    return computed.count(Outputs({key: seen}))


def test_what_is_written_at_one_range_is_read_at_each_range_of_the_memory() -> None:
    stream = Windows()
    a, b, other = stream.sparse_buffer(), stream.buffer(16), stream.sparse_buffer(1)
    memory = stream.memory(BLOCK)
    stream.bind(a, (0, memory, 0), (1, memory, 0))
    stream.bind(other, (0, memory, 0))
    filled(stream, a, 7)
    stream.begin()
    stream.copy(a, b, 16, from_=BLOCK)
    stream.submit()
    computed = compute(stream.blocks)
    assert [word(computed, (a, None), at) for at in (0, 12, 16, BLOCK, BLOCK + 16)] == [7, 7, None, 7, None]
    assert word(computed, (other, None), 0) == word(computed, (b, None), 12) == 7


def test_contents_stay_with_the_memory_when_it_moves() -> None:
    stream = Windows()
    a, memory, second = stream.sparse_buffer(3), stream.memory(2 * BLOCK), stream.memory(BLOCK)
    stream.bind(a, (0, memory, 1), (1, second, 0))
    filled(stream, a, 7)
    filled(stream, a, 8, block=1)
    stream.bind(a, (0, 0, 0), (1, memory, 1), (2, second, 0))
    computed = compute(stream.blocks)
    assert [word(computed, (a, None), at * BLOCK) for at in range(3)] == [None, 7, 8]
    filled(stream, a, 9, block=1)
    stream.bind(a, (0, memory, 1), (1, memory, 0))
    computed = compute(stream.blocks)
    assert [word(computed, (a, None), at * BLOCK) for at in range(3)] == [9, None, 8]


def test_a_bind_may_begin_and_end_anywhere_in_a_range() -> None:
    """A part of a range goes to other memory, and the parts beside it keep theirs."""
    stream = Windows()
    a, memory = stream.sparse_buffer(3), stream.memory(4 * BLOCK)
    whole = struct("VkSparseMemoryBind", size=3 * BLOCK, memory=memory)
    stream.bind_batch(pBufferBinds=[struct("VkSparseBufferMemoryBindInfo", buffer=a, bindCount=1, pBinds=[whole])])
    for block in range(3):
        filled(stream, a, block + 1, block)
    stream.bind(a, (1, memory, 3))
    filled(stream, a, 9, 1)
    assert [word(compute(stream.blocks), (a, None), at * BLOCK) for at in range(3)] == [1, 9, 3]
    stream.bind(a, (1, memory, 1))
    assert [word(compute(stream.blocks), (a, None), at * BLOCK) for at in range(3)] == [1, 2, 3]


def test_what_has_no_memory_reads_as_zeros_only_where_the_device_says_so() -> None:
    stream = Windows()
    a, b = stream.sparse_buffer(), stream.buffer(32)
    stream.bind(a, (1, stream.memory(BLOCK), 0))
    stream.run(("FillBuffer", {"dstBuffer": a, "dstOffset": BLOCK - 16, "size": 32, "data": 7}))
    stream.begin()
    stream.copy(a, b, 32, from_=BLOCK - 16)
    stream.submit()
    strict = compute(stream.blocks, reads_zeros=True)
    assert [word(strict, (a, None), at) for at in (0, BLOCK - 16, BLOCK)] == [0, 0, 7]
    assert [word(strict, (b, None), at) for at in (0, 16)] == [0, 7]
    loose = compute(stream.blocks)
    assert [word(loose, (a, None), at) for at in (0, BLOCK - 16, BLOCK)] == [None, None, 7]
    assert [word(loose, (b, None), at) for at in (0, 16)] == [None, 7]


def test_what_nothing_wrote_is_undefined_and_counts_for_nothing() -> None:
    stream = Windows()
    a = stream.sparse_buffer()
    stream.bind(a, (1, stream.memory(BLOCK), 0))
    filled(stream, a, 7, block=1)
    assert counted(stream, (a, None), reads_zeros=False) == (16, 16)
    assert counted(stream, (a, None), reads_zeros=True) == (BLOCK + 16, BLOCK + 16)


def test_what_the_host_writes_to_memory_is_read_through_the_range() -> None:
    stream = Windows()
    a, memory = stream.sparse_buffer(), stream.memory(BLOCK)
    stream.host_write(memory, 4, words(5))
    stream.bind(a, (1, memory, 0))
    assert word(compute(stream.blocks), (a, None), BLOCK + 4) == 5
    stream.host_write(memory, 8, words(6))
    filled(stream, a, 7, block=1)
    stream.host_write(memory, 0, words(8))
    computed = compute(stream.blocks)
    assert [word(computed, (a, None), BLOCK + at) for at in (0, 4, 8)] == [8, 7, 7]


def test_a_command_that_writes_memory_which_it_reads_elsewhere_leaves_what_nobody_knows() -> None:
    stream = Windows()
    a, memory = stream.sparse_buffer(3), stream.memory(2 * BLOCK)
    stream.bind(a, (0, memory, 0), (1, memory, 0), (2, memory, 1))
    filled(stream, a, 7)
    stream.begin()
    stream.copy(a, a, 16, from_=0, to=2 * BLOCK)
    stream.submit()
    assert word(compute(stream.blocks), (a, None), 2 * BLOCK) == 7
    filled(stream, a, 8)
    stream.begin()
    stream.copy(a, a, 16, from_=0, to=BLOCK + 8)
    stream.submit()
    computed = compute(stream.blocks)
    assert [word(computed, (a, None), at) for at in (0, 8, BLOCK, BLOCK + 8)] == [8, None, 8, None]
    assert any("at two places" in each for each in computed.reasons)


def test_shaders_read_and_write_through_a_range() -> None:
    stream = Windows()
    a, b, memory = stream.sparse_buffer(), stream.buffer(256), stream.memory(BLOCK)
    stream.bind(a, (1, memory, 0))
    stream.begin()
    stream.shader("fill_words", a, offset=BLOCK, push=words(3))
    stream.barrier()
    stream.shader("copy_words", a, b, offset=BLOCK)
    stream.submit()
    stream.wait_idle()
    stream.bind(a, (0, memory, 0), (1, 0, 0))
    computed = compute(stream.blocks)
    assert [word(computed, (a, None), at) for at in (0, 252)] == [3, 66]
    assert [word(computed, (b, None), at) for at in (0, 252)] == [3, 66]


def test_a_shader_may_read_back_what_it_writes_where_no_memory_is_bound() -> None:
    """Specification: "Accessing Unbound Regions", on values that the same invocation wrote."""
    for offset, last in ((0, None), (BLOCK - 128, None), (BLOCK, 66)):
        stream = Windows()
        a = stream.sparse_buffer()
        stream.bind(a, (1, stream.memory(BLOCK), 0))
        stream.begin()
        stream.shader("fill_words", a, offset=offset, push=words(3))
        stream.submit()
        computed = compute(stream.blocks, reads_zeros=True)
        assert word(computed, (a, None), min(offset, BLOCK - 4)) == 0
        assert word(computed, (a, None), max(offset, BLOCK) + 252) == last
        spans = offset < BLOCK < offset + 256
        assert [*computed.reasons] == ["vkCmdDispatch: it may read what it writes where no memory is bound"] * spans


def test_a_command_that_is_not_followed_makes_all_ranges_of_its_memory_unknown() -> None:
    stream = Windows()
    a, memory = stream.sparse_buffer(), stream.memory(BLOCK)
    stream.bind(a, (0, memory, 0), (1, memory, 0))
    filled(stream, a, 7)
    stream.run(("WriteBufferMarkerAMD", {"pipelineStage": 1, "dstBuffer": a, "dstOffset": 4, "marker": 1}))
    computed = compute(stream.blocks)
    assert [word(computed, (a, None), at) for at in (0, 4, BLOCK, BLOCK + 4)] == [7, None, 7, None]


def test_texels_of_one_memory_are_the_same_in_each_block() -> None:
    stream = Windows()
    image, other, a = stream.sparse_image(flags=ALIASED), stream.sparse_image(flags=ALIASED), stream.buffer(8)
    memory = stream.memory(2 * BLOCK)
    for each in (image, other):
        stream.ask(each)
    stream.bind_texels(image, (0, memory, 0), (1, memory, 0))
    stream.bind_texels(other, (1, memory, 0))
    stream.run(("UpdateBuffer", {"dstBuffer": a, "dstOffset": 0, "dataSize": 8, "pData": words(5, 6)}))
    stream.upload(a, image, 0)
    computed = compute(stream.blocks)
    assert [texel(computed, image, x) for x in (0, 1, 128, 129)] == [5, None, 5, None]
    assert [texel(computed, other, x) for x in (0, 128)] == [None, 5]
    stream.upload(a, other, 1, offset=4)
    computed = compute(stream.blocks)
    assert [texel(computed, image, x) for x in (0, 128)] == [6, 6]
    stream.bind_texels(image, (0, 0, 0), (1, memory, 1))
    stream.bind_texels(other, (0, memory, 0), (1, 0, 0))
    computed = compute(stream.blocks, reads_zeros=True)
    assert [texel(computed, image, x) for x in (0, 128)] == [0, None]
    assert [texel(computed, other, x) for x in (0, 128)] == [6, 0]


def test_a_transition_from_undefined_loses_what_memory_holds() -> None:
    stream = Windows()
    image, a, memory = stream.sparse_image(flags=ALIASED), stream.buffer(4), stream.memory(BLOCK)
    stream.ask(image)
    stream.bind_texels(image, (0, memory, 0), (1, memory, 0))
    stream.run(("UpdateBuffer", {"dstBuffer": a, "dstOffset": 0, "dataSize": 4, "pData": words(5)}))
    stream.upload(a, image, 0)
    assert texel(compute(stream.blocks), image, 128) == 5
    stream.begin()
    stream.transition(image, 0, 1)
    stream.submit()
    assert [texel(compute(stream.blocks), image, x) for x in (0, 128)] == [None, None]
    assert counted(stream, (image, COLOR), reads_zeros=True) == (0, 0)


REFUSED = {
    "a buffer and an image": "interpreted in several ways",
    "an image in the rest of a buffer's memory": "interpreted in several ways",
    "blocks that are not aliased": "interpreted in several ways",
    "a plain buffer": "bound to other resources, too",
    "a signal to come": "while a batch waits for a signal",
    "blocks that nobody asked for": "never asked for the sparse blocks",
    "too much memory": "too large",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_follow_from_the_trace_is_refused_with_its_reason(case: str) -> None:
    stream = Windows()
    a, image, memory = stream.sparse_buffer(), stream.sparse_image(), stream.memory(2 * BLOCK)
    if case != "blocks that nobody asked for":
        stream.ask(image)
    if case == "a signal to come":
        kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=1, initialValue=0)
        timeline = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=kind))
        values = struct("VkTimelineSemaphoreSubmitInfo", waitSemaphoreValueCount=1, pWaitSemaphoreValues=[1])
        stream.bind(a, (0, memory, 0), waits=(timeline,), pNext=values)
    elif case == "too much memory":
        stream.bind(a, (0, memory, 1 << 20))
    elif case == "a buffer and an image":
        stream.bind(a, (0, memory, 0))
        stream.bind_texels(image, (1, memory, 0))
    elif case == "an image in the rest of a buffer's memory":
        whole = struct("VkSparseMemoryBind", size=2 * BLOCK, memory=memory)
        stream.bind_batch(pBufferBinds=[struct("VkSparseBufferMemoryBindInfo", buffer=a, bindCount=1, pBinds=[whole])])
        stream.bind(a, (0, memory, 0))
        stream.bind_texels(image, (1, memory, 1))
    elif case == "a plain buffer":
        stream.buffer(16, memory)
        stream.bind(a, (0, memory, 1))
    else:
        stream.bind_texels(image, (0, memory, 0), (1, memory, 0))
    with pytest.raises(UserError, match=REFUSED[case]):
        compute(stream.blocks)


def test_other_bytes_of_that_memory_are_no_reason_to_refuse() -> None:
    """The neighbours of what is refused: an image beside a buffer, and a block that moves where another one was."""
    stream = Windows()
    a, image, memory = stream.sparse_buffer(), stream.sparse_image(), stream.memory(2 * BLOCK)
    stream.ask(image)
    stream.bind(a, (0, memory, 0))
    stream.bind_texels(image, (1, memory, 1))
    filled(stream, a, 3)
    assert word(compute(stream.blocks), (a, None), 0) == 3


def test_opaque_memory_of_an_image_holds_what_nobody_knows() -> None:
    stream = Windows()
    image, a, memory = stream.sparse_image(flags=1), stream.buffer(4), stream.memory(2 * BLOCK)
    bind = struct("VkSparseMemoryBind", size=2 * BLOCK, memory=memory)
    info = struct("VkSparseImageOpaqueMemoryBindInfo", image=image, bindCount=1, pBinds=[bind])
    stream.bind_batch(pImageOpaqueBinds=[info])
    stream.run(("UpdateBuffer", {"dstBuffer": a, "dstOffset": 0, "dataSize": 4, "pData": words(5)}))
    stream.upload(a, image, 0)
    computed = compute(stream.blocks, reads_zeros=True)
    assert [texel(computed, image, x) for x in (0, 1)] == [5, None]
    stream.bind_batch(pImageOpaqueBinds=[info])
    assert texel(compute(stream.blocks), image, 0) is None


RECORDED = sorted(path.stem for path in DATA.glob("*.jsonl"))


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("reads_zeros", [False, True])
def test_all_bytes_of_a_trace_of_a_gpu_are_known_or_undefined(name: str, reads_zeros: bool) -> None:
    computed = compute(load(DATA / f"{name}.jsonl"), reads_zeros=reads_zeros)
    assert computed.cells and not computed.reasons
    for key, cells in computed.cells.items():
        undefined = computed.undefined.get(key)
        assert cells.known.all() or (undefined is not None and (cells.known | undefined).all())
