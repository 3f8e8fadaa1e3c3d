"""Render passes made from images: layouts and operations follow from them, dependencies are the scenario's."""

from collections.abc import Sequence
from typing import NamedTuple

from vkharness.rig.automatic_passes import AutomaticPasses, SubpassUses
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigDescriptorSet, RigImage, RigPipeline, layout
from vkharness.rig.memory_allocator import MemoryAllocator, MemoryDomain
from vkharness.rig.render_passes import RigSubpassDependency
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkCompareOp, VkDependency, VkImageUsage
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_write

BEGIN, NEXT, END = "vkCmdBeginRenderPass", "vkCmdNextSubpass", "vkCmdEndRenderPass"
DRAW, DOWNLOAD, BARRIER = "vkCmdDraw", "vkCmdCopyImageToBuffer", "vkCmdPipelineBarrier2"
OUTPUT, TESTS = "COLOR_ATTACHMENT_OUTPUT", "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS"
WRITTEN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
USED = f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
COPIED = "COPY/TRANSFER_READ"
COLOR, DEPTH = "VK_FORMAT_R8G8B8A8_UNORM", "VK_FORMAT_D16_UNORM"
ATTACHED, ATTACHED_DEPTH = "COLOR_ATTACHMENT_OPTIMAL", "DEPTH_STENCIL_ATTACHMENT_OPTIMAL"
READ_LAYOUTS = ("SHADER_READ_ONLY_OPTIMAL", "SHADER_READ_ONLY_OPTIMAL", "DEPTH_STENCIL_READ_ONLY_OPTIMAL")
"""Those of colour, direction and depth as input attachments."""
SURFACE_WRITES = f"{OUTPUT}|{TESTS}/COLOR_ATTACHMENT_WRITE|DEPTH_STENCIL_ATTACHMENT_WRITE"
SURFACE_USES = (
    f"{OUTPUT}|{TESTS}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE|"
    "DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
)
READ = f"FRAGMENT_SHADER|{TESTS}/INPUT_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_READ"
LOADED_AND_READ = f"{OUTPUT}|{READ.replace('/', '/COLOR_ATTACHMENT_READ|')}"


def _transient(allocator: MemoryAllocator, format: str) -> RigImage:
    """An attachment that exists inside render passes only."""
    kind = VkImageUsage.DEPTH_STENCIL_ATTACHMENT if format == DEPTH else VkImageUsage.COLOR_ATTACHMENT
    usage = kind | VkImageUsage.TRANSIENT_ATTACHMENT | VkImageUsage.INPUT_ATTACHMENT
    return allocator.image(format, domain=MemoryDomain.TRANSIENT, usage=usage)


class _Deferred(NamedTuple):
    """The lit image and the transient images of its surfaces: colour, direction, depth."""

    lit: RigImage
    surfaces: tuple[RigImage, ...]


