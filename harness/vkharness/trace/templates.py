"""Descriptor update templates as the VkWriteDescriptorSet structs that they make of `pData`.

`pData` points to memory whose layout only the template gives. The recorder reads it when the call is made, and keeps
the structs under additional keys in `Call.args`: `writes`, and for pushes `pipelineBindPoint` (which the template
holds). A call without them used a template whose creation was not seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call

UPDATE = "vkUpdateDescriptorSetWithTemplate"
PUSH = "vkCmdPushDescriptorSetWithTemplateKHR"
PUSH_2 = "vkCmdPushDescriptorSetWithTemplate2KHR"
PUSH_INFO = "pPushDescriptorSetWithTemplateInfo"
"""The struct that holds the parameters of `PUSH_2`."""
WRITES, BIND_POINT = "writes", "pipelineBindPoint"


def own_keys(name: str) -> tuple[str, ...]:
    """The keys that only vkharness adds to the arguments of a command."""
    if "WithTemplate" not in name:
        return ()
    return {UPDATE: (WRITES,), PUSH: (BIND_POINT, WRITES), PUSH_2: (BIND_POINT, WRITES)}.get(main_name(name), ())


def plain_arguments(args: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments of the equivalent vkUpdateDescriptorSets or vkCmdPushDescriptorSetKHR; None when they are not known."""
    writes = args.get(WRITES)
    if writes is None:
        return None
    shared = {"descriptorWriteCount": len(writes), "pDescriptorWrites": writes}
    if "commandBuffer" in args:
        given = args | (args.get(PUSH_INFO) or {})
        return {name: given[name] for name in ("commandBuffer", BIND_POINT, "layout", "set")} | shared
    return {"device": args["device"], **shared, "descriptorCopyCount": 0, "pDescriptorCopies": None}


def plain(call: Call) -> Call:
    """The equivalent call without a template. Every other call is returned unchanged."""
    args = plain_arguments(call.args) if own_keys(call.name) else None
    if args is None:
        return call
    name = "vkCmdPushDescriptorSetKHR" if "commandBuffer" in args else "vkUpdateDescriptorSets"
    return replace(call, name=name, args=args)
