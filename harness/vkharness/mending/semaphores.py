"""Semaphores between two batches of different queues, and between a batch and the presentation engine.

A wait that is there gets the stage that it lacks. Where there is none, the later batch waits for a signal of the
earlier one, or for a new semaphore that the earlier one signals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vkharness.findings import Finding, Place
from vkharness.mending.needed_masks import crosses_queues, joined_stages
from vkharness.mending.recordings import Recordings
from vkharness.mending.scope_sites import barrier_sites
from vkharness.needed_scopes import needed, scope_of
from vkharness.spec.command_classes import is_submit
from vkharness.spec.enums import VkPipelineStage2, VkStructureType
from vkharness.spec.first_form import first_form_stages
from vkharness.spec.scopes import OWNERSHIP_TRANSFER
from vkharness.trace.barrier_calls import Masks
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained, rebuilt
from vkharness.trace.edits import EditedTrace, value_at, with_value
from vkharness.trace.ids import fresh_id
from vkharness.trace.submits import batches

MOST_WAITS = 4
"""The most waits that are tried, the nearest to the later command first."""
ALL_COMMANDS = VkPipelineStage2.ALL_COMMANDS


class BatchPlace(NamedTuple):
    """A batch of a submit, by the position of the submit."""

    submit: int
    number: int


def with_wider_wait(trace: EditedTrace, findings: Sequence[Finding], number: int) -> EditedTrace | None:
    """Adds to a wait of the later batch, and to the signal for which it waits, the stages that they lack.

    `number` counts the waits of the batch and of those before it. None where nothing changes."""
    made = trace
    for finding in findings:
        waits = list(waits_before(made, finding))
        if number >= len(waits):
            return None
        batch, at, semaphore = waits[number]
        stages = later_stages(made, finding)
        made = _with_stages(made, batch, at, stages, "Wait")
        signal = _signal_of(made, batch, semaphore)
        if signal is not None:
            made = _with_stages(made, *signal, scope_of(finding.prior_access)[0] or ALL_COMMANDS, "Signal")
    return made if made is not trace else None


def after_waits(trace: EditedTrace, finding: Finding) -> Masks:
    """The scopes that a finding needs of a dependency in the later command buffer.

    Where the earlier access is not of its queue, the first scope is what the waits of the later batch hold back: all
    writes are available after a wait."""
    masks = needed(finding)
    if not crosses_queues(finding) or finding.place.submit is None:
        return masks
    stages = 0
    for batch, at, _ in waits_before(trace, finding):
        info = trace.call(batch.submit).args["pSubmits"][batch.number]
        second = info.get("pWaitSemaphoreInfos")
        stages |= second[at]["stageMask"] if second else info["pWaitDstStageMask"][at]
    return replace(masks, src_stages=stages, src_accesses=0)


def waits_before(trace: EditedTrace, finding: Finding) -> Iterator[tuple[BatchPlace, int, int]]:
    """(batch, number, semaphore) of the waits of the later batch and of the batches before it on its queue."""
    if not crosses_queues(finding) or finding.place.submit is None:
        return
    later = BatchPlace(finding.place.submit - 1, finding.place.batch)
    queue, found = trace.call(later.submit).args.get("queue"), 0
    for position in range(later.submit, -1, -1):
        call = trace.blocks[position]
        if not isinstance(call, Call) or not is_submit(call.name) or call.args["queue"] != queue:
            continue
        several = call.args["pSubmits"] or []
        for number in range(len(several) - 1, -1, -1):
            if position == later.submit and number > later.number:
                continue
            for at, semaphore in enumerate(_semaphores(several[number], "Wait")):
                yield BatchPlace(position, number), at, semaphore
                found += 1
                if found == MOST_WAITS:
                    return


def with_semaphore(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Makes a semaphore for each pair of batches of two queues. None where a finding is not between two batches: a
    present operation, too, has a queue, and takes no more semaphores."""
    pairs: dict[tuple[BatchPlace, BatchPlace], list[int]] = {}
    for finding in findings:
        place, prior = finding.place, finding.prior
        if place.submit is None or prior.submit is None or place.queue == prior.queue:
            return None
        early = (BatchPlace(prior.submit - 1, prior.batch), scope_of(finding.prior_access)[0] or ALL_COMMANDS)
        late = BatchPlace(place.submit - 1, place.batch), later_stages(trace, finding)
        if early[0].submit > late[0].submit:  # nothing orders them: the one that is submitted first can signal
            early, late = late, early
        if not all(is_submit(trace.call(each.submit).name) for each in (early[0], late[0])):
            return None
        held = pairs.setdefault((early[0], late[0]), [0, 0])
        held[0], held[1] = held[0] | early[1], held[1] | late[1]
    for count, ((early_batch, late_batch), (signal, wait)) in enumerate(sorted(pairs.items(), key=_by_submit)):
        trace, made = _with_new_semaphore(trace, early_batch.submit + count)
        trace = _with_operation(trace, _moved(early_batch, count + 1), made, signal, "Signal")
        trace = _with_operation(trace, _moved(late_batch, count + 1), made, wait, "Wait")
    return trace


