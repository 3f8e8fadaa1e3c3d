"""Frames as layers make them that draw over the picture of a program: MangoHud, and the overlay layer of Mesa."""

import struct

from vulkan import VK_SUBPASS_EXTERNAL

from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.spec.formats import format_of
from vkharness.suite import Rig, race, read_after_write, scenario

BARRIER, BEGIN, PRESENT = "vkCmdPipelineBarrier", "vkCmdBeginRenderPass", "vkQueuePresentKHR"
COLOR, TOP, BOTTOM = "COLOR_ATTACHMENT_OPTIMAL", "TOP_OF_PIPE", "BOTTOM_OF_PIPE"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
WRITTEN, TARGET = "COLOR_ATTACHMENT_WRITE", "COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
CORNER = struct.pack("<6f", -1, -1, 0, -1, -1, 0)


@scenario(
    without={"the present": [race("PRESENT_AFTER_WRITE", PRESENT, "vkCmdEndRenderPass")]},
    weakened={"back to a target / to be written alone": [read_after_write(BEGIN, BARRIER)]},
    needs=PRESENTS,
    rule="loading-reads-the-attachment,masks-name-stages-and-accesses-together",
)
def scenario_overlay_over_a_picture(rig: Rig) -> None:
    """MangoHud takes the image out of the layout for presenting and draws over it in a pass that loads the picture. Its
    barrier names COLOR_ATTACHMENT_WRITE alone, and a load operation LOAD reads."""
    chain, acquired, drawn, overlaid = rig.shown_swapchain(), rig.semaphore(), rig.semaphore(), rig.semaphore()
    index = rig.acquire(chain, acquired)
    image, corner = chain.images[index], rig.buffer(24, data=CORNER)
    with rig.commands() as frame:
        frame.transition(image, src=TOP, dst=f"{OUTPUT}/{TARGET}", new=COLOR, sync2=False)
        frame.render(rig.drawing_to(image), RenderingAttachment(rig.view(image), layout=COLOR))
        frame.transition(image, src=f"{OUTPUT}/{WRITTEN}", dst=BOTTOM, old=COLOR, new=SHOWN, sync2=False)
    rig.submit(frame, waits=[SemaphoreUse(acquired, TOP)], signals=[SemaphoreUse(drawn)])
    form = [RigAttachment(format_of(image.format).name, load="LOAD", initial=COLOR, final=SHOWN)]
    before = RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, OUTPUT, f"{OUTPUT}/{WRITTEN}")
    made = rig.render_pass(form, [RigSubpass([0])], [before])
    with rig.commands() as overlay:
        overlay.barrier(
            "back to a target",
            f"ALL_GRAPHICS/{WRITTEN}",
            f"ALL_GRAPHICS/{TARGET}",
            weaker={"to be written alone": {"dst": f"ALL_GRAPHICS/{WRITTEN}"}},
            image=image,
            old=SHOWN,
            new=COLOR,
            sync2=False,
        )
        overlay.begin_pass(made, rig.framebuffer(made, [rig.view(image)]))
        overlay.bind(rig.graphics(render_pass=made, extent=image.extent[:2], **POSITIONS))
        overlay.bind_vertices(corner)
        overlay.draw()
        overlay.end_pass()
    rig.submit(overlay, waits=[SemaphoreUse(drawn, "FRAGMENT_SHADER")], signals=[SemaphoreUse(overlaid)])
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", overlaid)])
