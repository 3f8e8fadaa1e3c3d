"""The page of a case, in one file that a browser opens from the disk, and the text that says what each file is."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import vkharness
from vkharness.call_sites import Frame, between, frames_of
from vkharness.case import case_steps as steps
from vkharness.case.case_steps import Case
from vkharness.findings import Finding, Place
from vkharness.generated_text import visible
from vkharness.report.page.code_lines import excerpt
from vkharness.report.replay_text import difference_line
from vkharness.report.rules import SITE, address, rule_name, rule_of
from vkharness.report.sentences import explain, resource_text
from vkharness.report.stack_text import relative
from vkharness.whole_file import write_whole

PAGE_FILE, README = "index.html", "README.txt"
TEMPLATES = ("case.html.jinja", "cases.html.jinja", "head.html.jinja")
WORDS = {
    "expected": "right: as submitted",
    "observed": "wrong: as the hazard allows",
    "difference": "where they differ",
}
"""Below pictures."""
MOST_PICTURES = 4
"""Surfaces that the page shows; the folder has all pictures."""
MOST_BYTES = 4 << 20
"""Bytes of pictures that the page holds."""
ABOUT = {
    PAGE_FILE: "this case as a page; a browser opens it, nothing else is needed",
    steps.FINDING: "the hazard in words: both calls, what is missing, the rule",
    steps.FINDING_DATA: "the same as data",
    steps.TRACE: "the smallest trace that still has the hazard, with what buffers and images start with",
    steps.MENDED: "the same trace, mended",
    steps.ORDER: "what must be complete before what; the dashed arrow is missing",
    steps.MEND: "the change that mends the trace as it was recorded, as C and as Python",
    steps.MEND_DATA: "the same as data",
    steps.PICTURES: "what the hazard does to the bytes: expected, observed, where they differ",
}


class SourceLine(NamedTuple):
    """A frame of a stack, with the lines around it where they can be read."""

    frame: Frame
    where: str
    number: int
    lines: Sequence[tuple[int, str]]
    is_shown: bool


class AccessText(NamedTuple):
    """One of the two accesses of a finding."""

    word: str
    command: str
    access: str
    call: int
    stack: Sequence[SourceLine]


class SurfacePictures(NamedTuple):
    """A buffer or an image that differs, with pictures as data URIs: expected, observed, difference."""

    line: str
    pictures: Sequence[tuple[str, str]]


def write_page(case: Case, roots: Sequence[Path]) -> None:
    """Writes `index.html`. `roots` are the folders below which lines of programs may be read. Raises `UserError`."""
    finding = case.finding
    drawing = case.folder / steps.ORDER
    told = {
        "case": case,
        "finding": finding,
        "resource": resource_text(finding),
        "explained": explain(finding),
        "rule": rule_name(rule_of(finding)),
        "rule_address": address(rule_of(finding)) if SITE else "",  # a file of this machine is nobody else's
        "accesses": [
            _access("", finding.place, finding.access, between(finding.place.site, finding.prior.site)[0], roots),
            _access(
                "after", finding.prior, finding.prior_access, between(finding.place.site, finding.prior.site)[1], roots
            ),
        ],
        "surfaces": [*_surfaces(case)],
        "order": _data("image/svg+xml", drawing.read_bytes()) if drawing.exists() else "",
        "mend": _text(case.folder / steps.MEND),
        "scenario": _text(case.folder / case.scenario) if case.scenario else "",
        "steps": {each.title: each for each in case.steps},
        "files": [*files_of(case)],
        "version": vkharness.__version__,
        "drivers": [each.name for each in case.source.drivers],
    }
    write_whole(case.folder / PAGE_FILE, _rendered("case.html.jinja", told))


def write_contents(folder: Path, name: str, cases: Sequence[Case], left_out: int) -> None:
    """Writes the page that leads to those of several cases, and its text. Raises `UserError`."""
    rows = [(case.folder.name, case.group.number, case.finding, resource_text(case.finding)) for case in cases]
    told = {"name": name, "rows": rows, "left_out": left_out, "version": vkharness.__version__}
    write_whole(folder / PAGE_FILE, _rendered("cases.html.jinja", told))
    lines = [f"{len(cases)} synchronization hazards of {name}, each in a folder of its own:", ""]
    lines += [f"  {row[0]}  {row[2].hazard} on {row[3]}" for row in rows]
    lines += ["", f"{left_out} more groups of findings are left out (--first)."] * bool(left_out)
    write_whole(folder / README, visible("\n".join([*lines, ""])))


def write_readme(case: Case) -> None:
    """Writes `README.txt`. Raises `UserError`."""
    finding = case.finding
    lines = [
        f"{finding.hazard} on {resource_text(finding)}, in {case.source.name}",
        "",
        explain(finding).message,
        *(f"{word} {_at(place, site)}" for word, place, site in _places(finding)),
        "",
        "Files",
        "",
        *(f"  {name:{_LONGEST}}  {about}" for name, about in files_of(case)),
        "",
        f"How to run them (with vkharness {vkharness.__version__}, which made this folder, or a later one)",
        "",
        *(f"  {command:{_COMMAND}}  {what}" for command, what in _commands(case)),
        "",
        "What was done",
        "",
        *(f"  {line}" for line in step_lines(case)),
    ]
    write_whole(case.folder / README, visible("\n".join([*lines, ""])))


def step_lines(case: Case) -> Iterator[str]:
    """A line for each thing that a step says, and for each step that failed."""
    for each in case.steps:
        yield from (f"{each.title}: {line}" for line in each.lines)
        if each.trouble:
            yield f"{each.title}: could not be done: {each.trouble}"


def files_of(case: Case) -> Iterator[tuple[str, str]]:
    """Name and purpose of each file that the case has."""
    for name, about in ABOUT.items():
        if name == PAGE_FILE or (case.folder / name).exists():
            yield name, about
    if case.scenario:
        yield case.scenario, "the same as a test: clean with the missing dependency, the hazard shown without it"


_LONGEST, _COMMAND = 34, 48


def _commands(case: Case) -> Iterator[tuple[str, str]]:
    if (case.folder / steps.TRACE).exists():
        yield f"vkharness check {steps.TRACE}", "names the hazard; needs no Vulkan"
        yield f"vkharness replay {steps.TRACE} --mode witness", "shows it on a driver"
    if (case.folder / steps.MENDED).exists():
        yield f"vkharness check {steps.MENDED}", "is clean"
    if case.scenario:
        yield f"pytest {case.scenario}", "runs the scenario and its twin"


def _places(finding: Finding) -> Iterator[tuple[str, Place, str | None]]:
    yield "The later call:  ", finding.place, finding.site
    yield "The earlier call:", finding.prior, finding.prior_site


def _at(place: Place, site: str | None) -> str:
    return f"{place.command or '(host)'} (call {place.call}{f' at {relative(site)}' if site else ''})"


def _access(word: str, place: Place, access: str, part: Sequence[Frame], roots: Sequence[Path]) -> AccessText:
    shown = part[-1] if part else None
    stack = [_source_line(each, each is shown, roots) for each in frames_of(place.site)]
    return AccessText(word, place.command or "(host)", access, place.call, stack)


def _source_line(frame: Frame, is_shown: bool, roots: Sequence[Path]) -> SourceLine:
    name, _, number = frame.site.rpartition(":")
    line = int(number) if number.isdecimal() and len(number) < 9 else 0
    found = next(filter(None, (excerpt(root, name, line) for root in roots)), None) if is_shown else None
    lines = [(at, "".join(text for _, text in pieces)) for at, pieces in found["lines"]] if found else []
    return SourceLine(frame, relative(frame.site), line, lines, is_shown)


def _surfaces(case: Case) -> Iterator[SurfacePictures]:
    """The surfaces that differ, the first ones with pictures. A surface of one run alone has none."""
    folder = case.folder / steps.PICTURES
    record = folder / "record.json"
    shown = json.loads(_text(record)) if record.exists() else case.shown
    left = MOST_BYTES
    for at, difference in enumerate(shown.get("differences", ())):
        uris = []
        for name in difference.get("pictures", ()) if at < MOST_PICTURES else ():
            data = (folder / name).read_bytes()
            left -= len(data)
            if left >= 0:
                kind = Path(name).stem.rpartition("-")[2]
                uris.append((WORDS.get(kind, kind), _data("image/png", data)))
        yield SurfacePictures(difference_line(difference), uris)


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode('ascii')}"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _rendered(name: str, told: dict[str, Any]) -> str:
    import jinja2

    package = resources.files(__package__ or "")
    sources = {each: (package / each).read_text(encoding="utf-8") for each in TEMPLATES}
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, finalize=visible, loader=jinja2.DictLoader(sources)
    )
    return environment.get_template(name).render(**told)
