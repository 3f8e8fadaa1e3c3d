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

A line without indentation is a stream event. An indented line is a command of that submit's only command buffer.
`a` to `z` are resources of SIZE addresses, `a[0:32]` a part of one. `q1`, `s1`, `t1`, `e1` and `f1` are a queue, a
binary semaphore, a timeline semaphore, an event and a fence. In the table, `[x]` may be missing and `x...` may be
repeated, with commas between.

| stream event | text |
|---|---|
| timeline semaphore with its first value | `semaphore t1 = 0` |
| payload that somebody outside may have from now on, or not | `shared s1\|t1\|f1`, `unshared s1\|t1\|f1` |
| export by copy: the pending signal goes over | `copy s1 to s3` |
| queue of a family | `queue q2 family 1` |
| resource that families take with its contents: any, or, by owner, those of a mask | `kept a`, `kept i 2 1` |
| submit; sparse bind of ranges | `submit\|bind q1 [wait OPERATION...] [signal OPERATION...] [fence f1] [family 0]` |
| one more batch of that submit | `next [wait OPERATION...] [signal OPERATION...] [fence f1]` |
| host waits for everything, a queue, fences, values | `host waits`, `host waits q1\|f1 f2\|t1=4 t2=5` |
| host signals a value, sets or resets an event | `host signals t1=3`, `host sets e1`, `host resets e1` |
| host reads that an event is signaled | `host sees e1` |
| host resets a fence | `host resets f1` |
| host touches or declares memory | `host writes\|reads a [incoherent]`, `host flushes\|invalidates a` |
| host copies to an image or from one | `host copies to i`, `host copies from i` |
| host makes or ends queries, resets them, has results | `host creates\|resets\|gets\|destroys y1[0:4]` |
| end of an event, a buffer, memory | `host destroys e1`, `host destroys a[0:64]`, `host frees a` |
| swapchain image | `acquire p [signal s3] [fence f2]`, `present q1 p [wait s4 s5] [fence f3]` |

| command | text |
|---|---|
| accesses of one command, by sparse bindings | `COPY_TRANSFER_READ a [FLAG]...; binding COPY_TRANSFER_READ z` |
| operations of one command that nothing orders | `ACCESS a; next; ACCESS b` |
| operations of an attachment of several subpasses | `users 0&1; ACCESS i color load; ...` |
| barrier | `barrier [region] [views] DEPENDENCY...` |
| event, second form | `set e1 [asymmetric] DEPENDENCY...`, `wait e1 [asymmetric] DEPENDENCY... & e2 DEPENDENCY...` |
| event, first form | `set1 e1 STAGES`, `wait1 e1 e2 DEPENDENCY...` |
| event, either form | `reset e1 STAGES` |
| queries | `query reset\|begin\|end\|copy\|copy-waiting\|copy-telling y1[0:4]`, `query timestamp y1[0:1] STAGE` |
| render pass instance | `pass SUBPASSES [[region] [views:MASK:MASK:OFFSET] SUBPASS->SUBPASS SCOPE > SCOPE]...` |
| subpass with its layout transitions | `subpass 0 [i OLD->NEW [after 0&1] [used 0&1&3] [later 3]]...` |
| end with final transitions | `end [i OLD->NEW [after 0&1] [used 0&1]]...` |
| begin of dynamic rendering that does not resume | `rendering` |
| secondary command buffer | `execute COMMAND / COMMAND` |

FLAG is `atomic`, `marker`, a RasterizationOrder or an AttachmentOperation. OPERATION is `s1@STAGES` or `t1=3@STAGES`;
`barrier:s1@SCOPE[~a&b][^]` is an end of a barrier between physical devices, over ranges, and with `^` one that moves.
SCOPE is `STAGES/ACCESSES` or `STAGES`, names joined by `\|`. DEPENDENCY is `[a] [OLD->NEW] [family 0->1 [stages]
[traced]] SCOPE > SCOPE`; `traced` says of a transfer with what is outside that both halves are in the stream; a layout
is a number and an outer subpass `EXTERNAL`. A barrier of a range is also an execution dependency of everything, as in
the API. A transfer between families is that only with `stages`, which says that the stages count on both sides of it.
An automatic transition leaves the layout in which the subpasses behind `after` used the attachment, or initialLayout;
`after EXTERNAL&0` leaves initialLayout and subpass 0, which used an attachment on the same memory. The subpasses behind
`used` use it; without `used` these are those behind `after` and the one that begins. Those behind `later` use it in the
new layout, behind the subpass that begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import count, takewhile
from operator import or_

