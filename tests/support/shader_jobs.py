"""Jobs that tests/shader/test_shader_results.py runs on a driver: one dispatch each, what it left in its buffers."""

from __future__ import annotations

import struct
from typing import Any

from vkharness.rig.core import RigBuffer
from vkharness.rig.rig import Rig

FILL = 0xFFFFFFFF
FULL_BARRIER = ("ALL_COMMANDS/MEMORY_WRITE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE")


def dispatch(shader: str, kinds: str, held: list[list[int] | None], push: list[int], constants: list[int]) -> Any:
    """Run one workgroup over buffers of 64 words. `kinds` has one letter a binding: "s" a storage and
    "u" a uniform buffer, "w" and "t" the same of texels; an array binding is given
    as 'a', four storage buffers. `held` are the words before, None for all FILL. Returns the words after, in order."""
    # A shader may declare a binding that it does not use, which reflection leaves out.
    storage = {at: "STORAGE_BUFFER" for at, kind in enumerate(kinds) if kind in "sa"}
    with Rig() as rig:
        pipeline = rig.compute(shader, storage, constants=tuple(constants))
        buffers = [rig.buffer(256) for _ in held]
        for buffer, words in zip(buffers, held, strict=True):
            rig.host_write(buffer, struct.pack("<64I", *(words or [FILL] * 64)))
        rest, bound = list(buffers), {}
        for at, kind in enumerate(kinds):
            bound[f"b{at}"] = [rest.pop(0) for _ in range(4)] if kind == "a" else _descriptor(rig, kind, rest.pop(0))
        with rig.submission() as commands:
            commands.bind(pipeline, rig.descriptors(pipeline, **bound))
            if push:
                commands.push_constants(pipeline, *push)
            commands.dispatch()
            commands.barrier("", "ALL_COMMANDS/MEMORY_WRITE", "HOST/HOST_READ")
        rig.wait()
        return {"words": [read_words(rig, buffer) for buffer in buffers]}


def images(value: int) -> Any:
    """Store to an 8 by 8 rgba8 image, invert and copy it, then read it in each way. Returns the words by way."""
    with Rig() as rig:
        first, second = rig.image(extent=(8, 8, 1)), rig.image(extent=(8, 8, 1))
        views = [rig.view(first), rig.view(second)]
        sampler, general = rig.sampler(), rig.vk.VK_IMAGE_LAYOUT_GENERAL
        targets = {way: rig.buffer(256) for way in ("stored", "loaded", "sampled", "separate", "size")}
        one, two = [(view, None, general) for view in views]
        steps: list[tuple[str, dict[str, Any]]] = [
            ("image_store_2d", {"b0": one}),
            ("image_load_2d", {"b0": one, "b1": targets["stored"]}),
            ("image_invert_2d", {"b0": one}),
            ("image_copy_2d", {"b0": one, "b1": two}),
            ("image_load_2d", {"b0": two, "b1": targets["loaded"]}),
            ("sample_2d", {"b0": (views[1], sampler, general), "b1": targets["sampled"]}),
            ("sampled_separate", {"b0": two, "b1": sampler, "b2": targets["separate"]}),
            ("size_only", {"b0": one, "b1": (views[1], sampler, general), "b2": targets["size"]}),
        ]
        with rig.submission() as commands:
            commands.transition(first, second)
            for shader, bound in steps:
                pipeline = rig.compute(shader)
                commands.bind(pipeline, rig.descriptors(pipeline, **bound))
                if shader == "image_store_2d":
                    commands.push_constants(pipeline, value)
                commands.dispatch()
                commands.barrier("", *FULL_BARRIER)
            commands.barrier("", "ALL_COMMANDS/MEMORY_WRITE", "HOST/HOST_READ")
        rig.wait()
        return {way: read_words(rig, buffer) for way, buffer in targets.items()}


def read_words(rig: Rig, buffer: RigBuffer) -> list[int]:
    """The 64 words of a buffer."""
    data = rig.vk.vkMapMemory(rig.device, buffer.memory, buffer.offset, buffer.size, 0)
    words = list(struct.unpack("<64I", bytes(data)))
    rig.vk.vkUnmapMemory(rig.device, buffer.memory)
    return words


def _descriptor(rig: Rig, kind: str, buffer: RigBuffer) -> Any:
    return rig.buffer_view(buffer, "VK_FORMAT_R32_UINT") if kind in "tw" else buffer
