"""Jobs that render on a driver in a child process, mirrored: what the images hold there and in the replays."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

import vkharness
from vkharness.findings import Box, Finding, Hazard, Place
from vkharness.replay.outcomes.jobs import run_native, run_serial, run_witness
from vkharness.replay.outcomes.legal_order_runs import run_reorders
from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigImage
from vkharness.rig.graphics_pipelines import STRIP_POSITIONS
from vkharness.rig.render_passes import RigAttachment, RigFramebuffer, RigRenderPass, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.rig import Rig
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkCompareOp, VkDependency, VkRendering
from vkharness.trace.calls import Call

WORDS = 256
CORNERS = struct.pack("<8f", -1, -1, 1, -1, -1, 1, 1, 1)
"""A rectangle over the viewport, as a strip of two triangles."""
TO_COPY = ("COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "ALL_TRANSFER/TRANSFER_READ")
LEAVE = RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, *TO_COPY)
"""Dependency for commands after an instance of one subpass, which read the attachment in its final layout."""
DEPTH = "VK_FORMAT_D32_SFLOAT_S8_UINT"
LESS, EQUAL = VkCompareOp.LESS, VkCompareOp.EQUAL


def picture(how: str, device: str) -> dict[str, Any]:
    """Renders in one of several ways and downloads the image: the words, here and in a serial and a native replay."""
    with vkharness.attach(keep_trace=True) as session, Rig() as rig:
        if how == "counted" and "drawIndirectCount" not in rig.gpu.features:
            return {"missing": "drawIndirectCount"}
        image, out = rig.target(), rig.buffer(4 * WORDS)
        with rig.submission() as commands:
            WAYS[how](rig, commands, image)
            commands.barrier("", *TO_COPY)
            commands.image_to_buffer(image, out)
            commands.barrier("", "COPY/TRANSFER_WRITE", "HOST/HOST_READ")
        rig.wait()
        data = rig.vk.vkMapMemory(rig.device, out.memory, 0, out.size, 0)
        words = {"here": list(struct.unpack(f"<{WORDS}I", bytes(data)))}
        rig.vk.vkUnmapMemory(rig.device, out.memory)
    for name, run in (("serial", run_serial), ("native", run_native)):
        outputs = run(session.blocks or [], device)
        held = [
            each.data for each in outputs.surfaces.values() if each.kind == "buffer" and each.data.size == 4 * WORDS
        ]
        assert len(held) == 1
        words[name] = held[0].view(np.uint32).tolist()
    return words


def one_pass(rig: Rig, image: RigImage, **options: Any) -> tuple[RigRenderPass, RigFramebuffer]:
    """A render pass of one subpass and its framebuffer."""
    made = rig.render_pass([RigAttachment()], [RigSubpass([0])], [LEAVE], v2=options.get("v2", True))
    imageless = [image] if options.get("imageless") else []
    return made, rig.framebuffer(made, [rig.view(image)], imageless=imageless)


def _pass(**options: Any) -> Callable[[Rig, Commands, RigImage], None]:
    def render(rig: Rig, commands: Commands, image: RigImage) -> None:
        v2 = options.get("v2", True)
        made, frame = one_pass(rig, image, **options)
        commands.begin_pass(made, frame, v2=v2)
        commands.bind(rig.graphics(render_pass=made))
        commands.draw()
        commands.end_pass(v2=v2)

    return render


def _dynamic(rig: Rig, commands: Commands, image: RigImage) -> None:
    commands.transition(image)
    commands.begin_rendering(RenderingAttachment(rig.view(image)))
    commands.bind(rig.graphics())
    commands.draw()
    commands.end_rendering()


def _clear(rig: Rig, commands: Commands, image: RigImage) -> None:
    """A pass that only clears, and then clears a rectangle: words 1 outside and 2 inside."""
    made, frame = one_pass(rig, image)
    commands.begin_pass(made, frame, clear=[1])
    commands.clear_attachments((1, 0, 2), rects=[((4, 4, 8, 8), 0, 1)])
    commands.end_pass()


def _vertices(how: str) -> Callable[[Rig, Commands, RigImage], None]:
    """The same picture from a vertex buffer, in every kind of draw."""

    def render(rig: Rig, commands: Commands, image: RigImage) -> None:
        corners, indices, arguments = rig.buffer(64), rig.buffer(64), rig.buffer(64)
        rig.host_write(corners, bytes(16) + CORNERS)
        # Mesa 22.3's lavapipe takes no offset of the index buffer into account when the draw is indirect.
        first = 0 if how == "indexed indirect" else 8
        rig.host_write(indices, struct.pack("<5I", 0, 1, 2, 3, 4), first)
        rig.host_write(arguments, struct.pack("<2I4I", 1, 0, 4, 1, 0, 0))
        rig.host_write(arguments, struct.pack("<5I", 4, 1, 0, 0, 0), 32)
        commands.transition(image)
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(rig.graphics(**STRIP_POSITIONS))
        commands.bind_vertices((corners, 16))
        commands.bind_indices(indices, first)
        match how:
            case "draw":
                commands.draw(4)
            case "indexed":
                commands.draw_indexed(4)
            case "indirect":
                commands.draw_indirect(arguments, 8)
            case "indexed indirect":
                commands.draw_indirect(arguments, 32, indexed=True)
            case _:
                commands.draw_indirect(arguments, 8, 1, counted=(arguments, 0))
        commands.end_rendering()

    return render


def _subpasses(v2: bool) -> Callable[[Rig, Commands, RigImage], None]:
    """The gradient, then inverted from an input attachment."""

    def render(rig: Rig, commands: Commands, image: RigImage) -> None:
        source = rig.target()
        made = rig.render_pass(
            [RigAttachment(store="DONT_CARE"), RigAttachment(load="DONT_CARE")],
            [RigSubpass([0]), RigSubpass([1], inputs=[0])],
            [
                RigSubpassDependency(
                    "",
                    0,
                    1,
                    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
                    "FRAGMENT_SHADER|COLOR_ATTACHMENT_OUTPUT/INPUT_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE",
                    VkDependency.BY_REGION,
                ),
                RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, *TO_COPY),
            ],
            v2=v2,
        )
        views = [rig.view(source), rig.view(image)]
        frame = rig.framebuffer(made, views)
        invert = rig.graphics("invert_input", render_pass=made, subpass=1)
        at = rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL
        commands.begin_pass(made, frame, v2=v2)
        commands.bind(rig.graphics(render_pass=made))
        commands.draw()
        commands.next_subpass(v2=v2)
        commands.bind(invert, rig.descriptors(invert, b0=(views[0], None, at)))
        commands.draw()
        commands.end_pass(v2=v2)

    return render


def _self_dependency(rig: Rig, commands: Commands, image: RigImage) -> None:
    """The gradient, then inverted in place: one attachment as colour and input, a barrier inside the subpass."""
    scopes = (
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
        "FRAGMENT_SHADER|COLOR_ATTACHMENT_OUTPUT/INPUT_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE",
    )
    both = RigSubpass([(0, "GENERAL")], inputs=[(0, "GENERAL")])
    made = rig.render_pass(
        [RigAttachment()], [both], [RigSubpassDependency("", 0, 0, *scopes, VkDependency.BY_REGION), LEAVE]
    )
    view = rig.view(image)
    frame = rig.framebuffer(made, [view])
    invert = rig.graphics("invert_input", render_pass=made)
    commands.begin_pass(made, frame)
    commands.bind(rig.graphics(render_pass=made))
    commands.draw()
    commands.barrier("", *scopes, flags=VkDependency.BY_REGION)
    commands.bind(invert, rig.descriptors(invert, b0=(view, None, rig.vk.VK_IMAGE_LAYOUT_GENERAL)))
    commands.draw()
    commands.end_pass()


def _suspended(rig: Rig, commands: Commands, image: RigImage) -> None:
    """Rendering that clears, suspends, resumes and clears a rectangle: words 1 outside and 2 inside."""
    commands.transition(image)
    color = RenderingAttachment(rig.view(image), clear=1)
    commands.begin_rendering(color, flags=VkRendering.SUSPENDING)
    commands.end_rendering()
    commands.begin_rendering(color, flags=VkRendering.RESUMING)
    commands.clear_attachments((1, 0, 2), rects=[((4, 4, 8, 8), 0, 1)])
    commands.end_rendering()


def _multiview(rig: Rig, commands: Commands, image: RigImage) -> None:
    """Both layers of an image cleared by one pass with two views, and the second one copied: words 1 outside a
    rectangle and 2 inside. Mesa 22.3's lavapipe draws to the first view only, so nothing is drawn."""
    layered = rig.target(layers=2)
    made = rig.render_pass([RigAttachment()], [RigSubpass([0], views=0b11)], [LEAVE], v2=False)
    frame = rig.framebuffer(made, [rig.view(layered, layers=(0, 2))])
    commands.transition(image)
    commands.begin_pass(made, frame, clear=[1])
    commands.clear_attachments((1, 0, 2), rects=[((4, 4, 8, 8), 0, 1)])
    commands.end_pass()
    commands.barrier("", *TO_COPY)
    commands.copy_image(layered, image, {"layer": 1}, {})
    commands.barrier("", "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ")


