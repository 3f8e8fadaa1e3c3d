r"""Stream text: streams of effects as short text, for tests and for what a fuzzer prints.

`parse` reads a text and `spell` writes one; they are inverse to one another.

>>> text = '''\
... submit q1 signal s1@ALL_COMMANDS
...     COPY_TRANSFER_WRITE a
... submit q2 wait s1@COPY
...     barrier a[0:32] COPY/TRANSFER_WRITE > COPY/TRANSFER_READ
...     COPY_TRANSFER_READ a
... host waits
... '''
>>> first, second, waited = parse(text)
>>> waited
HostWaited(fences=(), queue=0)
>>> spell([first, second, waited]) == text
True

docs/text_form.md has the grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import TypeVar

from vkharness.findings import Place
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED
from vkharness.text_form import query_text, sparse_text
from vkharness.text_form.command_text import read_command, spell_command
from vkharness.text_form.dependency_text import (
    END,
    RANGE,
    read_group_end,
    read_range,
    spell_group_end,
    spell_range,
    spell_scope,
)
from vkharness.text_form.handle_names import name, number
from vkharness.text_form.text_lines import TextLine, at, said_lines
from vkharness.text_form.unreadable import Unreadable, integer, nearly, nothing_behind, stages
from vkharness.trace import host_effects
from vkharness.trace.effects import (
    Acquired,
    Destroyed,
    FenceReset,
    HostWaited,
    PayloadShared,
    Presented,
    QueueObtained,
    SemaphoreCreated,
    SemaphoreOperation,
    StreamEvent,
    Submission,
    Submitted,
)
from vkharness.trace.host_effects import (
    HostDeclaredRead,
    HostFlushed,
    HostInvalidated,
    HostSetEvent,
    HostWrote,
    SignalMoved,
)
from vkharness.trace.ownership_effects import EVERY_FAMILY, SharedResource
from vkharness.trace.query_effects import HostQueries
from vkharness.trace.sparse_effects import BIND_SPARSE

QUEUE_FLAGS = 0x7
"""Graphics, compute and transfer."""
_HOST = {"writes": HostWrote, "reads": HostDeclaredRead, "flushes": HostFlushed, "invalidates": HostInvalidated}
_HOST_COPY = {"to": "vkCopyMemoryToImage", "from": "vkCopyImageToMemory"}
EVENT_WORDS = (
    "semaphore", "submit", "bind", "next", "host", "shared", "unshared", "kept", "copy", "queue", "acquire", "present",
)  # fmt: skip
"""How a line of a stream event begins."""
MOST_MASKS = 32
"""Families of which a line says who may acquire."""
SECTIONS = ("wait", "signal", "fence", "family")
"""How what stands behind the queue of a submit begins."""
T = TypeVar("T")
ATOM = 16
"""Of memory that is not coherent."""
SWAPCHAIN = 900


def parse(text: str, source: str = "") -> list[StreamEvent]:
    """The stream of a text. Raises `TextError` with the line and the column of what cannot be read.

    With the name of a `source`, what is in the stream has its line there as its site.
    """
    found: list[StreamEvent] = []
    calls = count(1)
    lines = said_lines(text, source)
    margin = min((line.margin for line in lines), default=0)
    place = 0
    while place < len(lines):
        line, place = lines[place], place + 1
        body = []
        while place < len(lines) and lines[place].margin > margin:
            body.append(lines[place])
            place += 1
        with at(line):
            words = line.text.split()
            if body and words[0] not in ("submit", "bind", "next"):
                raise Unreadable(words[0], "commands stand below `submit` or `next`, ranges below `bind`")
            if words[0] == "next":
                if not found:
                    raise Unreadable("next", "no submit before it")
                found[-1] = _with_next(found[-1], " ".join(words[1:]), body, calls)
            else:
                found.append(_stream_event(words, body, calls, line.site))
    return found


def spell(stream: Iterable[StreamEvent]) -> str:
    """The text of a stream that stream text can express."""
    return "".join(f"{line}\n" for stream_event in stream for line in _lines(stream_event))


def _stream_event(words: list[str], body: list[TextLine], calls: Iterator[int], site: str | None) -> StreamEvent:
    match words:
        case ["semaphore", semaphore, "=", value]:
            return SemaphoreCreated(number(semaphore), integer(value))
        case ["submit" | "bind" as kind, queue, *options]:
            return _submitted(queue, " ".join(options), body, calls, kind == "bind", site)
        case ["host", verb, where] if query_text.is_queries(where):
            return query_text.parse_host(verb, where, next(calls))
        case [("shared" | "unshared") as verb, payload]:
            return PayloadShared(number(payload), outside=verb == "shared")
        case ["kept", resource, *masks]:
            nothing_behind(masks[MOST_MASKS:], "`kept`")
            return SharedResource(
                number(resource), acquirers=tuple(integer(each, (1 << 32) - 1) for each in masks) or EVERY_FAMILY
            )
        case ["copy", source, "to", target]:
            return SignalMoved(number(source), number(target))
        case ["host", "waits", *several]:
            return _host_waits(several)
        case ["host", "signals", operation]:
            return host_effects.HostSignaled(number(operation.partition("=")[0]), integer(operation.partition("=")[2]))
        case ["host", "destroys", each] if RANGE.match(each):
            memory, (span,) = read_range(each)
            return Destroyed(memory, span=span, resource=memory)
        case ["host", "destroys", event]:
            return HostSetEvent(number(event), signaled=False)
        case ["host", "copies", ("to" | "from") as way, where]:
            image, spans = read_range(where)
            return host_effects.HostAccess(next(calls), _HOST_COPY[way], site, image, spans, image, write=way == "to")
        case ["host", "frees", where]:
            return Destroyed(number(where))
        case ["host", "resets", each] if each[0] == "f" and each[1:]:
            return FenceReset((number(each),), by=Place(next(calls), "vkResetFences", site))
        case ["host", "sees", event]:
            return host_effects.HostSawEvent(number(event))
        case ["host", ("sets" | "resets") as verb, event]:
            return HostSetEvent(number(event), signaled=verb == "sets", call=next(calls))
        case ["host", verb, where, *flags] if verb in _HOST:
            memory, (span,) = read_range(where)
            nothing_behind(flags[1:] if flags[:1] == ["incoherent"] else flags, "a range of the host")
            given = {"coherent": False, "non_coherent_atom_size": ATOM} if flags else {}
            return _HOST[verb](next(calls), site, memory, span, **given)  # type: ignore[no-any-return]
        case ["queue", queue, "family", family]:
            return QueueObtained(number(queue), integer(family, (1 << 32) - 1))
        case ["acquire", image, *options]:
            return _acquired(image, options, next(calls), site)
        case ["present", queue, image, *options]:
            return _presented(queue, image, options, next(calls), site)
    raise Unreadable(words[0], f"{' '.join(words[:3])!r} is no event of a stream{nearly(words[0], EVENT_WORDS)}")


def _presented(queue: str, image: str, options: list[str], call: int, site: str | None) -> StreamEvent:
    found = _sections(options, ("wait", "fence"), "an image")
    waits = tuple(map(number, found.get("wait", ())))
    fences = tuple((SWAPCHAIN, number(each)) for each in found.get("fence", ()))
    images = ((SWAPCHAIN, number(image)),)
    return Presented(call, "vkQueuePresentKHR", site, number(queue), waits, images, fences=fences)


def _acquired(image: str, options: list[str], call: int, site: str | None) -> StreamEvent:
    found = _sections(options, ("signal", "fence"), "an image")
    signaled, fence = (number(_one(word, found[word])) if word in found else 0 for word in ("signal", "fence"))
    return Acquired(call, "vkAcquireNextImageKHR", site, SWAPCHAIN, number(image), signaled, fence)


def _sections(words: list[str], heads: tuple[str, ...], where: str) -> dict[str, list[str]]:
    """The words behind each of these words."""
    found: dict[str, list[str]] = {}
    for word in words:
        if word in heads:
            if word in found:
                raise Unreadable(word, f"{word!r} stands there twice")
            several = found[word] = []
        elif not found:
            named = [f"`{each}`" for each in heads]
            raise Unreadable(word, f"behind {where} stand {', '.join(named[:-1])} and {named[-1]}")
        else:
            several.append(word)
    for word, several in found.items():
        if not several:
            raise Unreadable(word, f"{word} of what?")
    return found


def _one(head: str, words: list[str]) -> str:
    nothing_behind(words[1:], f"`{head}` and one word")
    return words[0]


def _host_waits(several: list[str]) -> StreamEvent:
    queue = several.pop() if several and several[-1][0] == "q" else ""
    if queue or not several or several[0][0] in "fq":
        nothing_behind([each for each in several if each[0] != "f"], "fences, and a queue at the end,")
        return HostWaited(fences=tuple(map(number, several)), queue=number(queue) if queue else 0)
    pairs = (each.partition("=") for each in several)
    return host_effects.HostWaitedSemaphores(
        tuple((number(semaphore), integer(value)) for semaphore, _, value in pairs)
    )


def _with_next(submit: StreamEvent, options: str, body: list[TextLine], calls: Iterator[int]) -> Submitted:
    """A submit with one more batch."""
    if not isinstance(submit, Submitted):
        raise Unreadable("next", "no submit before it")
    more = _submitted("q0", options, body, calls, submit.name == BIND_SPARSE)
    if more.family != VK_QUEUE_FAMILY_IGNORED:
        raise Unreadable("family", "the family of the queue stands behind `submit`")
    if more.fence and submit.fence:
        raise Unreadable("fence", "a submit signals one fence")
    batch = replace(more.batches[0], batch=len(submit.batches))
    return replace(submit, batches=(*submit.batches, batch), fence=more.fence or submit.fence)


def _submitted(
    queue: str, options: str, body: list[TextLine], calls: Iterator[int], binds: bool = False, site: str | None = None
) -> Submitted:
    commands = tuple(_each(body, lambda line: read_command(line.text, calls, line.site))) if not binds else ()
    call = next(calls)
    found = _sections(options.split(), SECTIONS, "a queue")
    waits, signals = (_operations(" ".join(found.get(key, ()))) for key in ("wait", "signal"))
    batch = Submission(0, ((100000 + call, commands),), waits=waits, signals=signals)
    fence = number(_one("fence", found["fence"])) if "fence" in found else 0
    family = VK_QUEUE_FAMILY_IGNORED
    if "family" in found:
        family = integer(_one("family", found["family"]), (1 << 32) - 1)
    made = Submitted(call, "vkQueueSubmit2", site, number(queue), QUEUE_FLAGS, (batch,), fence, family=family)
    return sparse_text.as_bind(made, _each(body, lambda line: read_range(line.text))) if binds else made


def _each(body: list[TextLine], read: Callable[[TextLine], T]) -> Iterator[T]:
    """What each line says."""
    for line in body:
        with at(line):
            yield read(line)


def _operations(text: str) -> tuple[SemaphoreOperation, ...]:
    found = []
    for part in text.split(",") if text else ():
        words = part.split()
        what, at_, rest = _one("a comma", words or [""]).partition("@")
        if not at_:
            raise Unreadable(what or ",", f"{what!r} is no operation of a semaphore, such as `s1@COPY`")
        semaphore, equals, value = what.removeprefix(END).partition("=")
        masks, end = read_group_end(rest) if what.startswith(END) else ((stages(rest), 0), None)
        found.append(SemaphoreOperation(number(semaphore), masks[0], value=integer(value) if equals else 0, end=end))
    return tuple(found)


def _spell_operations(word: str, operations: tuple[SemaphoreOperation, ...]) -> str:
    parts = (
        f"{name(each.semaphore)}{f'={each.value}' if each.value else ''}@{spell_scope(each.stages, 0)}"
        if each.end is None
        else f"{END}{name(each.semaphore)}@{spell_group_end(each.stages, each.end)}"
        for each in operations
    )
    return f" {word} {', '.join(parts)}" if operations else ""


def _lines(stream_event: StreamEvent) -> Iterator[str]:
    match stream_event:
        case SemaphoreCreated(semaphore, initial):
            yield f"semaphore {name(semaphore)} = {initial}"
        case PayloadShared(payload, outside=outside):
            yield f"{'shared' if outside else 'unshared'} {name(payload)}"
        case SharedResource(resource, acquirers=masks) if masks is not None:
            yield " ".join(["kept", name(resource), *map(str, masks if masks != EVERY_FAMILY else ())])
        case SignalMoved(source, target):
            yield f"copy {name(source)} to {name(target)}"
        case Submitted():
            yield from _submit_lines(stream_event)
        case HostWaited(fences=fences, queue=queue):
            yield " ".join(["host waits", *map(name, fences), *([name(queue)] if queue else [])])
        case host_effects.HostWaitedSemaphores(values):
            yield " ".join(["host waits", *(f"{name(semaphore)}={value}" for semaphore, value in values)])
        case host_effects.HostSignaled(semaphore, value):
            yield f"host signals {name(semaphore)}={value}"
        case Destroyed(memory, span=span):
            yield f"host destroys {spell_range(memory, (span,))}" if span else f"host frees {name(memory)}"
        case FenceReset((fence,)):
            yield f"host resets {name(fence)}"
        case HostQueries():
            yield query_text.spell_host(stream_event)
        case host_effects.HostAccess():
            where = spell_range(stream_event.space, stream_event.spans)
            yield f"host copies {'to' if stream_event.write else 'from'} {where}"
        case HostSetEvent(event, signaled=signaled, call=call):
            yield f"host {'sets' if signaled else 'resets' if call else 'destroys'} {name(event)}"
        case host_effects.HostSawEvent(event):
            yield f"host sees {name(event)}"
        case HostWrote() | HostDeclaredRead() | HostFlushed() | HostInvalidated():
            verb = next(verb for verb, kind in _HOST.items() if isinstance(stream_event, kind))
            flag = "" if getattr(stream_event, "coherent", True) else " incoherent"
            yield f"host {verb} {spell_range(stream_event.memory, (stream_event.span,))}{flag}"
        case QueueObtained(queue, family):
            yield f"queue {name(queue)} family {family}"
        case Acquired():
            options = f" signal {name(stream_event.semaphore)}" if stream_event.semaphore else ""
            options += f" fence {name(stream_event.fence)}" if stream_event.fence else ""
            yield f"acquire {name(stream_event.image)}{options}"
        case Presented(_, _, _, queue, present_waits, ((_, image),), fences=fences):
            options = " ".join(["", "wait", *map(name, present_waits)]) if present_waits else ""
            options += "".join(f" fence {name(fence)}" for _, fence in fences)
            yield f"present {name(queue)} {name(image)}{options}"
        case _:
            raise ValueError(f"stream text has no {type(stream_event).__name__}")


def _submit_lines(submit: Submitted) -> Iterator[str]:
    for batch in (batches := submit.batches):
        options = _spell_operations("wait", batch.waits) + _spell_operations("signal", batch.signals)
        if submit.fence and batch is batches[-1]:
            options += f" fence {name(submit.fence)}"
        if submit.family != VK_QUEUE_FAMILY_IGNORED and batch is batches[0]:
            options += f" family {submit.family}"
        word = "next" if batch is not batches[0] else "submit " if batch.binds is None else "bind "
        yield f"{word}{name(submit.queue) * (batch is batches[0])}{options}"
        yield from (f"    {spell_range(bind.resource, bind.spans)}" for bind in batch.binds or ())
        for _, commands in batch.buffers:
            yield from (f"    {spell_command(command)}" for command in commands)
