"""Stalls of the host other than fences: what the results of a query tell it."""

import struct

from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, scenario, write_after_read

STILL_READ = [write_after_read("host write", "vkCmdDraw")]


@scenario(
    without={"the wait": STILL_READ},
    weakened={"the wait / for the results of a query": STILL_READ, "the wait / idle queue": []},
    rule="a-host-write-waits-for-the-device",
)
def scenario_host_waits_for_the_results_of_a_query(rig: Rig) -> None:
    """The results of an occlusion query, waited for, tell the host that the query has ended, and nothing of the
    uniforms that its draws read: the host needs a fence before it writes these."""
    target, uniform, queries, fence = rig.target(), rig.buffer(16), rig.queries(count=1), rig.fence()
    pipeline = rig.graphics("uniform_color")
    rig.host_write(uniform, struct.pack("<4f", 0.2, 0.4, 0.6, 1.0))
    with rig.commands() as commands:
        commands.transition(target)
        commands.begin_rendering(RenderingAttachment(rig.view(target)))
        commands.bind(pipeline, rig.descriptors(pipeline, b0=uniform))
        commands.query(queries, 0, inside=commands.draw)
        commands.end_rendering()
    rig.submit(commands, fence=fence)
    how = rig.choose("the wait", "fence", {"for the results of a query": "results", "idle queue": "queue"})
    if how == "results":
        rig.host_results(queries)
    elif how is not None:
        rig.host_wait("", "queue" if how == "queue" else "all", fence)
    rig.host_write(uniform, struct.pack("<4f", 1.0, 0.0, 0.0, 1.0))
