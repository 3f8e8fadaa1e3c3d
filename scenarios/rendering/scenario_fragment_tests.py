"""In which stages depth and stencil are tested and written, and which fragments there are to test."""

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigImage
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VkCompareOp, VkCullMode, VkDependency, VkStencilOp
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

BEGIN, END, DRAW, CLEAR, DOWNLOAD = (
    "vkCmdBeginRendering",
    "vkCmdEndRendering",
    "vkCmdDraw",
    "vkCmdClearDepthStencilImage",
    "vkCmdCopyImageToBuffer",
)
DEPTH, BOTH = "VK_FORMAT_D32_SFLOAT", "VK_FORMAT_D32_SFLOAT_S8_UINT"
TESTS = "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS"
WRITE, AT = "DEPTH_STENCIL_ATTACHMENT_WRITE", "GENERAL"
WRITTEN, INPUT = f"{TESTS}/{WRITE}", "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ"
USED = f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
UNSEPARATED = ["no VK_KHR_maintenance7"]
"""Devices that do not say that they keep the aspects apart."""
LESS, ALWAYS = VkCompareOp.LESS, VkCompareOp.ALWAYS
KEEP, REPLACE = VkStencilOp.KEEP, VkStencilOp.REPLACE
UNSEEN = [read_after_write(DRAW, CLEAR), write_after_write(DRAW, CLEAR)]
WRITES: dict[str, Any] = {"depth_test": True, "depth_write": True}


def _draws(
    commands: Commands, image: RigImage, color: RigImage, fragment: str = "gradient", load: str = "LOAD", **state: Any
) -> None:
    """Draws over all of a depth/stencil image, and stores only where something was written."""
    rig = commands.rig
    both = bool(state.get("stencil"))
    kept = RenderingAttachment(rig.view(image, aspect=6 if both else 2), load=load, store="NONE")
    commands.begin_rendering(RenderingAttachment(rig.view(color)), depth=kept, stencil=kept if both else None)
    commands.bind(rig.graphics(fragment, depth=BOTH if both else DEPTH, **state))
    commands.draw()
    commands.end_rendering()


def _downloaded_first(commands: Commands, image: RigImage, color: RigImage, aspect: int = 2) -> None:
    """The image is cleared, visible to everything, and then downloaded, with no barrier for what comes after."""
    commands.transition(color, image)
    commands.clear_depth_stencil(image, 0.5, 3)
    commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{USED}|TRANSFER_READ")
    commands.image_to_buffer(image, commands.rig.buffer(1024), {"aspect": aspect})


