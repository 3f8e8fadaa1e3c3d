#!/usr/bin/env python3
"""Makes what is generated of docs/systems: the table of all documents, the figures, what each omission does to pixels.

ci/gen_systems.py                   writes the table of docs/systems/index.md, which needs no driver
ci/gen_systems.py --check           writes nothing; exits 1 when writing would change it
ci/gen_systems.py PAGE ...          runs the scenarios that these pages name, and writes their figures and tables
ci/gen_systems.py --run DIR PAGE    takes the rows of a run that is there (DIR is its --vk-artifacts); may be repeated

A page says what stands where with a comment of its own line. What was generated stands below it, up to an end mark.

figure: scenario_x            the last two accesses of the whole scenario that a dependency orders, with their order
figure: scenario_x[variant]   the first hazard of a twin, by the name that the variant has in test ids
order: scenario_x             the order of all commands of the whole scenario, 24 at most about
frames: scenario_x            the frames of a loop, and who waits for whom (ci/frame_table.py)
omissions: scenario_x ...     a row for each twin: what is left out, the hazard, how many bytes or texels are wrong
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ci import frame_table
from vkharness.model import judge
from vkharness.report.order_svg import draw_svg, standalone
from vkharness.results.read_results import read_results
from vkharness.suite.claims import WHOLE, Claim, ExpectedHazard
from vkharness.suite.judge_scenario import load_module
from vkharness.suite.row_evidence import evidence
from vkharness.trace.codec import load

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "systems"
INDEX = FOLDER / "index.md"
RULES = "../rules.md"
MARK = re.compile(
    r"^<!-- (figure|order|frames|omissions): (.+?) -->\n"
    r"(?:((?:(?!^<!-- (?:figure|order|frames|omissions): ).)*?)^<!-- end -->\n)?",
    re.MULTILINE | re.DOTALL,
)
NAMED = re.compile(r"(\w+)(?:\[(.+)\])?")
TABLE = re.compile(r"<!-- sections -->\n.*?<!-- end -->\n", re.DOTALL)


@dataclass(frozen=True)
class Section:
    """A section of a document: what runs it (`kind:name`, a scenario without a kind), or why nothing can."""

    title: str
    covered: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Document:
    """A document and its sections, from a file in docs/systems/sections that is called as its page."""

    page: str
    title: str
    author: str
    sections: tuple[Section, ...]

    @classmethod
    def read(cls, path: Path) -> Document:
        """Raises ValueError where a section has neither what runs it nor a reason."""
        value = tomllib.loads(path.read_text(encoding="utf-8"))
        sections = tuple(
            Section(each["title"], tuple(each.get("covered", ())), each.get("reason", "")) for each in value["section"]
        )
        for each in sections:
            if not (each.covered or each.reason):
                raise ValueError(f"{path.name}: section {each.title!r} has neither `covered` nor `reason`")
        return cls(f"{path.stem}.md", value["document"], value["author"], sections)


@dataclass
class Runs:
    """Rows of runs of the suite, with the folders that their artifacts are in."""

    rows: dict[tuple[str, str, str], tuple[Path, dict[str, Any]]] = field(default_factory=dict)
    """By scenario, variant and device."""

    def add(self, folder: Path) -> None:
        """The rows of the run in this folder."""
        for result in read_results(folder / "results.jsonl").rows.values():
            row = result.row
            if result.result != "Skip":
                self.rows[row["scenario"].rpartition("/")[2], row["variant"], row["device"]] = folder, row

    def devices(self) -> list[str]:
        """Those with a row, in order."""
        return sorted({device for _, _, device in self.rows})

    def trace(self, scenario: str, variant: str) -> Path:
        """That of the first device that has one. Raises KeyError where none does."""
        for device in self.devices():
            if (scenario, variant, device) in self.rows:
                folder, row = self.rows[scenario, variant, device]
                trace: Path = folder / row["scenario"] / variant / device / "trace.jsonl"
                if trace.exists():
                    return trace
        raise KeyError(f"{scenario}[{variant}] was not recorded on any device")


@cache
def claims() -> dict[str, tuple[str, Claim]]:
    """The path of the file and the claim of each scenario of the suite, by name."""
    return {
        name: (path.relative_to(ROOT).as_posix(), value)
        for path in sorted((ROOT / "scenarios").rglob("scenario_*.py"))
        for name, value in vars(load_module(path)).items()
        if isinstance(value, Claim)
    }


@cache
def rules() -> set[str]:
    """The anchors of docs/rules.md."""
    titles = re.findall(r"^##+ (.+)$", (ROOT / "docs" / "rules.md").read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def documents() -> list[Document]:
    """All documents, in the order of their files."""
    return [Document.read(path) for path in sorted((FOLDER / "sections").glob("*.toml"))]


def link_of(covered: str) -> str:
    """Links to the cover of a section, from a page of docs/systems. Raises ValueError where it does not exist."""
    kind, _, name = covered.partition(":") if ":" in covered else ("scenario", "", covered)
    if kind == "scenario":
        path, _ = claims()[name]
        return f"`{name}` ({path.removeprefix('scenarios/')})"
    if kind == "rule":
        if name not in rules():
            raise ValueError(f"docs/rules.md has no rule {name}")
        return f"rule [{name}]({RULES}#{name})"
    if kind == "page":
        return f"[{name}]({name})"
    if kind == "test":
        path, _, test = name.partition("::")
        if f"def {test}" not in (ROOT / path).read_text(encoding="utf-8"):
            raise ValueError(f"{path} has no {test}")
        return f"test `{test}` ({path.removeprefix('tests/')})"
    if kind == "command":
        return f"`{name}`"
    raise ValueError(f"{covered!r}: write a scenario, rule:, page:, test: or command:")


def table() -> str:
    """The sections of all documents."""
    lines = []
    for each in documents():
        lines += [f"\n## [{each.title}]({each.page})\n", f"By {each.author}.\n"]
        lines += ["| section | where it runs |", "|---|---|"]
        lines += [f"| {section.title} | {_where(section)} |" for section in each.sections]
    return "\n".join(lines) + "\n"


def _where(section: Section) -> str:
    return "; ".join([*map(link_of, section.covered), *([section.reason] if section.reason else [])])


def marks(text: str) -> Iterator[tuple[str, str, str]]:
    """Kind and argument of each mark of a page, and what stands below it."""
    for found in MARK.finditer(text):
        yield found[1], found[2], found[3] or ""


def named(marked: Iterator[tuple[str, str, str]]) -> set[str]:
    """The scenarios that marks name."""
    return {word.partition("[")[0] for _, argument, _ in marked for word in argument.split()}


def generated(runs: Runs, page: str, kind: str, argument: str) -> str:
    """Generates the text below a mark."""
    if kind == "omissions":
        return omissions(runs, argument.split())
    found = NAMED.fullmatch(argument)
    if found is None:
        raise ValueError(f"{page}: {kind}: {argument}: write scenario_x or scenario_x[variant]")
    scenario, variant = found[1], found[2] or WHOLE
    trace = runs.trace(scenario, variant)
    if kind == "frames":
        return frame_table.table(load(trace))
    if kind == "order":
        return shown(page, scenario, "order", "the order of its commands", draw_svg(judge(load(trace)), None, 24))
    said = evidence(trace)
    svg = (said["groups"] or said["ordered"])[0]["order"]
    return shown(page, scenario, variant, "what orders two accesses" if variant == WHOLE else "the hazard", svg)


def shown(page: str, scenario: str, variant: str, what: str, svg: str) -> str:
    """Writes a figure, and gives the line that shows it."""
    name = f"{page.removesuffix('.md')}-{scenario.removeprefix('scenario_')}-{variant}.svg"
    (FOLDER / "images").mkdir(exist_ok=True)
    (FOLDER / "images" / name).write_text(standalone(svg), encoding="utf-8")
    return f"![{scenario}, {variant.replace('_', ' ')}: {what}](images/{name})\n"


def omissions(runs: Runs, scenarios: Sequence[str]) -> str:
    """A table with a row for each twin of these scenarios."""
    devices = runs.devices()
    lines = [f"| scenario | left out or weakened | hazard | {' | '.join(devices)} |", "|---" * (3 + len(devices)) + "|"]
    for scenario in scenarios:
        for variant, expected in claims()[scenario][1].variants.items():
            if variant.kind != WHOLE:
                cells = [pixels(runs, scenario, variant.name, device) for device in devices]
                row = [f"`{scenario}`", variant.name.replace("_", " "), hazards(expected), *cells]
                lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def hazards(expected: Sequence[ExpectedHazard]) -> str:
    """Lists the hazards of a variant."""
    return "; ".join(map(str, expected)) or "none"


def pixels(runs: Runs, scenario: str, variant: str, device: str) -> str:
    """Tells the effect of a twin on the bytes on a device: the largest of the changes by the witness of its hazards."""
    if (scenario, variant, device) not in runs.rows:
        return "cannot run"
    folder, row = runs.rows[scenario, variant, device]
    changed = [entry for artifact in row["artifacts"] for entry in _differences(folder / artifact)]
    if not changed:
        return "nothing changes" if row["expected"] else "in order"
    most = max(changed, key=lambda each: each["count"] / each["total"])
    unit = "words" if most["subresource"] is None else "texels"
    return f"{most['count']:,} of {most['total']:,} {unit} wrong"


def _differences(folder: Path) -> list[dict[str, Any]]:
    path = folder / "record.json"
    if not path.exists():
        return []
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["differences"]
    return found


def run(scenarios: set[str]) -> Path:
    """Runs these scenarios without the Khronos layer; the folder of the run."""
    folder = Path(tempfile.mkdtemp(prefix="systems-"))
    ids = [f"{claims()[name][0]}::{name}" for name in sorted(scenarios)]
    command = [sys.executable, "-m", "pytest", "-q", "--vk-layer", "off", f"--vk-artifacts={folder}", *ids]
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(f"ci/gen_systems.py: the scenarios do not pass; nothing is written. Their rows are in {folder}")
    return folder


def write(page: Path, runs: Runs) -> None:
    """Writes what is generated of a page, below each mark."""
    text = page.read_text(encoding="utf-8")

    def below(found: re.Match[str]) -> str:
        made = generated(runs, page.name, found[1], found[2])
        return f"<!-- {found[1]}: {found[2]} -->\n\n{made}\n<!-- end -->\n"

    page.write_text(MARK.sub(below, text), encoding="utf-8")


def write_table(check: bool) -> int:
    """Writes the table of the index, or only compares. Returns the exit status."""
    text = INDEX.read_text(encoding="utf-8")
    made = TABLE.sub(lambda _: f"<!-- sections -->\n{table()}\n<!-- end -->\n", text)
    if made == text:
        return 0
    if check:
        print("docs/systems/index.md is not what ci/gen_systems.py makes; run it", file=sys.stderr)
    else:
        INDEX.write_text(made, encoding="utf-8")
    return int(check)


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    parser.add_argument("--check", action="store_true", help="only compare the table")
    parser.add_argument("--run", action="append", type=Path, default=[], metavar="DIR", help="a run that is there")
    options = parser.parse_args(arguments)
    if options.pages:
        wanted = {each for page in options.pages for each in named(marks(page.read_text(encoding="utf-8")))}
        runs = Runs()
        for folder in options.run or [run(wanted)]:
            runs.add(folder)
        for page in options.pages:
            write(page, runs)
    return write_table(options.check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