SUBPASSES = (SubpassUses((1, 2), depth=3), SubpassUses((0,), inputs=(1, 2, 3), depth=3, read_only=True))
INSIDE = RigSubpassDependency(
    "surfaces before light",
    0,
    1,
    SURFACE_WRITES,
    READ,
    VkDependency.BY_REGION,
    weaker={
        "colour alone": {"before": WRITTEN},
        "depth alone": {"before": f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_WRITE"},
        "for fragment tests": {"after": f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_READ"},
        "for all of the image": {"flags": 0},
    },
)
BEFORE = RigSubpassDependency(
    "the frame before",
    VK_SUBPASS_EXTERNAL,
    0,
    SURFACE_WRITES,
    SURFACE_USES,
    weaker={"after colour alone": {"before": WRITTEN}},
)
ENTER = RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 1, OUTPUT, USED)
LEAVE = RigSubpassDependency("light before copy", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED)


def _render(rig: Rig, passes: AutomaticPasses, commands: Commands, images: _Deferred) -> None:
    """Both subpasses: surfaces, then what lights them."""
    several = [images.lit, *images.surfaces]
    dependencies = [BEFORE, INSIDE, ENTER, LEAVE]
    made, framebuffer = passes.get(several, SUBPASSES, dependencies, clear=(0, 1, 2, 3), store=(0,))
    fill = rig.graphics("surface", render_pass=made, depth_test=True, depth_write=True)
    light = rig.graphics(
        "lit", render_pass=made, subpass=1, depth_test=True, depth_compare=VkCompareOp.GREATER_OR_EQUAL
    )
    commands.begin_pass(made, framebuffer, clear=[0, 0, 0, (1.0, 0)])
    commands.bind(fill)
    commands.draw()
    commands.next_subpass()
    commands.bind(light, _inputs(rig, passes, light, images.surfaces))
    commands.draw()
    commands.end_pass()


def _inputs(rig: Rig, passes: AutomaticPasses, pipeline: RigPipeline, surfaces: Sequence[RigImage]) -> RigDescriptorSet:
    """The surfaces as input attachments."""
    held = {
        f"b{at}": (passes.view(image), None, layout(name))
        for at, (image, name) in enumerate(zip(surfaces, READ_LAYOUTS, strict=True))
    }
    return rig.descriptors(pipeline, **held)


@scenario(
    without={
        "surfaces before light": [race("WRITE_RACING_WRITE", NEXT, DRAW), read_after_write(DRAW, NEXT)],
        "light before copy": [read_after_write(DOWNLOAD, END)],
    },
    weakened={
        "surfaces before light / colour alone": [write_after_write(NEXT, DRAW)],
        "surfaces before light / depth alone": [write_after_write(NEXT, DRAW)],
        "surfaces before light / for fragment tests": [read_after_write(DRAW, NEXT)],
        "surfaces before light / for all of the image": [],
    },
    rule="a-subpass-dependency-orders-two-subpasses,by-region-dependencies-order-attachments,input-attachments-are-read-by-the-shader",
)
def scenario_deferred_rendering(rig: Rig) -> None:
    """Surfaces and light in one render pass: three colour attachments and depth, of which three are transient and are
    read as input attachments by the second subpass."""
    allocator, passes, out = MemoryAllocator(rig), AutomaticPasses(rig), rig.buffer(1024)
    images = _Deferred(rig.target(), tuple(_transient(allocator, form) for form in (COLOR, COLOR, DEPTH)))
    with rig.submission() as commands:
        commands.transition(images.lit, dst=USED, new=ATTACHED)
        _render(rig, passes, commands, images)
        commands.image_to_buffer(images.lit, out, at=ATTACHED)


@scenario(
    without={"surfaces before light": [write_after_write(BARRIER, END)]},
    weakened={
        "surfaces before light / colour alone": [write_after_write(BARRIER, END)],
        "surfaces before light / execution only": [write_after_write(BARRIER, END)],
    },
    rule="storing-writes-the-attachment,input-attachments-are-read-by-the-shader,a-transition-is-a-write",
)
def scenario_deferred_rendering_in_two_passes(rig: Rig) -> None:
    """The same in a render pass each: surfaces are stored, change their layout in between, and are loaded again."""
    passes, out = AutomaticPasses(rig), rig.buffer(1024)
    lit, *surfaces = (rig.target(form) for form in (COLOR, COLOR, COLOR, DEPTH))
    first = passes.get(surfaces, [SubpassUses((0, 1), depth=2)], clear=(0, 1, 2), store=(0, 1, 2))
    reading = SubpassUses((0,), inputs=(1, 2, 3), depth=3, read_only=True)
    second = passes.get([lit, *surfaces], [reading], clear=(0,), load=(1, 2, 3), store=(0,))
    fill = rig.graphics("surface", render_pass=first[0], depth_test=True, depth_write=True)
    light = rig.graphics("lit", render_pass=second[0], depth_test=True, depth_compare=VkCompareOp.GREATER_OR_EQUAL)
    with rig.submission() as commands:
        commands.transition(lit, *surfaces[:2], dst=USED, new=ATTACHED)
        commands.transition(surfaces[2], dst=SURFACE_USES, new=ATTACHED_DEPTH)
        commands.begin_pass(*first, clear=[0, 0, (1.0, 0)])
        commands.bind(fill)
        commands.draw()
        commands.end_pass()
        weaker = {"colour alone": {"src": WRITTEN}, "execution only": {"src": f"{OUTPUT}|{TESTS}"}}
        commands.barrier("surfaces before light", SURFACE_WRITES, "FRAGMENT_SHADER", weaker=weaker)
        for image, old, new in zip(surfaces, (ATTACHED, ATTACHED, ATTACHED_DEPTH), READ_LAYOUTS, strict=True):
            commands.transition(image, src="FRAGMENT_SHADER", dst=LOADED_AND_READ, old=old, new=new)
        commands.begin_pass(*second)
        commands.bind(light, _inputs(rig, passes, light, surfaces))
        commands.draw()
        commands.end_pass()
        commands.barrier("", WRITTEN, COPIED)
        commands.image_to_buffer(lit, out, at=ATTACHED)


@scenario(
    without={"the frame before": [write_after_write(BEGIN, END)]},
    weakened={"the frame before / after colour alone": [write_after_write(BEGIN, END)]},
    rule="initial-transitions-wait-for-earlier-accesses,implicit-external-dependencies-order-little",
)
def scenario_transient_images_of_two_frames(rig: Rig) -> None:
    """Transient images are discarded when a render pass begins; the pass of the frame before must be done with them.

    Its store operation writes them, although nothing is stored. Fragment shaders, which read them as input attachments,
    come before the stages of that write."""
    allocator, passes, out = MemoryAllocator(rig), AutomaticPasses(rig), rig.buffer(2048)
    surfaces = tuple(_transient(allocator, form) for form in (COLOR, COLOR, DEPTH))
    for number in range(2):
        images = _Deferred(rig.target(), surfaces)
        with rig.submission() as commands:
            commands.transition(images.lit, dst=USED, new=ATTACHED)
            _render(rig, passes, commands, images)
            commands.image_to_buffer(images.lit, out, {"buffer_offset": 1024 * number}, at=ATTACHED)


@scenario(
    without={
        "before the pass": [write_after_write(BEGIN, BARRIER)],
        "after the pass": [read_after_write(DOWNLOAD, END)],
    },
    rule="equal-layouts-are-no-transition,external-dependencies-order-what-is-outside",
)
def scenario_pass_without_transitions(rig: Rig) -> None:
    """An image of the program's own keeps its layout over a render pass, which then needs no dependency from outside:
    what happens outside is ordered by barriers."""
    image, out, passes = rig.target(), rig.buffer(1024), AutomaticPasses(rig)
    made, framebuffer = passes.get([image], [SubpassUses((0,))], clear=(0,), store=(0,))
    with rig.submission() as commands:
        commands.transition(image, dst="NONE", new=ATTACHED)
        commands.barrier("before the pass", "ALL_COMMANDS/MEMORY_WRITE", USED)
        commands.begin_pass(made, framebuffer, clear=[0x30201008])
        commands.end_pass()
        commands.barrier("after the pass", WRITTEN, COPIED)
        commands.image_to_buffer(image, out, at=ATTACHED)
