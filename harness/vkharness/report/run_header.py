"""The head of a run in words: which harness, loader, drivers and layers."""

from __future__ import annotations

from collections.abc import Iterator

from vkharness.results.result_lines import DeviceIdentity, RunHeader


def header_lines(header: RunHeader) -> Iterator[str]:
    """A line for the harness, one for each driver, one for each layer."""
    yield harness_line(header.harness, header.python, header.loader, header.seed)
    for device in header.devices:
        yield f"device {device.device}: {device_words(device)}"
    for layer in header.layers:
        yield f"layer {layer.version}: {layer.library} ({layer.manifest})"
    if not header.layers:
        yield "layer: none is asked"
    if header.shard:
        yield f"shard {header.shard[0]} of {header.shard[1]}"


def harness_line(harness: str, python: str, loader: str | None, seed: int | None = None) -> str:
    """`vkharness 0.1.0, Python 3.11.2, loader 1.3.239, seed 7`."""
    words = [f"vkharness {harness}", f"Python {python}", f"loader {loader or 'none'}"]
    return ", ".join(words if seed is None else [*words, f"seed {seed}"])


def device_words(device: DeviceIdentity) -> str:
    """Its name, versions, UUID and manifest."""
    uuid = f", UUID {device.uuid}" if device.uuid else ""
    return f"{device.name}, API {device.api_version}, {device.driver_version}{uuid} ({device.manifest})"
