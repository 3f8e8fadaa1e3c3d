"""Everything that the page tells about the rows of one scenario, as JSON.

Rows, records and traces may come from anywhere: nothing outside the folder of the results is read, and nothing outside
the folder of the sources.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from vkharness.report.page.code_lines import code_of, excerpt
from vkharness.report.page.row_pictures import pictures_of
from vkharness.report.rows import NONE, NOT_ASKED
from vkharness.results.read_results import RowOrigin

NOTHING_SAID = (NONE, NOT_ASKED, "nothing to reorder", "not run")
"""Words of judges that neither agree nor disagree."""
TRACE, BINARIES = "trace.jsonl", "trace.bin"
Evidence = Callable[[Path], dict[str, Any]]
"""Reads the evidence of a trace: `{"problem", "groups", "names", "ordered"}`, see `vkharness.suite.row_evidence`."""


class Places(NamedTuple):
    """Where things are."""

    results: Path
    """The folder of the results file, to which the paths of artifacts are relative."""
    sources: Path
    """The folder to which the files of claims are relative."""
    page: Path
    """The folder of the page."""
    origins: Mapping[str, RowOrigin] = MappingProxyType({})
    """Of rows that come from other files, by their ids."""

    def origin(self, line: Mapping[str, Any]) -> RowOrigin:
        """Where the artifacts of a line of results lie, and what it is called there."""
        device = line["row"]["device"]
        return self.origins.get(line["nodeid"]) or RowOrigin(self.results, line["nodeid"], device, device)


def data_of_scenario(
    lines: Sequence[Mapping[str, Any]], number: int, places: Places, evidence: Evidence
) -> dict[str, Any]:
    """`{"code", "evidence", "rows", "surfaces", "excerpts"}` of the rows of one scenario, lines of a results file.

    `evidence` is by variant: the devices of one variant record the same stream. `rows` is by the id of the row.
    Traces of rows that need a look are copied into the page, below a folder named `number`.
    """
    claim = lines[0]["claim"]
    code = code_of(places.sources, claim["file"], claim["line"])
    data: dict[str, Any] = {"code": code, "evidence": {}, "rows": {}, "surfaces": {}, "excerpts": {}}
    for at, line in enumerate(lines, 1):
        row, origin = line["row"], places.origin(line)
        trace = _trace_of(origin, row)
        if trace is not None and row["variant"] not in data["evidence"]:
            found = evidence(trace)
            for group in found["groups"]:
                group["mend"] = [_shorter(each, places.sources) for each in group["mend"]]
            for pair in found["ordered"]:
                pair["lines"] = [_shorter(each, places.sources) for each in pair["lines"]]
            data["evidence"][row["variant"]] = found
            _add_excerpts(data["excerpts"], found["groups"], code, places.sources)
        names = data["evidence"].get(row["variant"], {}).get("names", {})
        pictures = [
            each
            for name in row["artifacts"]
            if (folder := _inside(origin.folder, name)) is not None
            for each in pictures_of(folder, names, data["surfaces"])
        ]
        for each in pictures:
            each["caption"] = _shorter(each["caption"], places.sources)
        data["rows"][line["nodeid"]] = {
            **{key: line["claim"][key] for key in ("doc", "rule", "twin", "dependency", "weakness", "file", "line")},
            **{key: row[key] for key in ("expected", "reasons", "excused", "problem", "messages", "unmodelled")},
            "judges": judges(row),
            "attempts": line["attempts"],
            "retried": line["retried"],
            "pictures": pictures,
            "commands": _commands(line, trace, f"traces/{number}/{at}", places),
        }
    return data


def judges(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each judge's word: `{"judge", "word", "agrees", "more"}`; `agrees` is None for one that had nothing to say."""
    missing = sorted(set(row["expected"]) - set(row["syncval"]))
    extra = sorted(set(row["syncval"]) - set(row["expected"]))
    said = [
        ("syncval", "; ".join(row["syncval"]) or "clean", not missing and not extra, []),
        ("model", row["model"], not row["model_disagreements"], row["model_disagreements"]),
        *(
            (f"Khronos layer {version}", word, not (more := row["layer_disagreements"].get(version, [])), more)
            for version, word in row["layers"].items()
        ),
        ("pixels", row["witness"], not row["witness"].startswith(("benign", "part", "broken")), []),
        ("bytes", row.get("bytes", NONE), not (row["verdicts"].get("bytes") or {}).get("broken"), []),
        ("native runs", row["native"], not row["native"].startswith("corrupt") or bool(row["expected"]), []),
    ]
    return [
        {"judge": judge, "word": word, "agrees": None if word in NOTHING_SAID else agrees, "more": more}
        for judge, word, agrees, more in said
        if not (row["problem"] and word in (NONE, "clean"))
    ]


