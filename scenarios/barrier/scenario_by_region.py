"""By-region barriers outside of render pass instances: between which stages they hold by region."""

from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VkDependency
from vkharness.suite import Rig, scenario, write_after_write

DRAW, BARRIER = "vkCmdDraw", "vkCmdPipelineBarrier2"
STORED = "FRAGMENT_SHADER/SHADER_STORAGE_WRITE"


@scenario(
    weakened={
        "moved before stored / after fragments": [write_after_write(DRAW, BARRIER)],
        "moved before stored / after the top and fragments": [write_after_write(DRAW, BARRIER)],
        "moved before stored / from the top": [],
        "moved before stored / after all graphics": [],
    },
    rule="by-region-dependencies-order-attachments",
)
def scenario_by_region_barrier_from_no_stage(rig: Rig) -> None:
    """A by-region transition from no stage is before all fragments: it is between no two framebuffer-space stages."""
    image, target, out = rig.target(), rig.image(extent=(16, 16, 1)), rig.buffer(1024)
    store = rig.graphics("store_texels.frag")
    held = rig.descriptors(store, b0=(rig.view(target), None, rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as commands:
        commands.transition(image)
        commands.barrier(
            "moved before stored",
            "NONE",
            STORED,
            image=target,
            old="UNDEFINED",
            flags=VkDependency.BY_REGION,
            weaker={
                "after fragments": {"src": "FRAGMENT_SHADER"},
                "after the top and fragments": {"src": "TOP_OF_PIPE|FRAGMENT_SHADER"},
                "from the top": {"src": "TOP_OF_PIPE"},
                "after all graphics": {"src": "ALL_GRAPHICS"},
            },
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(store, held)
        commands.push_constants(store, 0x11223344)
        commands.draw()
        commands.end_rendering()
        commands.barrier("", STORED, "COPY/TRANSFER_READ")
        commands.image_to_buffer(target, out)
