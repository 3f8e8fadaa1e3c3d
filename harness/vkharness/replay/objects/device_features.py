"""The extensions and features that a trace enables, reduced to what the target has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vkharness.findings import UserError
from vkharness.replay.objects.target import ReplayTarget
from vkharness.spec._generated import STYPES
from vkharness.spec.enums import VkShaderStage, VkStructureType
from vkharness.spec.shapes import members, new_struct
from vkharness.trace.calls import Call
from vkharness.trace.chain import links, rebuilt

_FEATURES = re.compile(r"VkPhysicalDevice\w*Features\w*\Z")
CORE = "VkPhysicalDeviceFeatures"
BY_WINDOWS = ("VK_KHR_swapchain", "VK_KHR_surface", "VK_EXT_swapchain", "VK_KHR_present", "VK_KHR_incremental_present")
"""Beginnings of the names of extensions that a replay does without, since it presents nothing."""
STAGES = {
    VkShaderStage.TESSELLATION_CONTROL: "tessellationShader",
    VkShaderStage.TESSELLATION_EVALUATION: "tessellationShader",
    VkShaderStage.GEOMETRY: "geometryShader",
    VkShaderStage.TASK_EXT: "taskShader",
    VkShaderStage.MESH_EXT: "meshShader",
}
"""Shader stage to the feature that it needs."""
MOST_NAMED = 12
"""Extensions and features that a remark names."""


def reduced(target: ReplayTarget, info: Mapping[str, Any]) -> tuple[list[str], dict[str, Any], list[str]]:
    """Extensions to enable, a VkDeviceCreateInfo of a trace with the features that the target has, and what it lacks.

    A struct of features of which nothing is left is taken out of the chain: its extension may be unknown to the target.
    """
    wanted = set(info.get("ppEnabledExtensionNames") or [])
    extensions = sorted(wanted & target.extensions() - {"VK_KHR_swapchain"})
    lacking = sorted(name for name in wanted - set(extensions) if not name.startswith(BY_WINDOWS))
    found = _offered(target, info)

    def keep(link: dict[str, Any]) -> dict[str, Any] | None:
        have = found.get(link["sType"])
        if have is None:
            return link
        name = STYPES[link["sType"]]
        if name == f"{CORE}2":
            return {**link, "features": _both(CORE, link["features"], have.features, lacking)}
        held = _both(name, link, have, lacking)
        return held if any(value for key, value in held.items() if key not in ("sType", "pNext")) else None

    chain = rebuilt(dict(info), keep)
    core = info.get("pEnabledFeatures")
    if core is not None:
        have = target.ffi.new(f"{CORE} *")
        target.lib.vkGetPhysicalDeviceFeatures(target.physical, have)
        core = _both(CORE, core, have, lacking)
    return extensions, {**info, "pNext": chain, "pEnabledFeatures": core}, lacking


def _offered(target: ReplayTarget, info: Mapping[str, Any]) -> dict[int, Any]:
    """VkStructureType of each struct of features in the chain to what the target says of it; {} for Vulkan 1.0."""
    ffi = target.ffi
    if target.lib.vkGetInstanceProcAddr(target.instance, b"vkGetPhysicalDeviceFeatures2") == ffi.NULL:
        return {}
    found: dict[int, Any] = {}
    following = ffi.NULL
    for link in links(info):
        name = STYPES.get(link["sType"], "")
        if name != f"{CORE}2" and _FEATURES.match(name):
            following = found[link["sType"]] = new_struct(ffi, name, pNext=following)
    whole = found[VkStructureType.PHYSICAL_DEVICE_FEATURES_2] = new_struct(ffi, f"{CORE}2", pNext=following)
    target.function("vkGetPhysicalDeviceFeatures2")(target.physical, whole)
    return found


def _both(name: str, wanted: Mapping[str, Any], have: Any, lacking: list[str]) -> dict[str, Any]:
    """A struct of features with those that are wanted and there; the others are added to `lacking`."""
    held = dict(wanted)
    for member in members(name) or ():
        if member.type == "VkBool32" and held.get(member.name) and not getattr(have, member.name):
            held[member.name] = 0
            lacking.append(member.name)
    return held


def refuse_without_stages(call: Call, target: ReplayTarget, lacking: list[str]) -> None:
    """Raises UserError for a pipeline with a shader stage that the target lacks, at which a driver may crash."""
    for info in call.args["pCreateInfos"] or () if "GraphicsPipelines" in call.name else ():
        for stage in info.get("pStages") or ():
            missing = STAGES.get(stage["stage"])
            if missing in lacking:
                raise UserError(f"block {call.index}: {call.name} cannot be replayed: {target.name} lacks {missing}")


def remark(target: ReplayTarget, lacking: list[str]) -> list[str]:
    """Returns a line that names the extensions and features that a replay left out; empty where there are none."""
    if not lacking:
        return []
    more = f" and {len(lacking) - MOST_NAMED} more" if len(lacking) > MOST_NAMED else ""
    named = ", ".join(lacking[:MOST_NAMED])
    return [f"{target.name} lacks {named}{more}, which the trace enables: left out"]
