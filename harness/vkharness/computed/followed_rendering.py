"""Render pass instances and the commands in them."""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.computed.draw_state import DrawStates
from vkharness.computed.followed_draws import FollowedDraws
from vkharness.computed.followed_transfers import KnownContents
from vkharness.computed.render_pass_instances import RenderPassInstances
from vkharness.findings import UserError
from vkharness.replay.observation.declared import DeclaredAccesses
from vkharness.replay.schedule.steps import Step
from vkharness.trace.calls import Call

DRAWS = "vkCmdDraw"
"""How the names of all draws begin."""


class FollowedRendering:
    """Follows what the commands of render pass instances leave."""

    def __init__(self, contents: KnownContents, declared: DeclaredAccesses) -> None:
        self._contents, self._declared = contents, declared
        self._instances = RenderPassInstances(contents)
        self._states = DrawStates()
        self._draws = FollowedDraws(contents, self._states)

    def note(self, call: Call) -> None:
        """Takes a call of the host in."""
        self._instances.note(call)
        self._states.note(call)

    def set_state(self, step: Step, call: Call) -> None:
        """Takes a command in that may set state."""
        self._states.follow(step, call)

    def follow(self, step: Step, call: Call) -> bool:
        """Takes a command in; whether all that it writes is followed. Of any other command, what it may write has to
        be forgotten. Raises `UserError` for a draw that is not followed."""
        now = self._instances.current
        if call.name.startswith(DRAWS):
            if now is None:
                self.lose()
                raise UserError("the render pass instance is not known")
            try:
                self._draws.follow(call, self._declared.bound.get(call.index), now, self._instances.format_of)
            except UserError:
                self.lose()
                raise
            self.may_write(self._declared.of(step).writes)
            return True
        return self._states.current.feedback.follow(self._contents, call) or self._instances.follow(call)

    def lose(self) -> None:
        """A command is not followed that may be a draw: what transform feedback captured is unknown."""
        self._states.current.feedback.lose(self._contents)

    def may_write(self, resources: Iterable[int]) -> None:
        """A command that may write these: store operations may depend on whether it wrote attachments."""
        if self._instances.current is not None:
            self._instances.current.written.update(resources)
