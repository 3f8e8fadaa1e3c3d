"""Image layouts through render passes: each automatic transition, where it happens."""

from __future__ import annotations

from vkharness.commands.interpret import Interpreter
from vkharness.replay.schedule.layouts import Layouts
from vkharness.replay.schedule.render_pass_effects import transitions_of
from vkharness.spec.command_classes import RENDERING, RENDERING_OBJECTS
from vkharness.trace.calls import Block, Call
from vkharness.trace.effects import AutomaticTransition, Recorded


class Passes:
    """Remembers images, views, framebuffers and render passes from their creation, and follows instances."""

    def __init__(self, layouts: Layouts) -> None:
        self._layouts = layouts
        self._interpreter = Interpreter()

    def note(self, block: Block) -> None:
        """Follows one host call."""
        if isinstance(block, Call) and block.name.startswith(RENDERING_OBJECTS):
            list(self._interpreter.step(block))

    def after(self, call: Call) -> None:
        """Follows one command that has run."""
        if call.name.startswith(RENDERING):
            for stream_event in self._interpreter.step(call):
                if isinstance(stream_event, Recorded):
                    for effect in stream_event.command.effects:
                        for each in transitions_of(effect):
                            self._finish(each)

    def _finish(self, transition: AutomaticTransition) -> None:
        image = self._layouts.images.get(transition.resource)
        if image is not None:
            boxes = [box for span in transition.spans for box in image.boxes(span)]
            reached = list(dict.fromkeys((box.aspect, box.mip, box.layer) for box in boxes))
            self._layouts.put(image.id, reached, transition.new_layout)
