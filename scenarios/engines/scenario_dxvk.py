"""Frames as DXVK makes them: one global barrier for everything that a command needs, uploads ahead of the frame on a
transfer queue, fences of presents."""

import struct
from typing import Any

from vkharness.rig.core import RigImage
from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.requirements import PRESENT_FENCES
from vkharness.rig.swapchains import SHOWN
from vkharness.spec.enums import VkPrimitiveTopology
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

BARRIER, COPY, DISPATCH, DRAW = "vkCmdPipelineBarrier2", "vkCmdCopyBuffer2", "vkCmdDispatch", "vkCmdDraw"
END, PRESENT = "vkCmdEndRendering", "vkQueuePresentKHR"
NOT_COUNTED = [read_after_write("vkCmdDrawIndirectByteCountEXT", "vkCmdEndTransformFeedbackEXT")]
OVERWRITTEN = write_after_read("host write", DRAW)
COLOR, READ_ONLY = "COLOR_ATTACHMENT_OPTIMAL", "SHADER_READ_ONLY_OPTIMAL"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
DRAWN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
BOTTOM, TOP = "BOTTOM_OF_PIPE", "TOP_OF_PIPE"
WORDS = bytes(range(256))
RED, BLUE = struct.pack("<4f", 1, 0, 0, 1), struct.pack("<4f", 0, 0.25, 1, 1)


def _sampled(rig: Rig, image: RigImage, at: str = READ_ONLY) -> tuple[object, object, int]:
    return rig.view(image), rig.sampler(), getattr(rig.vk, f"VK_IMAGE_LAYOUT_{at}")


@scenario(
    without={"the batch": [write_after_write(DISPATCH, "vkCmdUpdateBuffer"), read_after_write(DRAW, END)]},
    weakened={
        "the batch / for fragments alone": [write_after_write(DISPATCH, "vkCmdUpdateBuffer")],
        "the batch / of rendering alone": [write_after_write(DISPATCH, "vkCmdUpdateBuffer")],
    },
    rule="barriers-of-one-command-add-up,masks-name-stages-and-accesses-together",
)
def scenario_barriers_of_a_command_list(rig: Rig) -> None:
    """One global barrier gathers all dependencies before the next commands, with all of their stages and accesses
    together. Images whose layout stays the same are in it, too."""
    scene, shown, constants = rig.target(), rig.target(), rig.buffer()
    draw, sample, scale = rig.graphics(), rig.graphics("sample_color"), rig.compute("scale_words")
    with rig.submission() as frame:
        frame.transition(scene, shown, dst=DRAWN)
        frame.update(constants, WORDS)
        frame.render(draw, RenderingAttachment(rig.view(scene)))
        frame.barrier(
            "the batch",
            f"{OUTPUT}|ALL_TRANSFER/COLOR_ATTACHMENT_WRITE|TRANSFER_WRITE",
            "FRAGMENT_SHADER|COMPUTE_SHADER/SHADER_READ|SHADER_WRITE",
            weaker={
                "for fragments alone": {"dst": "FRAGMENT_SHADER/SHADER_READ|SHADER_WRITE"},
                "of rendering alone": {"src": DRAWN},
            },
        )
        frame.run(scale, 7, b0=constants)
        frame.render(sample, RenderingAttachment(rig.view(shown)), b0=_sampled(rig, scene, "GENERAL"))


@scenario(
    without={
        "the timeline of transfers": [race("WRITE_RACING_WRITE", BARRIER, BARRIER)],
        "the release": [race("ownership-not-released", BARRIER, "vkCmdCopyBufferToImage2")],
        "the acquire": [race("ownership-not-acquired", DRAW, BARRIER)],
        "the staging memory": [write_after_read("host write", "vkCmdCopyBufferToImage2")],
    },
    queues=["TRANSFER"],
    rule="a-semaphore-orders-the-halves-of-a-transfer,contents-must-be-transferred-to-another-family",
)
def scenario_upload_ahead_of_the_frame(rig: Rig) -> None:
    """A texture is uploaded on the transfer queue and given to the graphics queue, which acquires it before the frame's
    own commands. A timeline of each queue orders the submits; the host uses staging memory again when the transfer
    queue has reached its value."""
    staging, texture, shown = rig.buffer(1024, data=WORDS), rig.image(exclusive=True), rig.target()
    sample = rig.graphics("sample_color")
    graphics, transfer = rig.queues
    uploads, frames = rig.timeline(), rig.timeline()
    moved: dict[str, Any] = {
        "image": texture,
        "old": "TRANSFER_DST_OPTIMAL",
        "new": READ_ONLY,
        "families": (transfer.family, graphics.family),
    }
    with rig.commands(queue=transfer) as upload:
        upload.transition(texture, dst="COPY/TRANSFER_WRITE", new="TRANSFER_DST_OPTIMAL")
        upload.buffer_to_image(staging, texture, at="TRANSFER_DST_OPTIMAL", v2=True)
        upload.barrier("the release", "COPY/TRANSFER_WRITE", "NONE", **moved)
    rig.submit(upload, signals=[SemaphoreUse(uploads, BOTTOM, 1)], sync2=True)
    with rig.commands(queue=graphics) as acquires:
        acquires.barrier("the acquire", "NONE", "FRAGMENT_SHADER/SHADER_SAMPLED_READ", **moved)
    with rig.commands(queue=graphics) as frame:
        frame.transition(shown, dst=DRAWN)
        frame.render(sample, RenderingAttachment(rig.view(shown)), b0=_sampled(rig, texture))
    waits = rig.operation("the timeline of transfers", uploads, TOP, 1)
    rig.submit(acquires, frame, waits=waits, signals=[SemaphoreUse(frames, BOTTOM, 1)], sync2=True)
    rig.host_wait_timeline("the staging memory", (uploads, 1))
    rig.host_write(staging, WORDS[::-1])


