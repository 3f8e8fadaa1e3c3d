"""Which bound descriptor sets and push constants the shaders of a pipeline statically use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from vkharness.findings import UserError
from vkharness.reduction.structure import Structure
from vkharness.shader.reflect import reflect
from vkharness.spec.enums import VkStructureType
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call
from vkharness.trace.chain import links

_ANY = frozenset(range(64))
"""More descriptor sets than a device lets a pipeline layout have."""
_LIBRARIES = (
    VkStructureType.PIPELINE_LIBRARY_CREATE_INFO_KHR,
    VkStructureType.GRAPHICS_PIPELINE_LIBRARY_CREATE_INFO_EXT,
)
"""Structs of a create info that make a pipeline of the stages of others."""


class ShaderState(NamedTuple):
    """State that the shaders of an action may use."""

    sets: frozenset[int]
    """Numbers of descriptor sets."""
    push_constants: bool
    bindings: frozenset[tuple[int, int]] = frozenset()
    """(set, binding) of the descriptors that are known to be used and are no array."""


NOT_KNOWN = ShaderState(_ANY, True)
"""That of shader objects, pipelines without stages, pipeline libraries, and modules that no code is known of."""


class ShaderStates:
    """Looks up the pipelines of one stream. What was found stays known."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        self._known: dict[int, ShaderState] = {}

    def of(self, pipeline: int) -> ShaderState:
        """Returns the state that the shaders of a pipeline may use."""
        if pipeline not in self._known:
            self._known[pipeline] = self._of(pipeline)
        return self._known[pipeline]

    def _of(self, pipeline: int) -> ShaderState:
        maker = self._structure.maker.get(pipeline)
        if maker is None:
            return NOT_KNOWN
        call = self._structure.call(maker)
        if pipeline not in (call.args.get("pPipelines") or ()):
            return NOT_KNOWN  # an object of another type, which a broken trace binds as a pipeline
        info = call.args["pCreateInfos"][call.args["pPipelines"].index(pipeline)]
        stages = [info["stage"]] if main_name(call.name) == "vkCreateComputePipelines" else info.get("pStages")
        if not stages or any(each["sType"] in _LIBRARIES for each in links(info)):
            return NOT_KNOWN
        try:
            uses = [reflect(self._code(each), each["pName"], None, each["stage"]) for each in stages]
        except (UserError, LookupError):
            return NOT_KNOWN
        used = [use for each in uses for use in each.uses]
        bindings = frozenset((use.set, use.binding) for use in used if use.array_size == 1)
        return ShaderState(frozenset(use.set for use in used), any(each.push_constants for each in uses), bindings)

    def _code(self, stage: Mapping[str, Any]) -> bytes:
        made = self._structure.blocks[self._structure.maker[stage["module"]]]
        assert isinstance(made, Call)
        code = made.args["pCreateInfo"]["pCode"]
        if not isinstance(code, bytes):
            raise UserError("a shader module without its code")
        return code
