"""Jobs that record transform feedback under the Khronos layer."""

from __future__ import annotations

from typing import Any

import harness
from harness.layer.listen import LayerWitness
from harness.layer.manifest import find_layer
from harness.rig.rendering_attachments import RenderingAttachment
from harness.rig.rig import Rig
from harness.spec.enums import VkPrimitiveTopology

POINTS = VkPrimitiveTopology.POINT_LIST


def said_of_a_byte_count(version: str, read: str) -> dict[str, Any]:
    """`said`: the accesses in what the layer says of a draw with a filled counter that was made visible to `read`."""
    layer = find_layer(version)
    assert layer is not None
    with LayerWitness.open(layer) as witness, harness.attach(), Rig(["VK_EXT_transform_feedback"], witness) as rig:
        image, a, counter = rig.target(), rig.buffer(64), rig.buffer(64)
        pipeline = rig.graphics("gradient", "feedback_words", push_bytes=4, topology=POINTS)
        with rig.commands() as commands:
            commands.transition(image)
            commands.fill(counter, 32)
            commands.barrier("", "CLEAR/TRANSFER_WRITE", read)
            commands.begin_rendering(RenderingAttachment(rig.view(image)))
            commands.bind(pipeline)
            commands.push_constants(pipeline, 1)
            commands.bind_feedback(a)
            commands.begin_feedback()
            commands.draw_byte_count(counter)
            commands.end_feedback()
            commands.end_rendering()
        return {"said": [each.access for each in witness.take()]}