@scenario(
    without={
        "the acquire": [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)],
        "the present": [race("PRESENT_AFTER_WRITE", PRESENT, BARRIER), OVERWRITTEN],
        "the fence of the present": [OVERWRITTEN],
    },
    needs=PRESENT_FENCES,
    rule="an-acquired-image-waits-for-its-semaphore,a-present-waits-for-the-frame",
)
def scenario_fences_of_presents(rig: Rig) -> None:
    """A frame is submitted, then presented with a fence. The host waits for that fence before it uses the frame's
    semaphores and its memory again. The fence says what the present waited for, and nothing else."""
    chain = rig.shown_swapchain()
    blit = rig.drawing_to(chain.images[0], "uniform_color")
    color, acquired, rendered, shown = rig.buffer(16, data=RED), rig.semaphore(), rig.semaphore(), rig.fence()
    index = rig.acquire(chain, acquired)
    image = chain.images[index]
    with rig.commands() as frame:
        frame.transition(image, src=OUTPUT, dst=DRAWN, new=COLOR)
        frame.render(blit, RenderingAttachment(rig.view(image), layout=COLOR), b0=color)
        frame.transition(image, src=DRAWN, dst="NONE", old=COLOR, new=SHOWN)
    waits = rig.operation("the acquire", acquired, TOP)
    rig.submit(frame, waits=waits, signals=[SemaphoreUse(rendered, BOTTOM)], sync2=True)
    if not waits:
        rig.submit(waits=[SemaphoreUse(acquired)])
    done = [each.semaphore for each in rig.operation("the present", rendered)]
    rig.present((chain, index), waits=done, fences=[shown])
    rig.host_wait("the fence of the present", "all", shown)
    rig.host_write(color, BLUE)


@scenario(
    without={
        "filled before stored": [write_after_write("vkCmdDispatchIndirect", COPY)],
        "counted before dispatched": [read_after_write("vkCmdDispatchIndirect", DISPATCH)],
        "stored before fetched": [read_after_write(DRAW, "vkCmdDispatchIndirect")],
    },
    rule="indirect-parameters-are-read-first,vertices-are-read-by-vertex-input",
)
def scenario_buffers_of_unordered_access(rig: Rig) -> None:
    """A dispatch counts, an indirect dispatch stores what a draw fetches as texels: views of one buffer, in turn."""
    counts, words, image, initial = rig.buffer(), rig.buffer(), rig.target(), rig.buffer(data=WORDS)
    count, fill, draw = rig.compute("indirect_args"), rig.compute("fill_words"), rig.graphics("stored_word_color")
    with rig.submission() as frame:
        frame.transition(image, dst=DRAWN)
        frame.copy(initial, words, v2=True)
        frame.run(count, 1, 1, 1, b0=counts)
        frame.barrier("filled before stored", "COPY/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_READ|SHADER_WRITE")
        frame.barrier("counted before dispatched", "COMPUTE_SHADER/SHADER_WRITE", "DRAW_INDIRECT/INDIRECT_COMMAND_READ")
        frame.bind(fill, rig.descriptors(fill, b0=words))
        frame.push_constants(fill, 0x01020304)
        frame.dispatch_indirect(counts)
        frame.barrier("stored before fetched", "COMPUTE_SHADER/SHADER_WRITE", "FRAGMENT_SHADER/SHADER_READ")
        frame.render(draw, RenderingAttachment(rig.view(image)), b0=words)


@scenario(
    without={"counted before drawn": NOT_COUNTED},
    weakened={"counted before drawn / for fetches": NOT_COUNTED},
    needs=["VK_EXT_transform_feedback"],
    rule="transform-feedback-has-its-own-stage,feedback-counters-are-read-and-written",
)
def scenario_stream_output(rig: Rig) -> None:
    """Vertices that a draw streamed out are drawn, as many as its counter says: the counter is read by the indirect
    stage, the vertices by vertex input."""
    first, second, words, counter = rig.target(), rig.target(), rig.buffer(64), rig.buffer(64)
    points = VkPrimitiveTopology.POINT_LIST
    stream = rig.graphics("gradient", "feedback_words", topology=points)
    fetch = rig.graphics("gradient", topology=points, **POSITIONS)
    with rig.submission() as frame:
        frame.transition(first, second, dst=DRAWN, new=COLOR)
        frame.begin_rendering(RenderingAttachment(rig.view(first), layout=COLOR))
        frame.bind(stream)
        frame.push_constants(stream, 0)
        frame.bind_feedback(words)
        frame.begin_feedback()
        frame.draw(8)
        frame.end_feedback(counter)
        frame.end_rendering()
        captured = "TRANSFORM_FEEDBACK/TRANSFORM_FEEDBACK_WRITE"
        fetched = "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ"
        frame.barrier("", captured, fetched)
        counts = "TRANSFORM_FEEDBACK/TRANSFORM_FEEDBACK_COUNTER_WRITE"
        weaker = {"for fetches": {"dst": fetched}}
        frame.barrier("counted before drawn", counts, "DRAW_INDIRECT/INDIRECT_COMMAND_READ", weaker=weaker)
        frame.begin_rendering(RenderingAttachment(rig.view(second), layout=COLOR))
        frame.bind(fetch)
        frame.bind_vertices(words)
        frame.draw_byte_count(counter, stride=8)
        frame.end_rendering()