def _by_submit(item: tuple[tuple[BatchPlace, BatchPlace], list[int]]) -> tuple[BatchPlace, BatchPlace]:
    return item[0]


def open_signals(trace: EditedTrace, finding: Finding) -> Iterator[tuple[int, int]]:
    """(semaphore, value) of the signals of the earlier batch and of those after it on its queue, for which the later
    batch could wait: value 0 is that of a binary semaphore for which nobody waits."""
    if finding.prior.submit is None or finding.place.submit is None:
        return
    first, last = finding.prior.submit - 1, finding.place.submit - 1
    queue = trace.call(first).args.get("queue")
    waited = _waited(trace)
    for position in range(first, last):
        call = trace.blocks[position]
        if isinstance(call, Call) and is_submit(call.name) and call.args["queue"] == queue:
            for number, batch in enumerate(batches(call.args)):
                for signal in batch.signals:
                    later = position > first or number >= finding.prior.batch
                    if later and (signal.value or signal.semaphore not in waited):
                        yield signal.semaphore, signal.value


def _waited(trace: EditedTrace) -> set[int]:
    """Semaphores for which something waits."""
    found: set[int] = set()
    for block in trace.blocks:
        if isinstance(block, Call) and is_submit(block.name):
            found |= {wait.semaphore for batch in batches(block.args) for wait in batch.waits}
        elif isinstance(block, Call) and block.name == "vkQueuePresentKHR":
            found |= set(block.args["pPresentInfo"]["pWaitSemaphores"] or ())
    return found


def with_another_wait(trace: EditedTrace, findings: Sequence[Finding], number: int) -> EditedTrace | None:
    """Lets the later batch wait for a semaphore that the earlier one signals already."""
    made = trace
    for finding in findings:
        signals, batch = list(open_signals(made, finding)), _batch(made, finding.place)
        if number >= len(signals) or batch is None:
            return None
        semaphore, value = signals[number]
        made = _with_operation(made, batch, semaphore, later_stages(made, finding), "Wait", value)
    return made


