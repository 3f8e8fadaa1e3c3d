"""Jobs that render on lavapipe under one version of the Khronos layer: what it says there."""

from __future__ import annotations

from collections.abc import Callable

from harness.layer.listen import LayerWitness
from harness.rig.command_buffers import Commands
from harness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from harness.rig.rendering_attachments import RenderingAttachment
from harness.rig.rig import Rig
from harness.spec.enums import VK_SUBPASS_EXTERNAL

WRITTEN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
USED = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
INPUT = "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ"
AT = "GENERAL"


def said(how: str, layer: str) -> dict[str, list[list[str]]]:
    """(hazard, command, prior command, access, prior access) of each message about one of the streams below."""
    with LayerWitness.open(layer) as witness, Rig((), witness) as rig:
        with rig.commands() as commands:
            STREAMS[how](rig, commands)
        return {"said": [list(message.key) for message in witness.take(0)]}


def _between(execution_only: bool) -> Callable[[Rig, Commands], None]:
    """A draw, then a subpass that has the attachment as input in another layout."""

    def record(rig: Rig, commands: Commands) -> None:
        source, image = rig.target(), rig.target()
        scopes = ("COLOR_ATTACHMENT_OUTPUT", "FRAGMENT_SHADER") if execution_only else (WRITTEN, "FRAGMENT_SHADER")
        made = rig.render_pass(
            [
                RigAttachment(
                    load="LOAD", store="NONE", initial="COLOR_ATTACHMENT_OPTIMAL", final="SHADER_READ_ONLY_OPTIMAL"
                ),
                RigAttachment(initial=AT),
            ],
            [RigSubpass([0]), RigSubpass([(1, AT)], inputs=[0])],
            [RigSubpassDependency("", 0, 1, *scopes)],
        )
        views = [rig.view(source), rig.view(image)]
        frame = rig.framebuffer(made, views)
        invert = rig.graphics("invert_input", bindings={0: "INPUT_ATTACHMENT"}, render_pass=made, subpass=1)
        held = rig.descriptors(invert, b0=(views[0], None, rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL))
        commands.transition(source, new="COLOR_ATTACHMENT_OPTIMAL")
        commands.transition(image)
        commands.begin_pass(made, frame)
        commands.bind(rig.graphics(render_pass=made))
        commands.draw()
        commands.next_subpass()
        commands.bind(invert, held)
        commands.draw()
        commands.end_pass()

    return record


def _parts(rig: Rig, commands: Commands) -> None:
    """An upload to the lower half, and rendering to the upper one."""
    image, data = rig.target(), rig.buffer(1024)
    commands.transition(image)
    commands.buffer_to_image(data, image, {"offset": (0, 8, 0), "extent": (16, 8, 1)})
    commands.begin_rendering(RenderingAttachment(rig.view(image)), area=(0, 0, 16, 8))
    commands.end_rendering()


def _layers(rig: Rig, commands: Commands) -> None:
    """Rendering to the first layer of a view with two, and a download of the second."""
    image, out = rig.target(layers=2), rig.buffer(1024)
    commands.transition(image)
    commands.begin_rendering(RenderingAttachment(rig.view(image, layers=(0, 2))), layers=1)
    commands.end_rendering()
    commands.image_to_buffer(image, out, {"layer": 1})


def _views(rig: Rig, commands: Commands) -> None:
    """A pass with one view of two, and a download of the other one's layer."""
    image, out = rig.target(layers=2), rig.buffer(1024)
    made = rig.render_pass([RigAttachment(initial=AT)], [RigSubpass([(0, AT)], views=0b01)])
    frame = rig.framebuffer(made, [rig.view(image, layers=(0, 2))])
    commands.transition(image)
    commands.begin_pass(made, frame)
    commands.end_pass()
    commands.image_to_buffer(image, out, {"layer": 1})


def _draw_in_dynamic_rendering(rig: Rig, commands: Commands) -> None:
    """A download, and a draw that is the first to write the image."""
    image, out = rig.target(), rig.buffer(1024)
    commands.transition(image)
    commands.image_to_buffer(image, out)
    commands.begin_rendering(RenderingAttachment(rig.view(image), load="LOAD", store="NONE"))
    commands.bind(rig.graphics())
    commands.draw()
    commands.end_rendering()


def _own_transition(rig: Rig, commands: Commands) -> None:
    """A load that its own initial transition is not made visible to."""
    image = rig.target()
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial=AT, final="COLOR_ATTACHMENT_OPTIMAL")],
        [RigSubpass([0])],
        [RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, "ALL_COMMANDS/MEMORY_WRITE", WRITTEN)],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    commands.transition(image)
    commands.begin_pass(made, frame)
    commands.end_pass()


def _own_store(rig: Rig, commands: Commands) -> None:
    """A store that is not made available to the final transition."""
    image = rig.target()
    made = rig.render_pass(
        [RigAttachment()],
        [RigSubpass([0])],
        [RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, "COLOR_ATTACHMENT_OUTPUT", USED)],
    )
    commands.begin_pass(made, rig.framebuffer(made, [rig.view(image)]))
    commands.end_pass()


def _store_none(rig: Rig, commands: Commands) -> None:
    """An attachment that is cleared, not stored and downloaded."""
    image, out = rig.target(), rig.buffer(1024)
    commands.transition(image)
    commands.begin_rendering(RenderingAttachment(rig.view(image), load="CLEAR", store="NONE"))
    commands.end_rendering()
    commands.image_to_buffer(image, out)


def _input_after_load(rig: Rig, commands: Commands) -> None:
    """A clear that is visible to the load operation, and not to the shader that reads the attachment as input."""
    image, source = rig.target(), rig.target()
    made = rig.render_pass(
        [RigAttachment(initial=AT), RigAttachment(load="LOAD", store="NONE", initial=AT)],
        [RigSubpass([(0, AT)], inputs=[(1, AT)])],
    )
    views = [rig.view(image), rig.view(source)]
    invert = rig.graphics("invert_input", bindings={0: "INPUT_ATTACHMENT"}, render_pass=made)
    held = rig.descriptors(invert, b0=(views[1], None, rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    commands.transition(image)
    commands.transition(source)
    commands.clear_color(source)
    commands.barrier("", "CLEAR/TRANSFER_WRITE", USED)
    commands.begin_pass(made, rig.framebuffer(made, views))
    commands.bind(invert, held)
    commands.draw()
    commands.end_pass()


STREAMS: dict[str, Callable[[Rig, Commands], None]] = {
    "execution only": _between(True),
    "not visible": _between(False),
    "parts": _parts,
    "layers": _layers,
    "views": _views,
    "draw in dynamic rendering": _draw_in_dynamic_rendering,
    "own transition": _own_transition,
    "own store": _own_store,
    "store none": _store_none,
    "input after load": _input_after_load,
}
