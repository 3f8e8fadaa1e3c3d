"""Stream events that a stream tells as they are, as stream text does (`vkharness.text_form`), and no call of Vulkan."""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.commands.handlers import call
from vkharness.commands.object_state import ObjectState
from vkharness.trace.calls import TOLD, Call
from vkharness.trace.effects import StreamEvent
from vkharness.trace.resources import Buffer


@call(TOLD)
def told(objects: ObjectState, said: Call) -> Iterable[StreamEvent]:
    """`names`: what resources are called, by their handles; `event`: the stream event, if any. A file of calls cannot
    hold one: what stands there in it is not understood."""
    for handle, name in said.args.get("names", {}).items():
        objects.add(Buffer(handle, said.args["size"]))
        objects.debug.names[handle] = name
    event = said.args.get("event")
    if event is None:
        return ()
    if not isinstance(event, StreamEvent):
        raise TypeError("an event of a stream in a file of calls")
    return (event,)
