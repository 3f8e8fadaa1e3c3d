"""Render state that is set, saved and restored piece by piece, with pipelines made when a draw first needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vkharness.rig.core import RigPipeline
from vkharness.rig.graphics_pipelines import GraphicsPipelines

State = Mapping[str, Any]
"""Arguments of `GraphicsPipelines.graphics` by name: shaders, fixed state, formats or render pass."""


class LazyPipelines:
    """The graphics pipelines of one device by everything that went into them.

    `seen` are the states of all pipelines so far, in order. Given to `warm` of another run, they make the pipelines
    before the first frame, so that no draw has to wait for one.
    """

    def __init__(self, rig: GraphicsPipelines) -> None:
        self.rig = rig
        self.seen: list[State] = []
        self._made: dict[str, RigPipeline] = {}

    def get(self, state: State) -> RigPipeline:
        """The pipeline of a state, made if there is none."""
        key = repr(sorted(state.items()))
        if key not in self._made:
            self._made[key] = self.rig.graphics(**state)
            self.seen.append(dict(state))
        return self._made[key]

    def warm(self, states: Iterable[State]) -> None:
        """Makes the pipelines of these states."""
        for state in states:
            self.get(state)


class RenderState:
    """The state of draws, set piece by piece. It belongs to one recording, so that it leaks into no other.

    >>> state = RenderState(depth_test=True, depth_write=True)
    >>> saved = state.save("depth_write")
    >>> state.set(depth_write=False, blend=True)
    >>> state.restore(saved)
    >>> sorted(state.pieces.items())
    [('blend', True), ('depth_test', True), ('depth_write', True)]
    """

    def __init__(self, **pieces: Any) -> None:
        self.pieces: dict[str, Any] = pieces

    def set(self, **pieces: Any) -> None:
        """Changes pieces of the state."""
        self.pieces.update(pieces)

    def save(self, *names: str) -> State:
        """Pieces as they are, those that are not set included; all set ones without names."""
        return {name: self.pieces.get(name) for name in names or self.pieces}

    def restore(self, saved: State) -> None:
        """Sets pieces as they were saved. What was not set is not set again."""
        for name, value in saved.items():
            self.pieces[name] = value
            if value is None:
                del self.pieces[name]
