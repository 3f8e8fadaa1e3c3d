"""Jobs that record secondaries inside render pass instances under the Khronos layer."""

from __future__ import annotations

from typing import Any

import harness
from harness.layer.listen import LayerWitness
from harness.layer.manifest import find_layer
from harness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from harness.rig.rig import Rig
from harness.spec.enums import VK_SUBPASS_EXTERNAL

WRITE = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"


def said_of_two_subpasses(version: str) -> dict[str, Any]:
    """`said`: [hazard, command, prior command] of what the layer says when two subpasses that no dependency orders use
    one attachment, which a secondary clears in each."""
    layer = find_layer(version)
    assert layer is not None
    with LayerWitness.open(layer) as witness, harness.attach(), Rig((), witness) as rig:
        image = rig.target()
        made = rig.render_pass(
            [RigAttachment()],
            [RigSubpass([(0, "GENERAL")]), RigSubpass([(0, "GENERAL")])],
            [RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITE, "COPY/TRANSFER_READ")],
        )
        frame = rig.framebuffer(made, [rig.view(image)])
        clears = []
        for subpass in (0, 1):
            with rig.secondary(render_pass=made, subpass=subpass, framebuffer=frame) as secondary:
                secondary.clear_attachments((1, 0, subpass))
            clears.append(secondary)
        with rig.commands() as commands:
            commands.begin_pass(made, frame, form=2, secondaries=True)
            commands.execute(clears[0])
            commands.next_subpass(form=2, secondaries=True)
            commands.execute(clears[1])
            commands.end_pass(form=2)
        return {"said": [[each.hazard, each.command, each.prior_command] for each in witness.take()]}
