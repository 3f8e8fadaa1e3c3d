"""Whether draws write depth and stencil: pipeline and dynamic state decide, and tests alone are reads."""

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigImage
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VkCompareOp, VkStencilOp
from vkharness.suite import Rig, read_after_write, scenario, write_after_read

BEGIN, DRAW, END, CLEAR, DOWNLOAD = (
    "vkCmdBeginRendering",
    "vkCmdDraw",
    "vkCmdEndRendering",
    "vkCmdClearDepthStencilImage",
    "vkCmdCopyImageToBuffer",
)
DEPTH, BOTH = "VK_FORMAT_D32_SFLOAT", "VK_FORMAT_D32_SFLOAT_S8_UINT"
TESTS = "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS"
USED = f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
READ = f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_READ"
LATE_WRITE = "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"
LESS, ALWAYS, NEVER = VkCompareOp.LESS, VkCompareOp.ALWAYS, VkCompareOp.NEVER
KEEP, REPLACE = VkStencilOp.KEEP, VkStencilOp.REPLACE
SET = {"passOp": REPLACE, "compareOp": ALWAYS, "compareMask": 255, "writeMask": 255, "reference": 9}


def _draws(
    commands: Commands, image: RigImage, color: RigImage, state: dict[str, Any], aspects: int = 6, store: str = "NONE"
) -> None:
    """Draws over all of a depth/stencil image that was loaded, and stores only where something was written."""
    rig = commands.rig
    kept = RenderingAttachment(rig.view(image, aspect=aspects), load="LOAD", store=store)
    form = BOTH if aspects == 6 else DEPTH
    commands.begin_rendering(RenderingAttachment(rig.view(color)), depth=kept, stencil=kept if aspects == 6 else None)
    commands.bind(rig.graphics(depth=form, **state))
    commands.draw()
    commands.end_rendering()


@scenario(
    without={"downloaded before drawn": [write_after_read(DRAW, DOWNLOAD)]},
    weakened={
        "downloaded before drawn / before colour": [write_after_read(DRAW, DOWNLOAD)],
        "depth / written never": [],
        "depth / tested never": [],
    },
    rule="depth-writes-happen-in-the-late-tests,depth-and-stencil-tests-read",
)
def scenario_draw_that_writes_depth(rig: Rig) -> None:
    """A draw with depth test and depth writes on writes depth at LATE_FRAGMENT_TESTS: an earlier read must be over."""
    image, color, out = rig.target(DEPTH), rig.target(), rig.buffer(1024)
    forms = {"written never": {"depth_test": True}, "tested never": {"depth_write": True}}
    state = rig.choose("depth", {"depth_test": True, "depth_write": True}, forms)
    plain = state == {"depth_test": True, "depth_write": True}
    with rig.submission() as commands:
        commands.transition(color, image)
        commands.clear_depth_stencil(image, 0.5)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{USED}|TRANSFER_READ")
        commands.image_to_buffer(image, out)
        if plain:
            commands.barrier(
                "downloaded before drawn",
                "COPY",
                "LATE_FRAGMENT_TESTS",
                weaker={"before colour": {"dst": "COLOR_ATTACHMENT_OUTPUT"}},
            )
        _draws(commands, image, color, state, aspects=2)


