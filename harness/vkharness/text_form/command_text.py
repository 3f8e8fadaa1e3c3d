"""Commands in stream text (`stream_text` has the grammar)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, reduce
from itertools import takewhile
from operator import or_

from vkharness.spec.scopes import ACCESS_KIND, ACCESS_KINDS
from vkharness.text_form import query_text, sparse_text
from vkharness.text_form.dependency_text import (
    read_barrier,
    read_dependency,
    read_end,
    read_layouts,
    read_pair,
    read_range,
    spell_barrier,
    spell_dependency,
    spell_ends,
    spell_layouts,
    spell_range,
    spell_scope,
)
from vkharness.text_form.handle_names import name, number
from vkharness.text_form.unreadable import Unreadable, integer, nearly, nothing_behind, stages
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.effects import (
    EXTERNAL,
    Access,
    AttachmentUsers,
    AutomaticTransition,
    Barrier,
    Command,
    Dependency,
    Effect,
    Execute,
    PassBegin,
    PassEnd,
    RenderingBegin,
    ResetEvent,
    SetEvent,
    SubpassBegin,
    SubpassDependency,
    WaitEvents,
)
from vkharness.trace.operation_effects import NextOperation
from vkharness.trace.query_effects import UseQueries
from vkharness.trace.sparse_effects import BindingUse
from vkharness.trace.view_pairs import ViewPairs

MOST_SUBPASSES = 64
FLAGS = {"atomic", "marker"} | {
    each.lower() for kind in (RasterizationOrder, AttachmentOperation) for each in kind.__members__
}
_NAMED = re.compile(r"(?P<name>vkCmd[A-Za-z0-9]{1,80}): *")


def read_command(text: str, calls: Iterator[int], site: str | None = None) -> Command:
    """The command of a line. Raises `Unreadable`."""
    call = next(calls)
    if text.startswith("execute "):
        held = tuple(read_command(part.strip(), calls, site) for part in text.removeprefix("execute ").split(" / "))
        if any(type(effect) is Execute for each in held for effect in each.effects):
            raise Unreadable("execute", "a secondary command buffer executes none")
        return Command(call, "vkCmdExecuteCommands", site, (Execute(((200000 + call, held),)),))
    named = _NAMED.match(text)
    if named is not None:
        text = text[named.end() :]
    effects = [_effect(part.strip()) for part in text.split(";")]
    for at, users in enumerate(effects):
        if isinstance(users, AttachmentUsers):  # the accesses right behind it are the operations that it is about
            made = list(takewhile(lambda each: isinstance(each, Access), effects[at + 1 :]))
            stages = reduce(or_, (ACCESS_KINDS[each.access_kind].stage for each in made if isinstance(each, Access)))
            effects[at : at + 1 + len(made)] = [replace(users, stages=stages), *made, AttachmentUsers()]
            break
    return Command(call, named["name"] if named else _default_name(text), site, tuple(effects))


def _default_name(text: str) -> str:
    """The name of a command that has none: `vkCmd` and the first word."""
    return f"vkCmd{text.split(maxsplit=1)[0].rstrip(';')}"


def _effect(text: str) -> Effect:
    word, _, rest = text.partition(" ")
    return _EFFECTS[word](rest) if word in _EFFECTS else _access(text)


@cache
def access_kinds() -> dict[str, int]:
    """The kinds of access by their names in stream text."""
    return {name.removeprefix("SYNC_"): kind.index for name, kind in ACCESS_KIND.items()}


def _access(text: str) -> Access:
    access_kind, *words = text.split() or [""]
    if access_kind == "execute":
        raise Unreadable(access_kind, "'execute' stands first in a line, and commands behind it")
    if access_kind not in access_kinds():
        near = nearly(access_kind, [*access_kinds(), *command_words()])
        raise Unreadable(access_kind, f"{access_kind!r} is no command and no access{near}")
    if not words:
        raise Unreadable(access_kind, f"{access_kind} of which resource?")
    where, *flags = words
    resource, spans = read_range(where)
    for flag in flags:
        if flag not in FLAGS:
            raise Unreadable(flag, f"{flag!r} is no flag of an access{nearly(flag, FLAGS)}")
    order = next(
        (RasterizationOrder[each.upper()] for each in flags if each.upper() in RasterizationOrder.__members__),
        RasterizationOrder.NONE,
    )
    for sort in (RasterizationOrder, AttachmentOperation):
        nothing_behind([each for each in flags if each.upper() in sort.__members__][1:], "one flag of a sort")
    if len(set(flags)) < len(flags):
        raise Unreadable(flags[-1], "a flag of an access stands there twice")
    kinds = [AttachmentOperation[each.upper()] for each in flags if each.upper() in AttachmentOperation.__members__]
    operation = kinds[0] if kinds else AttachmentOperation.ORDINARY
    return Access(
        access_kinds()[access_kind],
        resource,
        spans,
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
    event, before = text.split()
    return SetEvent(number(event), Barrier((Dependency(stages(before), 0, 0, 0),)), sync2=False)


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
    event, before = text.split()
    return ResetEvent(number(event), stages(before))


def _pass(text: str) -> Effect:
    many, _, rest = text.partition(" ")
    dependencies = []
    for part in filter(None, rest.split(",")):
        words = part.split()
        by_region = words[0] == "region"
        *views, pair = words[by_region:-3]
        if views and not views[0].startswith("views:"):
            raise Unreadable(views[0], f"{views[0]!r} is not read: in front of the subpasses stands `views:`")
        nothing_behind(views[1:], "one `views:`")
        several = ViewPairs(*map(_view_number, views[0].split(":")[1:])) if views else None
        dependencies.append(
            SubpassDependency(*read_pair(pair), read_dependency(words[-3:]), by_region=by_region, views=several)
        )
    return PassBegin(integer(many, MOST_SUBPASSES), tuple(dependencies))


def _view_number(text: str) -> int:
    return -integer(text[1:], 32) if text.startswith("-") else integer(text, (1 << 32) - 1)


def _transitions(text: str, *into: int) -> tuple[AutomaticTransition, ...]:
    return tuple(_transition(part.split(), into) for part in filter(None, text.split(",")))


def _transition(words: list[str], into: tuple[int, ...]) -> AutomaticTransition:
    """`into` has the subpass at whose begin the transition is made."""
    resource, spans = read_range(words[0])
    given = dict(zip(words[2::2], words[3::2], strict=True))
    if given.keys() - {"after", "used", "later"} or len(given) < len(words[2::2]):
        raise ValueError(f"a transition has no {' '.join(words[2:])!r}")
    after, used, later = (
        tuple(map(read_end, filter(None, given.get(key, "").split("&")))) for key in ("after", "used", "later")
    )
    users = used or _own(after, into)
    return AutomaticTransition(
        resource, resource, spans, *read_layouts(words[1]), leaves=after, users=users, later=later
    )


def _own(after: tuple[int, ...], into: tuple[int, ...]) -> tuple[int, ...]:
    """The subpasses that use an attachment if no others are named."""
    return (*(each for each in after if each != EXTERNAL), *into)


def _subpass(text: str) -> Effect:
    index, _, rest = text.partition(" ")
    return SubpassBegin(integer(index, MOST_SUBPASSES), transitions=_transitions(rest, integer(index, MOST_SUBPASSES)))


def _end(text: str) -> Effect:
    return PassEnd(transitions=_transitions(text))


def _alone(text: str, effect: Effect) -> Effect:
    nothing_behind(text.split(), "one word")
    return effect


def _binding(access: Access) -> Effect:
    use = sparse_text.use_of(access)
    if sparse_text.access_of(use) != access:
        raise Unreadable("binding", "a use of bindings has no flags")
    return use


_EFFECTS: dict[str, Callable[[str], Effect]] = {
    "barrier": read_barrier,
    "rendering": lambda text: _alone(text, RenderingBegin()),
    "next": lambda text: _alone(text, NextOperation()),
    "set": _set,
    "set1": _set_first_form,
    "wait": _wait,
    "wait1": _wait_first_form,
    "reset": _reset,
    "query": query_text.parse,
    "pass": _pass,
    "subpass": _subpass,
    "end": _end,
    "binding": lambda text: _binding(_access(text)),
    "users": lambda text: AttachmentUsers(subpasses=tuple(integer(each, MOST_SUBPASSES) for each in text.split("&"))),
}


def _spell_transition(each: AutomaticTransition, *into: int) -> str:
    after = f" after {spell_ends(each.leaves, '&')}" if each.leaves else ""
    used = f" used {'&'.join(map(str, each.users))}" if each.users != _own(each.leaves, into) else ""
    later = f" later {'&'.join(map(str, each.later))}" if each.later else ""
    moved = f"{spell_range(each.resource, each.spans)} {spell_layouts(each.old_layout, each.new_layout)}"
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
            return "execute " + " / ".join(map(spell_command, commands))
        case AttachmentUsers(subpasses=subpasses):
            return f"users {'&'.join(map(str, subpasses))}"
        case PassEnd(transitions=transitions):
            return f"end {', '.join(map(_spell_transition, transitions))}".rstrip()
    raise ValueError(f"stream text has no {type(effect).__name__}")


def spell_command(command: Command) -> str:
    """The line of a command. Raises ValueError for what stream text cannot say."""
    text = "; ".join(_spell_effect(each) for each in command.effects if each != AttachmentUsers())
    if text.startswith("execute ") or command.name == _default_name(text):
        return text
    return f"{command.name}: {text}"


def command_words() -> tuple[str, ...]:
    """How a command begins that is no access."""
    return (*_EFFECTS, "execute")
