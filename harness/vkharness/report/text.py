"""Findings in words for a terminal or a pipe: both call sites, both accesses, and the dependency that is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from vkharness.findings import ENGINE_QUEUE, Certainty, Finding, Place, Unjudged, UnseenWrite
from vkharness.groups import Findings, Group
from vkharness.queue_ids import queue_and_device
from vkharness.report.printable import printable, quoted
from vkharness.report.rules import address, rule_name, rule_of
from vkharness.report.sentences import explain, named, resource_text
from vkharness.report.stack_text import relative, site_text, stack_text
from vkharness.trace.calls import CUT_OFF
from vkharness.verdicts import INCOMPLETE, JudgedShare, ProgramEnd

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

NOTHING = Unjudged()
WITHIN_COMMANDS = "races between invocations are not judged here; `vkharness races` looks inside dispatches"
MOST_UNSEEN = 10
"""The most memory objects with writes that the host cannot see which are named in a text."""
UNSEEN = "mapped and never made visible to the host, as a read of it would need"
NOTHING_SUBMITTED = "nothing was submitted to a queue"
VERDICT_STYLES = {"clean": "bold green", "hazards": "bold red", "unknown": "bold yellow"}

BOUND = "at most: which bytes are read follows from contents that are unknown"
UNCOUNTED = "not counted (strict)"
"""Stands before a hazard that counts with `--strict` alone."""
ONE_JUDGE = {"syncval": "syncval alone; the model finds nothing", "model": "the model alone; syncval finds nothing"}


MOST_RESOURCES = 3
"""The most further resources of a group that are named."""


def group_text(group: Group) -> Text:
    """A group by the finding that stands for it, with its number, how often it was found, and where else."""
    text = finding_text(group.first, f"{group.number}. ", often_text(group))
    for line in _also(group):
        text.append("  also: ", style="dim")
        text.append(f"{line}\n")
    return text


def failure_text(group: Group) -> str:
    """A group as a test fails with it: what the Khronos layer calls it, both call sites, and the rule."""
    found = group.first
    mild = f"{UNCOUNTED}: " if found.uncounted else ""
    lines = [f"{group.number}. {mild}{found.vuid}{often_text(group)}: {found.message}"]
    for each, site in ((found.place, found.site), (found.prior, found.prior_site)):
        lines.append(f"    {printable(each.command)} at {relative(site or str(None))}")
    return "\n".join(
        [*lines, *(f"    also: {line}" for line in _also(group)), f"    rule: {rule_name(rule_of(found))}"]
    )


def _also(group: Group) -> list[str]:
    """The line that names the other resources of a group, if it has any."""
    others = [resource_text(each.first) for each in group.recurring if each.first is not group.first]
    more = len(others) - MOST_RESOURCES
    named = "; ".join(others[:MOST_RESOURCES])
    return [f"{named}; and {more} more" if more > 0 else named] if others else []


def often_text(several: Findings) -> str:
    """`, 300 times in frames 7 to 306`; empty for what was found once."""
    first, last = several.first_frame, several.last_frame
    frames = "" if first is None else f" in frame {first}" if first == last else f" in frames {first} to {last}"
    ignored = f", {several.ignored:,} of them ignored" if several.ignored else ""
    return f", {several.count:,} times{frames}{ignored}" if several.count > 1 else ""


def finding_text(finding: Finding, number: str = "", often: str = "") -> Text:
    """A finding as a few lines, styled; `.plain` is the same without styles. `number` and `often` stand in the first
    line, before and after what was found."""
    from rich.text import Text

    text = Text()
    text.append(number, style="bold")
    text.append(mild := _mild(finding), style="bold yellow")
    text.append(finding.hazard, style="bold yellow" if mild else "bold red")
    text.append(f" on {resource_text(finding)}")
    text.append(f" ({BOUND})" if finding.certainty is Certainty.BOUND else "", style="yellow")
    text.append(f"{often}\n")
    stacks = stack_text(finding)
    places = (
        ("", finding.place, finding.access, finding.labels, finding.frame, finding.site, stacks.place),
        (
            *("after ", finding.prior, finding.prior_access, finding.prior_labels, finding.prior_frame),
            *(finding.prior_site, stacks.prior),
        ),
    )
    for word, place, access, labels, frame, site, way in places:
        text.append(f"  {word:6}")
        text.append(printable(place.command) or "(host)", style="bold")
        if access:  # an operation on an event or an unflushed host write has none
            text.append(f" {access}", style="cyan")
        if labels:
            text.append(f" in {quoted(labels)}")
        if site:
            text.append(f" at {relative(site)}", style="underline")
        text.append(f" ({_where(place, frame, finding.names)})\n", style="dim")
        if way:
            text.append(f"          {way}\n", style="dim")
    if stacks.both:
        text.append(f"  both {stacks.both}\n", style="dim")
    if len(finding.judges) == 1:
        text.append(f"  found by: {ONE_JUDGE[finding.judges[0]]}\n", style="yellow")
    if finding.refuted:
        text.append(f"  refuted on this run: the two touch no byte in common ({finding.refuted})\n", style="green")
    if finding.uncounted:
        text.append(f"  {UNCOUNTED}: {finding.uncounted.reason}\n", style="yellow")
    words = explain(finding)
    for what, line in (("missing", words.missing), ("nearest", words.nearest)):
        if line:
            text.append(f"  {what}: ", style="dim")
            text.append(f"{line}\n")
    text.append("  rule: ", style="dim")
    rule = rule_of(finding)
    text.append(rule_name(rule), style=f"link {address(rule)}")
    text.append("\n")
    return text


def _mild(finding: Finding) -> str:
    """Stands before what is wrong where it counts for no verdict."""
    return "advice: " if finding.advice else f"{UNCOUNTED}: " if finding.uncounted else ""


def summary_text(
    verdict: str,
    groups: Sequence[Group],
    unmodelled: Mapping[str, int],
    unjudged: Unjudged = NOTHING,
    end: ProgramEnd | None = None,
) -> Text:
    """The verdict as one line; then advice, what is unmodelled, by name, and what the verdict leaves out. `end` is how
    the program ended."""
    from rich.text import Text

    text = Text()
    failed = end is not None and end.failed
    if failed:  # which says why the trace is cut off
        unmodelled = {name: count for name, count in unmodelled.items() if not name.startswith(f"{CUT_OFF} ({end}")}
    hazards = [each for each in groups if each.counts]
    advice = [each for each in groups if each.first.advice]
    uncounted = [each for each in groups if each.first.uncounted]
    refuted = [each for each in groups if each.first.refuted]
    ignored = [each for each in groups if each.ignored]
    if hazards:
        what = f"{len(hazards)} {'hazard' if len(hazards) == 1 else 'hazards'}: {_counted(hazards)}"
        times = sum(each.count - each.ignored for each in hazards)
        what += f"; found {times:,} times" if times > len(hazards) else ""
    elif unmodelled:
        what = "no hazard found, but not every command is modelled"
    else:
        what = "no hazard"
    what += f"; {end}" if failed else ""
    what += f"; {NOTHING_SUBMITTED}" if unjudged.nothing_submitted and not groups else ""
    text.append(verdict, style=VERDICT_STYLES.get(verdict, "bold"))
    text.append(f" - {what}")
    if end is not None and end.judged is not JudgedShare.WHOLE:
        text.append(f"\n{INCOMPLETE[end.judged]}", style="yellow")
    if advice:
        text.append(f"\nadvice: {_counted(advice)}", style="yellow")
    if uncounted:
        text.append(f"\n{UNCOUNTED}: {_counted(uncounted)}", style="yellow")
    if refuted:
        text.append(f"\nrefuted on this run, and not counted: {_counted(refuted)}", style="green")
    if ignored:
        times = sum(each.ignored for each in ignored)
        often = f"; found {times:,} times" if times > len(ignored) else ""
        text.append(f"\nignored, and not counted: {_counted(ignored)}{often}", style="cyan")
    if unmodelled:
        names = ", ".join(f"{printable(name)} x{count}" for name, count in sorted(unmodelled.items()))
        text.append(f"\nnot modelled: {names}", style="yellow")
    for line in unjudged_lines(unjudged):
        text.append(f"\n{line}", style="dim")
    return text


def unjudged_lines(unjudged: Unjudged) -> list[str]:
    """Lists what a verdict does not judge: `17 draws read vertices through indices whose contents are unknown`."""
    lines = [*_draws(unjudged), *_unseen_lines(unjudged.never_visible), *_outside(unjudged.outside_waits)]
    return [*lines, *[WITHIN_COMMANDS] * unjudged.storing_shaders]


def _outside(waits: int) -> list[str]:
    """`3 waits for signals from outside, taken to come after what was signaled to the outside`."""
    many = "wait" if waits == 1 else "waits"
    return [f"{waits} {many} for signals from outside, taken to come after what was signaled to the outside"] * bool(
        waits
    )


def _unseen_lines(writes: Sequence[UnseenWrite]) -> list[str]:
    """One line for each memory object."""
    by_memory: dict[int, list[UnseenWrite]] = {}
    for each in writes:
        by_memory.setdefault(each.memory, []).append(each)
    lines = [f"{UNSEEN}: {_unseen(several)}" for several in by_memory.values()]
    more = len(lines) - MOST_UNSEEN
    return lines if more <= 0 else [*lines[:MOST_UNSEEN], f"and {more} more memory objects"]


def _unseen(writes: Sequence[UnseenWrite]) -> str:
    """Describes the unseen writes of one memory object: its resources, and the commands, first and last by name."""
    first, last = (choose(writes, key=lambda each: each.place.call) for choose in (min, max))
    what = f"{first.resource_type} {named(first.resource, {first.resource: first.resource_name})}"
    others = len({each.resource for each in writes}) - 1
    what += f" and {others} more in VkDeviceMemory {first.memory}" if others else ""
    if len(writes) == 1:
        return f"{size_text(first.size)} of {what}, written by {_writer(first)}"
    return f"{what}, written by {len(writes)} commands, first {_writer(first)}, last {_writer(last)}"


def _writer(write: UnseenWrite) -> str:
    where = site_text(write.place.site or "") or f"call {write.place.call}"
    return f"{write.place.command} at {where}"


def size_text(size: int) -> str:
    """`4 MiB`, `1.5 KiB`, `12 bytes`."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >> power:
            return f"{size / (1 << power):.4g} {unit}"
    return f"{size} bytes"


