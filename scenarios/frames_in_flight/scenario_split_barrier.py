"""An event as a split barrier: work between its set and its wait overlaps with what comes before and after."""

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigDescriptorSet, RigImage, RigPipeline
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, read_after_write, scenario

END, DRAW, DISPATCH = "vkCmdEndRendering", "vkCmdDraw", "vkCmdDispatch"
COLOR, SAMPLED = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "FRAGMENT_SHADER/SHADER_SAMPLED_READ"
NOT_DRAWN = [read_after_write(DRAW, END)]


@scenario(
    without={"first draw before second": NOT_DRAWN},
    weakened={
        "first draw before second / execution only": NOT_DRAWN,
        "first draw before second / before compute shaders": NOT_DRAWN,
        "what the second draw reads / what the dispatch wrote": [read_after_write(DRAW, DISPATCH)],
    },
    rule="a-set-and-its-wait-are-one-dependency,a-set-fixes-the-first-scope",
)
def scenario_draws_on_both_sides_of_a_dispatch(rig: Rig) -> None:
    """A draw, a set, a dispatch, a wait, a draw: the second draw waits for the first one, and nothing waits for the
    dispatch."""
    drawn, shown, words, out = rig.target(), rig.target(), rig.buffer(), rig.buffer(1024)
    dispatch = rig.compute("fill_words")
    sample = rig.graphics("sample_color")
    held = rig.descriptors(sample, b0=(rig.view(drawn), rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    second, read = rig.choose(
        "what the second draw reads", (sample, held), {"what the dispatch wrote": _stored(rig, words)}
    )
    event = rig.event(
        "first draw before second",
        COLOR,
        SAMPLED,
        weaker={
            "execution only": {"src": "COLOR_ATTACHMENT_OUTPUT", "dst": "FRAGMENT_SHADER"},
            "before compute shaders": {"dst": "COMPUTE_SHADER/SHADER_SAMPLED_READ"},
        },
    )
    with rig.submission() as commands:
        commands.transition(drawn, shown)
        _draw(rig, commands, drawn, rig.graphics())
        commands.set_event(event)
        commands.bind(dispatch, rig.descriptors(dispatch, b0=words))
        commands.push_constants(dispatch, 0x01020304)
        commands.dispatch()
        commands.wait_events(event)
        _draw(rig, commands, shown, second, read)
        commands.barrier("", COLOR, "COPY/TRANSFER_READ")
        commands.image_to_buffer(shown, out)


def _draw(rig: Rig, commands: Commands, target: RigImage, *bound: Any) -> None:
    """Draws to all of an image with a pipeline and its descriptors."""
    commands.begin_rendering(RenderingAttachment(rig.view(target)))
    commands.bind(*bound)
    commands.draw()
    commands.end_rendering()


def _stored(rig: Rig, words: RigBuffer) -> tuple[RigPipeline, RigDescriptorSet]:
    """A pipeline that draws in the colours of words of a storage buffer."""
    made = rig.graphics("stored_word_color")
    return made, rig.descriptors(made, b0=words)
