"""Operations on one aspect of a depth/stencil attachment that may rewrite the other aspect.

Writes of load, store and resolve operations to one aspect "may also result in read-modify-write operations for the
other aspect", unless the device has separateDepthStencilAttachmentAccess; for load operations, unless its maintenance7
feature is enabled as well. Rule: rules.md#writes-to-one-aspect-may-rewrite-the-other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vkharness.commands.object_state import ObjectState
from vkharness.commands.rendering.attachments import COLOR_READ, EARLY_READ
from vkharness.spans import subtract
from vkharness.spec.enums import VkImageAspect, VkStructureType
from vkharness.spec.scopes import ACCESS_KIND, ACCESS_KINDS
from vkharness.trace.attachment_operations import AttachmentOperation
from vkharness.trace.calls import SEPARATE_ASPECTS, Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import Access
from vkharness.trace.rendering_state import Attachment
from vkharness.trace.resources import AspectRewrites

BOTH = VkImageAspect.DEPTH | VkImageAspect.STENCIL
LATE_READ = ACCESS_KIND["SYNC_LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"].index
_READS = {ACCESS_KINDS[each].stage: each for each in (EARLY_READ, LATE_READ, COLOR_READ)}

Operation = tuple[Attachment, Access, Sequence[int]]
"""An access by an operation of an attachment, with its layers."""


def property_told(objects: ObjectState, call: Call) -> None:
    """vkGetPhysicalDeviceProperties2: remembers the property, where the program asks for it."""
    told = chained(call.args["pProperties"], VkStructureType.PHYSICAL_DEVICE_MAINTENANCE_7_PROPERTIES_KHR)
    if told is not None and SEPARATE_ASPECTS in told:
        objects.separate_aspects[call.args["physicalDevice"]] = bool(told[SEPARATE_ASPECTS])


def device_made(objects: ObjectState, call: Call) -> AspectRewrites:
    """Gives which operations of a new device may rewrite the other aspect. A recording of vkharness tells the property,
    another trace tells it where the program asked for it."""
    separate = call.args.get(SEPARATE_ASPECTS)
    if separate is None:
        separate = objects.separate_aspects.get(call.args["physicalDevice"])
    if separate is None:
        return AspectRewrites(objects.assumed_rewrites, objects.assumed_rewrites)
    enabled = chained(call.args["pCreateInfo"], VkStructureType.PHYSICAL_DEVICE_MAINTENANCE_7_FEATURES_KHR)
    return AspectRewrites(enabled is None or not enabled.get("maintenance7", 1) or not separate, not separate)


def with_rewrites(operations: Sequence[Operation]) -> list[Access]:
    """The accesses of the operations of one command, and those by which they may rewrite other aspects.

    Subresources that the command itself writes in the same stage are not added again.
    """
    made = [access for _, access, _ in operations]
    for attachment, access, layers in operations:
        image, kind = attachment.image, ACCESS_KINDS[access.access_kind]
        if not kind.write or image.format.aspects & BOTH != BOTH:
            continue
        spans = replace(attachment, aspects=BOTH & ~attachment.aspects).subresources(layers)
        for other in made:
            if other.space == access.space and other.access_kind == access.access_kind:
                spans = tuple(subtract(list(spans), other.spans))
        if spans and _rewrites(image.rewrites, access.operation):
            both = (_READS[kind.stage], access.access_kind)
            made += (replace(access, spans=spans, access_kind=each, rewrite=True) for each in both)
    return made


def _rewrites(known: AspectRewrites, operation: AttachmentOperation) -> bool:
    happens = known.by_loads if operation == AttachmentOperation.LOAD else known.by_stores
    known.in_doubt |= happens is None
    return bool(happens)
