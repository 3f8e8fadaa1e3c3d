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


def attachments_of(info: dict[str, Any]) -> list[dict[str, Any]]:
    """The attachments with a view of a VkRenderingInfo."""
    several = [info.get(name) for name in ATTACHMENTS]
    listed = [each for one in several for each in (one if isinstance(one, list) else [one])]
    return [each for each in listed if each and each.get("imageView")]


def can_be_split(attachment: dict[str, Any]) -> bool:
    """Whether parts can hand an attachment on. What no load operation loads is undefined inside and kept in memory
    (VK_ATTACHMENT_LOAD_OP_NONE): to store it for the next part would lose what is kept."""
    return bool(attachment["loadOp"] != VkAttachmentLoadOp.NONE or attachment["storeOp"] == VkAttachmentStoreOp.NONE)


def operations_of_part(whole: tuple[int, int], first: bool, last: bool) -> tuple[int, int]:
    """(load, store) operation of one part, from those of the whole: `first` and `last` of the parts that use it."""
    if whole == (VkAttachmentLoadOp.NONE, VkAttachmentStoreOp.NONE):
        return whole
    return (whole[0] if first else VkAttachmentLoadOp.LOAD, whole[1] if last else VkAttachmentStoreOp.STORE)


def _part(info: dict[str, Any], first: bool, last: bool) -> dict[str, Any]:
    made = dict(info)
    for name in ATTACHMENTS:
        value = made.get(name)
        if isinstance(value, list):
            made[name] = [_changed(each, first, last) for each in value]
        elif value:
            made[name] = _changed(value, first, last)
    return made


def _changed(attachment: dict[str, Any], first: bool, last: bool) -> dict[str, Any]:
    """An attachment with the operations of a part, if it has a view."""
    if not attachment.get("imageView"):
        return attachment
    load, store = operations_of_part((attachment["loadOp"], attachment["storeOp"]), first, last)
    resolves = {} if last else {"resolveMode": VkResolveMode.NONE}
    return {**attachment, "loadOp": load, "storeOp": store, **resolves}
