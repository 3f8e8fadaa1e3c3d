"""The whole scenario: what is claimed, the objects, the command buffers, the submits and the calls of the host.

The missing dependency comes from the mended trace. The scenario is clean with it, and the twin without it shows the
finding. Where no single barrier mends the finding, the scenario declares the hazard of the stream as it is.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from vkharness.agreement import ask_model
from vkharness.check import Analysis
from vkharness.findings import Finding, UserError
from vkharness.generated_text import python_name, python_string
from vkharness.mending.mend import mend
from vkharness.reproduction.rig_barriers import AS_RECORDED, barrier_text
from vkharness.reproduction.rig_commands import write_command
from vkharness.reproduction.rig_objects import ObjectWriter
from vkharness.reproduction.script import Script, docstring, function, scope_text, wrapped, written_name
from vkharness.rig.ray_structures import RAYS
from vkharness.rig.requirements import PRESENTS
from vkharness.spec.command_classes import PRESENT, is_debug, is_recorded, is_submit
from vkharness.spec.enums import VK_WHOLE_SIZE, VkCommandBufferUsage, VkQueueFlag
from vkharness.spec.shapes import main_name
from vkharness.trace.barrier_calls import BarrierCommand, BufferPart
from vkharness.trace.calls import Block, Call, reading
from vkharness.trace.edits import Edit, EditedTrace
from vkharness.trace.effects import SemaphoreOperation
from vkharness.trace.sparse_effects import BIND_SPARSE
from vkharness.trace.submits import SubmitBatch, batches

_MAKES = ("vkCreate", "vkAcquireNextImage")
"""How the names of calls begin whose last argument is the object or the image that they give."""
_HOST = {"vkQueueWaitIdle": 'rig.host_wait({name}, "queue")', "vkDeviceWaitIdle": 'rig.host_wait({name}, "device")'}
_PLAIN = {"vkQueueWaitIdle": "rig.wait()", "vkDeviceWaitIdle": 'rig.host_wait("", "device")'}


ADDRESSES = "VK_KHR_buffer_device_address"
"""The extension with which the buffers of the rig have device addresses."""
_EXTENSION = re.compile(r"VK_[A-Za-z0-9]+_[A-Za-z0-9_]+")


@dataclass(frozen=True)
class Shown:
    """The findings that a claim declares, advice among them."""

    found: Sequence[Finding]
    """Those of the stream as it was recorded."""
    left: Sequence[Finding] = ()
    """Those of the mended stream: advice, which no dependency mends."""
    known: Mapping[str, str] = field(default_factory=dict)
    """The judges that may disagree, with the reasons."""


@dataclass
class ScenarioFile:
    """The text of a scenario, and the shaders that belong beside it, by file name."""

    text: str
    shaders: dict[str, bytes] = field(default_factory=dict)


def write_claim(
    blocks: Sequence[Block], finding: Finding, path: Path, source: str, known: Mapping[str, str] | None = None
) -> ScenarioFile:
    """The scenario of a reduced stream, for a file of that name; `source` is the trace that it comes from, `known` the
    judges that may disagree, with the reasons.

    A finding of the model alone is claimed like any other: the row fails until syncval finds it, too. Raises
    `UserError` where the rig cannot record the stream.
    """
    _require_outputs(blocks)
    by_model = finding.judges == ("model",)
    found = _findings(blocks, by_model)
    mended = mend(blocks).trace
    edits = {edit.after.index: edit for edit in mended.edits()}
    left = _findings(mended.blocks, by_model)
    clean = not any(each.counts for each in left)
    if not clean or not all(map(_is_named, edits.values())) or len({e.before is None for e in edits.values()}) != 1:
        in_order = EditedTrace.of(blocks).blocks  # a barrier that reduction added has any free number
        return _Writer(in_order, {}, finding, Shown(found, (), known or {}), path, source).file()
    return _Writer(mended.blocks, edits, finding, Shown(found, left, known or {}), path, source).file()


def _require_outputs(blocks: Iterable[Block]) -> None:
    """Raises `UserError` for a call that makes or acquires something and names nothing, as only a broken trace has."""
    for block in blocks:
        if isinstance(block, Call) and block.name.startswith(_MAKES):
            made = list(block.args.values())[-1]
            if not all(isinstance(each, int) for each in (made if isinstance(made, list) else [made])):
                raise UserError(f"no scenario can be written: call {block.index}, {block.name}, makes nothing")


def _findings(blocks: Sequence[Block], by_model: bool) -> Sequence[Finding]:
    """Returns the findings of syncval in a stream, and those of the model where it is to be asked."""
    analysis = Analysis(keep_events=by_model).follow(blocks)
    if by_model:
        ask_model(analysis)
    return analysis.findings


def indirect_features(calls: Iterable[Call]) -> list[str]:
    """The features that indirect draws need beside those of the rig's own methods."""
    draws = [call for call in calls if call.name.startswith("vkCmdDraw") and "Indirect" in call.name]
    several = (call.args.get("drawCount", (call.args.get("pInfo") or {}).get("drawCount", 0)) for call in draws)
    counted = ["drawIndirectCount"] if any("IndirectCount" in call.name for call in draws) else []
    return counted + (["multiDrawIndirect"] if any(count > 1 for count in several) else [])


