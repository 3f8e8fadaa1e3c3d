"""Automatic layout transitions of a render pass instance: writes of whole subresources, which subpass dependencies
order like other accesses."""

from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

BEGIN, NEXT, END = "vkCmdBeginRenderPass", "vkCmdNextSubpass", "vkCmdEndRenderPass"
UPLOAD, DOWNLOAD, CLEAR = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer", "vkCmdClearColorImage"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
WRITTEN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
USED = f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
LATE = "LATE_FRAGMENT_TESTS"
TESTS = f"EARLY_FRAGMENT_TESTS|{LATE}"
STORED = f"{LATE}/DEPTH_STENCIL_ATTACHMENT_WRITE"
DEPTH = "VK_FORMAT_D32_SFLOAT"
TO_COPY = RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, WRITTEN, "COPY/TRANSFER_READ")
RAMP = bytes(range(256)) * 4


@scenario(
    weakened={"second layout / written": [race("WRITE_RACING_READ", NEXT, BEGIN)]},
    rule="read-only-layouts-need-no-dependency",
)
def scenario_two_read_only_layouts(rig: Rig) -> None:
    """Two subpasses use depth in different read-only layouts: the implementation orders a transition between them."""
    image = rig.target(DEPTH)
    read_only = "DEPTH_STENCIL_READ_ONLY_OPTIMAL"
    second = rig.choose(
        "second layout", "DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL", {"written": "DEPTH_STENCIL_ATTACHMENT_OPTIMAL"}
    )
    made = rig.render_pass(
        [RigAttachment(DEPTH, load="LOAD", store="NONE", initial=read_only, final=second)],
        [RigSubpass(depth=(0, read_only)), RigSubpass(depth=(0, second))],
        [],
    )
    frame = rig.framebuffer(made, [rig.view(image, aspect=2)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_depth_stencil(image, 0.5)
        commands.barrier(
            "",
            "CLEAR/TRANSFER_WRITE",
            f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_READ",
            image=image,
            aspects=2,
            old="GENERAL",
            new=read_only,
        )
        commands.begin_pass(made, frame)
        commands.next_subpass()
        commands.end_pass()


@scenario(
    without={"upload before transition": [write_after_write(BEGIN, UPLOAD)]},
    weakened={
        "upload before transition / execution only": [write_after_write(BEGIN, UPLOAD)],
        "upload before transition / before writes only": [read_after_write(BEGIN, BEGIN)],
    },
    rule="initial-transitions-wait-for-earlier-accesses",
)
def scenario_initial_transition_of_an_uploaded_image(rig: Rig) -> None:
    """The transition away from the initial layout needs a memory dependency on an upload, and the load one on it."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial="TRANSFER_DST_OPTIMAL")],
        [RigSubpass([0])],
        [
            RigSubpassDependency(
                "upload before transition",
                VK_SUBPASS_EXTERNAL,
                0,
                "COPY/TRANSFER_WRITE",
                USED,
                weaker={"execution only": {"before": "COPY"}, "before writes only": {"after": WRITTEN}},
            ),
            TO_COPY,
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image, new="TRANSFER_DST_OPTIMAL")
        commands.buffer_to_image(data, image, at="TRANSFER_DST_OPTIMAL")
        commands.begin_pass(made, frame)
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    without={"download before transition": [write_after_read(BEGIN, DOWNLOAD)]},
    weakened={"download before transition / before vertices": [write_after_read(BEGIN, DOWNLOAD)]},
    rule="a-chain-needs-stages-that-meet,initial-transitions-wait-for-earlier-accesses",
)
def scenario_initial_transition_after_a_read_chained_through_top_of_pipe(rig: Rig) -> None:
    """A barrier to TOP_OF_PIPE chains with a dependency from there: a transition that discards waits for a download."""
    image, out = rig.target(), rig.buffer(1024)
    into = RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, "TOP_OF_PIPE", USED)
    made = rig.render_pass([RigAttachment(initial="UNDEFINED")], [RigSubpass([0])], [into])
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)
        commands.barrier(
            "download before transition", "COPY", "TOP_OF_PIPE", weaker={"before vertices": {"dst": "VERTEX_SHADER"}}
        )
        commands.begin_pass(made, frame, clear=[9])
        commands.end_pass()


@scenario(
    without={"stored before downloaded": [read_after_write(DOWNLOAD, END)]},
    weakened={
        "stored before downloaded / execution only": [write_after_write(END, END), read_after_write(DOWNLOAD, END)],
        "stored before downloaded / nothing made available": [write_after_write(END, END)],
    },
    rule="final-transitions-wait-for-the-store",
)
def scenario_final_transition_of_a_stored_attachment(rig: Rig) -> None:
    """The transition into the final layout comes after the store operation, which a dependency makes available."""
    image, out = rig.target(DEPTH), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(DEPTH, "LOAD", initial="DEPTH_STENCIL_ATTACHMENT_OPTIMAL", final="TRANSFER_SRC_OPTIMAL")],
        [RigSubpass(depth=0)],
        [
            RigSubpassDependency(
                "stored before downloaded",
                0,
                VK_SUBPASS_EXTERNAL,
                STORED,
                "COPY/TRANSFER_READ",
                weaker={
                    "execution only": {"before": LATE, "after": "COPY"},
                    "nothing made available": {"before": LATE},
                },
            )
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image, aspect=2)])
    with rig.submission() as commands:
        commands.transition(image, new="DEPTH_STENCIL_ATTACHMENT_OPTIMAL")
        commands.begin_pass(made, frame)
        commands.clear_attachments((2, 0, (0.25, 0)))
        commands.end_pass()
        commands.image_to_buffer(image, out, at="TRANSFER_SRC_OPTIMAL")


@scenario(
    without={"first subpass before sampling": [read_after_write("vkCmdDispatch", END)]},
    weakened={
        "first subpass before sampling / before copies": [read_after_write("vkCmdDispatch", END)],
        "first subpass before sampling / execution only": [
            write_after_write(END, NEXT),
            read_after_write("vkCmdDispatch", END),
        ],
    },
    rule="an-attachment-belongs-to-its-first-and-last-subpass,final-transitions-wait-for-the-store",
)
def scenario_dependency_of_the_last_subpass_leaves_another_transition(rig: Rig) -> None:
    """The final transition of an attachment belongs to the dependency of the subpass that used it."""
    first, second, out = rig.target(), rig.target(), rig.buffer(1024)
    sampled = "COMPUTE_SHADER/SHADER_SAMPLED_READ"
    made = rig.render_pass(
        [RigAttachment(final="SHADER_READ_ONLY_OPTIMAL"), RigAttachment()],
        [RigSubpass([0]), RigSubpass([1])],
        [
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, sampled),
            RigSubpassDependency(
                "first subpass before sampling",
                0,
                VK_SUBPASS_EXTERNAL,
                WRITTEN,
                sampled,
                weaker={
                    "before copies": {"after": "COPY/TRANSFER_READ"},
                    "execution only": {"before": OUTPUT, "after": "COMPUTE_SHADER"},
                },
            ),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(first), rig.view(second)])
    load = rig.compute("sample_2d")
    held = (rig.view(first), rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL)
    with rig.submission() as commands:
        commands.begin_pass(made, frame, clear=[0x10203040, 5])
        commands.next_subpass()
        commands.end_pass()
        commands.bind(load, rig.descriptors(load, b0=held, b1=out))
        commands.dispatch()


@scenario(
    without={
        "upload before the first": [write_after_write(BEGIN, UPLOAD)],
        "clear before the second": [write_after_write(BEGIN, CLEAR)],
    },
    weakened={"clear before the second / chained": [write_after_write(BEGIN, CLEAR)]},
    rule="dependencies-into-one-subpass-are-independent,initial-transitions-wait-for-earlier-accesses",
)
def scenario_several_dependencies_from_outside_order_their_transitions(rig: Rig) -> None:
    """Several dependencies into one subpass all hold, each by itself: they do not chain with one another."""
    first, second, data, out = rig.target(), rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(2048)
    loaded = RigAttachment(load="LOAD", initial="TRANSFER_DST_OPTIMAL")
    made = rig.render_pass(
        [loaded, loaded],
        [RigSubpass([0, 1])],
        [
            RigSubpassDependency("upload before the first", VK_SUBPASS_EXTERNAL, 0, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency(
                "clear before the second",
                VK_SUBPASS_EXTERNAL,
                0,
                "CLEAR/TRANSFER_WRITE",
                USED,
                weaker={"chained": {"before": "COPY/TRANSFER_WRITE"}},
            ),
            TO_COPY,
        ],
    )
    frame = rig.framebuffer(made, [rig.view(first), rig.view(second)])
    with rig.submission() as commands:
        for image in (first, second):
            commands.transition(image, new="TRANSFER_DST_OPTIMAL")
        commands.buffer_to_image(data, first, at="TRANSFER_DST_OPTIMAL")
        commands.clear_color(second, 0x11223344, at="TRANSFER_DST_OPTIMAL")
        commands.begin_pass(made, frame)
        commands.end_pass()
        commands.image_to_buffer(first, out)
        commands.image_to_buffer(second, out, {"buffer_offset": 1024})


@scenario(
    without={"upload before the second": [write_after_write(NEXT, UPLOAD)]},
    rule="dependencies-meet-at-a-transition,initial-transitions-wait-for-earlier-accesses",
)
def scenario_initial_transition_in_the_second_subpass(rig: Rig) -> None:
    """It comes after dependencies from outside into subpasses that use the attachment, and after no chain of others."""
    first, second, data, out = rig.target(), rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(), RigAttachment(load="LOAD", initial="TRANSFER_DST_OPTIMAL")],
        [RigSubpass([0]), RigSubpass([1])],
        [
            RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency("", 0, 1, USED, USED),
            RigSubpassDependency("upload before the second", VK_SUBPASS_EXTERNAL, 1, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, "COPY/TRANSFER_READ"),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(first), rig.view(second)])
    with rig.submission() as commands:
        commands.transition(second, new="TRANSFER_DST_OPTIMAL")
        commands.buffer_to_image(data, second, at="TRANSFER_DST_OPTIMAL")
        commands.begin_pass(made, frame, clear=[1])
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(second, out)


@scenario(
    without={"upload before the second": [write_after_write(BEGIN, UPLOAD)]},
    rule="dependencies-meet-at-a-transition,initial-transitions-wait-for-earlier-accesses",
)
def scenario_initial_transition_after_a_dependency_into_a_later_subpass(rig: Rig) -> None:
    """A dependency from outside into any subpass that uses the attachment comes before its initial transition."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial="TRANSFER_DST_OPTIMAL")],
        [RigSubpass([0]), RigSubpass([0])],
        [
            RigSubpassDependency("upload before the second", VK_SUBPASS_EXTERNAL, 1, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency("", 0, 1, WRITTEN, USED),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, "COPY/TRANSFER_READ"),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image, new="TRANSFER_DST_OPTIMAL")
        commands.buffer_to_image(data, image, at="TRANSFER_DST_OPTIMAL")
        commands.begin_pass(made, frame)
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    without={"first before second": [write_after_write(END, NEXT)]},
    weakened={"first before second / execution only": [write_after_write(END, NEXT)]},
    rule="dependencies-meet-at-a-transition,final-transitions-wait-for-the-store",
)
def scenario_final_transition_after_a_dependency_into_another_subpass(rig: Rig) -> None:
    """A final transition comes after what any dependency from the subpass that it leaves makes available."""
    first, second, out = rig.target(), rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(final="TRANSFER_SRC_OPTIMAL"), RigAttachment()],
        [RigSubpass([0]), RigSubpass([1])],
        [
            RigSubpassDependency(
                "first before second", 0, 1, WRITTEN, USED, weaker={"execution only": {"before": OUTPUT}}
            ),
            RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, OUTPUT, "COPY/TRANSFER_READ"),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(first), rig.view(second)])
    with rig.submission() as commands:
        commands.begin_pass(made, frame, clear=[0x10203040, 5])
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(first, out, at="TRANSFER_SRC_OPTIMAL")
