"""The page of a results file: judges the traces of its rows again for what the page explains, in several processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from vkharness.device.parent_death import kill_after_parent
from vkharness.report.computed_text import computed_line
from vkharness.report.page.folder import write_head, write_scenario
from vkharness.report.page.scenario_data import Places, data_of_scenario
from vkharness.report.run_changes import page_changes
from vkharness.results.compare_runs import compare_runs
from vkharness.results.computed_counts import count_computed
from vkharness.results.read_results import Results, RowOrigin
from vkharness.results.result_lines import reason_of
from vkharness.results.stories import Story, needs_a_look, stories_of
from vkharness.suite.row_evidence import evidence

FEW = 24
"""Scenarios up to which other processes are not worth their start."""


def page_of_results(results: Results, folder: Path, sources: Path, since: Results | None = None) -> Path:
    """Makes the page of a results file in `folder`; the path of its `index.html`. Raises `UserError`.

    Its changes are those since the earlier run `since`; without one, what the lists of known results did not expect.
    """
    lines = [row.to_dict() for row in results.rows.values()]
    run = results.header.to_dict() | {"joined": [asdict(each) for each in results.joined]}
    changes = None
    if since is not None:
        changes = page_changes(compare_runs(since, results))
    elif run["options"].get("baseline"):
        changes = list(_unexpected(results))
    return write_page(
        folder,
        run,
        lines,
        results.path.parent,
        sources,
        changes=changes,
        notes=results.notes,
        stories=stories_of(results.rows.values()),
        computed=computed_line(count_computed(results.rows.values())),
        origins=results.origins,
    )


def _unexpected(results: Results) -> Iterator[dict[str, str]]:
    """`{"kind", "row", "text"}` of each row that is not as its list says."""
    for row in results.rows.values():
        if needs_a_look(row):
            yield {"kind": str(row.state), "row": row.nodeid, "text": reason_of(row.row)}


def write_page(
    folder: Path,
    run: Mapping[str, Any],
    lines: Sequence[Mapping[str, Any]],
    results: Path,
    sources: Path,
    *,
    changes: Sequence[Mapping[str, str]] | None = None,
    notes: Iterable[str] = (),
    stories: Iterable[Story] = (),
    computed: str = "",
    origins: Mapping[str, RowOrigin] | None = None,
    processes: int | None = None,
) -> Path:
    """Makes the page of a run in `folder`; the path of its `index.html`.

    `run` and `lines` are the first line and the rows of a results file, `results` is the folder of that file, `sources`
    the one to which the files of claims are relative; `changes`, `notes`, `stories` and `computed` are as for
    `write_head`.
    `origins` are as in `Results`, for rows of several files. Raises `UserError` when something cannot be written.
    """
    scenarios: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        scenarios.setdefault(line["row"]["scenario"], []).append(line)
    numbers = {name: number for number, name in enumerate(scenarios, 1)}
    index = write_head(folder, run, lines, numbers, changes, notes, stories, computed)
    places = Places(results.resolve(), sources.resolve(), folder.resolve())
    jobs = [(several, numbers[name], _with(places, several, origins or {})) for name, several in scenarios.items()]
    processes = processes or len(os.sched_getaffinity(0))
    if processes == 1 or len(jobs) <= FEW:
        for job in jobs:
            _write(job)
    else:
        with ProcessPoolExecutor(processes, get_context("spawn"), kill_after_parent) as pool:
            for _ in pool.map(_write, jobs, chunksize=4):
                pass
    return index


def _with(places: Places, lines: Sequence[Mapping[str, Any]], origins: Mapping[str, RowOrigin]) -> Places:
    """The places with the origins of these rows alone: each job goes to another process."""
    ids = [line["nodeid"] for line in lines]
    return places._replace(origins={each: origins[each] for each in ids if each in origins})


def _write(job: tuple[Sequence[Mapping[str, Any]], int, Places]) -> None:
    lines, number, places = job
    write_scenario(places.page, number, data_of_scenario(lines, number, places, evidence))