@scenario(
    without={"cleared before tested": [read_after_write(BEGIN, CLEAR)]},
    weakened={
        "cleared before tested / before late tests": [read_after_write(BEGIN, CLEAR)],
        "cleared before tested / before early tests": [],
    },
    rule="depth-and-stencil-tests-read",
)
def scenario_depth_test_reads(rig: Rig) -> None:
    """A depth test reads what the load operation, in the early tests, has read: only that needs the dependency."""
    image, color, out = rig.target(DEPTH), rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(color, image)
        commands.clear_depth_stencil(image, 0.0)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "CLEAR/TRANSFER_WRITE")
        commands.clear_depth_stencil(image, 0.5)
        commands.barrier(
            "cleared before tested",
            "CLEAR/TRANSFER_WRITE",
            READ,
            weaker={
                f"before {which.lower()} tests": {"dst": f"{which}_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ"}
                for which in ("EARLY", "LATE")
            },
        )
        view = rig.view(image, aspect=2)
        commands.begin_rendering(
            RenderingAttachment(rig.view(color)), depth=RenderingAttachment(view, load="LOAD", store="NONE")
        )
        commands.bind(rig.graphics(depth=DEPTH, depth_test=True, depth_compare=LESS))
        commands.draw()
        commands.end_rendering()
        commands.barrier("", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(color, out)


@scenario(
    weakened={
        "stencil / replaced": [write_after_read(DRAW, DOWNLOAD)],
        "stencil / replaced on failure": [write_after_read(DRAW, DOWNLOAD)],
        "stencil / masked": [],
        "stencil / replaced where the test never passes": [],
        "stencil / replaced on failure that never comes": [],
        "stencil / replaced where depth fails untested": [],
    },
    rule="stencil-operations-decide-about-stencil-writes",
)
def scenario_draw_that_keeps_stencil(rig: Rig) -> None:
    """A stencil test writes only by operations that can happen and change something, under a mask that is not 0."""
    image, color, out = rig.target(BOTH), rig.target(), rig.buffer(1024)
    failing = {"failOp": REPLACE, "passOp": KEEP}
    stencil = rig.choose(
        "stencil",
        {**SET, "passOp": KEEP},
        {
            "replaced": SET,
            "replaced on failure": {**SET, **failing, "compareOp": NEVER},
            "masked": {**SET, "writeMask": 0},
            "replaced where the test never passes": {**SET, "compareOp": NEVER},
            "replaced on failure that never comes": {**SET, **failing},
            "replaced where depth fails untested": {**SET, "passOp": KEEP, "depthFailOp": REPLACE},
        },
    )
    with rig.submission() as commands:
        commands.transition(color, image)
        commands.clear_depth_stencil(image, 0.5, 3)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{USED}|TRANSFER_READ")
        commands.image_to_buffer(image, out, {"aspect": 4})
        _draws(commands, image, color, {"stencil": stencil})


@scenario(
    weakened={"set / depth written": [write_after_read(DRAW, DOWNLOAD)], "set / depth untested": []},
    rule="depth-writes-happen-in-the-late-tests",
)
def scenario_dynamic_state_decides_about_depth(rig: Rig) -> None:
    """Where depth test and writes are dynamic, what was set last before the draw decides, not the pipeline."""
    image, color, out = rig.target(DEPTH), rig.target(), rig.buffer(1024)
    tested, written = rig.choose("set", (True, False), {"depth written": (True, True), "depth untested": (False, True)})
    with rig.submission() as commands:
        commands.transition(color, image)
        commands.clear_depth_stencil(image, 0.5)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{USED}|TRANSFER_READ")
        commands.image_to_buffer(image, out)
        commands.set_state("DepthTestEnable", tested)
        commands.set_state("DepthWriteEnable", written)
        dynamic = ["DEPTH_TEST_ENABLE", "DEPTH_WRITE_ENABLE"]
        _draws(commands, image, color, {"depth_test": True, "depth_write": True, "dynamic": dynamic}, aspects=2)


@scenario(
    weakened={"rasterization / on": [write_after_read(DRAW, DOWNLOAD)]},
    rule="rasterizer-discard-leaves-attachments-alone",
)
def scenario_rasterizer_discard_leaves_attachments_alone(rig: Rig) -> None:
    """With rasterizer discard a draw touches no attachment, whatever its depth state says."""
    image, color, out = rig.target(DEPTH), rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(color, image)
        commands.clear_depth_stencil(image, 0.5)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{USED}|TRANSFER_READ")
        commands.image_to_buffer(image, out)
        state = {"depth_test": True, "depth_write": True, "discard": rig.choose("rasterization", True, {"on": False})}
        _draws(commands, image, color, state, aspects=2)


@scenario(
    without={"written before downloaded": [read_after_write(DOWNLOAD, END)]},
    weakened={"written before downloaded / of the early tests": [read_after_write(DOWNLOAD, END)]},
    rule="depth-writes-happen-in-the-late-tests",
)
def scenario_written_depth_is_downloaded(rig: Rig) -> None:
    """A draw's depth write is available to a copy only through the late tests."""
    image, color, out = rig.target(DEPTH), rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(color, image)
        commands.clear_depth_stencil(image, 0.5)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", USED)
        _draws(commands, image, color, {"depth_test": True, "depth_write": True}, aspects=2, store="STORE")
        commands.barrier(
            "written before downloaded",
            LATE_WRITE,
            "COPY/TRANSFER_READ",
            weaker={"of the early tests": {"src": "EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"}},
        )
        commands.image_to_buffer(image, out)
