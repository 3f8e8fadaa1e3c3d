"""Before a run: every driver and every layer is started once, so that a broken one is an error and not 2,000 skips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from vkharness.device.drivers import Driver
from vkharness.device.inventory import Job, survey
from vkharness.findings import UserError
from vkharness.layer.manifest import LayerInfo
from vkharness.results.result_lines import DeviceIdentity, LayerIdentity

START = "vkharness.layer.start:start_job"


class Started(NamedTuple):
    """The drivers' and layers' identities, as they gave them when they were started, and the loader's version."""

    devices: tuple[DeviceIdentity, ...]
    layers: tuple[LayerIdentity, ...]
    loader: str | None


def start_all(drivers: Sequence[Driver], layers: Sequence[LayerInfo]) -> Started:
    """Starts each driver in a process of its own, and each layer on it.

    Raises `UserError` with a line for each that does not start, and below it the errors that the loader prints.
    """
    jobs: dict[str, Job] = {layer.version_text: (START, {"layer": str(layer.manifest)}) for layer in layers}
    with ThreadPoolExecutor(max(1, len(drivers))) as pool:
        surveys = list(pool.map(lambda driver: survey(driver, jobs), drivers))
    problems = [
        line for driver, found in zip(drivers, surveys, strict=True) for line in _problems(driver, layers, found)
    ]
    if problems:
        raise UserError("\n".join(dict.fromkeys(problems)))
    return Started(
        tuple(identity(driver, found) for driver, found in zip(drivers, surveys, strict=True)),
        tuple(LayerIdentity(each.version_text, str(each.manifest), each.library) for each in layers),
        next((found["loader"] for found in surveys), None),
    )


def identity(driver: Driver, found: dict[str, Any]) -> DeviceIdentity:
    """Gives the identity of a driver's first device, from its survey `found`. Fields that the device does not tell are
    empty."""
    device: dict[str, Any] = next(iter(found["devices"]), {})
    bare = DeviceIdentity(driver.name, "", "", "", "", str(driver.manifest), driver.library)
    told = {each.name: str(device[each.name]) for each in fields(DeviceIdentity) if each.name in device}
    return DeviceIdentity(**{**asdict(bare), **told})


def _problems(driver: Driver, layers: Sequence[LayerInfo], found: dict[str, Any]) -> Iterator[str]:
    if found["status"] != "ok":
        yield f"device {driver.name} ({driver.manifest}) cannot start: {found['status']}"
        yield from _quoted(found["loader_says"])
    for layer in layers:
        if layer.version_text in found["failed"]:
            status, said = found["failed"][layer.version_text]
            yield f"layer {layer.version_text} ({layer.manifest}) cannot start on {driver.name}: {status}"
            yield from _quoted(said)


def _quoted(said: Sequence[str]) -> Iterator[str]:
    return (f"  the loader says: {line}" for line in said)
