"""Samplers are made. Specification: "Samplers"."""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.commands.handlers import call
from vkharness.commands.object_state import ObjectState
from vkharness.trace.calls import Call
from vkharness.trace.effects import StreamEvent


@call("vkCreateSampler")
def create_sampler(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Notes which mip levels it may choose."""
    info = call.args["pCreateInfo"]
    if objects.shaders.samplers.add(info["mipmapMode"], info["mipLodBias"], info["minLod"], info["maxLod"]):
        objects.shaders.clear()
    return ()
