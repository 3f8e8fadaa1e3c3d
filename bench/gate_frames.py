"""The frames of `bench/gate.py`: several hundred calls of one command, alike or with one parameter that is never alike.

A frame is made of turns. A turn has the call, and what goes with it: a draw or a dispatch where the command sets state,
an access where it orders accesses, the end of what it begins. Eight turns name eight resources each, and so does each
call that is "alike"; after eight turns a barrier orders what they did. Frames are valid and have no hazard.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from typing import Any

import vkharness.commands.interpret  # noqa: F401 (its import fills the table of handlers)
from bench.frame_streams import Frame, Recorded
from bench.gate_values import is_fresh, parameter_names, value_of, walk
from vkharness.commands.handlers import COMMANDS
from vkharness.replay.objects.encode import EncodedMember, Encoder, Handles
from vkharness.rig.graphics_pipelines import POSITIONS
from vkharness.rig.render_passes import RigAttachment, RigSubpass
from vkharness.rig.rig import Rig
from vkharness.spec._generated import COMMAND_ALIASES, ENUMS, TASKS
from vkharness.spec._generated import COMMANDS as REGISTRY
from vkharness.spec.enums import VkPipelineBindPoint, VkShaderStage

RING = 8
"""Turns between two barriers, and resources that calls take in turn where they are alike."""
POOL = 24
"""Further resources of each kind, for calls that are not."""
TURNS = 256
"""Calls of a frame."""
BUFFER_BYTES = 1 << 16
UNIFORM_BYTES = 1 << 20
QUERIES = 32
PUSHED = 32
"""Bytes of push constants."""
COMMON = ("VK_VERSION_1_0", "VK_VERSION_1_1", "VK_VERSION_1_2", "VK_VERSION_1_3")
PLAIN, DRAWS, DISPATCHES = "", "draws", "dispatches"


@dataclass(frozen=True)
class Subject:
    """A command with what is done around it: draws, dispatches, or nothing."""

    command: str
    scene: str = PLAIN

    def __str__(self) -> str:
        return f"{self.command}, {self.scene}" if self.command.startswith(("vkCmdBind", "vkCmdPush")) else self.command

    @property
    def parameters(self) -> list[str]:
        """Those that can be fresh."""
        return parameter_names(self.command)

    @property
    def with_count(self) -> bool:
        """Whether it sets viewports or scissors together with their number."""
        return self.command.endswith("WithCount")

    @property
    def is_state(self) -> bool:
        """Whether it needs an action to tell."""
        return TASKS.get(self.command) == ("state",)


@cache
def subjects() -> tuple[Subject, ...]:
    """Every common command that has a handler, as the registry describes it, without those that only end something."""
    from vulkan_object import get_vulkan_object

    found: list[Subject] = []
    registry = get_vulkan_object().commands
    for name in sorted(COMMANDS):
        known = registry.get(name)
        if not name.startswith("vkCmd") or known is None or known.extensions or name in COMMAND_ALIASES:
            continue
        if name.startswith(("vkCmdEnd", "vkCmdNextSubpass")):
            continue
        if known.version is not None and known.version.name not in COMMON:
            continue
        found += [Subject(name, scene) for scene in _scenes(name, known.renderPass.name)]
    return tuple(found)


def _scenes(name: str, inside: str) -> tuple[str, ...]:
    if "Dispatch" in name:
        return (DISPATCHES,)
    if TASKS.get(name) == ("state",):
        kinds = {each[1] for each in REGISTRY[name][1]}
        return (DRAWS, DISPATCHES) if kinds & {"VkPipelineBindPoint", "VkPipelineLayout"} else (DRAWS,)
    return (DRAWS,) if inside == "INSIDE" else (PLAIN,)


# -- resources ---------------------------------------------------------------------------------------------------------


class GateObjects:
    """Resources of a device, made when they are first asked for: `RING` of each kind, and `pool` more. Pipelines leave
    viewports and scissors to commands `with_count` or to those without."""

    def __init__(self, rig: Rig, with_count: bool, pool: int = POOL) -> None:
        self.rig, self._number = rig, RING + pool
        self.handles = Handles()
        self._ids = count(1)
        self._pools: dict[Any, list[int]] = {}
        self._held: list[Any] = []
        self.dynamic = tuple(dynamic_commands(with_count).values())
        self.pass_ = rig.render_pass([_LOADED], [RigSubpass([(0, "GENERAL")])])
        self.graphics, self.compute = self._graphics(), self._compute()

    def handle(self, kind: str, variant: str, at: int) -> int:
        """The id of a resource."""
        pool = self._pools.get((kind, variant))
        if pool is None:
            made = list(self._make(kind, variant))
            pool = self._pools[kind, variant] = [next(self._ids) for _ in made]
            for id, each in zip(pool, made, strict=True):
                self.handles.add(id, kind, int(self.rig.vk.ffi.cast("uintptr_t", each)))
        return pool[at % len(pool)] if at < RING or len(pool) <= RING else pool[RING + (at - RING) % (len(pool) - RING)]

    def _make(self, kind: str, variant: str) -> Iterator[Any]:
        several: dict[str, Callable[[str], Any]] = {
            "VkBuffer": lambda _: self.buffer().handle,
            "VkEvent": lambda _: self.rig.event("", "", "").handle,
            "VkPipeline": lambda of: (self._graphics() if of == DRAWS else self._compute()).handle,
            "VkDescriptorSet": self._set,
            "VkRenderPass": lambda _: self.rig.render_pass([_LOADED], [RigSubpass([(0, "GENERAL")])]).handle,
            "VkCommandBuffer": lambda _: self._secondary(),
        }
        if kind == "VkPipelineLayout":
            yield (self.graphics if variant == DRAWS else self.compute).layout
        elif kind in ("VkImage", "VkImageView", "VkFramebuffer"):
            yield from self._images(kind, variant)
        elif kind == "VkQueryPool":
            yield from self._query_pools(variant)
        else:
            for _ in range(self._number):
                yield several[kind](variant)

    def buffer(self) -> Any:
        """A buffer of words that are small, as indices and as parameters of indirect commands."""
        return self.rig.buffer(BUFFER_BYTES, data=packing.pack("<4I", 1, 1, 1, 0) * (BUFFER_BYTES // 16))

    def _images(self, kind: str, variant: str) -> Iterator[Any]:
        rig = self.rig
        more: dict[str, Any] = {"mips": 1 if variant == "samples" else 3, "layers": 4}
        if variant == "depth":
            images = [rig.target("VK_FORMAT_D32_SFLOAT", **more) for _ in range(self._number)]
        else:
            samples = 4 if variant == "samples" else 1
            images = [rig.target(samples=samples, **more) for _ in range(self._number)]
        with rig.commands() as first:
            first.transition(*images)
        rig.submit(first)
        rig.wait()
        for image in images:
            if kind == "VkImage":
                yield image.handle
                continue
            view = rig.view(image)
            yield view if kind == "VkImageView" else rig.framebuffer(self.pass_, [view]).handle

    def _query_pools(self, variant: str) -> Iterator[Any]:
        rig = self.rig
        pools = [rig.queries(variant, QUERIES) for _ in range(min(2 * RING, self._number))]
        with rig.commands() as first:
            for pool in pools:
                first.reset_queries(pool)
                if variant == "TIMESTAMP":
                    for at in range(QUERIES):
                        first.timestamp(pool, at)
                else:
                    first.query(pool, *range(QUERIES))
        rig.submit(first)
        rig.wait()
        return iter([pool.handle for pool in pools])

    def _secondary(self) -> Any:
        target = self.rig.buffer(256)
        with self.rig.secondary() as made:
            made.fill(target, 1)
        return made.handle

    def _set(self, variant: str) -> Any:
        rig, shared = self.rig, self._held
        if not shared:
            shared.append(rig.buffer(UNIFORM_BYTES))
        if variant == DRAWS:
            return rig.descriptors(self.graphics, b0=(shared[0], 0, 16)).handle
        return rig.descriptors(self.compute, b0=(shared[0], 0, 256), b1=(rig.buffer(256), 0, 256)).handle

    def _graphics(self) -> Any:
        more: dict[str, Any] = {"push_bytes": PUSHED, "render_pass": self.pass_, "dynamic": self.dynamic}
        return self.rig.graphics("uniform_color", bindings={0: "UNIFORM_BUFFER_DYNAMIC"}, **POSITIONS, **more)

    def _compute(self) -> Any:
        kinds = {0: "STORAGE_BUFFER_DYNAMIC", 1: "STORAGE_BUFFER"}
        return self.rig.compute("copy_words", kinds, push_bytes=PUSHED, flags=0x10)


_LOADED = RigAttachment(load="LOAD", initial="GENERAL", final="GENERAL")


@cache
def dynamic_commands(with_count: bool) -> dict[str, str]:
    """Returns the dynamic states of pipelines: each command that sets a VkDynamicState of its name, and that state.
    Viewports and scissors are set `with_count` or without."""
    found: dict[str, str] = {}
    for subject in subjects():
        name = subject.command.removeprefix("vkCmdSet")
        state = "".join(f"_{each}" if each.isupper() else each.upper() for each in name).strip("_")
        counted = name.removesuffix("WithCount") in ("Viewport", "Scissor")
        is_other = counted and subject.with_count != with_count
        if f"VK_DYNAMIC_STATE_{state}" in ENUMS["VkDynamicState"] and not is_other:
            found[subject.command] = state
    return found


# -- calls -------------------------------------------------------------------------------------------------------------


class GateFrames:
    """Makes frames of a subject on a rig."""

    def __init__(self, objects: GateObjects, subject: Subject, turns: int = TURNS) -> None:
        self._subject, self._turns, self._rig = subject, turns, objects.rig
        self.objects = objects
        self._fresh = count(1)
        self._kept: list[Any] = []
        self._made: dict[Any, Recorded] = {}
        self.calls = 0
        """Of a frame, with what goes with the calls of the command."""
        self.names: set[str] = set()
        """The commands of a turn."""

    def frames(self, fresh: str | None, number: int) -> list[Frame]:
        """So many frames, the same where nothing is to be fresh."""
        self._fresh = count(1)  # the values of each parameter lie in resources of a certain size
        if fresh is None:
            return [[self._frame(None)]] * number
        return [[self._frame(fresh)] for _ in range(number)]

    def forget(self) -> None:
        """Drops the memory of the calls of frames that are done."""
        self._kept.clear()
        self._made.clear()

    def _frame(self, fresh: str | None) -> list[Recorded]:
        made = self._before()
        for turn in range(self._turns):
            call = partial(self._call, turn % RING, fresh, next(self._fresh) if fresh else 0)
            of_turn = list(self._turn(call))
            self.names = {name for name, _ in of_turn}
            made += of_turn
            if turn % RING == RING - 1 and self._subject.scene != DRAWS:
                made.append(self._call(0, None, 0, "vkCmdPipelineBarrier2"))
        if self._subject.scene == DRAWS:
            made.append(self._call(0, None, 0, "vkCmdEndRenderPass"))
        self.calls = len(made)
        return made

    def _before(self) -> list[Recorded]:
        """Records the begin of a frame: everything that its actions need."""
        scene = self._subject.scene
        if scene == PLAIN:
            return []
        needed = ["vkCmdBindPipeline", "vkCmdBindDescriptorSets"]
        if scene == DRAWS:
            needed = ["vkCmdBeginRenderPass", *needed, "vkCmdBindVertexBuffers", "vkCmdBindIndexBuffer"]
            needed += dynamic_commands(self._subject.with_count)
        return [self._call(0, None, 0, each) for each in needed]

    def _turn(self, call: Callable[[str], Recorded]) -> Iterator[Recorded]:
        """The call, and what goes with it."""
        subject = self._subject
        name = subject.command
        if subject.scene == DISPATCHES and name != "vkCmdBindDescriptorSets":
            yield call("vkCmdBindDescriptorSets")
        if "Event" in name:
            two = "2" if name.endswith("2") else ""
            yield from (call(f"vkCmd{each}{two}") for each in ("SetEvent", "WaitEvents", "ResetEvent"))
            return
        if name in ("vkCmdBeginQuery", "vkCmdWriteTimestamp", "vkCmdWriteTimestamp2"):
            yield call("vkCmdResetQueryPool")
        if "PipelineBarrier" in name:
            yield call("vkCmdFillBuffer")
        yield call(name)
        if name.startswith("vkCmdBegin"):
            yield call(name.replace("Begin", "End", 1))
        if subject.is_state:
            draw = "vkCmdDrawIndexed" if "Index" in name else "vkCmdDraw"
            yield call("vkCmdDispatch" if subject.scene == DISPATCHES else draw)

    def _call(self, turn: int, fresh: str | None, at: int, command: str) -> Recorded:
        """A call, of which the fresh parameter is the value with number `at`."""
        varies = fresh is not None and any(is_fresh(path, fresh) for path in parameter_names_of(command))
        key = command, turn, fresh if varies else None, at if varies else 0
        if key not in self._made or varies:
            ask = partial(self._asked, turn, fresh if varies else None, at, command)
            encoder = Encoder(self._rig.vk.ffi, self.objects.handles)
            self._kept.append(encoder)
            given = {"commandBuffer": None}
            encoded = encoder.call(command, walk(command, ask), "bench/gate.py", given)
            made = command, tuple(encoded.arguments[1:])
            if varies:
                return made
            self._made[key] = made
        return self._made[key]

    def _asked(
        self, turn: int, fresh: str | None, at: int, command: str, path: str, owner: str, member: EncodedMember
    ) -> Any:
        is_one = is_fresh(path, fresh)
        if member.kind == "handle":
            variant = _variant(self._subject, command, owner, member)
            return self.objects.handle(member.type, variant, RING + at if is_one else turn)
        if member.kind == "void":
            return at if is_one else 0
        if member.type == "VkPipelineBindPoint":
            point = VkPipelineBindPoint
            return point.COMPUTE if self._subject.scene == DISPATCHES else point.GRAPHICS
        if member.type == "VkShaderStageFlags":
            stages = self.objects.compute if self._subject.scene == DISPATCHES else self.objects.graphics
            return stages.shape.push_stages or VkShaderStage.ALL
        if member.name == "aspectMask" and owner != "VkClearAttachment":
            return 2 if "DepthStencil" in command else 1
        return value_of(owner, member)(at if is_one else 0)


@cache
def parameter_names_of(command: str) -> tuple[str, ...]:
    """The parameters of a command that can be more than one thing."""
    return tuple(parameter_names(command))


def _variant(subject: Subject, command: str, owner: str, member: EncodedMember) -> str:
    """Which resources of a type a parameter takes."""
    if member.type == "VkQueryPool":
        return "TIMESTAMP" if "Timestamp" in subject.command else "OCCLUSION"
    if member.type == "VkImage":
        if "DepthStencil" in command:
            return "depth"
        if "Resolve" in command and member.name == "srcImage":
            return "samples"
    if member.type in ("VkImage", "VkBuffer"):
        return "written" if member.name.startswith("dst") or "Barrier" in owner else "read"
    if member.type in ("VkPipeline", "VkPipelineLayout", "VkDescriptorSet"):
        return subject.scene
    return ""
