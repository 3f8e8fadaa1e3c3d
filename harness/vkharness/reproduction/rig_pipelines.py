"""Compute pipelines with one descriptor set in the rig's few words, where these say all that a stream has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vkharness.generated_text import python_string
from vkharness.reproduction.script import Script, word
from vkharness.rig.pipeline_layouts import reflected_sets
from vkharness.shader.library import load, names
from vkharness.shader.reflect import reflect
from vkharness.spec.enums import VK_WHOLE_SIZE, VkShaderStage
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call
from vkharness.trace.templates import plain

_TYPE = "VK_DESCRIPTOR_TYPE_"
_BUFFERS = ("STORAGE_BUFFER", "UNIFORM_BUFFER")


@dataclass(slots=True)
class SimplePipeline:
    """A compute pipeline that `Rig.compute` makes: the ids of what belongs to it."""

    pipeline: int
    layout: int
    set_layout: int
    shader: str
    bindings: dict[int, str]
    push_bytes: int
    pools: tuple[int, ...]
    sets: dict[int, dict[int, dict[str, Any]]]
    """Descriptor sets of its layout: the buffer of each binding."""


class SimplePipelines:
    """Finds them in a stream, and writes them."""

    def __init__(self, script: Script, blocks: Sequence[Block]) -> None:
        self.script = script
        self._calls = [plain(block) for block in blocks if isinstance(block, Call)]
        self._made = {id: call for call in self._calls for id in _outputs(call)}
        several = [self._pipeline(call) for call in self._calls if call.name == "vkCreateComputePipelines"]
        found = [each for each in several if each is not None]
        self.whole = len(found) == len(several) and len({each.layout for each in found}) == len(found)
        """Whether all compute pipelines are simple; the stream is written without their parts then."""
        self.by_pipeline = {each.pipeline: each for each in found} if self.whole else {}
        self._completed: dict[int, list[tuple[SimplePipeline, int]]] = defaultdict(list)
        """The last call that makes or fills a set, or makes its pipeline, to the pipelines and sets."""
        last = {id: call.index for call in self._calls for id in (*_outputs(call), *_filled(call))}
        for each in self.by_pipeline.values():
            for identity in each.sets:
                self._completed[max(last[identity], last[each.pipeline])].append((each, identity))

    def _pipeline(self, call: Call) -> SimplePipeline | None:
        infos = call.args["pCreateInfos"]
        if len(infos) != 1 or infos[0]["flags"] or infos[0]["pNext"] or infos[0]["stage"]["pSpecializationInfo"]:
            return None
        layout = self._made.get(infos[0]["layout"])
        shader = self._shader(infos[0]["stage"]["module"])
        if layout is None or shader is None or infos[0]["stage"]["pName"] != "main":
            return None
        info = layout.args["pCreateInfo"]
        ranges, set_layouts = list(info["pPushConstantRanges"] or ()), list(info["pSetLayouts"] or ())
        if (
            len(set_layouts) != 1
            or any(each["offset"] or each["stageFlags"] != 0x20 for each in ranges)
            or len(ranges) > 1
        ):
            return None
        bindings = self._bindings(set_layouts[0])
        sets = self._sets(set_layouts[0]) if bindings is not None else None
        if bindings is None or sets is None:
            return None
        pools = tuple(self._made[each].args["pAllocateInfo"]["descriptorPool"] for each in sets)
        push_bytes = ranges[0]["size"] if ranges else 0
        made = call.args["pPipelines"][0]
        return SimplePipeline(made, infos[0]["layout"], set_layouts[0], shader, bindings, push_bytes, pools, sets)

    def _shader(self, module: int) -> str | None:
        call = self._made.get(module)
        code = call.args["pCreateInfo"]["pCode"] if call is not None else None
        return next((name for name in names() if load(name) == code), None) if isinstance(code, bytes) else None

    def _bindings(self, set_layout: int) -> dict[int, str] | None:
        call = self._made.get(set_layout)
        if call is None or call.args["pCreateInfo"]["flags"] or call.args["pCreateInfo"]["pNext"]:
            return None
        found: dict[int, str] = {}
        for each in call.args["pCreateInfo"]["pBindings"] or ():
            kind = word("VkDescriptorType", each["descriptorType"], _TYPE)
            if kind not in _BUFFERS or each["descriptorCount"] != 1:
                return None
            found[each["binding"]] = kind
        return found

    def _sets(self, set_layout: int) -> dict[int, dict[int, dict[str, Any]]] | None:
        """The sets of a layout with what they hold; None where they are written again or copied."""
        sets: dict[int, dict[int, dict[str, Any]]] = {}
        submitted = False
        for call in self._calls:
            if call.name == "vkAllocateDescriptorSets":
                info = call.args["pAllocateInfo"]
                if set_layout in info["pSetLayouts"] and len(info["pSetLayouts"]) > 1:
                    return None
                sets.update((each, {}) for each in call.args["pDescriptorSets"] if info["pSetLayouts"] == [set_layout])
            elif call.name.startswith("vkUpdateDescriptorSet"):
                for write in call.args.get("pDescriptorWrites") or ():
                    if write["dstSet"] in sets:
                        if submitted or write["dstBinding"] in sets[write["dstSet"]] or write["descriptorCount"] != 1:
                            return None
                        sets[write["dstSet"]][write["dstBinding"]] = write["pBufferInfo"][0]
                if call.args.get("pDescriptorCopies") or "pDescriptorWrites" not in call.args:
                    return None
            submitted |= call.name.startswith("vkQueueSubmit")
        return sets

    def is_part(self, call: Call) -> bool:
        """Whether a call only makes or fills a part of simple pipelines."""
        if not self.by_pipeline:
            return False
        kept = self.by_pipeline.values()
        parts = {each.layout for each in kept} | {each.set_layout for each in kept}
        parts |= {one for each in kept for one in (*each.pools, *each.sets)}
        modules = {
            info["stage"]["module"] for c in self._calls if c.name == "vkCreateComputePipelines"
            for info in c.args["pCreateInfos"]
        }  # fmt: skip
        if call.name.startswith("vkUpdateDescriptorSet"):
            writes = call.args.get("pDescriptorWrites") or ()
            return all(write["dstSet"] in parts for write in writes)
        return bool(_outputs(call)) and set(_outputs(call)) <= parts | modules

    def write(self, pipeline: int) -> None:
        """Writes a pipeline."""
        each, script = self.by_pipeline[pipeline], self.script
        given = ", ".join([python_string(each.shader), *_beside_reflection(each)])
        variable = script.name(pipeline, "VkPipeline")
        script.line(f"{variable} = rig.compute({given})")
        script.given[each.layout] = f"{variable}.layout"
        script.given[pipeline] = f"{variable}.handle"

    def write_sets(self, last: Call) -> None:
        """Writes the descriptor sets of which this is the last call: their pipeline and buffers are there now."""
        script = self.script
        for each, identity in self._completed.get(last.index, ()):
            given = [f"b{at}={self._held(info)}" for at, info in sorted(each.sets[identity].items())]
            variable = script.name(identity, "VkDescriptorSet")
            script.line(f"{variable} = rig.descriptors({', '.join([script.names[each.pipeline], *given])})")
            script.given[identity] = f"{variable}.handle"

    def _held(self, info: dict[str, Any]) -> str:
        """Returns the code of a descriptor's buffer, as the rig takes it: a name, or (name, offset, size)."""
        name = self.script.names[info["buffer"]]
        if (info["offset"], info["range"]) == (0, VK_WHOLE_SIZE):
            return name
        size = hex(VK_WHOLE_SIZE) if info["range"] == VK_WHOLE_SIZE else info["range"]  # the package's name is -1
        return f"({name}, {info['offset']}, {size})"

    def bind(self, variable: str, call: Call, following: Call | None) -> tuple[str, bool] | None:
        """The text of a bind of a pipeline, with the bind of its set if that follows; whether it is taken in."""
        if call.name != "vkCmdBindPipeline" or call.args["pipeline"] not in self.by_pipeline:
            return None
        each = self.by_pipeline[call.args["pipeline"]]
        name = self.script.names[each.pipeline]
        sets = following.args["pDescriptorSets"] if following and following.name == "vkCmdBindDescriptorSets" else []
        if (
            len(sets) == 1
            and following
            and following.args["layout"] == each.layout
            and not following.args["pDynamicOffsets"]
        ):
            return f"{variable}.bind({name}, {self.script.names[sets[0]]})", True
        return f"{variable}.bind({name})", False


def _beside_reflection(each: SimplePipeline) -> list[str]:
    """The arguments of `Rig.compute` for what the layout has and the shader does not say."""
    shader = reflect(load(each.shader), "main")
    bindings = reflected_sets({VkShaderStage.COMPUTE: shader}).get(0, {})
    types = {at: word("VkDescriptorType", kind, _TYPE) for at, (kind, _, _) in bindings.items()}
    more = ", ".join(
        f"{at}: {python_string(kind)}" for at, kind in sorted(each.bindings.items()) if types.get(at) != kind
    )
    pushed = f"push_bytes={each.push_bytes}" if each.push_bytes > shader.push_bytes else ""
    return [given for given in (f"{{{more}}}" if more else "", pushed) if given]


def _filled(call: Call) -> list[int]:
    """The descriptor sets that a call writes."""
    writes = call.args.get("pDescriptorWrites") if call.name.startswith("vkUpdateDescriptorSet") else None
    return [write["dstSet"] for write in writes or ()]


def _outputs(call: Call) -> list[int]:
    if not main_name(call.name).startswith(("vkCreate", "vkAllocate")):
        return []
    made = list(call.args.values())[-1]
    return [each for each in (made if isinstance(made, list) else [made]) if isinstance(each, int)]