def _is_named(edit: Edit) -> bool:
    """Whether a twin can leave a change out: a barrier, or a wait of the host that was inserted."""
    name = main_name(edit.after.name)
    if edit.before is None:
        return _is_barrier(edit.after) or name in _HOST
    return _is_barrier(edit.after) or _changed_waits(edit) is not None


def _is_barrier(call: Call) -> bool:
    return main_name(call.name).startswith("vkCmdPipelineBarrier")


def _changed_waits(edit: Edit) -> dict[tuple[int, int], int] | None:
    """Returns the changed waits of a submit: (batch, wait) to the stages as recorded. None where more was edited."""
    if edit.before is None or not is_submit(edit.after.name):
        return None
    several = list(zip(batches(edit.before.args), batches(edit.after.args), strict=False))
    found: dict[tuple[int, int], int] = {}
    for at, (before, after) in enumerate(several):
        if len(before.waits) != len(after.waits) or before.signals != after.signals:
            return None
        pairs = zip(before.waits, after.waits, strict=True)
        found |= {(at, place): old.stages for place, (old, new) in enumerate(pairs) if old != new}
    return found or None


class _Writer:
    """Writes one scenario."""

    def __init__(
        self, blocks: Sequence[Block], edits: dict[int, Edit], finding: Finding, shown: Shown, path: Path, source: str
    ) -> None:
        self.blocks, self.edits, self.finding, self.shown = blocks, edits, finding, shown
        self.path, self.source = path, source
        self.script = Script()
        self.shaders: dict[str, bytes] = {}
        self.objects = ObjectWriter(self.script, blocks, self.shaders, path.stem)
        self.queues = self._queues()
        self.script.families = {self._family(queue): f"rig.queues[{at}].family" for queue, at in self.queues.items()}
        self.recorded: set[int] = set()
        self.levels: dict[int, int] = {}

    def _queues(self) -> dict[int, int]:
        """The queues that the stream submits to, each with its place among the rig's, of which the first does all."""
        used = dict.fromkeys(each.args["queue"] for each in self._calls() if "queue" in each.args)
        in_order = sorted(used, key=lambda queue: self._kind(queue) != "GRAPHICS")
        return {queue: at for at, queue in enumerate(in_order)}

    def _calls(self) -> Iterable[Call]:
        return (block for block in self.blocks if isinstance(block, Call))

    def file(self) -> ScenarioFile:
        """Writes everything. Raises `UserError` for a malformed block."""
        for block in self.blocks:
            if isinstance(block, Call) and block.name == "vkAllocateCommandBuffers":
                level = block.args["pAllocateInfo"]["level"]
                self.levels.update(dict.fromkeys(block.args["pCommandBuffers"] or (), level))
        for block in self.blocks:
            with reading(block):
                self._block(block)
        self.objects.swapchains.end()
        return ScenarioFile("\n".join([*self._head(), *self.script.lines]) + "\n", self.shaders)

    def _block(self, block: Block) -> None:
        if isinstance(block, Call) and block.name == "vkEndCommandBuffer":
            self._recording(block)
        elif isinstance(block, Call) and is_submit(block.name):
            self._submit(block)
        elif isinstance(block, Call) and main_name(block.name) == PRESENT:
            self.objects.swapchains.present(block, self.queues[block.args["queue"]])
        elif isinstance(block, Call) and block.name == BIND_SPARSE:
            self.objects.sparse.write(block, self.queues[block.args["queue"]])
        elif isinstance(block, Call) and (is_recorded(block.name) or block.name == "vkBeginCommandBuffer"):
            return
        elif not self.objects.write(block):
            assert isinstance(block, Call)
            self._host_call(block)

    # -- the claim -----------------------------------------------------------------------------------------------------

    @property
    def dependency(self) -> str:
        """The name of the missing dependency."""
        return f"{_words(self.finding.prior.command)} before {_words(self.finding.place.command)}"

    def _head(self) -> list[str]:
        claims, imports = self._claims()
        body = "\n".join(self.script.lines)
        lines = [
            docstring(f"A hazard that was found in {self.source}, reduced to what it needs by `vkharness reduce`."),
            "",
        ]
        lines += ["from pathlib import Path", ""] if "Path(" in body else []
        rig = ["from vkharness.rig.queues import RigBatch, SemaphoreUse"] if "RigBatch(" in body else []
        if "structure_address(" in body:
            rig.append("from vkharness.rig.ray_structures import structure_address")
        lines += [*rig, f"from vkharness.suite import {', '.join(['Rig', *imports, 'scenario'])}", "", ""]
        name = _identifier(self.path.stem)
        lines += [*wrapped(f"@scenario({claims})"), f"def {name}(rig: Rig) -> None:"]
        lines.append(
            "    " + docstring(f"{self.finding.place.command} needs a dependency on {self.finding.prior.command}.")
        )
        if features := indirect_features(self._calls()):
            lines.append(f"    rig.require({', '.join(map(python_string, features))})")
        return lines + (["    vk = rig.vk"] if "vk." in body.replace("rig.vk", "") else [])

    def _claims(self) -> tuple[str, list[str]]:
        """The arguments of `scenario`, and what they need to be imported."""
        expected = _expectations(self.shown.found)
        if not self.edits:
            claim = f"expects={expected}"
        else:
            claim = f"expects={_expectations(self.shown.left)}, " if self.shown.left else ""
            inserted = all(edit.before is None for edit in self.edits.values())
            key = self.dependency if inserted else f"{self.dependency} / {AS_RECORDED}"
            claim += f"{'without' if inserted else 'weakened'}={{{python_string(key)}: {expected}}}"
        imports = set(re.findall(r"\b(\w+)\(", claim))
        extensions = self._extensions()
        if self.shown.known:
            known = (f"{python_string(judge)}: {python_string(why)}" for judge, why in self.shown.known.items())
            claim += f", known={{{', '.join(known)}}}"
        claim += f", needs=[{', '.join(map(python_string, extensions))}]" if extensions else ""
        kinds = [self._kind(queue) for queue in self.queues][1:]
        return claim + (f", queues=[{', '.join(map(python_string, kinds))}]" if kinds else ""), sorted(imports)

    def _extensions(self) -> list[str]:
        """The device extensions that the program enabled and whose commands the stream uses."""
        used = " ".join(each.name for each in self._calls()).lower()
        enabled = [
            each
            for call in self._calls()
            if call.name == "vkCreateDevice"
            for each in call.args["pCreateInfo"].get("ppEnabledExtensionNames") or ()
            if each and _EXTENSION.fullmatch(each)
        ]
        presents = PRESENTS if self.objects.swapchains.used else ()
        needed = [each for each in enabled if "".join(each.split("_")[2:]).lower() in used]
        if RAYS[0] in needed:
            needed += [each for each in RAYS if each in enabled and each not in needed]
        if self.script.uses_addresses and ADDRESSES not in needed:
            needed.append(ADDRESSES)
        return [*presents, *(each for each in needed if each not in presents)]

    def _family(self, queue: int) -> int:
        """The family of a queue."""
        family = 0
        for call in self._calls():
            if call.name.startswith("vkGetDeviceQueue") and call.args.get("pQueue") == queue:
                family = (call.args.get("pQueueInfo") or call.args)["queueFamilyIndex"]
        return family

    def _kind(self, queue: int) -> str:
        """The kind of a queue, by the flags of its family as the program was told them."""
        family, flags = self._family(queue), 0
        for call in self._calls():
            if call.name == "vkGetPhysicalDeviceQueueFamilyProperties":
                told = call.args["pQueueFamilyProperties"] or ()
                flags = told[family]["queueFlags"] if family < len(told) else flags
        if flags & VkQueueFlag.GRAPHICS or not flags:
            return "GRAPHICS"
        work = {call.name for call in self._calls() if call.args.get("queue") == queue}
        if BIND_SPARSE in work and not any(map(is_submit, work)):
            return "SPARSE_BINDING"
        return "COMPUTE" if flags & VkQueueFlag.COMPUTE else "TRANSFER"

    # -- command buffers -----------------------------------------------------------------------------------------------

    def _recording(self, end: Call) -> None:
        """A whole recording, where it ends."""
        buffer = end.args["commandBuffer"]
        commands: list[Call] = []
        for call in self._calls():
            if call.index < end.index and call.args.get("commandBuffer") == buffer:
                commands = [] if call.name == "vkBeginCommandBuffer" else [*commands, call]
        begin = next(
            (c for c in reversed(list(self._calls()))
             if c.index < end.index and c.name == "vkBeginCommandBuffer" and c.args["commandBuffer"] == buffer),
            None,
        )  # fmt: skip
        if begin is None:
            raise UserError(f"no scenario can be written: the recording that call {end.index} ends begins nowhere")
        script = self.script
        variable = script.name(buffer, "VkCommandBuffer")
        script.line(f"with {self._context(buffer, begin, variable)} as {variable}:")
        script.depth += 1
        taken = False
        for call, following in zip_longest(commands, commands[1:]):
            if taken or is_debug(call.name):
                taken = False
                continue
            bound = self.objects.pipelines.bind(variable, call, following)
            if bound is None:
                self._command(variable, call)
            else:
                taken = bound[1]
                script.line(bound[0])
        if not commands:
            script.line("pass")
        script.depth -= 1
        self.recorded.add(buffer)

    def _context(self, buffer: int, begin: Call, variable: str) -> str:
        again = variable if buffer in self.recorded else ""
        if self.levels.get(buffer):
            info = begin.args["pBeginInfo"]
            given = [again] if again else []
            if info["flags"] & VkCommandBufferUsage.RENDER_PASS_CONTINUE:
                inherited = self.script.struct("VkCommandBufferInheritanceInfo", info["pInheritanceInfo"])
                given.append(f"inherits={inherited}")
            return f"rig.secondary({', '.join(given)})"
        queue = self._queue_of(buffer)
        given = [*([again] if again else []), *([f"queue=rig.queues[{queue}]"] if queue and not again else [])]
        return f"rig.commands({', '.join(given)})"

    def _queue_of(self, buffer: int) -> int:
        for call in self._calls():
            if is_submit(call.name) and any(buffer in each.command_buffers for each in batches(call.args)):
                return self.queues[call.args["queue"]]
        return 0

    def _command(self, variable: str, call: Call) -> None:
        edit = self.edits.get(call.index)
        if edit is None:
            write_command(self.script, variable, call)
        elif edit.before is None or _is_barrier(edit.before):
            if edit.before is None and "_SHADER_" in self.finding.access + self.finding.prior_access:
                call = _of_whole_buffers(call)
            self.script.line(barrier_text(self.script, variable, call, self.dependency, edit.before))
        else:
            self._either(variable, call, edit.before)

    def _either(self, variable: str, call: Call, before: Call) -> None:
        """A barrier in place of another command, which the twin records."""
        script, weaker = self.script, f"{{{python_string(AS_RECORDED)}: False}}"
        script.line(f"mended = rig.choose({python_string(self.dependency)}, True, {weaker})")
        for line, command in (("if mended:", call), ("else:", before)):
            script.line(line)
            script.depth += 1
            write_command(script, variable, command)
            script.depth -= 1

    # -- submits and the host ------------------------------------------------------------------------------------------

    def _submit(self, call: Call) -> None:
        several = batches(call.args)
        edit = self.edits.get(call.index)
        recorded = (_changed_waits(edit) if edit else None) or {}
        fence = call.args["fence"]
        more = [f"fence={self.script.handle(fence, 'VkFence')}"] if fence else []
        queue = self.queues[call.args["queue"]]
        more += ["sync2=True"] if main_name(call.name) == "vkQueueSubmit2" else []
        plain = len(several) == 1 and not several[0].waits and not several[0].signals
        if plain:
            given = [self.script.names[each] for each in several[0].command_buffers]
            self.script.line(f"rig.submit({', '.join([*given, *more])})")
        else:
            more += [f"queue=rig.queues[{queue}]"] if queue else []
            made = [self._batch(batch, recorded, at) for at, batch in enumerate(several)]
            self.script.line(f"rig.submit_batches({', '.join([*made, *more])})")

    def _batch(self, batch: SubmitBatch, recorded: Mapping[tuple[int, int], int], at: int) -> str:
        """A batch. `recorded` has the stages of waits that are not as the program wrote them, by batch and place."""
        buffers = ", ".join(self.script.names[each] for each in batch.command_buffers)
        waits = [self._wait(each, recorded.get((at, place))) for place, each in enumerate(batch.waits)]
        signals = [f"SemaphoreUse({self._use(each)})" for each in batch.signals]
        return f"RigBatch([{buffers}], [{', '.join(waits)}], [{', '.join(signals)}])"

    def _wait(self, wait: SemaphoreOperation, recorded: int | None) -> str:
        if recorded is None:
            return f"SemaphoreUse({self._use(wait)})"
        weaker = f'{{{python_string(AS_RECORDED)}: {{"stages": {python_string(scope_text(recorded, 0))}}}}}'
        return f"*rig.operation({python_string(self.dependency)}, {self._use(wait)}, weaker={weaker})"

    def _use(self, operation: SemaphoreOperation) -> str:
        value = [str(operation.value)] if operation.value else []
        semaphore = self.script.handle(operation.semaphore, "VkSemaphore")
        return ", ".join([semaphore, python_string(scope_text(operation.stages, 0)), *value])

    def _host_call(self, call: Call) -> None:
        name = main_name(call.name)
        if is_debug(name):
            return
        if name in _HOST:
            edited = call.index in self.edits
            self.script.line(_HOST[name].format(name=python_string(self.dependency)) if edited else _PLAIN[name])
            return
        self.script.line(f"{function(call.name)}({', '.join(self.script.arguments(call))})")