from vkharness.findings import Place
from vkharness.fuzz import query_text, sparse_text
from vkharness.fuzz.dependency_text import (
    END,
    RANGE,
    read_barrier,
    read_dependency,
    read_end,
    read_group_end,
    read_pair,
    read_range,
    spell_barrier,
    spell_dependency,
    spell_ends,
    spell_group_end,
    spell_range,
    spell_scope,
)
from vkharness.fuzz.handle_names import name, number
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED
from vkharness.spec.masks import scope
from vkharness.spec.scopes import ACCESS_KIND, ACCESS_KINDS
from vkharness.trace import host_effects
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.effects import (
    EXTERNAL,
    Access,
    Acquired,
    AttachmentUsers,
    AutomaticTransition,
    Barrier,
    Command,
    Dependency,
    Destroyed,
    Effect,
    Execute,
    FenceReset,
    HostWaited,
    PassBegin,
    PassEnd,
    PayloadShared,
    Presented,
    QueueObtained,
    RenderingBegin,
    ResetEvent,
    SemaphoreCreated,
    SemaphoreOperation,
    SetEvent,
    StreamEvent,
    Submission,
    Submitted,
    SubpassBegin,
    SubpassDependency,
    WaitEvents,
)
from vkharness.trace.host_effects import (
    HostDeclaredRead,
    HostFlushed,
    HostInvalidated,
    HostSetEvent,
    HostWrote,
    SignalMoved,
)
from vkharness.trace.operation_effects import NextOperation
from vkharness.trace.ownership_effects import EVERY_FAMILY, SharedResource
from vkharness.trace.query_effects import HostQueries, UseQueries
from vkharness.trace.sparse_effects import BIND_SPARSE, BindingUse
from vkharness.trace.view_pairs import ViewPairs

QUEUE_FLAGS = 0x7
"""Graphics, compute and transfer."""
_HOST = {"writes": HostWrote, "reads": HostDeclaredRead, "flushes": HostFlushed, "invalidates": HostInvalidated}
_HOST_COPY = {"to": "vkCopyMemoryToImage", "from": "vkCopyImageToMemory"}
ATOM = 16
"""Of memory that is not coherent."""
SWAPCHAIN = 900


