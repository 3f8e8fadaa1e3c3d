"""vkQueueBindSparse: memory of sparse resources changes on a queue (specification: "Binding Resource Memory")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vkharness.commands.handlers import call
from vkharness.commands.object_state import ALL_QUEUE_FLAGS, ObjectState
from vkharness.commands.resources.sparse_memory import SparseResource, Tail
from vkharness.spans import Span
from vkharness.spec.enums import VkImageAspect
from vkharness.trace.calls import Call
from vkharness.trace.effects import StreamEvent, Submission, Submitted, UnmodelledCall
from vkharness.trace.resources import Extent, Image
from vkharness.trace.sparse_effects import SparseBind
from vkharness.trace.submits import batches

SINGLE_TAIL = 1
"""VK_SPARSE_IMAGE_FORMAT_SINGLE_MIPTAIL_BIT."""
METADATA = 1
"""VK_SPARSE_MEMORY_BIND_METADATA_BIT."""
UNORDERED = "sparse memory while a batch waits for a signal that is still to come"


@call("vkQueueBindSparse")
def bind_sparse(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Batches of binding operations. They are in no order with command buffers of the queue, nor with one another.

    Which memory a range has counts in the order of the calls; where a batch waits for a signal to come, nobody knows.
    """
    taken, infos = batches(call.args), call.args.get("pBindInfo") or ()
    for at, batch in enumerate(taken):
        objects.contents.submit(-(call.index << 16) - at, [batch])
    objects.contents.forget_all()
    if objects.contents.holds_back:
        yield UnmodelledCall(UNORDERED)
    submissions = tuple(
        Submission(at, (), waits=batch.waits, signals=batch.signals, binds=tuple(_binds(objects, info)))
        for at, (batch, info) in enumerate(zip(taken, infos, strict=True))
    )
    yield Submitted(
        call.index, call.name, call.site, call.args["queue"], ALL_QUEUE_FLAGS, submissions, call.args.get("fence") or 0
    )


def _binds(objects: ObjectState, info: dict[str, Any]) -> Iterator[SparseBind]:
    """The operations of one VkBindSparseInfo."""
    sparse = objects.sparse
    for each in (*(info.get("pBufferBinds") or ()), *(info.get("pImageOpaqueBinds") or ())):
        id = each.get("buffer") or each.get("image") or 0
        for bind in each["pBinds"] or ():
            memory, at = bind["memory"] or 0, bind["memoryOffset"]
            if bind["flags"] & METADATA:  # stands behind every texel
                image = objects.image(id)
                spans: tuple[Span, ...] = (image.whole,) if image is not None else ()
            else:
                spans = sparse.bind_opaque(id, bind["resourceOffset"], bind["size"], memory, at)
            if spans:
                yield SparseBind(id, spans)
    for each in info.get("pImageBinds") or ():
        held = sparse.resources.get(each["image"])
        for bind in each["pBinds"] or () if held is not None else ():
            yield from _block_bind(objects, held, bind)


def _block_bind(objects: ObjectState, held: SparseResource | None, bind: dict[str, Any]) -> Iterator[SparseBind]:
    """A VkSparseImageMemoryBind: whole sparse image blocks."""
    if held is None or not isinstance(held.thing, Image):
        return
    part, image = bind["subresource"], held.thing
    extent = _extent(bind["extent"])
    offset = (bind["offset"]["x"], bind["offset"]["y"], bind["offset"]["z"])
    spans = image.region(part["aspectMask"], part["mipLevel"], (part["arrayLayer"],), offset, extent)
    begin = bind["memoryOffset"]
    size = _block_count(held, part["aspectMask"], extent, spans) * held.block_bytes
    objects.sparse.bind_texels(image.id, spans, bind["memory"] or 0, (begin, begin + size))
    yield SparseBind(image.id, spans)


def _block_count(held: SparseResource, aspect: int, extent: Extent, spans: tuple[Span, ...]) -> int:
    """The blocks of an extent in texels. Where their shape is not known, as many as their texels fill."""
    if all(held.block_texels):
        width, height, depth = (-(-size // of) for size, of in zip(extent, held.block_texels, strict=True))
        return width * height * depth
    assert isinstance(held.thing, Image)
    texels = sum(end - begin for begin, end in spans)
    return -(-texels * held.thing.format.aspect_bytes(aspect) * held.thing.samples // held.block_bytes)


@call("vkGetImageSparseMemoryRequirements", "vkGetImageSparseMemoryRequirements2")
def image_sparse_requirements(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the shape of the blocks, and where the mip tails lie."""
    info = call.args.get("pInfo")
    held = objects.sparse.resources.get(call.args["image"] if info is None else info["image"])
    answers = call.args.get("pSparseMemoryRequirements")
    if held is not None and isinstance(held.thing, Image) and answers:
        held.tails = []
        for each in answers:
            _requirements(held, held.thing, each.get("memoryRequirements", each))
    return ()


def _requirements(held: SparseResource, image: Image, answer: dict[str, Any]) -> None:
    properties = answer["formatProperties"]
    if properties["aspectMask"] & VkImageAspect.METADATA:
        return
    if not any(held.block_texels):
        held.block_texels = _extent(properties["imageGranularity"])
    first, size, at = answer["imageMipTailFirstLod"], answer["imageMipTailSize"], answer["imageMipTailOffset"]
    if not size or first >= image.mips:
        return
    single = properties["flags"] & SINGLE_TAIL
    for layer in range(1 if single else image.layers):
        layers = image.layers if single else 1
        texels = image.subresources(properties["aspectMask"], first, image.mips - first, layer, layers)
        begin = at + layer * (0 if single else answer["imageMipTailStride"])
        held.tails.append(Tail((begin, begin + size), texels))


def _extent(value: dict[str, Any]) -> Extent:
    return (value["width"], value["height"], value["depth"])
