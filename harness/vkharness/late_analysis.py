"""The analysis of a session in which nobody hears of findings as they come: recordings wait until they are executed.

Why that is right says `vkharness.syncval.repeated_recordings`. A recording that waits is judged when anything is found,
when somebody asks for findings, before a call that changes what findings say, and when its execution is held back.
"""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.check import Analysis, executed_by
from vkharness.commands.object_state import CommandBuffer
from vkharness.findings import Finding
from vkharness.spec.command_classes import is_submit
from vkharness.trace.calls import Block, Call
from vkharness.trace.effects import Recorded, StreamEvent

BEGINS_RECORDING = "vkBeginCommandBuffer"


class LateAnalysis(Analysis):
    """An `Analysis` with the same findings in the same order, of which `step` may give some later."""

    def __init__(
        self,
        keep_events: bool = False,
        eager: bool | None = None,
        counts_repetitions: bool = False,
        strict: bool = True,
    ) -> None:
        """See `Analysis`."""
        super().__init__(keep_events, eager=eager, counts_repetitions=counts_repetitions, strict=strict)
        self._waiting: dict[int, None] = {}
        """Command buffers that are ended and not judged, in the order of their ends."""
        self._validator.before_finding = self._judge_waiting

    def step(self, block: Block) -> list[Finding]:
        """See `Analysis.step`."""
        found = super().step(block)
        if self._waiting and isinstance(block, Call) and is_submit(block.name):
            self._settle(executed_by(block))
            found += self._new_findings()
        return found

    def waits(self, command_buffer: int) -> bool:
        """Whether a command buffer is ended and not judged."""
        return command_buffer in self._waiting

    @property
    def findings(self) -> list[Finding]:
        """See `Analysis.findings`."""
        self._judge_waiting()
        return super().findings

    def _judge_before(self, call: Call) -> None:
        if is_submit(call.name):
            self._judge([each for each in executed_by(call) if each not in self._waiting])
        elif call.name != BEGINS_RECORDING or self._is_touched(call):
            super()._judge_before(call)

    def _note(self, buffer: CommandBuffer) -> None:
        if buffer.id in self._waiting:  # it gets more, without a right to
            self._judge_waiting()
        super()._note(buffer)

    def _consume(self, stream_event: StreamEvent) -> None:
        if type(stream_event) is Recorded and stream_event.command_buffer in self._waiting:
            self._judge_waiting()
        super()._consume(stream_event)

    def _is_touched(self, call: Call) -> bool:
        """Whether the begin of a command buffer, which loses what it had, touches what is not judged. It changes no
        other command buffer: those that wait go on."""
        return len(self._waiting) < len(self._recorded) or call.args.get("commandBuffer") in self._waiting

    def _judge_end(self, block: Block) -> None:
        if self.is_eager or not isinstance(block, Call) or not self._lets_wait(block.args.get("commandBuffer", 0)):
            super()._judge_end(block)

    def _lets_wait(self, id: int) -> bool:
        """Whether a command buffer that is ended is judged later."""
        buffer = self._interpreter.objects.get(CommandBuffer, id)
        if self._judges or buffer is None or id not in self._recorded or id in self._early:
            return False
        waits = self._validator.let_wait(id, buffer.commands, buffer.queue_flags)
        if waits:
            self._waiting[id] = None
        return waits

    def _settle(self, command_buffers: Iterable[int]) -> None:
        """Command buffers were executed: those that met nothing need not be judged."""
        held_back = False
        for id in command_buffers:
            if id in self._waiting and self._validator.waits(id):
                held_back = True
            elif id in self._waiting:
                del self._waiting[id], self._recorded[id]
        if held_back:
            self._judge_waiting()

    def _judge_waiting(self) -> None:
        """Judges the command buffers that wait."""
        if self._waiting and not self._judges:
            self._judge(list(self._waiting))

    def _judge(self, command_buffers: Iterable[int]) -> None:
        several = [id for id in command_buffers if id in self._recorded]
        if several:  # those that wait come first, since they ended first
            several[:0], self._waiting = self._waiting, {}
            super()._judge(several)

    def _look(self) -> None:
        """All is modelled in those that wait, and who asks for findings has them judged."""
        for id in [each for each in self._recorded if each not in self._waiting]:
            self._look_at(id)

    def _tell(self, new: list[Finding]) -> None:
        if new:
            self._judge_waiting()
        super()._tell(new)
