"""Results of replays in words: what was observed, what differed, and the string that reproduces it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vkharness.report.printable import printable
from vkharness.report.rows import PROMISES
from vkharness.report.sentences import labelled, named
from vkharness.verdicts import BrokenPromise


def result_lines(mode: str, result: dict[str, Any]) -> Iterator[str]:
    """A result in words, a line each."""
    if mode == "witness":
        yield from _witness_lines(result)
        return
    if result.get("reason"):
        yield f"{mode} on {result['device']}: {result['reason']}"
        return
    surfaces = result.get("surfaces", [])
    yield f"{mode} on {result['device']}: {len(surfaces)} buffers and image subresources observed"
    for resource, reason in result.get("unobserved", {}).items():
        yield f"  not observed: {resource}: {reason}"
    for note in result.get("notes", []):
        yield f"  note: {note}"
    if "bytes" in result:
        yield f"  {_bytes_line(result['bytes'])}"
    if mode == "reorder":
        yield from _reorder_lines(result)
    runs = result.get("runs")
    if runs is not None:
        yield f"  {result['differing_runs']} of {len(runs)} runs differ from the serial one"
        for number, run in enumerate(runs, start=1):
            for difference in run:
                yield f"  run {number}: {difference_line(difference)}"


def _bytes_line(said: Mapping[str, Any]) -> str:
    """How many bytes were computed without the driver, and whether it left them; else which promise it broke."""
    if said["broken"]:
        return printable(f"{PROMISES[BrokenPromise(said['broken'])]} ({said['difference']})")
    line = f"{said['known']} of {said['total']} bytes computed without the driver"
    if not said["left"]:
        return f"{line}; others left: accesses of one render pass instance race"
    line += ", and left so" if said["known"] else ""
    if said["unknown"]:
        first, *more = said["unknown"]
        line += f"; not the others: {first}" + (f", and {len(more)} more reasons" if more else "")
    return printable(line)


def _witness_lines(result: dict[str, Any]) -> Iterator[str]:
    found = result["finding"]
    word = "shown" if result["shown"] else "not shown"
    yield f"{result['number']}. {found['hazard']} {_use(found, '')} after {_use(found, 'prior_')}: {word}"
    times = f", {found['count']:,} times" if found["count"] > 1 else ""
    if found["resource_name"] or times:
        resource = named(found["resource"], {found["resource"]: found["resource_name"]})
        yield f"   on {found['resource_type']} {resource}{times}"
    if found["site"] or found["prior_site"]:
        yield printable(f"   at {found['site']} after {found['prior_site']}")
    if found["refuted"]:
        yield f"   refuted on this run: the two touch no byte in common ({found['refuted']})"
    if result.get("follows"):
        yield f"   a later wait may take the earlier signal, and then: {result['follows']}"
    if result["reason"]:
        yield f"   {result['reason']}"
    for failed in result.get("failed", ()) if result["shown"] else ():
        yield printable(f"   one of these could not be executed: {failed}")
    for difference in result["differences"]:
        yield f"   {difference_line(difference)}"
    if result["differences"] and result["outcome"].endswith(":poison"):
        yield "   undefined contents are filled with bytes cd"
    if result["outcome"]:
        yield f"   outcome: {result['outcome']}"
    for picture in result.get("pictures", []):
        yield f"   {picture}"


def caption(found: dict[str, Any]) -> str:
    """Returns the caption of a finding's picture, from `Finding.to_dict()`: hazard, resource, both accesses."""
    resource = named(found["resource"], {found["resource"]: found["resource_name"]})
    uses = " after ".join(f"{_use(found, which)}{_at(found[f'{which}site'])}" for which in ("", "prior_"))
    return f"{found['hazard']} on {found['resource_type']} {resource}: {uses}"


def _at(site: str | None) -> str:
    return f" at {printable(site)}" if site else ""


def _use(found: dict[str, Any], which: str) -> str:
    """A command of a finding with its label regions and its frame."""
    frame = found[f"{which}frame"]
    text = labelled(printable(found[f"{which}command"]), found[f"{which}labels"])
    return text if frame is None else f"{text} (frame {frame})"


def _reorder_lines(result: dict[str, Any]) -> Iterator[str]:
    executed = [order for order in result["orders"] if not order["same_as"]]
    yield f"  {result['differing_runs']} of {len(executed)} legal orders differ from the serial run"
    if result["unstable"]:
        resources = ", ".join(str(resource) for resource in result["unstable"])
        yield f"  not compared: two serial runs differ in {resources}"
    for order in executed:
        said = "differs" if order["differences"] else "the same bytes"
        yield f"  {order['outcome']}: {order['moved']} of {result['units']} out of place, {said}"
        for difference in order["differences"]:
            yield f"    {difference_line(difference)}"


def difference_line(difference: dict[str, Any]) -> str:
    """'buffer 7: 64 of 64 differ, first at (0,): expected 11111111, observed 00000000'."""
    where = f"{difference['kind']} {difference['resource']}"
    if difference["subresource"]:
        where += " (" + ", ".join(f"{key} {value}" for key, value in difference["subresource"].items()) + ")"
    first = ", ".join(map(str, difference["first"]))
    return (
        f"{where}: {difference['count']} of {difference['total']} differ, first at {first}: "
        f"expected {difference['expected']}, observed {difference['observed']}"
    )
