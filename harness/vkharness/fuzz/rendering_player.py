"""Plays the steps of random streams that render: render passes, dynamic rendering, draws, clears of attachments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vkharness.fuzz.random_rendering import (
    DEPTH,
    READ_ONLY,
    SAMPLES,
    RandomAttachment,
    RandomPass,
    RandomRendering,
    RandomSubpass,
)
from vkharness.fuzz.random_steps import Step
from vkharness.rig.command_buffers import Commands
from vkharness.rig.render_passes import RigAttachment, RigRenderPass, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import Rect, RenderingAttachment
from vkharness.rig.rig import Rig
from vkharness.spec.enums import VkImageAspect, VkRendering

EXTENT = (8, 8)
DEPTH_FORMAT = "VK_FORMAT_D32_SFLOAT_S8_UINT"
LOAD_STORE_NONE = "VK_EXT_load_store_op_none"
SECONDARY_CONTENTS = VkRendering.CONTENTS_SECONDARY_COMMAND_BUFFERS
"""VK_RENDERING_CONTENTS_SECONDARY_COMMAND_BUFFERS_BIT"""


@dataclass(slots=True)
class DrawTarget:
    """The target of draws: a subpass, or attachments of dynamic rendering."""

    area: Rect
    colors: int
    depth: bool
    samples: int
    attached: set[int]
    """Images of the render pass instance by number, which no draw may sample."""
    render_pass: RigRenderPass | None = None
    subpass: int = 0
    framebuffer: Any = None
    input: Any = None
    """The view of input attachment 0."""
    dependency: dict[str, Any] | None = None
    """Scopes of the self-dependency, if there is one."""
    read_only: int = 0
    """The aspects of the depth attachment that may not be written."""
    key: tuple[Any, ...] = field(default=())

    @property
    def formats(self) -> dict[str, Any]:
        """Arguments by which a pipeline or secondary command buffer fits the target: the subpass, or the formats."""
        if self.render_pass is not None:
            return {"render_pass": self.render_pass, "subpass": self.subpass}
        colors = ["VK_FORMAT_R8G8B8A8_UNORM"] * self.colors
        return {"colors": colors, "depth": DEPTH_FORMAT if self.depth else None}


class RenderingPlayer:
    """The part of `StepPlayer` that renders."""

    buffers: list[Any]
    images: list[Any]
    depth: Any
    samples: Any
    counts: Any

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.sampler = rig.sampler()
        self._views: dict[tuple[int, int], Any] = {}
        self._drawn: dict[tuple[Any, ...], Any] = {}

    def view(self, image: int, layer: int) -> Any:
        """A view of one layer of the first mip."""
        if (image, layer) not in self._views:
            held = {DEPTH: self.depth, SAMPLES: self.samples}.get(image) or self.images[image]
            made = self.rig.view(held, aspect=6 if image == DEPTH else 1, layers=(layer, 1))
            self._views[image, layer] = made
        return self._views[image, layer]

    def _op(self, load: str) -> str:
        none = load == "NONE" and LOAD_STORE_NONE not in self.rig.gpu.device_extensions
        return "LOAD" if none else load

    # -- dynamic rendering ---------------------------------------------------------------------------------------------

    def _rendering(self, commands: Commands, spec: RandomRendering, inner: list[Step]) -> None:
        colors, depth, stencil = self._rendered(spec)
        many = bool(spec["colors"]) and spec["colors"][0]["image"] == SAMPLES
        attached = {each["image"] for each in spec["colors"]} | {
            one[0] for each in spec["colors"] if (one := each["resolve"])
        }
        target = DrawTarget(spec["area"], len(colors), spec["depth"] is not None, 4 if many else 1, attached)
        parts = [inner[: len(inner) // 2], inner[len(inner) // 2 :]] if spec["suspended"] else [inner]
        for at, part in enumerate(parts):
            flags = VkRendering.SUSPENDING if at < len(parts) - 1 else 0
            flags |= VkRendering.RESUMING if at else 0
            flags |= SECONDARY_CONTENTS if spec["secondary"] else 0
            commands.begin_rendering(*colors, depth=depth, stencil=stencil, area=spec["area"], flags=flags)
            self._inside(commands, part, target, spec["secondary"])
            commands.end_rendering()

    def _rendered(
        self, spec: RandomRendering
    ) -> tuple[list[RenderingAttachment], RenderingAttachment | None, RenderingAttachment | None]:
        colors = [
            RenderingAttachment(
                self.view(each["image"], each["layer"]),
                self._op(each["load"]),
                each["store"],
                resolve=self.view(*each["resolve"]) if each["resolve"] else None,
            )
            for each in spec["colors"]
        ]
        if spec["depth"] is None:
            return colors, None, None
        view = self.view(DEPTH, 0)
        ops = [(self._op(load), store) for load, store in (spec["depth"], spec["stencil"])]
        depth, stencil = (RenderingAttachment(view, load, store, clear=(0.5, 1)) for load, store in ops)
        return colors, depth, stencil

    # -- render passes -------------------------------------------------------------------------------------------------

    def _pass(self, commands: Commands, spec: RandomPass, inner: list[tuple[int, Step]]) -> None:
        rig = self.rig
        attachments = [self._attach(each) for each in spec["attachments"]]
        subpasses = [self._subpass(each) for each in spec["subpasses"]]
        needed = [RigSubpassDependency("", *each) for each in spec["dependencies"]]
        made = rig.render_pass(attachments, subpasses, needed, v2=spec["v2"])
        views = [self.view(each["image"], each["layer"]) for each in spec["attachments"]]
        framebuffer = rig.framebuffer(made, views, EXTENT)
        modes = [each["secondary"] for each in spec["subpasses"]]
        commands.begin_pass(made, framebuffer, area=spec["area"], v2=spec["v2"], secondaries=modes[0])
        for at, each in enumerate(spec["subpasses"]):
            if at:
                commands.next_subpass(v2=spec["v2"], secondaries=modes[at])
            target = self._subpass_target(spec, at, each, made, framebuffer)
            self._inside(commands, [step for where, step in inner if where == at], target, each["secondary"])
        commands.end_pass(v2=spec["v2"])

    def _attach(self, each: RandomAttachment) -> RigAttachment:
        deep = each["image"] == DEPTH
        return RigAttachment(
            DEPTH_FORMAT if deep else "VK_FORMAT_R8G8B8A8_UNORM",
            self._op(each["load"]),
            each["store"],
            each["initial"],
            "GENERAL",
            (self._op(each["stencil"][0]), each["stencil"][1]),
            4 if each["image"] == SAMPLES else 1,
        )

    def _subpass(self, each: RandomSubpass) -> RigSubpass:
        colors, resolves, inputs = ([_use(use) for use in each[key]] for key in ("colors", "resolves", "inputs"))
        depth = _use(each["depth"]) if each["depth"] else None
        return RigSubpass(colors=colors, depth=depth, inputs=inputs, resolves=resolves)

    def _subpass_target(
        self, spec: RandomPass, at: int, each: RandomSubpass, made: RigRenderPass, framebuffer: Any
    ) -> DrawTarget:
        used = [spec["attachments"][index] for index, _ in each["colors"]]
        many = any(one["image"] == SAMPLES for one in used)
        own = [one for one in spec["dependencies"] if one[0] == one[1] == at]
        target = DrawTarget(
            spec["area"],
            len(used),
            each["depth"] is not None,
            4 if many else 1,
            {one["image"] for one in spec["attachments"]},
            made,
            at,
            framebuffer,
        )
        if each["inputs"]:
            one = spec["attachments"][each["inputs"][0][0]]
            target.input = (self.view(one["image"], one["layer"]), None, 5 if each["inputs"][0][1] != "GENERAL" else 1)
        if own:
            target.dependency = {"src": own[0][2], "dst": own[0][3], "flags": own[0][4], "sync2": spec["v2"]}
        target.key = (made.handle, at)
        target.read_only = READ_ONLY.get(each["depth"][1], 0) if each["depth"] else 0
        return target

    # -- inside a render pass instance ---------------------------------------------------------------------------------

    def _inside(self, commands: Commands, steps: list[Step], target: DrawTarget, secondary: bool) -> None:
        if not secondary:
            for step in steps:
                self._draw_step(commands, step, target)
            return
        more = {"framebuffer": target.framebuffer} if target.framebuffer else {}
        with self.rig.secondary(**target.formats, **more) as inner:
            for step in steps:
                self._draw_step(inner, step, target)
        commands.execute(inner)

    def _draw_step(self, commands: Commands, step: Step, target: DrawTarget) -> None:
        match step:
            case ("draw", kind, state, source, how):
                self._draw(commands, target, kind, state, source, how)
            case ("clear_inside", depth, shrunk):
                self._clear_inside(commands, target, depth, shrunk)
            case ("pass_barrier",) if target.dependency is not None:
                commands.barriers("", target.dependency)
            case _:
                pass

    def _clear_inside(self, commands: Commands, target: DrawTarget, depth: int, shrunk: bool) -> None:
        x, y, width, height = target.area
        area = (x + 1, y, width - 1, height) if shrunk and width > 1 else target.area
        if depth and target.depth:
            depth &= ~target.read_only
        if depth and target.depth:
            commands.clear_attachments((depth, 0, (0.25, 3)), rects=[(area, 0, 1)])
        elif target.colors:
            commands.clear_attachments((1, target.colors - 1, 0x11), rects=[(area, 0, 1)])

    def _draw(
        self, commands: Commands, target: DrawTarget, kind: str, state: dict[str, Any], source: int, how: str
    ) -> None:
        if (kind == "sample" and {0, 1} <= target.attached) or (kind == "input" and target.input is None):
            return
        pipeline, held = self._drawn_with(target, kind, state, min({0, 1} - target.attached, default=0))
        descriptors = self.rig.descriptors(pipeline, b0=held) if held is not None else None
        commands.bind(pipeline, descriptors)
        if kind == "vertices":
            commands.bind_vertices((self.buffers[source], 8 * (source % 3)))
        match how:
            case "indexed":
                commands.bind_indices(self.counts, 0, "UINT32" if source % 2 else "UINT16")
                commands.draw_indexed(3)
            case "indirect":
                commands.draw_indirect(self.counts, 4 * (source % 3))
            case _:
                commands.draw(3)

    def _drawn_with(self, target: DrawTarget, kind: str, state: dict[str, Any], sampled: int) -> tuple[Any, Any]:
        shaders = {"sample": "sample_color", "input": "invert_input", "early": "early_color", "no_fragment": None}
        held = {"sample": (self.view(sampled, 0), self.sampler, 1), "input": target.input}.get(kind)
        more = _tests_of(state, target)
        if kind == "vertices":
            more |= {"vertex_buffers": ((8, 0),), "attributes": ((0, 0, "VK_FORMAT_R32G32_SFLOAT", 0),)}
        # "The application must ensure (using scissor if necessary) that all rendering is contained within the render
        # area" (VkRenderPassBeginInfo).
        key = (target.key, tuple(target.area), target.colors, target.depth, target.samples, kind, str(state))
        if key not in self._drawn:
            self._drawn[key] = self.rig.graphics(
                shaders.get(kind, "gradient"),
                "vertex_position" if kind == "vertices" else "fullscreen",
                extent=EXTENT,
                samples=target.samples,
                scissor=target.area,
                **target.formats,
                **more,
            )
        return self._drawn[key], held


def _tests_of(state: dict[str, Any], target: DrawTarget) -> dict[str, Any]:
    """The fixed state of a draw without tests of a missing attachment, and without writes of a read-only one."""
    if not target.depth:
        return {key: state[key] for key in state if not key.startswith(("depth", "stencil", "back"))}
    kept = dict(state)
    if target.read_only & VkImageAspect.DEPTH:
        kept["depth_write"] = False
    if target.read_only & VkImageAspect.STENCIL:
        kept |= {key: {**state[key], "writeMask": 0} for key in ("stencil", "back") if key in state}
    return kept


def _use(pair: Sequence[Any]) -> tuple[int, str]:
    """An attachment and its layout."""
    number, layout = pair
    return number, layout
