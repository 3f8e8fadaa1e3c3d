"""The effects of one render pass instance, subpass by subpass, on the attachments with which it was begun.

They depend on nothing else, so that they are worked out once for all instances that are begun alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import permutations
from operator import or_

from vkharness.commands.rendering.attachments import load, resolve, store
from vkharness.commands.rendering.fragment_reads import density_reads, rate_reads
from vkharness.commands.rendering.other_aspect import Operation, with_rewrites
from vkharness.commands.resources.aliasing import Aliasing
from vkharness.spans import overlap
from vkharness.spec.enums import VkAttachmentStoreOp, VkImageAspect, VkImageLayout, VkResolveMode
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import EXTERNAL, AttachmentUsers, AutomaticTransition, Effect, PassEnd, SubpassBegin
from vkharness.trace.render_passes import (
    ALL_VIEWS,
    AttachmentAspectOperation,
    AttachmentTransition,
    Reference,
    RenderPass,
    Subpass,
)
from vkharness.trace.rendering_state import Area, Attachment, RenderingState, layers_of

Users = tuple[int, ...]
"""The subpasses that use an attachment."""


@dataclass(frozen=True, slots=True)
class PassInstance:
    """An instance of a VkRenderPass: every attachment by index, and the number of layers of the framebuffer."""

    render_pass: RenderPass
    attachments: tuple[Attachment | None, ...]
    layers: int
    area: Area
    aliased: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """For each attachment that shares memory with others, and may: the indices of these."""

    def layers_of(self, views: int) -> Sequence[int]:
        """The layers for which a view mask stands, from the first of a view. ALL_VIEWS stands for all of the
        framebuffer's."""
        return layers_of(views, self.layers)

    def users_of(self, attachment: int, views: int) -> Users:
        """The subpasses that use these views of an attachment, or some of them."""
        subpasses = enumerate(self.render_pass.subpasses)
        return tuple(at for at, each in subpasses if each.uses(attachment) and each.view_mask & views)

    def users_of_aliases(self, attachment: int) -> set[int]:
        """The subpasses that use another attachment on the same memory."""
        return {at for each in self.aliased.get(attachment, ()) for at in self.users_of(each, ALL_VIEWS)}


def instance(begun: PassInstance, aliasing: Aliasing) -> RenderingState:
    """The first subpass, which leads to the others."""
    begun = replace(begun, aliased=_aliased(begun, aliasing))
    count = len(begun.render_pass.subpasses)
    end = PassEnd(transitions=tuple(_transitions(begun, begun.render_pass.final, count)))
    following = _subpass_rendering(begun, count - 1, None, end)
    for index in range(count - 2, -1, -1):
        following = _subpass_rendering(begun, index, following, end)
    return following


def _aliased(begun: PassInstance, aliasing: Aliasing) -> dict[int, list[int]]:
    """The attachments that share memory, out of those that may."""
    layers, found = begun.layers_of(begun.render_pass.views), defaultdict[int, list[int]](list)
    able = [
        (at, attachment.image.id, attachment.subresources(layers))
        for at, attachment in enumerate(begun.attachments)
        if attachment is not None and begun.render_pass.attachments[at].may_alias
    ]
    for (at, image, spans), (other, other_image, others) in permutations(able, 2):
        if overlap(spans, others) if image == other_image else aliasing.overlap(image, other_image):
            found[at].append(other)
    return found


def _begin_subpass(begun: PassInstance, index: int) -> Iterator[Effect]:
    work = begun.render_pass.work[index]
    yield SubpassBegin(index, transitions=tuple(_transitions(begun, work.changes, index)))
    loads: dict[Users, list[Operation]] = {}
    for each, attachment in _present(begun, index, work.loads):
        layers = begun.layers_of(each.views)
        made = ((attachment, one, layers) for one in load(attachment, each.operation, layers, begun.area))
        loads.setdefault(begun.users_of(each.attachment, each.views), []).extend(made)
    yield from _by_users(loads)


def _end_subpass(begun: PassInstance, index: int) -> Iterator[Effect]:
    """The resolves and then the stores of a subpass. A resolve attachment is stored as resolved."""
    operations: dict[Users, list[Operation]] = {}
    for users, resolved in _resolves(begun, begun.render_pass.subpasses[index]):
        operations.setdefault(users, []).append(resolved)
    yield from _by_users(operations)
    operations.clear()
    for users, stored in _stores(begun, index, if_written=False):
        operations.setdefault(users, []).append(stored)
    yield from _by_users(operations)


def _by_users(operations: dict[Users, list[Operation]]) -> Iterator[Effect]:
    """The accesses of operations, behind the subpasses that use their attachments where these are several.

    Specification: "VkSubpassDependency"; rules.md#operations-are-in-the-scopes-of-all-who-use-the-attachment.
    """
    for users, several in operations.items():
        made = with_rewrites(several)
        if len(users) < 2 or not made:
            yield from made
            continue
        yield AttachmentUsers(
            subpasses=users, stages=reduce(or_, (ACCESS_KINDS[each.access_kind].stage for each in made))
        )
        yield from made
        yield AttachmentUsers()


def _stores(begun: PassInstance, index: int, if_written: bool) -> Iterator[tuple[Users, Operation]]:
    """The stores of a subpass: those that are made anyway, or those that are made if their attachment was written."""
    for each, attachment in _present(begun, index, begun.render_pass.work[index].stores):
        if (each.operation == VkAttachmentStoreOp.NONE) == if_written:
            layers, users = begun.layers_of(each.views), begun.users_of(each.attachment, each.views)
            yield from ((users, (attachment, one, layers)) for one in store(attachment, layers, begun.area))