def _resolve(rig: Rig, commands: Commands, image: RigImage) -> None:
    """The gradient with four samples, resolved."""
    many = rig.target(samples=4)
    commands.transition(many, image)
    commands.begin_rendering(RenderingAttachment(rig.view(many), store="DONT_CARE", resolve=rig.view(image)))
    commands.bind(rig.graphics(samples=4))
    commands.draw()
    commands.end_rendering()


def _depth_stencil(rig: Rig, commands: Commands, image: RigImage) -> None:
    """Depth is written at 0.5 where the stencil was set by a clear; then an equal test lets the gradient through."""
    deep = rig.target(DEPTH)
    made = rig.render_pass(
        [RigAttachment(), RigAttachment(DEPTH, stencil=("CLEAR", "STORE"))],
        [RigSubpass([0], depth=1)],
        [LEAVE],
        v2=False,
    )
    frame = rig.framebuffer(made, [rig.view(image), rig.view(deep, aspect=6)])
    buffer = rig.buffer(64)
    rig.host_write(buffer, CORNERS)
    stencil = {"compareOp": EQUAL, "compareMask": 255, "reference": 7}
    write = rig.graphics(
        None,
        **STRIP_POSITIONS,
        render_pass=made,
        depth_test=True,
        depth_write=True,
        depth_compare=LESS,
        stencil=stencil,
    )
    show = rig.graphics(**STRIP_POSITIONS, render_pass=made, depth_test=True, depth_compare=EQUAL)
    commands.begin_pass(made, frame, clear=[1, (1.0, 0)])
    commands.clear_attachments((4, 0, (0.0, 7)), rects=[((4, 4, 8, 8), 0, 1)])
    commands.bind_vertices(buffer)
    commands.bind(write)
    commands.draw(4)
    commands.bind(show)
    commands.draw(4)
    commands.end_pass()


