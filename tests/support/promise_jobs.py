"""Streams with known bytes on one queue: each shows whether a promise is kept (`promise_streams` has more). Images have
2x2 texels of one word."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigImage
from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.rig import Rig
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL

FILLED, COPIED, READ = "ALL_TRANSFER/TRANSFER_WRITE", "COPY/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ"
ALL = ("ALL_COMMANDS/MEMORY_WRITE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE")
OLD, NEW = 0x04030201, 0x0D0C0B0A
"""Values to which images are cleared, first and then."""
SIDE = (2, 2, 1)
AREA = (0, 0, 2, 2)
BLUE = struct.unpack("<4I", struct.pack("<4f", 0, 0, 1, 1))
"""The push constants of `constant_color` for the word 0xFFFF0000."""
CORNERS = struct.pack("<6f", -1, -1, 3, -1, -1, 3)
FAR = struct.unpack("<I", struct.pack("<f", 2.0))[0]


def four(rig: Rig, *words: int) -> RigBuffer:
    """A buffer of words: 1, 2, 3 and 4 unless others are given."""
    given = words or (1, 2, 3, 4)
    return rig.buffer(4 * len(given), data=struct.pack(f"<{len(given)}I", *given))


def words(rig: Rig, buffer: RigBuffer) -> list[int]:
    """Reads a buffer on the host."""
    return list(struct.unpack(f"<{buffer.size // 4}I", rig.host_read(buffer)))


def between(commands: Commands) -> None:
    """A barrier after which everything may follow."""
    commands.barrier("", *ALL)


def _copied(write: Callable[[Commands, RigBuffer], object], barrier: Callable[[Commands, RigBuffer], object]) -> Any:
    """A buffer is written, and copied after a barrier."""

    def stream(rig: Rig) -> list[int]:
        a, b = four(rig), four(rig)
        with rig.submission() as commands:
            write(commands, a)
            barrier(commands, a)
            commands.copy(a, b)
        rig.wait()
        return words(rig, b)

    return stream


def _fill(commands: Commands, target: RigBuffer) -> None:
    commands.fill(target, 7)


def _global(commands: Commands, target: RigBuffer) -> None:
    commands.barrier("", FILLED, READ)


def _global_1(commands: Commands, target: RigBuffer) -> None:
    commands.barrier("", FILLED, READ, sync2=False)


def _of_buffer(commands: Commands, target: RigBuffer) -> None:
    commands.barrier("", FILLED, READ, buffer=target)


def _several(commands: Commands, target: RigBuffer) -> None:
    one = {"src": FILLED, "dst": READ, "buffer": target}
    commands.barriers("", {**one, "size": 8}, {**one, "offset": 8})


def _event(sync2: bool) -> Callable[[Commands, RigBuffer], None]:
    def wait(commands: Commands, target: RigBuffer) -> None:
        rig = commands.rig
        event = rig.event("", FILLED, READ, sync2=sync2)
        commands.set_event(event)
        commands.wait_events(event)

    return wait


def _event_reset(sync2: bool, host: bool = False) -> Callable[[Rig], list[int]]:
    """A fill and a wait for its event, which is reset, then again with another word."""

    def stream(rig: Rig) -> list[int]:
        a, b, event = four(rig), four(rig), rig.event("", FILLED, READ, sync2=sync2)
        for value in (5, 7):
            with rig.submission() as commands:
                commands.fill(a, value)
                commands.set_event(event)
                commands.wait_events(event)
                commands.copy(a, b)
                between(commands)
                if value == 5 and not host:
                    commands.reset_event(event, "ALL_COMMANDS")
            rig.wait()
            if host and value == 5:
                rig.host_reset_event(event)
        return words(rig, b)

    return stream


def _chain(v2: bool) -> Callable[[Rig], list[int]]:
    def stream(rig: Rig) -> list[int]:
        a, b, c = four(rig, 5, 6, 7, 8), four(rig), four(rig)
        with rig.submission() as commands:
            commands.copy(a, b, v2=v2)
            commands.barrier("", COPIED, READ)
            commands.copy(b, c, (4, 0, 12), v2=v2)
        rig.wait()
        return words(rig, c)

    return stream


def _filled_part(rig: Rig) -> list[int]:
    a = four(rig)
    with rig.submission() as commands:
        commands.fill(a, 7, 0, 8)
    rig.wait()
    return words(rig, a)


def _downloaded(rig: Rig, image: RigImage, v2: bool = False) -> list[int]:
    out = four(rig)
    with rig.submission() as commands:
        between(commands)
        commands.image_to_buffer(image, out, v2=v2)
    rig.wait()
    return words(rig, out)


def _cleared(rig: Rig, word: int = OLD, samples: int = 1) -> RigImage:
    """An image of this word, in the layout GENERAL, after a submit that is over."""
    image = rig.target(extent=SIDE, samples=samples)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, word)
    rig.wait()
    return image


def _clear(rig: Rig) -> list[int]:
    image, out = _cleared(rig), four(rig)
    with rig.submission() as commands:
        commands.clear_color(image, NEW)
        between(commands)
        commands.image_to_buffer(image, out)
    rig.wait()
    return words(rig, out)


def _upload(v2: bool) -> Callable[[Rig], list[int]]:
    def stream(rig: Rig) -> list[int]:
        image, source = _cleared(rig), four(rig, 5, 6, 7, 8)
        with rig.submission() as commands:
            commands.buffer_to_image(source, image, v2=v2)
        return _downloaded(rig, image)

    return stream


def _blit(v2: bool) -> Callable[[Rig], list[int]]:
    def stream(rig: Rig) -> list[int]:
        image, target, source = _cleared(rig), _cleared(rig), four(rig, 5, 6, 7, 8)
        with rig.submission() as commands:
            commands.buffer_to_image(source, image)
            between(commands)
            commands.blit(image, target, v2=v2)
        return _downloaded(rig, target)

    return stream


def _resolve(v2: bool) -> Callable[[Rig], list[int]]:
    def stream(rig: Rig) -> list[int]:
        many, target = _cleared(rig, NEW, 4), _cleared(rig)
        with rig.submission() as commands:
            commands.resolve(many, target, v2=v2)
        return _downloaded(rig, target)

    return stream


def _resolve_rendering(rig: Rig) -> list[int]:
    many, target = _cleared(rig, NEW, 4), _cleared(rig)
    with rig.submission() as commands:
        commands.begin_rendering(RenderingAttachment(rig.view(many), "LOAD", resolve=rig.view(target)), area=AREA)
        commands.end_rendering()
    return _downloaded(rig, target)


def _resolve_pass(v2: bool) -> Callable[[Rig], list[int]]:
    def stream(rig: Rig) -> list[int]:
        many, target = _cleared(rig, NEW, 4), _cleared(rig)
        made = rig.render_pass(
            [RigAttachment(load="LOAD", initial="GENERAL", samples=4), RigAttachment(load="LOAD", initial="GENERAL")],
            [RigSubpass([0], resolves=[1])],
            v2=v2,
        )
        frame = rig.framebuffer(made, [rig.view(many), rig.view(target)], SIDE[:2])
        with rig.submission() as commands:
            commands.begin_pass(made, frame, v2=v2)
            commands.end_pass(v2=v2)
        return _downloaded(rig, target)

    return stream


def _rendering(load: str) -> Callable[[Rig], list[int]]:
    def stream(rig: Rig) -> list[int]:
        image = _cleared(rig)
        with rig.submission() as commands:
            commands.begin_rendering(RenderingAttachment(rig.view(image), load, clear=NEW), area=AREA)
            commands.end_rendering()
        return _downloaded(rig, image)

    return stream


def _pass(load: str, v2: bool) -> Callable[[Rig], list[int]]:
    def stream(rig: Rig) -> list[int]:
        image = _cleared(rig)
        made = rig.render_pass([RigAttachment(load=load, initial="GENERAL")], [RigSubpass([0])], v2=v2)
        frame = rig.framebuffer(made, [rig.view(image)], SIDE[:2])
        with rig.submission() as commands:
            commands.begin_pass(made, frame, clear=[NEW], v2=v2)
            commands.end_pass(v2=v2)
        return _downloaded(rig, image)

    return stream


def _transition(sync2: bool) -> Callable[[Rig], list[int]]:
    def stream(rig: Rig) -> list[int]:
        image, out = _cleared(rig), four(rig)
        moved: dict[str, Any] = {"image": image, "old": "GENERAL", "new": "TRANSFER_SRC_OPTIMAL", "sync2": sync2}
        with rig.submission() as commands:
            commands.barrier("", *ALL, **moved)
            commands.image_to_buffer(image, out, at="TRANSFER_SRC_OPTIMAL")
        rig.wait()
        return words(rig, out)

    return stream


def _secondaries(rig: Rig) -> list[int]:
    a = four(rig)
    made = []
    for value in (5, 6):
        with rig.secondary() as fills:
            between(fills)
            fills.fill(a, value)
        made.append(fills)
    with rig.submission() as commands:
        commands.execute(*made)
    rig.wait()
    return words(rig, a)


def _external(rig: Rig) -> list[int]:
    """Vertices that a fill moves away; only a subpass dependency orders it before the draw."""
    image, corners = _cleared(rig), rig.buffer(24, data=CORNERS)
    filled = (FILLED, "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ")
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial="GENERAL")],
        [RigSubpass([0])],
        [RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, *filled)],
    )
    frame = rig.framebuffer(made, [rig.view(image)], SIDE[:2])
    pipeline = rig.graphics("constant_color", **POSITIONS, render_pass=made, extent=SIDE[:2])
    with rig.submission() as commands:
        commands.fill(corners, FAR)
        commands.begin_pass(made, frame)
        commands.bind(pipeline)
        commands.push_constants(pipeline, *BLUE)
        commands.bind_vertices(corners)
        commands.draw()
        commands.end_pass()
    return _downloaded(rig, image)


def _drawn(**options: Any) -> Callable[[Rig], list[int]]:
    """A triangle over the whole image, through a scissor of its left half with `scissor` or, dynamic, `dynamic`."""

    def stream(rig: Rig) -> list[int]:
        image, indices = _cleared(rig), four(rig, 0, 1, 2)
        fixed = {key: value for key, value in options.items() if key != "indexed"}
        pipeline = rig.graphics("constant_color", extent=SIDE[:2], **fixed)
        with rig.submission() as commands:
            commands.begin_rendering(RenderingAttachment(rig.view(image), "LOAD"), area=AREA)
            commands.bind(pipeline)
            commands.push_constants(pipeline, *BLUE)
            if "dynamic" in options:
                vk = rig.vk
                left = vk.VkRect2D(offset=vk.VkOffset2D(x=0, y=0), extent=vk.VkExtent2D(width=1, height=2))
                commands.set_state("Scissor", 0, 1, [left])
            if options.get("indexed"):
                commands.bind_indices(indices)
                commands.draw_indexed()
            else:
                commands.draw()
            commands.end_rendering()
        return _downloaded(rig, image)

    return stream


def _dispatched(rig: Rig, target: RigBuffer, run: Callable[[Commands], object]) -> list[int]:
    """The first words that the first and the second workgroup write."""
    pipeline = rig.compute("fill_words")
    with rig.submission() as commands:
        commands.bind(pipeline, rig.descriptors(pipeline, b0=target))
        commands.push_constants(pipeline, 5)
        run(commands)
    rig.wait()
    found = words(rig, target)
    return [found[0], found[64]]


def _dispatch(rig: Rig) -> list[int]:
    return _dispatched(rig, four(rig, *[1] * 128), lambda commands: commands.dispatch(2))


def _indirect(how: str) -> Callable[[Rig], list[int]]:
    def stream(rig: Rig) -> list[int]:
        arguments = four(rig, 1, 1, 1)

        def run(commands: Commands) -> None:
            if how == "fill":
                commands.fill(arguments, 2, 0, 4)
            else:
                commands.update(arguments, struct.pack("<I", 2))
            commands.barrier("", "ALL_TRANSFER/TRANSFER_WRITE", "DRAW_INDIRECT/INDIRECT_COMMAND_READ")
            commands.dispatch_indirect(arguments)

        return _dispatched(rig, four(rig, *[1] * 128), run)

    return stream


def _pushed(rig: Rig) -> list[int]:
    def run(commands: Commands) -> None:
        commands.dispatch(2)
        between(commands)
        commands.push_constants(rig_pipeline, 9)
        commands.dispatch(2)

    rig_pipeline = rig.compute("fill_words")
    return _dispatched(rig, four(rig, *[1] * 128), run)


def _bound(rig: Rig) -> list[int]:
    a, b = four(rig), four(rig)
    pipeline = rig.compute("fill_words")
    sets = [rig.descriptors(pipeline, b0=each) for each in (a, b)]
    with rig.submission() as commands:
        commands.bind(pipeline, sets[0])
        commands.push_constants(pipeline, 5)
        commands.dispatch()
        between(commands)
        commands.bind_set(pipeline, sets[1])
        commands.dispatch()
    rig.wait()
    return words(rig, b)


def _query(host: bool) -> Callable[[Rig], list[int]]:
    """Whether a query is available that was reset after its end."""

    def stream(rig: Rig) -> list[int]:
        vk, pool = rig.vk, rig.queries("TIMESTAMP", 1)
        with rig.submission() as commands:
            commands.timestamp(pool)
        rig.wait()
        if host:
            rig.host_reset(pool)
        else:
            with rig.submission() as commands:
                commands.reset_queries(pool)
            rig.wait()
        results = vk.ffi.new("uint32_t[]", 1)
        try:
            vk.vkGetQueryPoolResults(rig.device, pool.handle, 0, 1, 4, results, 4, 0)
        except vk.VkNotReady:
            return [0]
        return [1]

    return stream


ON_ONE_QUEUE: dict[str, Callable[[Rig], list[int]]] = {
    "fill": _copied(_fill, _global),
    "fill 1": _copied(_fill, _global_1),
    "fill, buffer barrier": _copied(_fill, _of_buffer),
    "fill, two barriers": _copied(_fill, _several),
    "fill, event": _copied(_fill, _event(True)),
    "fill, event 1": _copied(_fill, _event(False)),
    "event reset": _event_reset(True),
    "event reset 1": _event_reset(False),
    "event reset, host": _event_reset(True, host=True),
    "update": _copied(lambda commands, target: commands.update(target, struct.pack("<4I", 5, 6, 7, 8)), _global),
    "copies": _chain(False),
    "copies 2": _chain(True),
    "part": _filled_part,
    "clear": _clear,
    "upload": _upload(False),
    "upload 2": _upload(True),
    "download": lambda rig: _downloaded(rig, _cleared(rig)),
    "download 2": lambda rig: _downloaded(rig, _cleared(rig), True),
    "blit": _blit(False),
    "blit 2": _blit(True),
    "resolve": _resolve(False),
    "resolve 2": _resolve(True),
    "resolve, rendering": _resolve_rendering,
    "resolve, pass 1": _resolve_pass(False),
    "resolve, pass 2": _resolve_pass(True),
    "CLEAR, rendering": _rendering("CLEAR"),
    "CLEAR, pass 1": _pass("CLEAR", False),
    "CLEAR, pass 2": _pass("CLEAR", True),
    "LOAD, rendering": _rendering("LOAD"),
    "LOAD, pass 1": _pass("LOAD", False),
    "LOAD, pass 2": _pass("LOAD", True),
    "transition 1": _transition(False),
    "transition 2": _transition(True),
    "secondaries": _secondaries,
    "external": _external,
    "drawn": _drawn(),
    "drawn indexed": _drawn(indexed=True),
    "scissor": _drawn(scissor=(0, 0, 1, 2)),
    "scissor, dynamic": _drawn(dynamic=["SCISSOR"]),
    "dispatch": _dispatch,
    "indirect, fill": _indirect("fill"),
    "indirect, update": _indirect("update"),
    "pushed": _pushed,
    "bound": _bound,
    "query": _query(False),
    "query, host": _query(True),
}
"""By name: what a stream leaves, as words."""