def _draws(unjudged: Unjudged) -> list[str]:
    return [
        f"{count} {'draw reads' if count == 1 else 'draws read'} {what}"
        for what, count in sorted(unjudged.left_out.items())
    ]


def print_verdict(
    console: Console,
    verdict: str,
    groups: Sequence[Group],
    unmodelled: Mapping[str, int],
    unjudged: Unjudged = NOTHING,
    end: ProgramEnd | None = None,
) -> None:
    """Prints every group that is not ignored, and the summary. Lines are never wrapped, so that they can be searched
    and piped."""
    for group in groups:
        if group.ignored < group.count:
            console.print(group_text(group), soft_wrap=True, highlight=False)
    console.print(summary_text(verdict, groups, unmodelled, unjudged, end), soft_wrap=True, highlight=False)


def _counted(groups: Iterable[Group]) -> str:
    """'2 READ_AFTER_WRITE, 1 WRITE_AFTER_READ': how many there are of each kind."""
    kinds = Counter(str(each.first.hazard) for each in groups)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _where(place: Place, frame: int | None, names: Mapping[int, str]) -> str:
    """'call 12, command buffer 5 "main", submit 20, queue 3, frame 7': what of that is known."""
    parts = [f"call {place.call}"]
    if place.command_buffer is not None:
        parts.append(f"command buffer {named(place.command_buffer, names)}")
    if place.submit is not None:
        parts.append(f"submit {place.submit}")
    queue = _queue(place)
    if queue is not None:
        of_program, device = queue_and_device(queue)
        parts.append(f"queue {named(of_program, names)}")
        parts += [f"device index {device}"] * (device > 0)
    if frame is not None:
        parts.append(f"frame {frame}")
    return ", ".join(parts)


def _queue(place: Place) -> int | None:
    """The presentation engine is a queue to syncval, but none that the program knows."""
    return None if place.queue is None or place.queue >= ENGINE_QUEUE else place.queue
