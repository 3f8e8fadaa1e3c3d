"""The scenario of a reduced trace, written where it passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vkharness.device.drivers import Driver
from vkharness.findings import UserError
from vkharness.layer.manifest import AUTO, chosen_layers
from vkharness.reduction.reduce import Reduction
from vkharness.suite.passing_scenario import passing_scenario
from vkharness.whole_file import replacing, write_whole


def write_scenario(path: Path, small: Reduction, source: str, drivers: Sequence[Driver]) -> list[str]:
    """Writes the scenario, and beside it the shaders that the project does not have; what is to be said of it. `source`
    names the trace. Raises `UserError`, and writes nothing, where it does not pass."""
    made, devices, known = passing_scenario(small.blocks, small.finding, path, source, drivers, chosen_layers(AUTO))
    try:
        for name, code in made.shaders.items():
            with replacing(path.with_name(name)) as part:
                part.write_bytes(code)
    except OSError as error:
        raise UserError(f"{path.with_name(name)}: cannot be written: {error.strerror or error}") from None
    write_whole(path, made.text)
    lines = [f"{judge} disagrees, as the scenario says: {why}" for judge, why in known.items()]
    return [*lines, f"{path}: passes on {' and '.join(devices)} (pytest {path})"]
