"""Barriers as calls of the rig, and the dependency that was missing under its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vkharness.generated_text import python_string
from vkharness.reproduction.script import Script, scope_text, word
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VK_WHOLE_SIZE
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call

AS_RECORDED = "as recorded"
"""The weaker form of a dependency that was there and was not enough."""
_LISTS = ("pMemoryBarriers", "pBufferMemoryBarriers", "pImageMemoryBarriers")


def barrier_text(script: Script, variable: str, call: Call, name: str = "", before: Call | None = None) -> str:
    """A pipeline barrier. `name` is its name as a dependency; `before` is what was recorded in its place."""
    several = [_options(script, each) for each in _barriers(call)]
    if len(several) == 1 and before is None:
        scopes, options = several[0]
        return (
            f"{variable}.barrier({', '.join([python_string(name), *map(python_string, scopes), *_keywords(options)])})"
        )
    given = [python_string(name), *(_mapping(scopes, options) for scopes, options in several)]
    if before is not None:
        weaker = ", ".join(_mapping(*_options(script, each)) for each in _barriers(before))
        given.append(f"weaker={{{python_string(AS_RECORDED)}: [{weaker}]}}")
    return f"{variable}.barriers({', '.join(given)})"


def _keywords(options: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in options.items()]


def _mapping(scopes: tuple[str, str], options: Mapping[str, str]) -> str:
    pairs = [("src", python_string(scopes[0])), ("dst", python_string(scopes[1])), *options.items()]
    return "{" + ", ".join(f"{python_string(key)}: {value}" for key, value in pairs) + "}"


def _barriers(call: Call) -> list[dict[str, Any]]:
    """The barriers of a command, each with its stages; one without accesses where the command has none."""
    second = main_name(call.name) == "vkCmdPipelineBarrier2"
    info = call.args["pDependencyInfo"] if second else call.args
    found = [each for array in _LISTS for each in info.get(array) or ()]
    flags = info["dependencyFlags"]
    stages = {} if second else {name: call.args[name] for name in ("srcStageMask", "dstStageMask")}
    if not found and not second:
        found = [{"srcAccessMask": 0, "dstAccessMask": 0}]
    return [{**each, **stages, "sync2": second, "flags": flags} for each in found]


def _options(script: Script, barrier: Mapping[str, Any]) -> tuple[tuple[str, str], dict[str, str]]:
    """The two scopes and the other options of `Commands.barrier`, as text."""
    scopes = (
        scope_text(barrier["srcStageMask"], barrier["srcAccessMask"]),
        scope_text(barrier["dstStageMask"], barrier["dstAccessMask"]),
    )
    options: dict[str, str] = {}
    if "buffer" in barrier:
        options["buffer"] = script.names[barrier["buffer"]]
        if barrier["offset"]:
            options["offset"] = str(barrier["offset"])
        if barrier["size"] != VK_WHOLE_SIZE:
            options["size"] = str(barrier["size"])
    elif "image" in barrier:
        part = barrier["subresourceRange"]
        options["image"] = script.names[barrier["image"]]
        options["aspects"] = str(part["aspectMask"])
        options["mips"] = _pair(part["baseMipLevel"], part["levelCount"])
        options["layers"] = _pair(part["baseArrayLayer"], part["layerCount"])
        for key, member in (("old", "oldLayout"), ("new", "newLayout")):
            options[key] = python_string(word("VkImageLayout", barrier[member], "VK_IMAGE_LAYOUT_"))
    families = (barrier.get("srcQueueFamilyIndex", 0), barrier.get("dstQueueFamilyIndex", 0))
    if families[0] != families[1] and VK_QUEUE_FAMILY_IGNORED not in families:
        options["families"] = f"({script.family(families[0])}, {script.family(families[1])})"
    if not barrier["sync2"]:
        options["sync2"] = "False"
    if barrier["flags"]:
        options["flags"] = hex(barrier["flags"])
    return scopes, options


def _pair(first: int, count: int) -> str:
    return f"({first}, {count if count < 1 << 31 else hex(count)})"