def _of_whole_buffers(barrier: Call) -> Call:
    """A barrier for all bytes of its buffers. A layer takes the whole range of a descriptor for accessed, also where
    the dispatch reaches a part of it, and would report the rest."""
    held = BarrierCommand.of(barrier)
    entries = tuple(
        replace(each, part=replace(each.part, offset=0, size=VK_WHOLE_SIZE))
        if isinstance(each.part, BufferPart)
        else each
        for each in held.entries
    )
    return replace(held, entries=entries).call(barrier.name)


def _expectations(findings: Iterable[Finding]) -> str:
    """Findings as a claim declares them."""
    plain = {"READ_AFTER_WRITE": "read_after_write", "WRITE_AFTER_READ": "write_after_read",
             "WRITE_AFTER_WRITE": "write_after_write"}  # fmt: skip
    hazards: dict[str, None] = {}
    for each in findings:
        pair = f'"{written_name(each.place.command)}", "{written_name(each.prior.command)}"'
        function = plain.get(each.hazard)
        hazards[f"{function}({pair})" if function else f'race("{each.hazard}", {pair})'] = None
    return f"[{', '.join(hazards)}]"


def _words(command: str) -> str:
    """'copy buffer' of vkCmdCopyBuffer2KHR."""
    short = re.sub(r"2?(KHR|EXT|NV|AMD)?$", "", command.removeprefix("vkCmd").removeprefix("vk"))
    return re.sub(r"(?<!^)(?=[A-Z])", " ", short).lower()


def _identifier(stem: str) -> str:
    name = python_name(stem)
    name = name if name.startswith("scenario_") else f"scenario_{name}"
    assert not keyword.iskeyword(name)
    return name