def _trace_of(origin: RowOrigin, row: Mapping[str, Any]) -> Path | None:
    """The trace of a row with hazards, of a clean one that did not hold, or of a whole scenario on the first device."""
    folder = _inside(origin.folder, f"{row['scenario']}/{row['variant']}/{origin.device}")
    found = None if folder is None else folder / TRACE
    try:
        return found if found is not None and found.is_file() else None
    except OSError:  # a name that no file can have
        return None


def _inside(folder: Path, name: str) -> Path | None:
    """A path below `folder`; None for one that leaves it."""
    try:
        path = (folder / name).resolve()
    except (OSError, ValueError):
        return None
    return path if path.is_relative_to(folder.resolve()) else None


def _add_excerpts(
    excerpts: dict[str, Any], groups: Sequence[Mapping[str, Any]], code: Mapping[str, Any] | None, sources: Path
) -> None:
    """Adds the lines around each site that is not in the scenario's own code, by the site's `file:line`."""
    own = set() if code is None else {f"{code['file']}:{number}" for number, _ in code["lines"]}
    for group in groups:
        for key in ("site", "prior_site"):
            site = relative_site(group["finding"][key] or "", sources)
            group["finding"][key] = site
            name, _, number = site.rpartition(":")
            if site and site not in own and site not in excerpts and number.isdecimal():
                found = excerpt(sources, name, int(number))
                if found is not None:
                    excerpts[site] = found


def relative_site(site: str, sources: Path) -> str:
    """A site with its file relative to the sources, where it lies below them."""
    name, _, number = site.rpartition(":")
    try:
        return f"{Path(name).relative_to(sources.resolve()).as_posix()}:{number}"
    except ValueError:
        return site


def _shorter(text: str, sources: Path) -> str:
    """A text with sites relative to the sources."""
    return text.replace(f"{sources.resolve()}/", "")


def _commands(line: Mapping[str, Any], trace: Path | None, folder: str, places: Places) -> list[list[str]]:
    """[what it does, the command] of what repeats a row; `folder` of the page is for its trace."""
    origin = places.origin(line)
    device = shlex.quote(origin.driver)
    commands = [["run this row again", f"pytest {shlex.quote(origin.nodeid)} --vk-device {device}"]]
    if trace is None:
        return commands
    shown, note = str(trace), ""
    if line["state"] not in ("Pass", "ExpectedFail"):
        copy = _copy(trace, places.page / folder)
        if copy is not None:
            shown, note = copy.relative_to(places.page).as_posix(), " (in the folder of this page)"
    name = shlex.quote(shown)
    judged = [f"judge its trace{note}", f"vkharness check {name}"]
    if not line["row"]["syncval"]:
        return [*commands, judged, [f"say why it is in order{note}", f"vkharness explain {name}"]]
    commands.append([f"show its hazards{note}", f"vkharness replay {name} --mode witness --device {device}"])
    return [*commands, judged, [f"mend it{note}", f"vkharness mend {name}"]]


def _copy(trace: Path, target: Path) -> Path | None:
    """A copy of a trace and its binaries; None where it cannot be made."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(trace, target / TRACE)
        for each in (trace.parent / BINARIES).glob("*.bin"):
            if each.is_file() and not each.is_symlink():
                (target / BINARIES).mkdir(exist_ok=True)
                shutil.copyfile(each, target / BINARIES / each.name)
    except OSError:
        return None
    return target / TRACE
