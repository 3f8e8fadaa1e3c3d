"""Conditions about several queues, batches that wait before their signal, and objects that share a payload.

Most of them need a GPU: a software driver has one queue, and the layer is asked about the queues that are there.
"""

from __future__ import annotations

from vkharness.findings import Finding
from vkharness.layer.conditions import condition
from vkharness.layer.stream import Stream
from vkharness.layer.subject import Subject
from vkharness.spec.shapes import main_name
from vkharness.trace.submits import batches


@condition
def raced_before(subject: Subject) -> bool:
    """At this submit we reported a race about the same resource: of an earlier access of the same command buffer, or of
    what a batch waited for that this submit lets go."""
    message = subject.message
    if message is None:
        return False
    resource = subject.stream.viewed(message.resource)
    raced = [
        found.place
        for found in subject.all_findings
        if found.hazard.is_race and found.place.submit == subject.call and (found.through or found.resource) == resource
    ]
    last = max((steps[-1].call.index for steps in subject.occurrences), default=None)
    if last is None:
        return bool(raced)
    return any((each.batch, each.position) == (message.batch, message.entry) and each.call < last for each in raced)


@condition
def shares_a_payload(subject: Subject) -> bool:
    """The resource is one of several objects that share a payload."""
    told = subject.finding.resource if subject.finding is not None else 0
    if subject.message is not None:
        told = subject.stream.viewed(subject.message.resource)
    return told in subject.stream.standing_for.values()


@condition
def judged_at_its_signal(subject: Subject) -> bool:
    """A batch waits for a value that nobody had signaled: we report at its submit what the layer reports in the call
    that signals, where it tests such a batch."""
    if subject.finding is not None:
        return _waits_early(subject.stream, subject.finding) and any(
            message.key == subject.key and (message.call or 0) > subject.limit for message in subject.all_messages
        )
    return any(_waits_early(subject.stream, found) for found in subject.said_before)


def _waits_early(stream: Stream, found: Finding) -> bool:
    """Whether the batch of the second access waits for a value that no earlier call signals."""
    submit = stream.at(found.place.submit)
    if submit is None:
        return False
    reached: dict[int, int] = {}
    for call in stream.calls:
        if call.index >= submit.index:
            break
        if main_name(call.name) == "vkSignalSemaphore":
            info = call.args["pSignalInfo"]
            reached[info["semaphore"]] = info["value"]
    for stages, semaphore, value in stream.values_between(0, submit.index):
        if stages:
            reached[semaphore] = max(value, reached.get(semaphore, 0))
    waits = (wait for batch in batches(submit.args) for wait in batch.waits)
    return any(wait.value > reached.get(wait.semaphore, 0) for wait in waits)