WAYS: dict[str, Callable[[Rig, Commands, RigImage], None]] = {
    "pass 1": _pass(v2=False),
    "pass 2": _pass(),
    "imageless": _pass(imageless=True),
    "dynamic": _dynamic,
    "resolve": _resolve,
    "draw": _vertices("draw"),
    "indexed": _vertices("indexed"),
    "indirect": _vertices("indirect"),
    "indexed indirect": _vertices("indexed indirect"),
    "counted": _vertices("counted"),
    "subpasses 1": _subpasses(v2=False),
    "subpasses 2": _subpasses(v2=True),
    "depth and stencil": _depth_stencil,
    "clear": _clear,
    "self-dependency": _self_dependency,
    "suspended": _suspended,
    "multiview": _multiview,
}


UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
BEGIN, END = "vkCmdBeginRender", "vkCmdEndRender"
RAW, WAR, WAW = "READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"
MOVE = "SYNC_IMAGE_LAYOUT_TRANSITION"
HAZARDS: dict[str, tuple[str, str, str, str, str, RigAttachment]] = {
    "load": (RAW, UPLOAD, BEGIN, "", "", RigAttachment(load="LOAD", initial="GENERAL")),
    "clear": (WAR, DOWNLOAD, BEGIN, "", "", RigAttachment(initial="GENERAL")),
    "store": (RAW, END, DOWNLOAD, "", "", RigAttachment(initial="GENERAL")),
    "initial transition": (WAW, UPLOAD, BEGIN, MOVE, "", RigAttachment(load="LOAD", initial="TRANSFER_DST_OPTIMAL")),
    "discarding transition": (WAW, UPLOAD, BEGIN, MOVE, "", RigAttachment(initial="UNDEFINED")),
    "final transition": (RAW, END, DOWNLOAD, "", MOVE, RigAttachment(initial="GENERAL", final="TRANSFER_SRC_OPTIMAL")),
}
"""Kind of hazard, command of the prior access and of the other, these accesses (the other first), the attachment."""


