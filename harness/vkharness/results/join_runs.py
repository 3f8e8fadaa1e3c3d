"""Several runs as one: the parts of a run that was cut into shards, and runs of other drivers, builds or layers.

A configuration is a driver, as it says itself, with the Khronos layers that were asked beside it. Where two of them
call their device alike, the rows of the second one are on `NAME-2`, as they would be if one run had both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.results.read_results import JoinedFile, Results, RowOrigin
from vkharness.results.result_lines import DeviceIdentity, LayerIdentity, RowResult, RunEnd, RunHeader

MOST_NAMED = 8
"""Missing parts of one run that are named; of more, the number is said."""
INTERRUPTED = (2, 3)
"""Exit codes of pytest for a run that was interrupted. They outweigh those of failures."""
Configuration = tuple[DeviceIdentity, tuple[LayerIdentity, ...]]


def join_runs(several: Sequence[Results]) -> Results:
    """The runs as one; a single one as it is, but for notes of the parts that are missing beside it.

    `Results.origins` says for each row of several runs where its artifacts lie. Raises `UserError` for a row that two
    runs have in the same configuration, and where there is no run at all.
    """
    if not several:
        raise UserError("no results to join")
    missing = list(_missing_parts(several))
    if len(several) == 1:
        several[0].notes += missing
        return several[0]
    names = _names(several)
    whole = Results(several[0].path, _header(several, names), end=_end(several))
    whole.notes = [*missing, *(note for each in several for note in each.notes)]
    whole.resumed = [moment for each in several for moment in each.resumed]
    whole.joined = [_joined(each, names) for each in several]
    taken: dict[str, Path] = {}
    for each in several:
        renamed = _renamed(each, names)
        for row in each.rows.values():
            origin = RowOrigin(each.path.parent, row.nodeid, row.row["device"], row.row["device"])
            if row.row["device"] in renamed:
                name, manifest = renamed[row.row["device"]]
                row, origin = _moved(row, name), replace(origin, driver=f"{origin.device}={manifest}")
            if row.nodeid in taken:
                first = taken[row.nodeid]
                raise UserError(
                    f"{each.path}: {first} has the row {origin.nodeid!r}, too, on the same driver and layers"
                )
            taken[row.nodeid] = each.path
            whole.rows[row.nodeid], whole.origins[row.nodeid] = row, origin
    return whole


def _names(several: Sequence[Results]) -> dict[Configuration, str]:
    """A name for each configuration that no other one has: that of its device, with a number from the second on."""
    called = {device.device for each in several for device in each.header.devices}
    names: dict[Configuration, str] = {}
    last: Counter[str] = Counter()
    for each in several:
        for device in each.header.devices:
            if (device, each.header.layers) not in names:
                name = device.device
                last[device.device] += 1
                while last[device.device] > 1 and name in called:
                    name = f"{device.device}-{last[device.device]}"
                    last[device.device] += name in called
                names[device, each.header.layers] = name
    return names


def _renamed(run: Results, names: dict[Configuration, str]) -> dict[str, tuple[str, str]]:
    """(its name here, its manifest) of each device of a run that another configuration is called like."""
    found = ((device, names[device, run.header.layers]) for device in run.header.devices)
    return {device.device: (name, device.manifest) for device, name in found if name != device.device}


def _moved(row: RowResult, name: str) -> RowResult:
    """The row on a device of that name."""
    ending = f"-{row.row['device']}]"
    nodeid = row.nodeid
    nodeid = f"{nodeid.removesuffix(ending)}-{name}]" if nodeid.endswith(ending) else f"{nodeid} on {name}"
    return replace(row, nodeid=nodeid, row={**row.row, "device": name})


def _header(several: Sequence[Results], names: dict[Configuration, str]) -> RunHeader:
    headers = [each.header for each in several]
    seeds = {each.seed for each in headers}
    layers = dict.fromkeys(layer for each in headers for layer in each.layers)
    keys = dict.fromkeys(key for each in headers for key in each.options)
    return RunHeader(
        _words(each.harness for each in headers),
        _words(each.python for each in headers),
        min(each.started for each in headers),
        tuple(replace(device, device=name) for (device, _), name in names.items()),
        tuple(layers),
        _words(each.loader for each in headers) or None,
        seeds.pop() if len(seeds) == 1 else None,
        None,
        {key: _option([each.options.get(key) for each in headers]) for key in keys},
    )


def _words(several: Iterator[str | None]) -> str:
    return ", ".join(dict.fromkeys(each for each in several if each))


def _option(values: list[Any]) -> Any:
    """The value that all runs have, else those of all in words."""
    if all(each == values[0] for each in values):
        return values[0]
    return _words(str(each) for each in values if each)


def _end(several: Sequence[Results]) -> RunEnd | None:
    """The end of all; None where one has none."""
    ends = [each.end for each in several if each.end is not None]
    if len(ends) < len(several):
        return None
    codes = [each.exit for each in ends]
    code = next((each for each in codes if each in INTERRUPTED), max(codes))
    return RunEnd(sum(each.rows for each in ends), sum(each.seconds for each in ends), code)


def _joined(run: Results, names: dict[Configuration, str]) -> JoinedFile:
    header = run.header
    return JoinedFile(
        str(run.path),
        header.started,
        header.shard,
        len(run.rows),
        tuple(names[device, header.layers] for device in header.devices),
        tuple(layer.version for layer in header.layers),
    )


def _missing_parts(several: Sequence[Results]) -> Iterator[str]:
    """A line for each run of which parts are missing. Parts of one run have the same number of parts, harness, loader,
    devices and layers."""
    parts: dict[tuple[Any, ...], dict[int, Path]] = {}
    for each in several:
        header = each.header
        if header.shard is not None:
            number, of = header.shard
            key = (of, header.harness, header.loader, header.devices, header.layers)
            parts.setdefault(key, {}).setdefault(number, each.path)
    for (of, *_), here in parts.items():
        count = of - sum(1 <= number <= of for number in here)
        if count > 0:
            named = islice((number for number in range(1, of + 1) if number not in here), MOST_NAMED)
            more = f" and {count - MOST_NAMED} more" if count > MOST_NAMED else ""
            of_what = ", ".join(str(path) for path in islice(here.values(), MOST_NAMED))
            part, are = ("parts", "are") if count > 1 else ("part", "is")
            yield f"{part} {', '.join(map(str, named))}{more} of {of} {are} missing beside {of_what}"
