"""Render pass instances and the commands in them."""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.computed.followed_transfers import KnownContents
from vkharness.computed.render_pass_instances import RenderPassInstances
from vkharness.trace.calls import Call


class FollowedRendering:
    """Follows what the commands of render pass instances leave."""

    def __init__(self, contents: KnownContents) -> None:
        self._instances = RenderPassInstances(contents)

    def note(self, call: Call) -> None:
        """Takes a call of the host in."""
        self._instances.note(call)

    def follow(self, call: Call) -> bool:
        """Takes a command in; whether all that it writes is followed. Of any other command, what it may write has to
        be forgotten."""
        return self._instances.follow(call)

    def may_write(self, resources: Iterable[int]) -> None:
        """A command whose writes are not followed: store operations may depend on whether it wrote attachments."""
        if self._instances.current is not None:
            self._instances.current.written.update(resources)