def hazard_at_an_end(which: str, dynamic: bool, device: str) -> dict[str, Any]:
    """A copy and a render pass instance with nothing between them; what the witness of their hazard shows."""
    kind, prior, current, access, prior_access, attach = HAZARDS[which]
    with vkharness.attach(keep_trace=True) as session, Rig() as rig:
        image, data = rig.target(), rig.buffer(4 * WORDS)
        rig.host_write(data, struct.pack(f"<{WORDS}I", *range(WORDS)))
        view = rig.view(image)
        made = rig.render_pass([attach], [RigSubpass([(0, "GENERAL")])])
        frame = rig.framebuffer(made, [view])
        start = attach.initial if attach.initial != "UNDEFINED" else "GENERAL"
        with rig.submission() as commands:
            commands.transition(image, new=start)
            commands.clear_color(image, 0x01010101, at=start)
            commands.barrier("", "ALL_COMMANDS/MEMORY_WRITE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE")
            if prior == UPLOAD:
                commands.buffer_to_image(data, image, at=start)
            elif prior == DOWNLOAD:
                commands.image_to_buffer(image, data, at=start)
            if dynamic:
                commands.begin_rendering(RenderingAttachment(view, load=attach.load, clear=2))
            else:
                commands.begin_pass(made, frame, clear=[2])
            commands.clear_attachments((1, 0, 3), rects=[((0, 0, 4, 4), 0, 1)])
            (commands.end_rendering if dynamic else commands.end_pass)()
            if current == DOWNLOAD:
                commands.image_to_buffer(image, data, at=attach.final)
        rig.wait()
    blocks = session.blocks or []
    calls = [each for each in blocks if isinstance(each, Call)]

    def place(name: str) -> Place:
        call = next(each for each in calls if each.name.startswith(name))
        return Place(call.index, call.name, None)

    box = Box(1, 0, 0, (0, 0, 0), (16, 16, 1))
    resource = next(each for each in calls if each.name == "vkCreateImage").args["pImage"]
    finding = Finding(
        Hazard(kind), access, prior_access, place(current), place(prior), resource, "VkImage", boxes=(box,)
    )
    return run_witness(blocks, finding, device).to_dict()


def two_pictures(how: list[str], device: str) -> dict[str, Any]:
    """Two pictures made in one command buffer in different ways, downloaded, and in every order that was drawn: how
    many commands of how many were out of place, and what differed."""
    with vkharness.attach(keep_trace=True) as session, Rig() as rig:
        images, outs = [rig.target() for _ in how], [rig.buffer(4 * WORDS) for _ in how]
        with rig.submission() as commands:
            for way, image in zip(how, images, strict=True):
                WAYS[way](rig, commands, image)
            commands.barrier("", *TO_COPY)
            for image, out in zip(images, outs, strict=True):
                commands.image_to_buffer(image, out)
        rig.wait()
    assert not session.findings
    chosen = [("reverse", 0), *(("priority", seed) for seed in range(4))]
    found = run_reorders(session.blocks or [], chosen, device)
    return {"orders": [run.to_dict() for run in found.executed], "units": found.units}
