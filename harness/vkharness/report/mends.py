"""The changes that mend a trace, in words and as code: where each stands, what it was before, and both forms of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vkharness.findings import Finding, HostStep
from vkharness.report.call_code import C, Language, Python, short, type_of
from vkharness.report.sentences import resource_text
from vkharness.report.stack_text import site_text
from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkStructureType
from vkharness.spec.first_form import first_form_accesses, first_form_stages
from vkharness.trace.barrier_calls import FIRST, SECOND, BarrierCommand, is_barrier
from vkharness.trace.calls import Block, Call, block_name
from vkharness.trace.chain import chained
from vkharness.trace.edits import Edit, EditedTrace

INDENT = "    "
LANGUAGES: dict[str, type[Language]] = {"C": C, "Python": Python}
MOST_ALIKE = 5
"""The most places of the same change that are named."""
_HANDLE = re.compile(r"\b([a-z][A-Za-z]*)\d+\b")
_FORMS = ("first form", "second form")


class MendOutcome(NamedTuple):
    """Result of mending one group of findings."""

    findings: Sequence[Finding]
    origins: Sequence[int]
    """The calls that its change touched, as in `EditedTrace.origins`."""
    reason: str
    """Why it is not mended; empty when it is."""
    number: int = 0
    """The number of the group; 0 for what came to light only when others were mended."""


def summary(
    trace: EditedTrace, applied: EditedTrace, outcomes: Sequence[MendOutcome], languages: Sequence[str]
) -> Iterator[str]:
    """Each group with the changes that mend it, then each change with its code. `trace` has exact barriers of the
    second form, `applied` those of the form that the program uses."""
    changes = _alike(trace, _numbered_changes(trace, applied), languages)
    for outcome in outcomes:
        numbers = [
            str(number)
            for number, several in enumerate(changes, 1)
            if any(each.origin in outcome.origins for each in several)
        ]
        label = f"{outcome.number}." if outcome.number else "behind these:"
        yield f"{label} {finding_line(outcome.findings[0])}{_more(len(outcome.findings) - 1)}"
        if outcome.reason:
            yield f"{INDENT}not mended: {outcome.reason}"
        else:
            what = f"change{'s' * (len(numbers) > 1)} {_listed(numbers)}" if numbers else "the changes for the others"
            yield f"{INDENT}mended by {what}"
        if note := _note(outcome):
            yield f"{INDENT}note: {note}"
    for number, (first, *others) in enumerate(changes, 1):
        head, *rest = first.lines
        yield from ("", f"change {number}: {head}")
        for each in others[:MOST_ALIKE]:
            yield f"{INDENT}the same: {each.lines[0].rstrip(':')}"
        if len(others) > MOST_ALIKE:
            yield f"{INDENT}and the same at {len(others) - MOST_ALIKE} more"
        yield from rest


def _note(outcome: MendOutcome) -> str:
    """The design of programs that overlap frames, where a wait of the host is proposed; empty where none is."""
    if outcome.reason or outcome.findings[0].gap is not HostStep.WAIT_TO_WRITE:
        return ""
    return "with memory of its own for each frame in flight, the host need not wait there"


class _Change(NamedTuple):
    """One change, with what is printed of it."""

    origin: int
    edit: Edit
    own: Call
    """The call in the form that the program uses."""
    lines: list[str]


def _alike(
    trace: EditedTrace, changes: Sequence[tuple[int, Edit, Call]], languages: Sequence[str]
) -> list[list[_Change]]:
    """Changes that are the same but for the handles, as a program makes them in every frame, in one list each."""
    found: dict[str, list[_Change]] = {}
    for origin, edit, own in changes:
        lines = change_lines(trace, edit, own, languages)
        key = _HANDLE.sub(r"\1", "\n".join([edit.after.name, str(edit.before is None), *lines[1:]]))
        found.setdefault(key, []).append(_Change(origin, edit, own, lines))
    return list(found.values())


def _listed(words: Sequence[str]) -> str:
    """`1`, `1 and 2`, `1, 2 and 3`."""
    return " and ".join([*([", ".join(words[:-1])] if len(words) > 1 else []), words[-1]])


def _more(count: int) -> str:
    return f", and {count} more" if count else ""


def document(trace: EditedTrace, applied: EditedTrace, outcomes: Sequence[MendOutcome]) -> dict[str, Any]:
    """The same as JSON-able data. A call that was inserted has `before` null."""
    changes = _numbered_changes(trace, applied)
    return {
        "version": 1,
        "groups": [
            {
                "number": outcome.number,
                "findings": [each.to_dict() for each in outcome.findings],
                "mended": not outcome.reason,
                "reason": outcome.reason,
                "note": _note(outcome),
                "changes": [number for number, change in enumerate(changes, 1) if change[0] in outcome.origins],
            }
            for outcome in outcomes
        ],
        "changes": [
            {
                "number": number,
                "where": change_lines(trace, edit, first, ())[0],
                "call": edit.after.name,
                "before": edit.before and edit.before.index,
                "differences": list(_differences(edit.before, edit.after)) if edit.before else [],
                "args": edit.after.args,
            }
            for number, (_, edit, first) in enumerate(changes, 1)
        ],
    }


def changes_in_words(trace: EditedTrace, applied: EditedTrace, languages: Sequence[str]) -> list[tuple[int, list[str]]]:
    """(the call that it touches, as in `MendOutcome.origins`; what it is, and its code) of each change."""
    return [
        (origin, change_lines(trace, edit, own, languages)) for origin, edit, own in _numbered_changes(trace, applied)
    ]


def _numbered_changes(trace: EditedTrace, applied: EditedTrace) -> list[tuple[int, Edit, Call]]:
    """(origin, edit, the call of the form that the program uses) of each change."""
    own = dict(zip(applied.origins, applied.blocks, strict=True))
    return [
        (origin, edit, held if isinstance(held := own.get(origin), Call) else edit.after)
        for edit in trace.edits()
        for origin in [trace.origins[edit.position]]
    ]


def finding_line(finding: Finding) -> str:
    """A finding in one line."""
    place = _where(finding.place.command, finding.place.call, finding.site)
    prior = _where(finding.prior.command, finding.prior.call, finding.prior_site)
    return f"{finding.hazard} on {resource_text(finding)}: {place} after {prior}"


def change_lines(trace: EditedTrace, edit: Edit, first: Call, languages: Sequence[str]) -> list[str]:
    """One change of a trace: what is inserted or edited and where, then the code. `first` is the call in the form that
    the program uses."""
    if edit.before is None:
        what = "a barrier" if is_barrier(edit.after) else edit.after.name
        head = [f"insert {what} {_site(trace, edit)}"]
    elif edit.before.name != edit.after.name:
        was = _where(edit.before.name, edit.before.index, edit.before.site)
        head = [f"replace {was} by {edit.after.name}"]
    else:
        head = [f"edit {_where(edit.before.name, edit.before.index, edit.before.site)}:"]
        head += [f"{INDENT}{line}" for line in _differences(edit.before, edit.after)]
    for title, name in code_of(edit, first):
        for language in languages:
            lines = LANGUAGES[language]()
            made = lines.call(name[0], name[1]) if name[0].startswith("vk") else lines.struct(*name)
            head += [f"{INDENT}{language}{title}:", *(f"{INDENT * 2}{line}" for line in made)]
    return head


def _where(command: str, call: int, site: str | None) -> str:
    return f"{command or 'the host'} (call {call}{f' at {site_text(site)}' if site else ''})"


def _site(trace: EditedTrace, edit: Edit) -> str:
    """Where an inserted call stands: before the next call of the same command buffer that was there already."""
    buffer = edit.after.args.get("commandBuffer")
    following: Block | None = None
    for position in range(edit.position + 1, len(trace.blocks)):
        block = trace.blocks[position]
        same = buffer is None or (isinstance(block, Call) and block.args.get("commandBuffer") == buffer)
        if trace.origins[position] > 0 and same:
            following = block
            break
    if following is None:
        return "at the end"
    place = _where(block_name(following), trace.origin(following.index), following.site)
    return f"before {place}" + (f" in command buffer {buffer}" if buffer is not None else "")


def _differences(before: Call, after: Call) -> Iterator[str]:
    """`pDependencies[0].srcStageMask: TOP_OF_PIPE -> COPY`, a line for each member that is another."""
    for path, holder, member, old, new in _changed(before.args, after.args, before.name, ""):
        type = type_of(holder, member)
        named = type in tables.BITMASKS or tables.TYPE_ALIASES.get(type, type) in tables.BITMASKS
        if named and not isinstance(new, list):
            yield f"{path}: {short(type, old or 0)} -> {short(type, new)}"
        elif isinstance(new, list) and isinstance(old, list | None):
            yield f"{path}: {len(new) - len(old or [])} more"
        elif not isinstance(new, dict | list):
            yield f"{path}: {old} -> {new}"


def _changed(old: Any, new: Any, holder: str, path: str) -> Iterator[tuple[str, str, str, Any, Any]]:
    """(path, type that has the member, member, before, after) of every value that is another."""
    for member, value in new.items():
        was = old.get(member)
        here = f"{path}.{member}".lstrip(".")
        inner = type_of(holder, member)
        if was == value or (member.endswith("Count") and isinstance(value, int)):
            continue
        if isinstance(was, dict) and isinstance(value, dict):
            inner = tables.STYPES.get(value.get("sType", -1), inner)
            yield from _changed(was, value, inner, here)
        elif isinstance(was, list) and isinstance(value, list) and len(was) == len(value):
            for at, (one, other) in enumerate(zip(was, value, strict=True)):
                if isinstance(other, dict) and one != other:
                    yield from _changed(one, other, inner, f"{here}[{at}]")
                elif one != other:
                    yield f"{here}[{at}]", holder, member, one, other
        else:
            yield here, holder, member, was, value


Code = tuple[str, Any] | tuple[str, Any, str]


def code_of(edit: Edit, first: Call) -> Iterator[tuple[str, Code]]:
    """Yields the code of an edit: (which form, (call, arguments) or (struct, members, name)), the first form first."""
    if is_barrier(edit.after):
        for name, form, call in ((FIRST, _FORMS[0], first), (SECOND, _FORMS[1], edit.after)):
            yield f", {form}", (name, BarrierCommand.of(call).call(name).args)
    elif edit.before is None:
        yield "", (edit.after.name, edit.after.args)
    elif edit.after.name.startswith("vkCreateRenderPass"):
        yield from _subpass_dependencies(edit.before, edit.after)
    else:
        yield "", (edit.after.name, edit.after.args)


def _subpass_dependencies(before: Call, after: Call) -> Iterator[tuple[str, Code]]:
    old = before.args["pCreateInfo"]["pDependencies"] or []
    for at, each in enumerate(after.args["pCreateInfo"]["pDependencies"] or []):
        if at >= len(old) or old[at] != each:
            masks = chained(each, VkStructureType.MEMORY_BARRIER_2) or each
            first = {name: value for name, value in each.items() if name not in ("sType", "pNext", "viewOffset")}
            second = {"sType": VkStructureType.SUBPASS_DEPENDENCY_2, **first, "pNext": each.get("pNext")}
            for name in ("srcStageMask", "dstStageMask"):
                first[name] = first_form_stages(masks[name])
            for name in ("srcAccessMask", "dstAccessMask"):
                first[name] = first_form_accesses(masks[name])
            name = f"dependency{at}"
            yield f", {_FORMS[0]} (pDependencies[{at}])", ("VkSubpassDependency", first, name)
            yield f", {_FORMS[1]} (pDependencies[{at}])", ("VkSubpassDependency2", second, name)
