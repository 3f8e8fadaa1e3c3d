"""Resources that a semaphore hands to another queue ("Implicit memory guarantees when waiting for a semaphore")."""

from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, race, read_after_write, scenario

DRAW, DISPATCH = "vkCmdDraw", "vkCmdDispatch"
UNSEEN = [read_after_write(DRAW, DISPATCH)]
ONE = 0x3F800000
"""1.0 as the bits of a float."""


@scenario(
    without={"the semaphore": [race("READ_RACING_WRITE", DRAW, DISPATCH)]},
    weakened={
        "the semaphore / at vertex shaders": [],
        "the semaphore / at colour output": UNSEEN,
        "the semaphore / at the bottom": UNSEEN,
    },
    queues=["COMPUTE"],
    rule="a-semaphore-is-a-memory-dependency,a-wait-orders-its-stages",
)
def scenario_uniforms_from_a_compute_queue(rig: Rig) -> None:
    """A draw reads as uniforms what a dispatch of another queue stored. A semaphore is all that it needs, where the
    wait is at the fragment shader or before it."""
    image, out, color, stored = rig.target(), rig.buffer(1024), rig.buffer(), rig.semaphore()
    main, compute = rig.queues
    store = rig.compute("fill_words", {0: "STORAGE_BUFFER"}, push_bytes=4)
    shade = rig.graphics("uniform_color", bindings={0: "UNIFORM_BUFFER"})
    with rig.commands(queue=compute) as first:
        first.bind(store, rig.descriptors(store, b0=color))
        first.push_constants(store, ONE)
        first.dispatch()
    with rig.commands(queue=main) as second:
        second.transition(image)
        second.begin_rendering(RenderingAttachment(rig.view(image)))
        second.bind(shade, rig.descriptors(shade, b0=(color, 0, 16)))
        second.draw()
        second.end_rendering()
        second.barrier("", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE", "COPY/TRANSFER_READ")
        second.image_to_buffer(image, out)
    rig.submit(first, signals=[SemaphoreUse(stored)])
    weaker = {
        "at vertex shaders": {"stages": "VERTEX_SHADER"},
        "at colour output": {"stages": "COLOR_ATTACHMENT_OUTPUT"},
        "at the bottom": {"stages": "BOTTOM_OF_PIPE"},
    }
    rig.submit(second, waits=rig.operation("the semaphore", stored, "FRAGMENT_SHADER", weaker=weaker))
