"""Dependencies between subpasses: what they order, how they join, and what races without them."""

from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkDependency
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

BEGIN = "vkCmdBeginRenderPass"
NEXT, DRAW, CLEAR, END = "vkCmdNextSubpass", "vkCmdDraw", "vkCmdClearAttachments", "vkCmdEndRenderPass"
COPY, FILL = "vkCmdCopyBuffer", "vkCmdFillBuffer"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
OUTPUT, FRAGMENT = "COLOR_ATTACHMENT_OUTPUT", "FRAGMENT_SHADER"
WRITTEN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
USED = f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
READ_OR_USED = (
    "COLOR_ATTACHMENT_OUTPUT|FRAGMENT_SHADER/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE|INPUT_ATTACHMENT_READ"
)
INPUT = "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ"
COPIED = "COPY/TRANSFER_READ"
PRESERVED = race("attachment-preserved-and-used", BEGIN, "vkCreateRenderPass2")
RAMP = bytes(range(256)) * 4
WHITE = b"\0\0\x80\x3f" * 256
"""Floats of one: what the shaders write into their place is next to zero."""


@scenario(
    without={"first before second": [race("WRITE_RACING_WRITE", NEXT, DRAW), write_after_write(END, NEXT)]},
    weakened={"first before second / before other accesses": [write_after_write(END, NEXT)]},
    rule="subpasses-without-a-path-race,dependencies-meet-at-a-transition",
)
def scenario_transition_in_a_subpass_without_a_dependency(rig: Rig) -> None:
    """The transition for a later subpass races with what an earlier one draws, unless one depends on the other.

    The store operation in the later subpass must see the transition, though it is NONE, since the earlier one drew.
    """
    image, other, out = rig.target(), rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [
            RigAttachment(load="LOAD", store="NONE", initial="COLOR_ATTACHMENT_OPTIMAL"),
            RigAttachment(initial="GENERAL"),
        ],
        [RigSubpass([0]), RigSubpass([(1, "GENERAL")], inputs=[(0, "GENERAL")])],
        [
            RigSubpassDependency(
                "first before second",
                0,
                1,
                WRITTEN,
                READ_OR_USED,
                VkDependency.BY_REGION,
                weaker={"before other accesses": {"after": INPUT}},
            ),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image), rig.view(other)])
    with rig.submission() as commands:
        commands.transition(image, new="COLOR_ATTACHMENT_OPTIMAL")
        commands.transition(other)
        commands.begin_pass(made, frame, clear=[1, 2])
        commands.bind(rig.graphics(render_pass=made))
        commands.draw()
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(other, out)


