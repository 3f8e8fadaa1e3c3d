"""Commands that the device generates (VK_EXT_device_generated_commands; specification: "Device-Generated Commands").

A layout says what each sequence in memory holds: state, and one action at its end. The sequences are read as indirect
parameters are, in DRAW_INDIRECT, or by a preprocessing step of its own in COMMAND_PREPROCESS. The action does what the
indirect draw or dispatch of its kind does with the state that is bound. State that sequences hold, and that only the
device knows, is named as not modelled. Rule: rules.md#indirect-parameters-are-read-first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import calcsize
from typing import Any

from vkharness.commands.compute import dispatch_by_parameters
from vkharness.commands.drawing.by_contents import COUNT_BYTES, DRAW, INDEXED, INDIRECT_READ, MESH, MESH_NV, Parameters
from vkharness.commands.drawing.draw import draw_by_parameters
from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from vkharness.commands.resources.acceleration_structures import addressed
from vkharness.findings import Certainty
from vkharness.spans import Span
from vkharness.spec._generated import ENUMS
from vkharness.spec.enums import VkAccess2, VkPipelineBindPoint, VkPipelineStage2
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Barrier, Dependency, Effect, StreamEvent, Unmodelled
from vkharness.trace.resources import Pipeline

PREPROCESS_READ = ACCESS_KIND["SYNC_COMMAND_PREPROCESS_EXT_COMMAND_PREPROCESS_READ_EXT"].index
PREPROCESS_WRITE = ACCESS_KIND["SYNC_COMMAND_PREPROCESS_EXT_COMMAND_PREPROCESS_WRITE_EXT"].index
_PREPROCESS = VkPipelineStage2.COMMAND_PREPROCESS_EXT
_WRITES = VkAccess2.COMMAND_PREPROCESS_WRITE_EXT
_INDIRECT = VkPipelineStage2.DRAW_INDIRECT
BEFORE_WRITES = Barrier((Dependency(_INDIRECT, 0, _PREPROCESS, VkAccess2.COMMAND_PREPROCESS_READ_EXT | _WRITES),))
AFTER_WRITES = Barrier((Dependency(_PREPROCESS, _WRITES, _INDIRECT, VkAccess2.INDIRECT_COMMAND_READ),))
"""The synchronization that an implementation inserts around its writes to the preprocess buffer."""


def _tokens(*names: str) -> tuple[int, ...]:
    known = ENUMS["VkIndirectCommandsTokenTypeEXT"]
    return tuple(known[f"VK_INDIRECT_COMMANDS_TOKEN_TYPE_{name}_EXT"] for name in names)


EXECUTION_SET, DISPATCH = _tokens("EXECUTION_SET", "DISPATCH")
PUSHES = _tokens("PUSH_CONSTANT", "SEQUENCE_INDEX")
DRAWS = dict(zip(_tokens("DRAW", "DRAW_INDEXED", "DRAW_MESH_TASKS", "DRAW_MESH_TASKS_NV"),
                 (DRAW, INDEXED, MESH, MESH_NV), strict=True))  # fmt: skip
"""The actions that draw by one structure in each sequence, and its layout."""
DISPATCH_BYTES = 12


@dataclass(slots=True)
class CommandsLayout:
    """A VkIndirectCommandsLayoutEXT: the bytes between sequences, and (type, offset, data) of its tokens."""

    id: int
    stride: int
    tokens: tuple[tuple[int, int, dict[str, Any]], ...]


@dataclass(slots=True)
class ExecutionSet:
    """A VkIndirectExecutionSetEXT: its pipelines by index. None where it holds shader objects."""

    id: int
    pipelines: dict[int, int] | None


@call("vkCreateIndirectCommandsLayoutEXT")
def create_layout(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a layout."""
    info = call.args["pCreateInfo"]
    tokens = tuple((each["type"], each["offset"], each["data"] or {}) for each in info["pTokens"] or ())
    objects.add(CommandsLayout(call.args["pIndirectCommandsLayout"], info["indirectStride"], tokens))
    return ()


