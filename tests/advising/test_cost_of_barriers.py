"""Advice where articles give it: batch barriers, leave out what orders nothing, name the stages and no more."""

from __future__ import annotations

from tests.support import drawing, passes
from tests.support.advice import advised, only
from tests.support.streams import COLOR, DST, GENERAL, SRC, UNDEFINED, Stream
from vkharness.report.advice import AdviceKind
from vkharness.spec.enums import VkAccess2, VkDescriptorType, VkPipelineStage2
from vkharness.trace.barrier_calls import SECOND, BarrierCommand, BarrierEntry, ImagePart, Masks

START = Masks(0, 0, VkPipelineStage2.CLEAR, VkAccess2.TRANSFER_WRITE)
CLEARED = Masks(
    VkPipelineStage2.CLEAR, VkAccess2.TRANSFER_WRITE, VkPipelineStage2.COPY, VkAccess2.TRANSFER_READ
)  # fmt: skip
WRITTEN, READ = VkAccess2.MEMORY_WRITE, VkAccess2.MEMORY_READ
ALL = VkPipelineStage2.ALL_COMMANDS
SAMPLED = VkDescriptorType.COMBINED_IMAGE_SAMPLER


def barrier(stream: Stream, image: int, masks: Masks, old: int, new: int) -> int:
    part = ImagePart(image, COLOR, (0, 1), (0, 1), old, new)
    return stream.call(SECOND, **BarrierCommand(stream.commands, (BarrierEntry(masks, part),)).call(SECOND).args)


def test_transitions_of_two_images_could_be_one_command() -> None:
    stream = Stream()
    images, target = [stream.image((4, 4, 1)) for _ in range(2)], stream.buffer(128)
    stream.begin()
    for image in images:
        barrier(stream, image, START, UNDEFINED, DST)
        stream.clear(image, (0, 0, 0, 0))
    moved = [barrier(stream, image, CLEARED, DST, SRC) for image in images]
    for number, image in enumerate(images):
        stream.image_to_buffer(image, target, (4, 4, 1), to=64 * number)
    stream.submit()
    advice = next(each for each in advised(stream).advice if each.kind is AdviceKind.COULD_BE_ONE)
    assert advice.origins == (moved[1],) and advice.narrow is not None
    assert len(BarrierCommand.of(advice.narrow).entries) == 2


def test_a_barrier_of_an_image_that_is_in_its_layout_orders_nothing() -> None:
    stream = Stream()
    image, target = stream.image((4, 4, 1)), stream.buffer(128)
    stream.begin()
    barrier(stream, image, START, UNDEFINED, DST)
    stream.clear(image, (0, 0, 0, 0))
    barrier(stream, image, CLEARED, DST, SRC)
    stream.image_to_buffer(image, target, (4, 4, 1))
    again = barrier(stream, image, CLEARED, SRC, SRC)
    stream.image_to_buffer(image, target, (4, 4, 1), to=64)
    stream.submit()
    advice = only(advised(stream))
    assert advice.kind is AdviceKind.ORDERS_NOTHING and advice.origins == (again,)


def test_a_barrier_names_the_stages_so_that_vertices_of_the_next_pass_need_not_wait() -> None:
    stream = Stream()
    corners = stream.buffer(64)
    image, view = drawing.color_target(stream)
    _, shown = drawing.color_target(stream)
    positions = drawing.vertex_input([drawing.binding()], [drawing.attribute()])
    first, second = (
        drawing.pipeline(stream, fragment, input=positions) for fragment in ("gradient.frag", "sample_color.frag")
    )
    stream.begin()
    for number, (target, made) in enumerate(((view, first), (shown, second))):
        if number:
            wide = barrier(stream, image, Masks(ALL, WRITTEN, ALL, READ), GENERAL, GENERAL)
        passes.begin_rendering(stream, passes.rect(drawing.SIZE), [passes.attached(target)])
        drawing.bind(stream, made)
        drawing.bind_vertices(stream, corners)
        if number:
            drawing.bind_descriptors(stream, (SAMPLED, view))
        drawing.draw(stream)
        stream.cmd("EndRendering")
    stream.submit()
    advice = only(advised(stream))
    assert advice.kind is AdviceKind.WIDER and advice.origins == (wide,) and advice.narrow is not None
    [entry] = BarrierCommand.of(advice.narrow).entries
    assert entry.masks == Masks(
        VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT,
        VkAccess2.COLOR_ATTACHMENT_WRITE,
        VkPipelineStage2.FRAGMENT_SHADER,
        VkAccess2.SHADER_SAMPLED_READ,
    )
    assert advice.serializes is not None and advice.serializes.pairs