def parse(text: str) -> list[StreamEvent]:
    """The stream of a text. Raises ValueError naming the line that cannot be read."""
    found: list[StreamEvent] = []
    calls = count(1)
    lines = [line for line in text.splitlines() if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        body = []
        while at < len(lines) and lines[at][margin : margin + 1] == " ":
            body.append(lines[at])
            at += 1
        try:
            words = line.split()
            if words[0] == "next":
                found[-1] = _with_next(found[-1], " ".join(words[1:]), body, calls)
            else:
                found.append(_stream_event(words, body, calls))
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(f"{line.strip()!r}: {error}") from None
    return found


def spell(stream: Iterable[StreamEvent]) -> str:
    """The text of a stream that stream text can express."""
    return "\n".join(line for stream_event in stream for line in _lines(stream_event)) + "\n"


# -- commands ----------------------------------------------------------------------------------------------------------


def _command(text: str, calls: Iterator[int]) -> Command:
    call = next(calls)
    if text.startswith("execute "):
        held = tuple(_command(part, calls) for part in text.removeprefix("execute ").split(" / "))
        return Command(call, "vkCmdExecuteCommands", None, (Execute(((200000 + call, held),)),))
    effects = [_effect(part.strip()) for part in text.split(";")]
    for at, users in enumerate(effects):
        if isinstance(users, AttachmentUsers):  # the accesses right behind it are the operations that it is about
            made = list(takewhile(lambda each: isinstance(each, Access), effects[at + 1 :]))
            stages = reduce(or_, (ACCESS_KINDS[each.access_kind].stage for each in made if isinstance(each, Access)))
            effects[at : at + 1 + len(made)] = [replace(users, stages=stages), *made, AttachmentUsers()]
            break
    return Command(call, f"vkCmd{text.split(maxsplit=1)[0]}", None, tuple(effects))


def _effect(text: str) -> Effect:
    word, _, rest = text.partition(" ")
    return _EFFECTS[word](rest) if word in _EFFECTS else _access(text)


def _access(text: str) -> Access:
    access_kind, where, *flags = text.split()
    resource, span = read_range(where)
    order = next(
        (RasterizationOrder[each.upper()] for each in flags if each.upper() in RasterizationOrder.__members__),
        RasterizationOrder.NONE,
    )
    kinds = [AttachmentOperation[each.upper()] for each in flags if each.upper() in AttachmentOperation.__members__]
    operation = kinds[0] if kinds else AttachmentOperation.ORDINARY
    index = ACCESS_KIND[f"SYNC_{access_kind}"].index
    return Access(
        index,
        resource,
        (span,),
        resource,
        atomic="atomic" in flags,
        order=order,
        operation=operation,
        marker="marker" in flags,
    )


def _spell_access(access: Access) -> str:
    words = [ACCESS_KINDS[access.access_kind].name.removeprefix("SYNC_"), spell_range(access.resource, access.spans)]
    words += ["atomic"] * access.atomic + ["marker"] * access.marker
    words += [each.name.lower() for each in (access.order, access.operation) if each]
    return " ".join(words)


def _set(text: str) -> Effect:
    event, _, rest = text.partition(" ")
    return SetEvent(number(event), read_barrier(rest), sync2=True)


def _set_first_form(text: str) -> Effect:
    event, stages = text.split()
    return SetEvent(number(event), Barrier((Dependency(scope(stages)[0], 0, 0, 0),)), sync2=False)


def _wait(text: str) -> Effect:
    parts = [part.split(maxsplit=1) for part in text.split("&")]
    return WaitEvents(
        tuple(number(event) for event, _ in parts), tuple(read_barrier(rest) for _, rest in parts), sync2=True
    )


def _wait_first_form(text: str) -> Effect:
    events = re.match(r"(?:e\d+ )+", text)
    if events is None:
        raise ValueError("wait1 needs events")
    several = tuple(number(event) for event in events[0].split())
    return WaitEvents(several, (read_barrier(text[events.end() :]),), sync2=False)


def _reset(text: str) -> Effect:
    event, stages = text.split()
    return ResetEvent(number(event), scope(stages)[0])


def _pass(text: str) -> Effect:
    many, _, rest = text.partition(" ")
    dependencies = []
    for part in filter(None, rest.split(",")):
        words = part.split()
        by_region = words[0] == "region"
        *views, pair = words[by_region:-3]
        several = ViewPairs(*map(int, views[0].split(":")[1:])) if views else None
        dependencies.append(
            SubpassDependency(*read_pair(pair), read_dependency(words[-3:]), by_region=by_region, views=several)
        )
    return PassBegin(int(many), tuple(dependencies))


def _transitions(text: str, *into: int) -> tuple[AutomaticTransition, ...]:
    return tuple(_transition(part.split(), into) for part in filter(None, text.split(",")))


def _transition(words: list[str], into: tuple[int, ...]) -> AutomaticTransition:
    """`into` has the subpass at whose begin the transition is made."""
    resource, span = read_range(words[0])
    given = dict(zip(words[2::2], words[3::2], strict=True))
    if given.keys() - {"after", "used", "later"}:
        raise ValueError(f"a transition has no {' '.join(words[2:])!r}")
    after, used, later = (
        tuple(map(read_end, filter(None, given.get(key, "").split("&")))) for key in ("after", "used", "later")
    )
    users = used or _own(after, into)
    return AutomaticTransition(
        resource, resource, (span,), *read_pair(words[1]), leaves=after, users=users, later=later
    )


def _own(after: tuple[int, ...], into: tuple[int, ...]) -> tuple[int, ...]:
    """The subpasses that use an attachment if no others are named."""
    return (*(each for each in after if each != EXTERNAL), *into)


def _subpass(text: str) -> Effect:
    index, _, rest = text.partition(" ")
    return SubpassBegin(int(index), transitions=_transitions(rest, int(index)))


def _end(text: str) -> Effect:
    return PassEnd(transitions=_transitions(text))


_EFFECTS: dict[str, Callable[[str], Effect]] = {
    "barrier": read_barrier,
    "rendering": lambda _: RenderingBegin(),
    "next": lambda _: NextOperation(),
    "set": _set,
    "set1": _set_first_form,
    "wait": _wait,
    "wait1": _wait_first_form,
    "reset": _reset,
    "query": query_text.parse,
    "pass": _pass,
    "subpass": _subpass,
    "end": _end,
    "binding": lambda text: sparse_text.use_of(_access(text)),
    "users": lambda text: AttachmentUsers(subpasses=tuple(map(int, text.split("&")))),
}


def _spell_transition(each: AutomaticTransition, *into: int) -> str:
    after = f" after {spell_ends(each.leaves, '&')}" if each.leaves else ""
    used = f" used {'&'.join(map(str, each.users))}" if each.users != _own(each.leaves, into) else ""
    later = f" later {'&'.join(map(str, each.later))}" if each.later else ""
    moved = f"{spell_range(each.resource, each.spans)} {spell_ends((each.old_layout, each.new_layout), '->')}"
    return f"{moved}{after}{used}{later}"


def _spell_effect(effect: Effect) -> str:
    match effect:
        case Access():
            return _spell_access(effect)
        case BindingUse():
            return f"binding {_spell_access(sparse_text.access_of(effect))}"
        case Barrier():
            return f"barrier {spell_barrier(effect)}"
        case RenderingBegin():
            return "rendering"
        case NextOperation():
            return "next"
        case SetEvent(event, barrier, sync2=False):
            return f"set1 {name(event)} {spell_scope(barrier.globals[0].src_stages, 0)}"
        case SetEvent(event, barrier, sync2=_):
            return f"set {name(event)} {spell_barrier(barrier)}"
        case WaitEvents(events, (barrier,), sync2=False):
            return f"wait1 {' '.join(map(name, events))} {spell_barrier(barrier)}"
        case WaitEvents(events, barriers, sync2=_):
            parts = (f"{name(event)} {spell_barrier(each)}" for event, each in zip(events, barriers, strict=True))
            return f"wait {' & '.join(parts)}"
        case ResetEvent(event, stages):
            return f"reset {name(event)} {spell_scope(stages, 0)}"
        case UseQueries():
            return f"query {query_text.spell(effect)}"
        case PassBegin(subpasses, dependencies):
            parts = (
                f"{'region ' * each.by_region}{':'.join(('views', *map(str, each.views))) + ' ' if each.views else ''}"
                f"{spell_ends((each.src, each.dst), '->')} {spell_dependency(each.dependency)}"
                for each in dependencies
            )
            return f"pass {subpasses} {', '.join(parts)}".rstrip()
        case SubpassBegin(index, transitions=transitions):
            return f"subpass {index} {', '.join(_spell_transition(each, index) for each in transitions)}".rstrip()
        case Execute(((_, commands),)):
            return "execute " + " / ".join(map(_spell_command, commands))
        case AttachmentUsers(subpasses=subpasses):
            return f"users {'&'.join(map(str, subpasses))}"
        case PassEnd(transitions=transitions):
            return f"end {', '.join(map(_spell_transition, transitions))}".rstrip()
    raise ValueError(f"stream text has no {type(effect).__name__}")


def _spell_command(command: Command) -> str:
    return "; ".join(_spell_effect(each) for each in command.effects if each != AttachmentUsers())


# -- stream events -----------------------------------------------------------------------------------------------------


def _stream_event(words: list[str], body: list[str], calls: Iterator[int]) -> StreamEvent:
    match words:
        case ["semaphore", semaphore, "=", value]:
            return SemaphoreCreated(number(semaphore), int(value))
        case ["submit" | "bind" as kind, queue, *options]:
            return _submitted(queue, " ".join(options), body, calls, kind == "bind")
        case ["host", verb, where] if query_text.is_queries(where):
            return query_text.parse_host(verb, where, next(calls))
        case [("shared" | "unshared") as verb, payload]:
            return PayloadShared(number(payload), outside=verb == "shared")
        case ["kept", resource, *masks]:
            return SharedResource(number(resource), acquirers=tuple(map(int, masks)) or EVERY_FAMILY)
        case ["copy", source, "to", target]:
            return SignalMoved(number(source), number(target))
        case ["host", "waits", *several]:
            return _host_waits(several)
        case ["host", "signals", operation]:
            return host_effects.HostSignaled(number(operation.partition("=")[0]), int(operation.partition("=")[2]))
        case ["host", "destroys", each] if RANGE.match(each):
            memory, span = read_range(each)
            return Destroyed(memory, span=span, resource=memory)
        case ["host", "destroys", event]:
            return HostSetEvent(number(event), signaled=False)
        case ["host", "copies", ("to" | "from") as way, where]:
            image, span = read_range(where)
            return host_effects.HostAccess(next(calls), _HOST_COPY[way], None, image, (span,), image, write=way == "to")
        case ["host", "frees", where]:
            return Destroyed(number(where))
        case ["host", "resets", each] if each[0] == "f" and each[1:]:
            return FenceReset((number(each),), by=Place(next(calls), "vkResetFences", None))
        case ["host", "sees", event]:
            return host_effects.HostSawEvent(number(event))
        case ["host", ("sets" | "resets") as verb, event]:
            return HostSetEvent(number(event), signaled=verb == "sets", call=next(calls))
        case ["host", verb, where, *flags] if verb in _HOST:
            memory, span = read_range(where)
            given = {"coherent": False, "non_coherent_atom_size": ATOM} if "incoherent" in flags else {}
            return _HOST[verb](next(calls), None, memory, span, **given)  # type: ignore[no-any-return]
        case ["queue", queue, "family", family]:
            return QueueObtained(number(queue), int(family))
        case ["acquire", image, *options]:
            return _acquired(image, options, next(calls))
        case ["present", queue, image, *options]:
            end = options.index("fence") if "fence" in options else len(options)
            waits = tuple(number(each) for each in options[1:end])
            fences = tuple((SWAPCHAIN, number(each)) for each in options[end + 1 :])
            images = ((SWAPCHAIN, number(image)),)
            return Presented(next(calls), "vkQueuePresentKHR", None, number(queue), waits, images, fences=fences)
    raise ValueError("no such stream event")


def _acquired(image: str, options: list[str], call: int) -> StreamEvent:
    signaled, fence = (
        number(options[options.index(word) + 1]) if word in options else 0 for word in ("signal", "fence")
    )
    return Acquired(call, "vkAcquireNextImageKHR", None, SWAPCHAIN, number(image), signaled, fence)


def _host_waits(several: list[str]) -> StreamEvent:
    if not several or several[0][0] == "q":
        return HostWaited(queue=number(several[0]) if several else 0)
    if several[0][0] == "f":
        return HostWaited(fences=tuple(map(number, several)))
    pairs = (each.partition("=") for each in several)
    return host_effects.HostWaitedSemaphores(tuple((number(semaphore), int(value)) for semaphore, _, value in pairs))


def _with_next(submit: StreamEvent, options: str, body: list[str], calls: Iterator[int]) -> Submitted:
    """A submit with one more batch."""
    if not isinstance(submit, Submitted):
        raise ValueError("no submit before it")
    more = _submitted("q0", options, body, calls, submit.name == BIND_SPARSE)
    batch = replace(more.batches[0], batch=len(submit.batches))
    return replace(submit, batches=(*submit.batches, batch), fence=more.fence or submit.fence)


def _submitted(queue: str, options: str, body: list[str], calls: Iterator[int], binds: bool = False) -> Submitted:
    commands = tuple(_command(line.strip(), calls) for line in body if not binds)
    call = next(calls)
    found = dict(re.findall(r"(wait|signal|fence|family) (.*?)(?= (?:wait|signal|fence|family) |$)", options))
    waits, signals = (_operations(found.get(key, "")) for key in ("wait", "signal"))
    batch = Submission(0, ((100000 + call, commands),), waits=waits, signals=signals)
    fence = number(found["fence"]) if "fence" in found else 0
    family = int(found.get("family", VK_QUEUE_FAMILY_IGNORED))
    made = Submitted(call, "vkQueueSubmit2", None, number(queue), QUEUE_FLAGS, (batch,), fence, family=family)
    return sparse_text.as_bind(made, (read_range(line.strip()) for line in body)) if binds else made


def _operations(text: str) -> tuple[SemaphoreOperation, ...]:
    found = []
    for part in filter(None, text.replace(" ", "").split(",")):
        what, _, rest = part.partition("@")
        semaphore, _, value = what.removeprefix(END).partition("=")
        masks, end = read_group_end(rest) if what.startswith(END) else (scope(rest), None)
        found.append(SemaphoreOperation(number(semaphore), masks[0], value=int(value or 0), end=end))
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
            yield from (f"    {_spell_command(command)}" for command in commands)