@call("vkDestroyIndirectCommandsLayoutEXT", "vkDestroyIndirectExecutionSetEXT")
def destroy(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes a layout or an execution set. Recorded commands stay as they are."""
    objects.remove(call.args.get("indirectCommandsLayout") or call.args.get("indirectExecutionSet") or 0)
    return ()


@call("vkCreateIndirectExecutionSetEXT")
def create_set(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a set that holds its initial pipeline."""
    first = (call.args["pCreateInfo"]["info"] or {}).get("pPipelineInfo")
    pipelines = None if first is None else {0: int(first["initialPipeline"])}
    objects.add(ExecutionSet(call.args["pIndirectExecutionSet"], pipelines))
    return ()


@call("vkUpdateIndirectExecutionSetPipelineEXT", "vkUpdateIndirectExecutionSetShaderEXT")
def update_set(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Replaces elements of a set. Commands that were recorded before must not be affected by valid usage."""
    held = objects.get(ExecutionSet, call.args["indirectExecutionSet"])
    if held is not None and held.pipelines is not None:
        held.pipelines.update({each["index"]: each["pipeline"] for each in call.args["pExecutionSetWrites"] or ()})
    return ()


@command("vkCmdPreprocessGeneratedCommandsEXT")
def preprocess(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the sequences and their number, and writes the preprocess buffer."""
    info = args["pGeneratedCommandsInfo"]
    layout = objects.get(CommandsLayout, info["indirectCommandsLayout"])
    if layout is None:
        yield Unmodelled("a layout of generated commands that was not seen")
        return
    yield from _sequences(objects, info, layout, PREPROCESS_READ, layout.stride)
    yield from _written(objects, info)


def _sequences(
    objects: ObjectState, info: dict[str, Any], layout: CommandsLayout, access_kind: int, size: int
) -> Iterator[Effect]:
    """The reads of the first `size` bytes of each sequence, and of their number. How many are read is not sure where
    the number lies in memory."""
    counted = info["sequenceCountAddress"]
    if counted:
        yield from addressed(objects, access_kind, counted, COUNT_BYTES)
    length = (info["maxSequenceCount"] - 1) * layout.stride + size if size and info["maxSequenceCount"] else 0
    for each in addressed(objects, access_kind, info["indirectAddress"], length) if length else ():
        if counted and isinstance(each, Access):
            each.certainty = Certainty.DECLARED
        yield each


def _written(objects: ObjectState, info: dict[str, Any]) -> Iterator[Effect]:
    if info["preprocessAddress"] and info["preprocessSize"]:
        yield from addressed(objects, PREPROCESS_WRITE, info["preprocessAddress"], info["preprocessSize"])


@command("vkCmdExecuteGeneratedCommandsEXT")
def execute(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the sequences, or what the preprocessing step made of them, and runs the action of each."""
    info = args["pGeneratedCommandsInfo"]
    layout = objects.get(CommandsLayout, info["indirectCommandsLayout"])
    if layout is None or not layout.tokens:
        return (Unmodelled("a layout of generated commands that was not seen"),)
    made: list[Effect] = []
    if info["preprocessAddress"] and info["preprocessSize"]:
        place = INDIRECT_READ, info["preprocessAddress"], info["preprocessSize"]
        made += addressed(objects, *place) if args["isPreprocessed"] else ()
        made += (BEFORE_WRITES, *_written(objects, info), AFTER_WRITES, *addressed(objects, *place))
    if not args["isPreprocessed"]:
        made += _sequences(objects, info, layout, INDIRECT_READ, layout.tokens[-1][1])
    made += _state(objects, buffer, info, layout)
    first = len(made)
    made += _action(objects, buffer, info, layout, bool(args["isPreprocessed"]))
    if buffer.deferred is not None and buffer.deferred.sure is not None:
        buffer.deferred.sure += first
    _forget_state(buffer, layout)
    return tuple(made)


def _state(
    objects: ObjectState, buffer: CommandBuffer, info: dict[str, Any], layout: CommandsLayout
) -> Iterator[Effect]:
    """Takes over what the sequences set, as far as that is known, and names what is not."""
    for kind, _, data in layout.tokens[:-1]:
        if kind in PUSHES:
            _forget_pushed(buffer, data)
        elif kind == EXECUTION_SET:
            held = objects.get(ExecutionSet, info["indirectExecutionSet"])
            pipelines = set() if held is None or held.pipelines is None else set(held.pipelines.values())
            if len(pipelines) == 1:
                pipeline = objects.get(Pipeline, pipelines.pop())
                if pipeline is not None:
                    buffer.pipelines[pipeline.bind_point] = pipeline
                    continue
            yield Unmodelled("an indirect execution set with several members, of which the device chooses")
        else:
            yield Unmodelled("buffers that the device binds by generated commands")


def _forget_pushed(buffer: CommandBuffer, data: dict[str, Any]) -> None:
    place = (data.get("pPushConstant") or {}).get("updateRange") or {"offset": 0, "size": 1 << 16}
    buffer.constants.forget(place["offset"], place["size"])
    buffer.drawing.last_draw = None


def _forget_state(buffer: CommandBuffer, layout: CommandsLayout) -> None:
    """Forgets the state that the tokens set: it is undefined after the command."""
    kinds = {kind for kind, *_ in layout.tokens[:-1]}
    if EXECUTION_SET in kinds:
        action = layout.tokens[-1][0]
        point = VkPipelineBindPoint.COMPUTE if action == DISPATCH else VkPipelineBindPoint.GRAPHICS
        buffer.pipelines.pop(point, None)
    if kinds - {EXECUTION_SET, *PUSHES}:
        buffer.drawing.vertex_buffers.clear()
        buffer.drawing.indices, buffer.drawing.sources = None, None


def _action(
    objects: ObjectState, buffer: CommandBuffer, info: dict[str, Any], layout: CommandsLayout, is_preprocessed: bool
) -> Iterable[Effect]:
    """Gives the effects of the action of the sequences. Once they are preprocessed, their contents no longer count."""
    kind, offset, _ = layout.tokens[-1]
    found = objects.addresses.find(info["indirectAddress"])
    if found is None:
        return (Unmodelled("a device address of no known buffer"),)
    if kind != DISPATCH and kind not in DRAWS:
        return (
            Unmodelled("an action of generated commands whose parameters lie behind addresses, or that traces rays"),
        )
    held, begin = found
    place: Span = held.span(begin + offset, max(0, info["indirectAddressSize"] - offset))
    counter = None
    if is_preprocessed:
        place = (place[0], place[0])
    elif info["sequenceCountAddress"]:
        number = objects.addresses.find(info["sequenceCountAddress"])
        if number is None:
            return NOTHING  # `_sequences` names it
        counter = number[0].space, number[0].span(number[1], COUNT_BYTES)[0]
    size = DISPATCH_BYTES if kind == DISPATCH else calcsize(DRAWS[kind])
    most = info["maxSequenceCount"]
    parameters = Parameters(held.id, held.space, *place, most, size, layout.stride, counter)
    if kind == DISPATCH:
        return dispatch_by_parameters(objects, buffer, parameters)
    return draw_by_parameters(objects, buffer, DRAWS[kind], parameters, ())
