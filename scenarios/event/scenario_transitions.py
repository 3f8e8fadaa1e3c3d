"""Layout transitions of a wait: they happen there, after what came before the set."""

from typing import Any

from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

CLEAR, DOWNLOAD, UPLOAD = "vkCmdClearColorImage", "vkCmdCopyImageToBuffer", "vkCmdCopyBufferToImage"
WAIT, WAIT2 = "vkCmdWaitEvents", "vkCmdWaitEvents2"
CLEARED, READ, WRITTEN = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", "COPY/TRANSFER_WRITE"
TO_SOURCE: dict[str, Any] = {"old": "TRANSFER_DST_OPTIMAL", "new": "TRANSFER_SRC_OPTIMAL"}
MOVED_EARLY = [write_after_write(WAIT2, CLEAR)]
READ_EARLY = [read_after_write(DOWNLOAD, WAIT2)]


@scenario(
    weakened={
        "cleared before moved / no first access": MOVED_EARLY,
        "cleared before moved / after copies": MOVED_EARLY,
        "cleared before moved / to blits": READ_EARLY,
        "cleared before moved / to writes": READ_EARLY,
    },
    rule="a-transition-at-a-wait-happens-at-the-wait",
)
def scenario_transition_at_a_wait(rig: Rig) -> None:
    """A transition is a write between the two scopes of the event."""
    image, out = rig.image(), rig.buffer(1024)
    moved = rig.event(
        "cleared before moved",
        CLEARED,
        READ,
        image=image,
        **TO_SOURCE,
        weaker={
            "no first access": {"src": "CLEAR"},
            "after copies": {"src": WRITTEN},
            "to blits": {"dst": "BLIT/TRANSFER_READ"},
            "to writes": {"dst": WRITTEN},
        },
    )
    with rig.submission() as commands:
        commands.transition(image, new="TRANSFER_DST_OPTIMAL")
        commands.clear_color(image, 0x01020304, at="TRANSFER_DST_OPTIMAL")
        commands.set_event(moved)
        commands.wait_events(moved)
        commands.image_to_buffer(image, out, at="TRANSFER_SRC_OPTIMAL")


@scenario(
    weakened={"cleared before moved / no first access": [write_after_write(WAIT, CLEAR)]},
    rule="a-transition-at-a-wait-happens-at-the-wait,events-cross-command-buffers",
)
def scenario_transition_at_a_wait_in_another_command_buffer(rig: Rig) -> None:
    """Set in one command buffer and waited for in another: the transition needs the write made available."""
    image, out = rig.image(), rig.buffer(1024)
    moved = rig.event(
        "cleared before moved",
        "ALL_TRANSFER/TRANSFER_WRITE",
        "ALL_TRANSFER/TRANSFER_READ",
        sync2=False,
        image=image,
        **TO_SOURCE,
        weaker={"no first access": {"src": "ALL_TRANSFER"}},
    )
    with rig.commands() as first:
        first.transition(image, new="TRANSFER_DST_OPTIMAL")
        first.clear_color(image, 0x05060708, at="TRANSFER_DST_OPTIMAL")
        first.set_event(moved)
    with rig.commands() as second:
        second.wait_events(moved)
        second.image_to_buffer(image, out, at="TRANSFER_SRC_OPTIMAL")
    rig.submit(first, second)


@scenario(
    weakened={"order / set first": [write_after_read(WAIT2, DOWNLOAD)]},
    rule="a-set-fixes-the-first-scope,a-transition-at-a-wait-happens-at-the-wait",
)
def scenario_transition_at_a_wait_after_a_read(rig: Rig) -> None:
    """A read between the set and the wait is not ordered before the transition."""
    image, out = rig.image(), rig.buffer(1024)
    early = rig.choose("order", False, {"set first": True})
    moved = rig.event("", "COPY", WRITTEN, image=image, old="GENERAL", new="TRANSFER_DST_OPTIMAL")
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x11121314)
        commands.barrier("", CLEARED, READ)
        if early:
            commands.set_event(moved)
        commands.image_to_buffer(image, out)
        if not early:
            commands.set_event(moved)
        commands.wait_events(moved)


@scenario(
    without={"moved before uploaded": [write_after_write(UPLOAD, WAIT2)]},
    rule="a-transition-chains-on,a-transition-at-a-wait-happens-at-the-wait",
)
def scenario_barrier_goes_on_after_a_transition_at_a_wait(rig: Rig) -> None:
    """Accesses outside the second scope of the wait need another dependency after the transition."""
    image, data = rig.image(), rig.buffer(1024, data=bytes(range(256)) * 4)
    moved = rig.event("", "NONE", "COMPUTE_SHADER/SHADER_STORAGE_READ", image=image, old="UNDEFINED", new="GENERAL")
    with rig.submission() as commands:
        commands.set_event(moved)
        commands.wait_events(moved)
        commands.barrier("moved before uploaded", "COMPUTE_SHADER", WRITTEN)
        commands.buffer_to_image(data, image)


@scenario(
    weakened={"moved / only one": [read_after_write(DOWNLOAD, CLEAR)]},
    rule="each-event-of-a-wait-stands-for-itself,a-transition-at-a-wait-happens-at-the-wait",
)
def scenario_two_events_move_two_images(rig: Rig) -> None:
    """Each event of a wait moves its own image."""
    a, b, out = rig.image(), rig.image(), rig.buffer(2048)
    several = [{"src": CLEARED, "dst": READ, "image": each, "old": "GENERAL", "new": "GENERAL"} for each in (a, b)]
    first = rig.event("", CLEARED, READ, several=several[:1])
    second = rig.event("moved", CLEARED, READ, several=several[1:], weaker={"only one": {"several": several[:1]}})
    with rig.submission() as commands:
        commands.transition(a, b)
        commands.clear_color(a, 0x21222324)
        commands.set_event(first)
        commands.clear_color(b, 0x25262728)
        commands.set_event(second)
        commands.wait_events(first, second)
        commands.image_to_buffer(a, out)
        commands.image_to_buffer(b, out, {"buffer_offset": 1024})
