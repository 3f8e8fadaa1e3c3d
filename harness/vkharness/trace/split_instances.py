"""One instance of dynamic rendering as several, each of which loads what the one before stored.

>>> color = {"imageView": 7, "loadOp": 1, "storeOp": 1, "resolveMode": 2, "resolveImageView": 8}
>>> first, last = infos_of_parts({"pColorAttachments": [color], "pDepthAttachment": None}, 2)
>>> [(each["pColorAttachments"][0]["loadOp"], each["pColorAttachments"][0]["resolveMode"]) for each in (first, last)]
[(1, 0), (0, 2)]
"""

from __future__ import annotations

from typing import Any

from vkharness.spec.enums import VkAttachmentLoadOp, VkAttachmentStoreOp, VkResolveMode

ATTACHMENTS = ("pColorAttachments", "pDepthAttachment", "pStencilAttachment")


def infos_of_parts(info: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The VkRenderingInfo of each of `count` parts: the first has the load operations of `info`, the last one its store
    operations and its resolves."""
    return [_part(info, first=at == 0, last=at == count - 1) for at in range(count)]


def _part(info: dict[str, Any], first: bool, last: bool) -> dict[str, Any]:
    changes: dict[str, int] = {}
    if not first:
        changes["loadOp"] = VkAttachmentLoadOp.LOAD
    if not last:
        changes |= {"storeOp": VkAttachmentStoreOp.STORE, "resolveMode": VkResolveMode.NONE}
    made = dict(info)
    for name in ATTACHMENTS:
        value = made.get(name)
        if isinstance(value, list):
            made[name] = [_changed(each, changes) for each in value]
        elif value:
            made[name] = _changed(value, changes)
    return made


def _changed(attachment: dict[str, Any], changes: dict[str, int]) -> dict[str, Any]:
    """An attachment with other operations, if it has a view."""
    return {**attachment, **changes} if attachment.get("imageView") else attachment
