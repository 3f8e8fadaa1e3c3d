"""The files of the page of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.generated_text import visible
from vkharness.report.page.row_words import line_of
from vkharness.report.rules import address, rule_name
from vkharness.report.story_text import story_heading
from vkharness.results.stories import Story
from vkharness.whole_file import write_whole

SCRIPTS = ("rows.js", "surface.js", "detail.js", "page.js")
"""In the order in which they run."""
COPIED = ("page.css", *SCRIPTS)


def write_head(
    folder: Path,
    run: Mapping[str, Any],
    lines: Sequence[Mapping[str, Any]],
    numbers: Mapping[str, int],
    changes: Sequence[Mapping[str, str]] | None,
    notes: Iterable[str],
    stories: Iterable[Story] = (),
    computed: str = "",
) -> Path:
    """Writes everything but the data of the scenarios; the path of `index.html`. Raises `UserError`.

    `run` is the first line of a results file, with `joined` where it stands for several files; `lines` are its rows,
    `numbers` the numbers of the scenarios' data files by the name of the scenario. `changes` are `{"kind", "row",
    "text"}`, None where nothing was compared. `notes` are what a reader should know of the run, `stories`
    are why rows need a look, `computed` says of how many rows bytes were computed.
    """
    import jinja2

    data = {
        "rows": [line_of(line, numbers[line["row"]["scenario"]]) for line in lines],
        "stories": [[story_heading(each), len(each.rows), each.first.nodeid] for each in stories],
        "changes": None if changes is None else [dict(each) for each in changes],
    }
    package = resources.files(__package__)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, finalize=visible)
    template = environment.from_string((package / "index.html.jinja").read_text(encoding="utf-8"))
    try:
        (folder / "data").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror}") from None
    for name in COPIED:
        write_whole(folder / name, (package / name).read_text(encoding="utf-8"))
    write_whole(folder / "data" / "run.js", f"vkharness.take_run({json.dumps(data, separators=(',', ':'))});\n")
    links = {"rules": address(""), "rule_name": rule_name("")}
    told = {**links, "joined": run.get("joined", ()), "notes": list(notes), "computed": computed}
    page = template.render(run=run, scripts=SCRIPTS, count=len(lines), **told)
    write_whole(folder / "index.html", page)
    return folder / "index.html"


def write_scenario(folder: Path, number: int, data: Mapping[str, Any]) -> None:
    """Writes the data of one scenario. Raises `UserError`."""
    text = json.dumps(data, separators=(",", ":"))
    write_whole(folder / "data" / f"{number}.js", f"vkharness.take_scenario({number},{text});\n")