def _present(
    begun: PassInstance, index: int, operations: Iterable[AttachmentAspectOperation]
) -> Iterator[tuple[AttachmentAspectOperation, Attachment]]:
    feedback = {
        each.attachment
        for each in begun.render_pass.subpasses[index].references
        if each.layout == VkImageLayout.ATTACHMENT_FEEDBACK_LOOP_OPTIMAL_EXT
    }
    for each in operations:
        attachment = begun.attachments[each.attachment]
        if attachment is not None:
            yield each, replace(attachment.only(each.aspect), feedback_loop=each.attachment in feedback)


def _transitions(
    begun: PassInstance, changes: Iterable[AttachmentTransition], entered: int
) -> Iterator[AutomaticTransition]:
    """Transitions of whole layers of a view: as many as the framebuffer has, or those of the views that any subpass
    uses. `entered` is the subpass that begins, or the number of subpasses at the end."""
    layers = begun.layers_of(begun.render_pass.views)
    for change in changes:
        attachment = begun.attachments[change.attachment]
        if attachment is not None:
            spans = attachment.only(change.aspects).subresources(layers)
            image = attachment.image.id
            leaves, users = _with_aliases(begun, change, entered)
            yield AutomaticTransition(
                image, image, spans, change.old, change.new, leaves=leaves, users=users, later=change.later
            )


def _with_aliases(begun: PassInstance, change: AttachmentTransition, entered: int) -> tuple[Users, Users]:
    """The subpasses that a transition leaves, and all that use the attachment. Those that use another attachment on the
    same memory count: for what a transition leaves, those since it was used in the old layout.

    Specification: "Render Pass Creation" (VK_ATTACHMENT_DESCRIPTION_MAY_ALIAS_BIT), "Automatic Layout Transitions".
    Rule: rules.md#aliased-attachments-share-their-users.
    """
    others = begun.users_of_aliases(change.attachment)
    own = change.leaves or (EXTERNAL,)
    since = {each for each in others if own[0] < each < entered}
    leaves = tuple(sorted({*own, *since})) if since else change.leaves
    return leaves, tuple(sorted({*change.users, *others}))


def _resolves(begun: PassInstance, subpass: Subpass) -> Iterator[tuple[Users, Operation]]:
    """The resolves of a subpass. One is an operation of the attachment that it reads, and of the one that it writes."""
    layers = begun.layers_of(subpass.view_mask)
    for reference, target in zip(subpass.colors, subpass.resolves, strict=False):
        read, written = _attached(begun, reference), _attached(begun, target)
        if read is not None and written is not None:
            users = _users_of_both(begun, reference, target, subpass.view_mask)
            yield from ((users, (written, one, layers)) for one in resolve(read, written, layers, begun.area))
    modes = ((VkImageAspect.DEPTH, subpass.depth_resolve_mode), (VkImageAspect.STENCIL, subpass.stencil_resolve_mode))
    for aspect, mode in modes:
        read = _attached(begun, subpass.depth_stencil, aspect)
        written = _attached(begun, subpass.depth_stencil_resolve, aspect)
        if mode != VkResolveMode.NONE and read is not None and written is not None:
            users = _users_of_both(begun, subpass.depth_stencil, subpass.depth_stencil_resolve, subpass.view_mask)
            yield from ((users, (written, one, layers)) for one in resolve(read, written, layers, begun.area))


def _users_of_both(begun: PassInstance, one: Reference | None, other: Reference | None, views: int) -> Users:
    """The subpasses that use these views of either attachment."""
    several = (each for each in (one, other) if each is not None)
    return tuple(sorted({at for each in several for at in begun.users_of(each.attachment, views)}))


def _attached(begun: PassInstance, reference: Reference | None, aspects: int = 0) -> Attachment | None:
    """The attachment that a reference names. None when it is unused or lacks the aspects asked for."""
    attachment = begun.attachments[reference.attachment] if reference is not None else None
    if attachment is None or not aspects:
        return attachment
    chosen = attachment.only(aspects)
    return chosen if chosen.aspects and not chosen.is_color else None


def _subpass_rendering(
    begun: PassInstance, index: int, following: RenderingState | None, end: PassEnd
) -> RenderingState:
    subpass = begun.render_pass.subpasses[index]
    inputs = []
    for each in subpass.inputs:
        attachment = _attached(begun, each)
        inputs.append(attachment.only(each.aspects) if attachment and each and each.aspects else attachment)
    return RenderingState(
        area=begun.area,
        layers=begun.layers_of(subpass.view_mask),
        view_mask=0 if subpass.view_mask == ALL_VIEWS else subpass.view_mask,
        colors=tuple(_attached(begun, each) for each in subpass.colors),
        depth=_attached(begun, subpass.depth_stencil, VkImageAspect.DEPTH),
        stencil=_attached(begun, subpass.depth_stencil, VkImageAspect.STENCIL),
        inputs=tuple(inputs),
        at_begin=tuple(_begin_subpass(begun, index)),
        at_end=tuple(_end_subpass(begun, index)),
        read_by_fragments=tuple(_fragment_reads(begun, subpass)),
        stores_if_written=tuple(
            tuple(_by_users({users: [each]})) for users, each in _stores(begun, index, if_written=True)
        ),
        following=following,
        end=end,
    )


def _fragment_reads(begun: PassInstance, subpass: Subpass) -> Iterator[Effect]:
    rate, density = _attached(begun, subpass.rate), _attached(begun, subpass.density)
    layers = begun.layers_of(subpass.view_mask)
    if rate is not None:
        yield from rate_reads(rate, subpass.rate_texel, layers, begun.area)
    if density is not None:
        yield from density_reads(density, layers)