@scenario(
    without={"first before second": [race("WRITE_RACING_WRITE", CLEAR, CLEAR)]}, rule="subpasses-without-a-path-race"
)
def scenario_subpasses_that_write_one_attachment(rig: Rig) -> None:
    """Two subpasses that clear one attachment race unless one depends on the other: order in the list is none."""
    image, out = rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial="GENERAL")],
        [RigSubpass([(0, "GENERAL")]), RigSubpass([(0, "GENERAL")])],
        [
            RigSubpassDependency("first before second", 0, 1, WRITTEN, USED, VkDependency.BY_REGION),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_pass(made, frame)
        commands.clear_attachments((1, 0, 1))
        commands.next_subpass()
        commands.clear_attachments((1, 0, 2))
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    without={"first before second": [race("WRITE_RACING_WRITE", DRAW, DRAW)]},
    rule="draws-write-colour-at-attachment-output",
)
def scenario_masked_components_are_one_texel(rig: Rig) -> None:
    """A draw that writes one component of an attachment writes its texels. A draw that writes none leaves it alone."""
    image, out = rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial="GENERAL")],
        [RigSubpass([(0, "GENERAL")]), RigSubpass([(0, "GENERAL")]), RigSubpass([(0, "GENERAL")])],
        [
            RigSubpassDependency("first before second", 0, 2, WRITTEN, USED, VkDependency.BY_REGION),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
            RigSubpassDependency("", 2, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_pass(made, frame)
        for subpass, components in enumerate((1, 0, 2)):
            if subpass:
                commands.next_subpass()
            commands.bind(rig.graphics(render_pass=made, subpass=subpass, components=components))
            commands.draw()
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    weakened={"flags / by region": [read_after_write(DRAW, DRAW)]}, rule="by-region-dependencies-order-attachments"
)
def scenario_storage_buffer_beside_a_by_region_dependency(rig: Rig) -> None:
    """A by-region dependency orders fragments of one pixel: not the writes of all fragments to one buffer."""
    image, held, out = rig.target(), rig.buffer(1024, data=WHITE), rig.buffer(1024)
    flags = rig.choose("flags", 0, {"by region": VkDependency.BY_REGION})
    made = rig.render_pass(
        [RigAttachment(initial="GENERAL")],
        [RigSubpass([(0, "GENERAL")]), RigSubpass([(0, "GENERAL")])],
        [
            RigSubpassDependency("", 0, 1, f"{FRAGMENT}/SHADER_WRITE", f"{FRAGMENT}/UNIFORM_READ", flags),
            RigSubpassDependency("", 0, 1, WRITTEN, USED),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    shaders = ("store_columns", "uniform_color")
    writes, reads = (rig.graphics(shader, render_pass=made, subpass=at) for at, shader in enumerate(shaders))
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_pass(made, frame)
        commands.bind(writes, rig.descriptors(writes, b0=held))
        commands.draw()
        commands.next_subpass()
        commands.bind(reads, rig.descriptors(reads, b0=held))
        commands.draw()
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    weakened={"second before third / of another stage": [read_after_write(DRAW, CLEAR)]},
    rule="subpass-dependencies-chain-along-a-path,preserved-attachments-are-not-used",
)
def scenario_dependencies_chain_through_a_subpass(rig: Rig) -> None:
    """From 0 to 1 and from 1 to 2 is also from 0 to 2: an attachment that 1 preserves needs nothing of its own."""
    kept, other, out = rig.target(), rig.target(), rig.buffer(1024)
    weaker = {"of another stage": {"before": "VERTEX_SHADER"}}
    made = rig.render_pass(
        [RigAttachment(load="LOAD", store="NONE", initial="GENERAL"), RigAttachment(initial="GENERAL")],
        [
            RigSubpass([(0, "GENERAL")]),
            RigSubpass([(1, "GENERAL")], preserve=[0]),
            RigSubpass([(1, "GENERAL")], inputs=[(0, "GENERAL")]),
        ],
        [
            RigSubpassDependency("", 0, 1, WRITTEN, USED),
            RigSubpassDependency("second before third", 1, 2, WRITTEN, READ_OR_USED, weaker=weaker),
            RigSubpassDependency("", 2, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    views = [rig.view(kept), rig.view(other)]
    frame = rig.framebuffer(made, views)
    invert = rig.graphics("invert_input", render_pass=made, subpass=2)
    held = rig.descriptors(invert, b0=(views[0], None, rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as commands:
        commands.transition(kept, other)
        commands.begin_pass(made, frame)
        commands.clear_attachments((1, 0, 0x10203040))
        commands.next_subpass()
        commands.next_subpass()
        commands.bind(invert, held)
        commands.draw()
        commands.end_pass()
        commands.image_to_buffer(other, out)


@scenario(
    without={
        "uploaded before loaded": [read_after_write(BEGIN, UPLOAD)],
        "stored before downloaded": [read_after_write(DOWNLOAD, END)],
    },
    weakened={
        "uploaded before loaded / before shaders": [read_after_write(BEGIN, UPLOAD)],
        "stored before downloaded / of shaders": [read_after_write(DOWNLOAD, END)],
    },
    rule="operations-are-in-the-scopes-of-all-who-use-the-attachment",
)
def scenario_operations_of_an_attachment_of_two_subpasses(rig: Rig) -> None:
    """The load in the first subpass comes after a dependency into the second one, which uses the attachment as well; a
    dependency from the first one makes the store in the second one available."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial="GENERAL")],
        [RigSubpass([(0, "GENERAL")]), RigSubpass([(0, "GENERAL")])],
        [
            RigSubpassDependency(
                "uploaded before loaded",
                VK_SUBPASS_EXTERNAL,
                1,
                "COPY/TRANSFER_WRITE",
                USED,
                weaker={"before shaders": {"after": f"{OUTPUT}|{INPUT}"}},
            ),
            RigSubpassDependency("", 0, 1, WRITTEN, USED, VkDependency.BY_REGION),
            RigSubpassDependency(
                "stored before downloaded",
                0,
                VK_SUBPASS_EXTERNAL,
                WRITTEN,
                COPIED,
                weaker={"of shaders": {"before": FRAGMENT}},
            ),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image)
        commands.begin_pass(made, frame)
        commands.clear_attachments((1, 0, 1), rects=[((0, 0, 4, 4), 0, 1)])
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    weakened={
        "preserved / too": [PRESERVED],
        "preserved / before other accesses": [PRESERVED, write_after_write(CLEAR, CLEAR)],
    },
    rule="preserved-attachments-are-not-used",
)
def scenario_attachment_that_is_preserved_and_used(rig: Rig) -> None:
    """A subpass that preserves what it uses breaks valid usage. What it does to the attachment needs dependencies."""
    image, out = rig.target(), rig.buffer(1024)
    weaker = {"too": ([0], USED), "before other accesses": ([0], INPUT)}
    preserved, after = rig.choose("preserved", ([], USED), weaker)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial="GENERAL")],
        [RigSubpass([(0, "GENERAL")]), RigSubpass([(0, "GENERAL")], preserve=preserved)],
        [
            RigSubpassDependency("", 0, 1, WRITTEN, after),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_pass(made, frame)
        commands.clear_attachments((1, 0, 1))
        commands.next_subpass()
        commands.clear_attachments((1, 0, 2))
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    weakened={
        "colour before input / execution only": [write_after_write(NEXT, DRAW), read_after_write(DRAW, NEXT)],
        "colour before input / before sampling": [read_after_write(DRAW, NEXT)],
    },
    rule="a-subpass-dependency-orders-two-subpasses",
)
def scenario_input_attachment_of_the_next_subpass(rig: Rig) -> None:
    """A fragment shader that reads as input what the subpass before drew needs that dependency, transition included."""
    source, image, out = rig.target(), rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [
            RigAttachment(
                load="LOAD", store="NONE", initial="COLOR_ATTACHMENT_OPTIMAL", final="SHADER_READ_ONLY_OPTIMAL"
            ),
            RigAttachment(load="DONT_CARE", initial="GENERAL"),
        ],
        [RigSubpass([0]), RigSubpass([(1, "GENERAL")], inputs=[0])],
        [
            RigSubpassDependency(
                "colour before input",
                0,
                1,
                WRITTEN,
                f"{INPUT}",
                VkDependency.BY_REGION,
                weaker={
                    "execution only": {"before": OUTPUT, "after": FRAGMENT},
                    "before sampling": {"after": "FRAGMENT_SHADER/SHADER_SAMPLED_READ"},
                },
            ),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    views = [rig.view(source), rig.view(image)]
    frame = rig.framebuffer(made, views)
    invert = rig.graphics("invert_input", render_pass=made, subpass=1)
    held = (views[0], None, rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL)
    with rig.submission() as commands:
        commands.transition(source, new="COLOR_ATTACHMENT_OPTIMAL")
        commands.transition(image)
        commands.begin_pass(made, frame)
        commands.bind(rig.graphics(render_pass=made))
        commands.draw()
        commands.next_subpass()
        commands.bind(invert, rig.descriptors(invert, b0=held))
        commands.draw()
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    without={"from outside to the second": [read_after_write(NEXT, UPLOAD)]},
    rule="an-attachment-belongs-to-its-first-and-last-subpass",
)
def scenario_external_dependency_of_a_later_subpass(rig: Rig) -> None:
    """An attachment first used by the second subpass is loaded there: a dependency into the first is not about it."""
    first, second, data, out = rig.target(), rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(final="COLOR_ATTACHMENT_OPTIMAL"), RigAttachment(load="LOAD", initial="GENERAL")],
        [RigSubpass([0]), RigSubpass([(1, "GENERAL")])],
        [
            RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency("from outside to the second", VK_SUBPASS_EXTERNAL, 1, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(first), rig.view(second)])
    with rig.submission() as commands:
        commands.transition(second)
        commands.buffer_to_image(data, second)
        commands.begin_pass(made, frame, clear=[1])
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(second, out)


@scenario(
    without={"first before second": [read_after_write(DOWNLOAD, NEXT)]}, rule="subpass-dependencies-chain-along-a-path"
)
def scenario_dependencies_chain_out_of_the_render_pass(rig: Rig) -> None:
    """From 0 to 1 and from 1 to EXTERNAL is also from 0 to EXTERNAL, for an attachment that keeps its layout."""
    first, second, out = rig.target(), rig.target(), rig.buffer(1024)
    kept = RigAttachment(initial="GENERAL")
    made = rig.render_pass(
        [kept, kept],
        [RigSubpass([(0, "GENERAL")]), RigSubpass([(1, "GENERAL")])],
        [
            RigSubpassDependency("first before second", 0, 1, WRITTEN, USED),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(first), rig.view(second)])
    with rig.submission() as commands:
        commands.transition(first, second)
        commands.begin_pass(made, frame, clear=[1, 2])
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(first, out)


@scenario(
    weakened={
        "into the second subpass / from the first subpass": [write_after_read(NEXT, DOWNLOAD)],
        "into the first instance / of all commands": [],
    },
    rule="subpass-dependencies-chain-along-a-path",
)
def scenario_dependencies_chain_from_one_instance_to_the_next(rig: Rig) -> None:
    """EXTERNAL includes the subpasses of earlier instances. A subpass of the same instance does not."""
    zero, first, second, out = rig.target(), rig.target(), rig.target(), rig.buffer(1024)
    into = RigSubpassDependency(
        "into the first instance",
        VK_SUBPASS_EXTERNAL,
        0,
        "COPY",
        OUTPUT,
        weaker={"of all commands": {"before": "ALL_TRANSFER", "after": "ALL_COMMANDS"}},
    )
    onward = RigSubpassDependency(
        "into the second subpass", VK_SUBPASS_EXTERNAL, 1, OUTPUT, USED, weaker={"from the first subpass": {"src": 0}}
    )
    kept = RigAttachment(initial="GENERAL", final="GENERAL")
    one = rig.render_pass([kept], [RigSubpass([(0, "GENERAL")])], [into])
    moved = RigAttachment(final="COLOR_ATTACHMENT_OPTIMAL")
    two = rig.render_pass([kept, moved], [RigSubpass([(0, "GENERAL")]), RigSubpass([1])], [onward])
    with rig.submission() as commands:
        commands.transition(zero, first, second)
        commands.image_to_buffer(second, out)
        commands.begin_pass(one, rig.framebuffer(one, [rig.view(zero)]), clear=[1])
        commands.end_pass()
        commands.begin_pass(two, rig.framebuffer(two, [rig.view(first), rig.view(second)]), clear=[1, 2])
        commands.next_subpass()
        commands.end_pass()


@scenario(
    weakened={"of the pass / all commands": [write_after_read(FILL, COPY)]},
    rule="all-commands-between-subpasses-is-all-graphics",
)
def scenario_all_commands_before_a_subpass(rig: Rig) -> None:
    """ALL_COMMANDS in a subpass dependency stands for the graphics stages: it does not wait for a copy."""
    image, source, target = rig.target(), rig.buffer(256, data=bytes(range(256))), rig.buffer(256)
    before = RigSubpassDependency(
        "of the pass", VK_SUBPASS_EXTERNAL, 0, "COPY", OUTPUT, weaker={"all commands": {"before": "ALL_COMMANDS"}}
    )
    made = rig.render_pass([RigAttachment(initial="GENERAL")], [RigSubpass([(0, "GENERAL")])], [before])
    with rig.submission() as commands:
        commands.transition(image)
        commands.copy(source, target)
        commands.begin_pass(made, rig.framebuffer(made, [rig.view(image)]), clear=[1])
        commands.end_pass()
        commands.barrier("", OUTPUT, "CLEAR")
        commands.fill(source, 0x1B1B1B1B)
