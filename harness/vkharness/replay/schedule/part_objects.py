"""The render passes, framebuffers and pipelines of the parts of one render pass instance (`cut_instances`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

from vkharness.replay.schedule.steps import Step, StepKind
from vkharness.spec.enums import (
    VK_ATTACHMENT_UNUSED,
    VkAttachmentLoadOp,
    VkImageAspect,
    VkImageLayout,
    VkPipelineCreate,
)
from vkharness.spec.formats import format_of
from vkharness.trace.calls import Call
from vkharness.trace.split_instances import attachments_of, can_be_split, infos_of_parts, operations_of_part

OPERATIONS = (("loadOp", "storeOp"), ("stencilLoadOp", "stencilStoreOp"))
FIRST_NUMBER = 1 << 48
"""The numbers of what is made for parts begin here: those of a trace count its objects."""


class PartObjects(Protocol):
    """How the parts of one instance begin, and what they need to be made."""

    created: dict[int, list[Call]]
    """Calls to make after the steps with these indices."""

    def begin(self, part: int) -> Call:
        """The call that begins a part."""
        ...

    def pipeline(self, bound: int) -> int:
        """The pipeline that stands for one of the stream inside the parts."""
        ...


def part_objects(
    steps: Sequence[Step], begin: int, subpasses: Sequence[int], bound: Iterable[int]
) -> PartObjects | None:
    """What the parts of the instance that begins at a step need, by their subpasses. `bound` are the graphics pipelines
    that are bound in it. None where that cannot be told: of chained structs, and of pipelines that chain some."""
    call = steps[begin].block
    assert isinstance(call, Call)
    info = call.args.get("pRenderingInfo")
    if info is not None:
        whole = not info["pNext"] and all(map(can_be_split, attachments_of(info)))
        return DynamicParts(call, len(subpasses)) if whole else None
    info = call.args["pRenderPassBegin"]
    made = _last_made(steps, begin, "vkCreateRenderPass", "pRenderPass", info["renderPass"])
    if info["pNext"] or made is None or not _is_plain(made[1].args["pCreateInfo"]):
        return None
    parts = PassParts(call, *made, list(subpasses))
    several = len(made[1].args["pCreateInfo"]["pSubpasses"]) > 1
    return parts if not several or parts.make_compatible(steps, begin, bound) else None


def _last_made(steps: Sequence[Step], end: int, name: str, output: str, wanted: int) -> tuple[int, Call] | None:
    """The index and the call of the step that made an object."""
    for at in range(end - 1, -1, -1):
        call = steps[at].block
        if steps[at].kind is StepKind.HOST and isinstance(call, Call) and call.name.startswith(name):
            made = call.args[output]
            if made == wanted or (isinstance(made, list) and wanted in made):
                return at, call
    return None


def _is_plain(info: dict[str, Any]) -> bool:
    """Whether a VkRenderPassCreateInfo, or one of the second form, chains nothing and names attachments that it has."""
    subpasses = info["pSubpasses"] or ()
    held = (info, *(info["pAttachments"] or ()), *subpasses)
    there = len(info["pAttachments"] or ())
    named = [each for subpass in subpasses for each in _references(subpass)]
    within = all(each["attachment"] < there for each in named)
    split = all(map(_can_be_split, info["pAttachments"] or ()))
    return within and split and not any(each.get("pNext") for each in (*held, *named))


def _can_be_split(attachment: dict[str, Any]) -> bool:
    """`can_be_split` of each aspect that an attachment has."""
    aspects = format_of(attachment["format"]).aspects
    held = (aspects & ~VkImageAspect.STENCIL, aspects & VkImageAspect.STENCIL)
    pairs = [pair for pair, has in zip(OPERATIONS, held, strict=True) if has]
    return all(can_be_split({"loadOp": attachment[load], "storeOp": attachment[store]}) for load, store in pairs)


def _references(subpass: dict[str, Any]) -> list[dict[str, Any]]:
    """The attachment references of a subpass, without those that are not used and those that it preserves."""
    lists = ("pInputAttachments", "pColorAttachments", "pResolveAttachments")
    several = [each for name in lists for each in subpass[name] or ()]
    several += [subpass["pDepthStencilAttachment"]] if subpass["pDepthStencilAttachment"] else []
    return [each for each in several if each["attachment"] != VK_ATTACHMENT_UNUSED]


class DynamicParts:
    """Parts of dynamic rendering, which need nothing."""

    def __init__(self, call: Call, parts: int) -> None:
        self.created: dict[int, list[Call]] = {}
        self._call = call
        self._infos = infos_of_parts(call.args["pRenderingInfo"], parts)

    def begin(self, part: int) -> Call:
        """As in `PartObjects`."""
        return replace(self._call, args={**self._call.args, "pRenderingInfo": self._infos[part]})

    def pipeline(self, bound: int) -> int:
        """As in `PartObjects`."""
        return bound


@dataclass(slots=True)
class _Use:
    """The use of one attachment by the parts."""

    layouts: dict[int, int] = field(default_factory=dict)
    """Its layout in each part that uses it."""

    @property
    def first(self) -> int | None:
        """The first part that uses it."""
        return min(self.layouts, default=None)

    @property
    def last(self) -> int | None:
        """The last part that uses it."""
        return max(self.layouts, default=None)


class PassParts:
    """Parts of an instance of a render pass object, each with a render pass of one subpass."""

    def __init__(self, call: Call, at: int, made: Call, subpasses: list[int]) -> None:
        self.created: dict[int, list[Call]] = {}
        self._call, self._made, self._subpasses = call, made, subpasses
        self._numbers = count(FIRST_NUMBER)
        self._passes: list[int] = []
        """The render pass of each part."""
        self._at = at
        """Index of the step after which these are made: those that use them may be made before the stream's own."""
        self._framebuffers: dict[int, int] = {}
        """By subpass, where those of the stream are not compatible."""
        self._pipelines: dict[int, int] = {}
        for info in self._pass_infos():
            self._passes.append(next(self._numbers))
            args = {**made.args, "pCreateInfo": info, "pRenderPass": self._passes[-1]}
            self.created.setdefault(at, []).append(replace(made, args=args))

    def _make(self, at: int, call: Call) -> None:
        """Makes what needs the render passes, after a step."""
        if at < self._at:
            self.created[at] = self.created.pop(self._at)
            self._at = at
        self.created.setdefault(at, []).append(call)

    def begin(self, part: int) -> Call:
        """As in `PartObjects`."""
        info = self._call.args["pRenderPassBegin"]
        framebuffer = self._framebuffers.get(self._subpasses[part], info["framebuffer"])
        begun = {**info, "renderPass": self._passes[part], "framebuffer": framebuffer}
        return replace(self._call, args={**self._call.args, "pRenderPassBegin": begun})

    def pipeline(self, bound: int) -> int:
        """As in `PartObjects`."""
        return self._pipelines.get(bound, bound)

    # -- render passes -------------------------------------------------------------------------------------------------

    def _pass_infos(self) -> list[dict[str, Any]]:
        """The create info of each part's render pass."""
        info = self._made.args["pCreateInfo"]
        attachments = info["pAttachments"] or ()
        uses = [_Use() for _ in attachments]
        for part, subpass in enumerate(self._subpasses):
            for each in _references(info["pSubpasses"][subpass]):
                uses[each["attachment"]].layouts.setdefault(part, each["layout"])
        held = [each["initialLayout"] for each in attachments]
        made = []
        for part, subpass in enumerate(self._subpasses):
            described = []
            for at, (attachment, use) in enumerate(zip(attachments, uses, strict=True)):
                one = self._attachment(attachment, use, part, held[at])
                held[at] = one["finalLayout"]
                described.append(one)
            made.append(self._pass_info(info, part, subpass, described))
        return made

    def _attachment(self, attachment: dict[str, Any], use: _Use, part: int, held: int) -> dict[str, Any]:
        """An attachment in one part, which finds it in the layout `held`."""
        changed: dict[str, Any] = {"initialLayout": held}
        for load, store in OPERATIONS:
            whole = attachment[load], attachment[store]
            first, last = part == use.first, part == use.last
            changed[load], changed[store] = operations_of_part(whole, first, last)
            if part not in use.layouts:
                changed[load] = VkAttachmentLoadOp.DONT_CARE
        after = use.layouts.get(part, held)
        if after == VkImageLayout.UNDEFINED:  # not used yet: no instance may leave it so
            after = next(iter(use.layouts.values()), attachment["finalLayout"])
        is_last = part == len(self._subpasses) - 1
        return {**attachment, **changed, "finalLayout": attachment["finalLayout"] if is_last else after}

    def _pass_info(
        self, info: dict[str, Any], part: int, subpass: int, attachments: list[dict[str, Any]]
    ) -> dict[str, Any]:
        own = {**info["pSubpasses"][subpass], "preserveAttachmentCount": 0, "pPreserveAttachments": None}
        if subpass in self._subpasses[part + 1 :]:
            own["pResolveAttachments"] = None
        several = info["pDependencies"] or ()
        if len(info["pSubpasses"]) > 1:  # those of one subpass are part of what is compatible
            inside = [each for each in several if each["srcSubpass"] == each["dstSubpass"] == subpass]
            several = [{**each, "srcSubpass": 0, "dstSubpass": 0} for each in inside]
        return {
            **info,
            "pAttachments": attachments,
            "subpassCount": 1,
            "pSubpasses": [own],
            "dependencyCount": len(several),
            "pDependencies": several,
        }

    # -- what must be compatible with them -----------------------------------------------------------------------------

    def make_compatible(self, steps: Sequence[Step], begin: int, bound: Iterable[int]) -> bool:
        """Makes framebuffers, and pipelines for those that are bound; whether that can be."""
        made = _last_made(
            steps, begin, "vkCreateFramebuffer", "pFramebuffer", self._call.args["pRenderPassBegin"]["framebuffer"]
        )
        if made is None:
            return False
        at, call = made
        for subpass in dict.fromkeys(self._subpasses):
            number = self._framebuffers[subpass] = next(self._numbers)
            info = {**call.args["pCreateInfo"], "renderPass": self._pass_of(subpass)}
            self._make(at, replace(call, args={**call.args, "pCreateInfo": info, "pFramebuffer": number}))
        return all(self._make_pipeline(steps, begin, each) for each in bound)

    def _pass_of(self, subpass: int) -> int:
        return self._passes[self._subpasses.index(subpass)]

    def _make_pipeline(self, steps: Sequence[Step], begin: int, pipeline: int) -> bool:
        """Makes a pipeline for the parts of its subpass; whether that can be."""
        made = _last_made(steps, begin, "vkCreateGraphicsPipelines", "pPipelines", pipeline)
        if made is None:
            return False
        at, call = made
        info = call.args["pCreateInfos"][call.args["pPipelines"].index(pipeline)]
        if info["pNext"]:
            return False
        if info["subpass"] not in self._subpasses:
            return True  # nothing is drawn with it here
        own = {
            **info,
            "flags": info["flags"] & ~VkPipelineCreate.DERIVATIVE,
            "renderPass": self._pass_of(info["subpass"]),
            "subpass": 0,
            "basePipelineHandle": 0,
            "basePipelineIndex": -1,
        }
        number = self._pipelines[pipeline] = next(self._numbers)
        args = {**call.args, "createInfoCount": 1, "pCreateInfos": [own], "pPipelines": [number]}
        self._make(at, replace(call, args=args))
        return True