@scenario(
    without={"cleared before tested": UNSEEN},
    weakened={
        "cleared before tested / for writes alone": [read_after_write(DRAW, CLEAR)],
        "cleared before tested / in the early tests": UNSEEN,
    },
    needs=["VK_EXT_load_store_op_none"],
    rule="depth-and-stencil-tests-read",
)
def scenario_test_reads_what_it_overwrites(rig: Rig) -> None:
    """A depth test that also writes reads as well, in either stage, what the load operation read in the early tests."""
    image, color, out = rig.target(DEPTH), rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(color, image)
        commands.clear_depth_stencil(image, 0.0)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "CLEAR/TRANSFER_WRITE")
        commands.clear_depth_stencil(image, 0.4)
        weaker = {
            "for writes alone": {"dst": f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_WRITE"},
            "in the early tests": {
                "dst": "EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
            },
        }
        commands.barrier("cleared before tested", "CLEAR/TRANSFER_WRITE", USED, weaker=weaker)
        _draws(commands, image, color, load="NONE", **WRITES, depth_compare=LESS)
        commands.barrier("", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(color, out)


@scenario(
    without={"downloaded before drawn": [write_after_read(DRAW, DOWNLOAD)]},
    weakened={
        "downloaded before drawn / before the late tests": [write_after_read(DRAW, DOWNLOAD)],
        "shader / without the mode": [],
    },
    rule="the-shader-decides-when-tests-happen",
)
def scenario_early_tests_write_early(rig: Rig) -> None:
    """With early fragment tests depth is written in the early tests: an order before the late tests is too late."""
    image, color = rig.target(DEPTH), rig.target()
    shader = rig.choose("shader", "early_color", {"without the mode": "gradient"})
    with rig.submission() as commands:
        _downloaded_first(commands, image, color)
        commands.barrier(
            "downloaded before drawn",
            "COPY",
            "EARLY_FRAGMENT_TESTS",
            weaker={"before the late tests": {"dst": "LATE_FRAGMENT_TESTS"}},
        )
        _draws(commands, image, color, shader, **WRITES)


@scenario(
    without={"written before read": [read_after_write(DRAW, DRAW)]},
    weakened={"written before read / of the late tests": [read_after_write(DRAW, DRAW)]},
    rule="the-shader-decides-when-tests-happen",
)
def scenario_early_write_is_read_as_input(rig: Rig) -> None:
    """The depth write of a draw with early fragment tests is available to later draws through the early tests."""
    shown, read, out = rig.target(), rig.target(DEPTH), rig.buffer(1024)
    dependency = RigSubpassDependency("", 0, 0, WRITTEN, INPUT, VkDependency.BY_REGION)
    made = rig.render_pass(
        [RigAttachment(load="CLEAR"), RigAttachment(DEPTH, "LOAD", "STORE", AT)],
        [RigSubpass([(0, AT)], depth=(1, AT), inputs=[(1, AT)])],
        [dependency],
    )
    views = [rig.view(shown), rig.view(read, aspect=2)]
    frame = rig.framebuffer(made, views)
    early = rig.graphics("early_color", render_pass=made, **WRITES)
    invert = rig.graphics("invert_input", render_pass=made)
    held = rig.descriptors(invert, b0=(views[1], None, rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as commands:
        commands.transition(shown, read)
        commands.clear_depth_stencil(read, 0.25)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"FRAGMENT_SHADER|{TESTS}/MEMORY_READ|MEMORY_WRITE")
        commands.begin_pass(made, frame)
        commands.bind(early)
        commands.draw()
        commands.barrier(
            "written before read",
            f"EARLY_FRAGMENT_TESTS/{WRITE}",
            INPUT,
            flags=VkDependency.BY_REGION,
            weaker={"of the late tests": {"src": f"LATE_FRAGMENT_TESTS/{WRITE}"}},
        )
        commands.bind(invert, held)
        commands.draw()
        commands.end_pass()
        commands.barrier("", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(shown, out)


@scenario(weakened={"culled / front": [write_after_read(DRAW, DOWNLOAD)]}, rule="culled-polygons-make-no-fragments")
def scenario_culled_draw_leaves_attachments_alone(rig: Rig) -> None:
    """A draw of triangles of which both faces are culled touches no attachment, whatever its depth state says."""
    image, color = rig.target(DEPTH), rig.target()
    culled = rig.choose("culled", VkCullMode.FRONT_AND_BACK, {"front": VkCullMode.FRONT})
    with rig.submission() as commands:
        _downloaded_first(commands, image, color)
        _draws(commands, image, color, **WRITES, cull=culled)


@scenario(weakened={"compare / less": [write_after_read(DRAW, DOWNLOAD)]}, rule="depth-writes-happen-in-the-late-tests")
def scenario_depth_that_never_passes(rig: Rig) -> None:
    """Depth is written where the comparison evaluates to true: with NEVER, a draw that writes depth writes none."""
    image, color = rig.target(DEPTH), rig.target()
    compare = rig.choose("compare", VkCompareOp.NEVER, {"less": LESS})
    with rig.submission() as commands:
        _downloaded_first(commands, image, color)
        _draws(commands, image, color, **WRITES, depth_compare=compare)


@scenario(
    weakened={"tests / that may pass": [write_after_read(DRAW, DOWNLOAD)]},
    needs=["VK_EXT_load_store_op_none"],
    rule="a-test-that-never-passes-discards-all",
)
def scenario_colour_of_fragments_that_never_pass(rig: Rig) -> None:
    """A depth test that no fragment passes discards them all: the draw writes no colour."""
    image, color, out = rig.target(DEPTH), rig.target(), rig.buffer(1024)
    compare = rig.choose("tests", VkCompareOp.NEVER, {"that may pass": LESS})
    with rig.submission() as commands:
        commands.transition(color, image)
        commands.clear_depth_stencil(image, 0.5)
        commands.clear_color(color)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{TESTS}|COLOR_ATTACHMENT_OUTPUT/MEMORY_READ|MEMORY_WRITE")
        commands.image_to_buffer(color, out)
        commands.begin_rendering(
            RenderingAttachment(rig.view(color), load="NONE", store="NONE"),
            depth=RenderingAttachment(rig.view(image, aspect=2), load="NONE", store="NONE"),
        )
        commands.bind(rig.graphics("gradient", depth=DEPTH, depth_test=True, depth_compare=compare))
        commands.draw()
        commands.end_rendering()


@scenario(
    weakened={
        "compare / less": [write_after_read(DRAW, DOWNLOAD)],
        "compare / never, and a failure counts": [write_after_read(DRAW, DOWNLOAD)],
        "compare / always, and a failure counts": [],
    },
    rule="a-test-that-never-passes-discards-all",
)
def scenario_stencil_of_fragments_that_never_pass(rig: Rig) -> None:
    """Where no fragment passes the depth test, stencil is written by depthFailOp alone; where all pass, by passOp."""
    image, color = rig.target(BOTH), rig.target()
    never, counted = VkCompareOp.NEVER, {"depthFailOp": REPLACE}
    forms = {
        "less": (LESS, {}),
        "never, and a failure counts": (never, counted),
        "always, and a failure counts": (ALWAYS, {"passOp": KEEP, **counted}),
    }
    compare, more = rig.choose("compare", (never, {}), forms)
    face = {"compareOp": ALWAYS, "compareMask": 255, "writeMask": 255, "reference": 9, "passOp": REPLACE, **more}
    with rig.submission() as commands:
        _downloaded_first(commands, image, color, aspect=4)
        _draws(commands, image, color, depth_test=True, depth_compare=compare, stencil=face, back=face)


@scenario(
    weakened={
        "culled / nothing": [write_after_read(DRAW, DOWNLOAD)],
        "culled / front": [write_after_read(DRAW, DOWNLOAD)],
        "culled / back, set by a command": [],
        "culled / front, set by a command": [write_after_read(DRAW, DOWNLOAD)],
    },
    rule="culled-polygons-make-no-fragments",
)
def scenario_stencil_of_a_culled_face(rig: Rig) -> None:
    """Only the stencil state of a face that is rasterized counts: the back may replace, where the back is culled."""
    image, color = rig.target(BOTH), rig.target()
    front, back, none = VkCullMode.FRONT, VkCullMode.BACK, VkCullMode.NONE
    forms = {
        "nothing": (none, None),
        "front": (front, None),
        "back, set by a command": (none, back),
        "front, set by a command": (none, front),
    }
    fixed, given = rig.choose("culled", (back, None), forms)
    keeps = {"compareOp": ALWAYS, "compareMask": 255, "writeMask": 255, "reference": 9}
    faces: dict[str, Any] = {"stencil": keeps, "back": {**keeps, "passOp": REPLACE}}
    with rig.submission() as commands:
        _downloaded_first(commands, image, color, aspect=4)
        if given is not None:
            commands.set_state("CullMode", given)
        dynamic = ["CULL_MODE"] if given is not None else []
        _draws(commands, image, color, cull=fixed, dynamic=dynamic, **faces)


@scenario(
    without={"stored before downloaded": [read_after_write(DOWNLOAD, END)]},
    weakened={"stored before downloaded / for depth alone": [read_after_write(DOWNLOAD, END)]},
    needs=UNSEPARATED,
    rule="writes-to-one-aspect-may-rewrite-the-other",
)
def scenario_store_of_depth_rewrites_stencil(rig: Rig) -> None:
    """The store of depth may rewrite stencil, of which the rendering makes no use: a copy of it has to wait."""
    image, color, out = rig.target(BOTH), rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(color, image)
        commands.clear_depth_stencil(image, 0.5, 3)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{USED}|TRANSFER_READ")
        depth = RenderingAttachment(rig.view(image, aspect=6), load="LOAD", store="STORE")
        commands.begin_rendering(RenderingAttachment(rig.view(color)), depth=depth)
        commands.end_rendering()
        alone = {"image": image, "aspects": 2}
        commands.barrier(
            "stored before downloaded",
            f"LATE_FRAGMENT_TESTS/{WRITE}",
            "COPY/TRANSFER_READ",
            weaker={"for depth alone": alone},
        )
        commands.image_to_buffer(image, out, {"aspect": 4})


@scenario(
    without={"downloaded before loaded": [write_after_read(BEGIN, DOWNLOAD)]},
    weakened={"load / of what is there": []},
    needs=UNSEPARATED,
    rule="writes-to-one-aspect-may-rewrite-the-other",
)
def scenario_load_of_depth_rewrites_stencil(rig: Rig) -> None:
    """A clear of depth by a load operation may rewrite stencil: a copy of it has to be over. A load writes nothing."""
    image, color = rig.target(BOTH), rig.target()
    load = rig.choose("load", "CLEAR", {"of what is there": "LOAD"})
    with rig.submission() as commands:
        _downloaded_first(commands, image, color, aspect=4)
        if load == "CLEAR":
            commands.barrier("downloaded before loaded", "COPY", "EARLY_FRAGMENT_TESTS")
        depth = RenderingAttachment(rig.view(image, aspect=6), load=load, store="NONE")
        commands.begin_rendering(RenderingAttachment(rig.view(color)), depth=depth)
        commands.end_rendering()
