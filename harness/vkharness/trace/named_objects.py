"""The object of a debug name: the extensions give its type as a number and its handle as an integer.

Specification: "VkDebugUtilsObjectNameInfoEXT", "VkDebugMarkerObjectNameInfoEXT".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from vkharness.spec._generated import ENUMS, HANDLES
from vkharness.trace.handles import HandleRegistry

OBJECT_TYPES = {
    ("VkDebugUtilsObjectNameInfoEXT", "objectHandle"): "VkObjectType",
    ("VkDebugUtilsObjectTagInfoEXT", "objectHandle"): "VkObjectType",
    ("VkDebugMarkerObjectNameInfoEXT", "object"): "VkDebugReportObjectTypeEXT",
    ("VkDebugMarkerObjectTagInfoEXT", "object"): "VkDebugReportObjectTypeEXT",
}
"""The members that hold a handle as an integer, and the enumeration of the `objectType` beside them."""
_PREFIXES = {"VkObjectType": "VK_OBJECT_TYPE_", "VkDebugReportObjectTypeEXT": "VK_DEBUG_REPORT_OBJECT_TYPE_"}

FindObject = Callable[[str, int, int], int]
"""From an enumeration, a value of it and a handle to the id of the object; 0 for a type that is no handle's."""


def object_finder(objects: HandleRegistry) -> FindObject:
    """Makes the function that finds the objects of a session by type and handle."""

    def find(enumeration: str, kind: int, handle: int) -> int:
        name = _handle_types(enumeration).get(kind)
        return objects.table(name)[handle] if name is not None else 0

    return find


def object_type_of(enumeration: str, name: str) -> int | None:
    """The value of an enumeration that stands for a C handle type; None for a type that has none."""
    return next((value for value, known in _handle_types(enumeration).items() if known == name), None)


@cache
def _handle_types(enumeration: str) -> dict[int, str]:
    """The C names of handle types by value."""
    handles = {name.upper(): name for name in HANDLES}
    found = {}
    for value_name, value in ENUMS[enumeration].items():
        words = "VK" + value_name.removeprefix(_PREFIXES[enumeration]).replace("_", "")
        name = handles.get(words) or handles.get(words.removesuffix("EXT"))
        if name is not None:
            found[value] = name
    return found
