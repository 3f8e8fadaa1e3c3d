"""Calls that name objects and label work, and the frames that presents end: nothing here touches memory or order.

Specification: "Debugging", VK_EXT_debug_utils, VK_EXT_debug_marker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from vkharness.commands.debug_info import LabelHistory
from vkharness.commands.handlers import CallHandler, call
from vkharness.commands.object_state import ObjectState
from vkharness.trace.calls import Call
from vkharness.trace.effects import StreamEvent


@call("vkSetDebugUtilsObjectNameEXT")
def name_object(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Names an object."""
    info = call.args["pNameInfo"] or {}
    objects.debug.name(info.get("objectHandle", 0), info.get("pObjectName"))
    return ()


@call("vkDebugMarkerSetObjectNameEXT")
def name_marked_object(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Names an object, with VK_EXT_debug_marker."""
    info = call.args["pNameInfo"] or {}
    objects.debug.name(info.get("object", 0), info.get("pObjectName"))
    return ()


def _labelling(change: Callable[[LabelHistory, str], None]) -> CallHandler:
    """A handler of the calls that change the labels of a command buffer or a queue in this way."""

    def handler(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
        args = call.args
        history = objects.debug.labels_of(args["commandBuffer"] if "commandBuffer" in args else args["queue"])
        change(history, _label(args))
        objects.debug.changed(history, (call.index, 0, 0))
        return ()

    return handler


def _label(args: dict[str, Any]) -> str:
    """The text of a VkDebugUtilsLabelEXT or a VkDebugMarkerMarkerInfoEXT."""
    info = args.get("pLabelInfo") or args.get("pMarkerInfo") or {}
    return info.get("pLabelName") or info.get("pMarkerName") or ""


call("vkCmdBeginDebugUtilsLabelEXT", "vkCmdDebugMarkerBeginEXT", "vkQueueBeginDebugUtilsLabelEXT")(
    _labelling(LabelHistory.begin)
)
call("vkCmdInsertDebugUtilsLabelEXT", "vkCmdDebugMarkerInsertEXT", "vkQueueInsertDebugUtilsLabelEXT")(
    _labelling(LabelHistory.insert)
)
call("vkCmdEndDebugUtilsLabelEXT", "vkCmdDebugMarkerEndEXT", "vkQueueEndDebugUtilsLabelEXT")(
    _labelling(lambda history, label: history.end())
)