def with_present_wait(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Makes a semaphore that the batch of the earlier access signals, and for which the present waits."""
    done: set[tuple[int, BatchPlace]] = set()
    made = trace
    for finding in findings:
        batch, present = _batch(made, finding.prior), finding.place.call - 1
        if batch is None or not finding.place.command.startswith("vkQueuePresent"):
            return None
        if (present, batch) in done or len(done) > 0:
            continue
        done.add((present, batch))
        semaphore = next((each for each, value in open_signals(made, finding) if not value), 0)
        if not semaphore:
            made, semaphore = _with_new_semaphore(made, batch.submit)
            stages = scope_of(finding.prior_access)[0] or ALL_COMMANDS
            made = _with_operation(made, _moved(batch, 1), semaphore, stages, "Signal")
            present += 1
        call = made.call(present)
        info = call.args["pPresentInfo"]
        waits = [*(info["pWaitSemaphores"] or ()), semaphore]
        info = {**info, "waitSemaphoreCount": len(waits), "pWaitSemaphores": waits}
        made = made.changed(present, {**call.args, "pPresentInfo": info})
    return made if made is not trace else None


def with_acquire_wait(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Lets the batch of the later access wait for the semaphore that the acquire of the image signals."""
    made = trace
    for finding in findings:
        acquire, batch = trace.blocks[finding.prior.call - 1], _batch(made, finding.place)
        if batch is None or not isinstance(acquire, Call):
            return None
        semaphore = (acquire.args.get("pAcquireInfo") or acquire.args).get("semaphore")
        if not semaphore or _is_waited_for(made, finding.prior.call, semaphore):
            return None
        made = _with_operation(made, batch, semaphore, later_stages(made, finding), "Wait")
    return made


def _batch(trace: EditedTrace, place: Place) -> BatchPlace | None:
    """The batch that executes a command; None where it is in none of a submit, as a present or a sparse binding."""
    if place.submit is None or not is_submit(trace.call(place.submit - 1).name):
        return None
    return BatchPlace(place.submit - 1, place.batch)


def _is_waited_for(trace: EditedTrace, index: int, semaphore: int) -> bool:
    for block in trace.blocks[index:]:
        if isinstance(block, Call) and is_submit(block.name):
            if any(semaphore in _semaphores(each, "Wait") for each in block.args["pSubmits"] or ()):
                return True
        elif isinstance(block, Call) and _acquires(block, semaphore):
            return False
    return False


def _acquires(call: Call, semaphore: int) -> bool:
    acquires = call.name.startswith("vkAcquireNextImage")
    return acquires and (call.args.get("pAcquireInfo") or call.args).get("semaphore") == semaphore


def later_stages(trace: EditedTrace, finding: Finding) -> int:
    """The stages at which the later access waits: its own, or the first scope of the barrier of a transition. A half of
    a transfer of ownership is in no stage, its transition too."""
    stage = scope_of(finding.access)[0]
    if stage or finding.access == OWNERSHIP_TRANSFER.name:
        return stage or ALL_COMMANDS
    position = finding.place.call - 1
    call = trace.blocks[position]
    mask = 0
    if isinstance(call, Call) and Recordings(trace.blocks).at(position) is not None:
        for site in barrier_sites(call):
            part = {} if site.part is None else value_at(call.args, site.part)
            if part.get("srcQueueFamilyIndex") != part.get("dstQueueFamilyIndex"):
                return ALL_COMMANDS
            mask |= site.masks(call.args).src_stages
    # BOTTOM_OF_PIPE in a first scope is all commands; in that of a wait it would be none.
    ends = mask & VkPipelineStage2.BOTTOM_OF_PIPE
    return ALL_COMMANDS if ends else joined_stages(mask, 0) & ~VkPipelineStage2.TOP_OF_PIPE or ALL_COMMANDS


def _moved(batch: BatchPlace, by: int) -> BatchPlace:
    return batch._replace(submit=batch.submit + by)


def _signal_of(trace: EditedTrace, wait: BatchPlace, semaphore: int) -> tuple[BatchPlace, int] | None:
    """The last signal of a semaphore before a batch."""
    for position in range(wait.submit, -1, -1):
        call = trace.blocks[position]
        if isinstance(call, Call) and is_submit(call.name):
            for number, info in enumerate(call.args["pSubmits"] or ()):
                if position == wait.submit and number >= wait.number:
                    break
                if semaphore in (signals := _semaphores(info, "Signal")):
                    return BatchPlace(position, number), signals.index(semaphore)
    return None


def _semaphores(info: dict[str, Any], what: str) -> list[int]:
    if f"p{what}SemaphoreInfos" in info:
        return [each["semaphore"] for each in info[f"p{what}SemaphoreInfos"] or ()]
    return list(info[f"p{what}Semaphores"] or ())


def _with_stages(trace: EditedTrace, batch: BatchPlace, at: int, stages: int, what: str) -> EditedTrace:
    """With more stages in one wait or signal. A signal of the first form has no stages: it comes after everything."""
    call = trace.call(batch.submit)
    info = call.args["pSubmits"][batch.number]
    if f"p{what}SemaphoreInfos" in info:
        path: tuple[str | int, ...] = ("pSubmits", batch.number, f"p{what}SemaphoreInfos", at, "stageMask")
        old = info[f"p{what}SemaphoreInfos"][at]["stageMask"]
    elif what == "Signal":
        return trace
    else:
        path = ("pSubmits", batch.number, "pWaitDstStageMask", at)
        old, stages = info["pWaitDstStageMask"][at], first_form_stages(stages)
    new = old if old & ALL_COMMANDS else joined_stages(old, stages)
    return trace if new == old else trace.changed(batch.submit, with_value(call.args, path, new))


def _with_new_semaphore(trace: EditedTrace, position: int) -> tuple[EditedTrace, int]:
    """With a vkCreateSemaphore before a position, and the id of the semaphore."""
    made = fresh_id(trace.blocks)
    info = {"sType": VkStructureType.SEMAPHORE_CREATE_INFO, "pNext": None, "flags": 0}
    args = {"device": trace.device, "pCreateInfo": info, "pAllocator": None, "pSemaphore": made}
    return trace.inserted(position, [Call(0, "vkCreateSemaphore", args, 0)]), made


def _with_operation(
    trace: EditedTrace, batch: BatchPlace, semaphore: int, stages: int, what: str, value: int = 0
) -> EditedTrace:
    """With one more wait or signal of a batch."""
    call = trace.call(batch.submit)
    info = call.args["pSubmits"][batch.number]
    count = "waitSemaphore" if what == "Wait" else "signalSemaphore"
    if f"p{what}SemaphoreInfos" in info:
        operation = {
            "sType": VkStructureType.SEMAPHORE_SUBMIT_INFO,
            "pNext": None,
            "semaphore": semaphore,
            "value": value,
            "stageMask": stages,
            "deviceIndex": 0,
        }
        several: list[Any] = [*(info[f"p{what}SemaphoreInfos"] or ()), operation]
        info = {**info, f"p{what}SemaphoreInfos": several, f"{count}InfoCount": len(several)}
    else:
        several = [*(info[f"p{what}Semaphores"] or ()), semaphore]
        info = {**info, f"p{what}Semaphores": several, f"{count}Count": len(several)}
        if value and chained(info, VkStructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO) is None:
            info["pNext"] = _no_values(info)
        info["pNext"] = rebuilt(info, lambda link: _with_value(link, what, value))
        if what == "Wait":
            info["pWaitDstStageMask"] = [*(info["pWaitDstStageMask"] or ()), first_form_stages(stages)]
    return trace.changed(batch.submit, with_value(call.args, ("pSubmits", batch.number), info))


def _no_values(info: dict[str, Any]) -> dict[str, Any]:
    """A VkTimelineSemaphoreSubmitInfo with the value 0 for each operation that a batch has so far."""
    waits, signals = (len(info["pWaitDstStageMask"] or ()), len(info["pSignalSemaphores"] or ()))
    return {
        "sType": VkStructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO,
        "pNext": info["pNext"],
        "waitSemaphoreValueCount": waits,
        "pWaitSemaphoreValues": [0] * waits,
        "signalSemaphoreValueCount": signals,
        "pSignalSemaphoreValues": [0] * signals,
    }


def _with_value(link: dict[str, Any], what: str, value: int) -> dict[str, Any]:
    """A VkTimelineSemaphoreSubmitInfo with a value for one more binary semaphore; any other struct as it is."""
    if link.get("sType") != VkStructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO:
        return link
    values = [*(link[f"p{what}SemaphoreValues"] or ()), value]
    return {**link, f"p{what}SemaphoreValues": values, f"{what.lower()}SemaphoreValueCount": len(values)}
