"""Jobs for a `Worker`: streams that need a driver to be recorded, mended."""

from __future__ import annotations

from typing import Any

import vkharness
from vkharness.fuzz.mend_fuzz import verdict_of
from vkharness.mending.mend import mend
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.rig import Rig


def two_draws_that_store(device: str, feedback: bool = False) -> dict[str, Any]:
    """Two draws of one instance of dynamic rendering store to the same words. What mends that, and whether it holds.
    `feedback`: while transform feedback is active."""
    extensions = ["VK_EXT_transform_feedback"] * feedback
    with vkharness.attach(keep_trace=True) as session, Rig(extensions) as rig:
        image, words = rig.target(), rig.buffer(64)
        store = rig.graphics("store_columns")
        held = rig.descriptors(store, b0=words)
        with rig.submission() as commands:
            commands.transition(image)
            commands.begin_rendering(RenderingAttachment(rig.view(image)))
            if feedback:
                commands.bind_feedback(rig.buffer(64))
                commands.begin_feedback()
            for _ in range(2):
                commands.bind(store, held)
                commands.draw()
            if feedback:
                commands.end_feedback()
            commands.end_rendering()
    blocks = session.blocks or []
    inserted = [edit.after.name for edit in mend(blocks).applied.edits() if edit.before is None]
    return {"inserted": inserted, **verdict_of(blocks, 1, device)}
