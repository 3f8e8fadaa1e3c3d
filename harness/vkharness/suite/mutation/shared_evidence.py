"""A layer's messages about a stream of steps, and the bytes that a driver left, in a file of JSON beside the trace.

Nothing that is shared is imported here before a function is called (`shared_mutants.plant`).
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from vkharness.layer.parse import LayerMessage
    from vkharness.replay.contents.observe import Outputs

SUFFIX = ".evidence"
"""Of the file, in place of the trace's."""


class Evidence(NamedTuple):
    """Evidence about a stream from outside the shared code: a layer's messages, and the bytes that a driver left."""

    version: tuple[int, int, int]
    """Of the layer."""
    messages: list[LayerMessage]
    left: Outputs | None
    """After a run in steps that the host waits for; None where it could not run so."""


def write_evidence(trace: Path, evidence: Evidence) -> None:
    """Writes what is known of a trace."""
    surfaces: list[dict[str, Any]] | None = None
    if evidence.left is not None:
        surfaces = [
            {"resource": each.resource, "subresource": each.subresource, "format": each.format, "samples": each.samples}
            | {"shape": each.data.shape, "data": base64.b64encode(each.data.tobytes()).decode()}
            for each in evidence.left.surfaces.values()
        ]
    unobserved = [] if evidence.left is None else [*evidence.left.unobserved.items()]
    kept: dict[str, Any] = {"version": evidence.version, "messages": [asdict(each) for each in evidence.messages]}
    kept |= {"surfaces": surfaces, "unobserved": unobserved}
    trace.with_suffix(SUFFIX).write_text(json.dumps(kept), encoding="utf-8")


def read_evidence(trace: Path) -> Evidence:
    """Reads what `write_evidence` wrote; the notes of the run are not kept."""
    from vkharness.layer.parse import LayerMessage

    kept = json.loads(trace.with_suffix(SUFFIX).read_text(encoding="utf-8"))
    messages = [
        LayerMessage(**each | {"handle": tuple(each["handle"]), "bytes": each["bytes"] and tuple(each["bytes"])})
        for each in kept["messages"]
    ]
    major, minor, patch = kept["version"]
    return Evidence((major, minor, patch), messages, None if kept["surfaces"] is None else _outputs(kept))


def _outputs(kept: dict[str, Any]) -> Outputs:
    import numpy as np

    from vkharness.replay.contents.observe import Outputs, Surface

    left = Outputs(unobserved=dict(kept["unobserved"]))
    for each in kept["surfaces"]:
        part = each["subresource"] and tuple(each["subresource"])
        data = np.frombuffer(base64.b64decode(each["data"]), np.uint8).reshape(each["shape"])
        made = Surface(each["resource"], part, data, each["format"], each["samples"])
        left.surfaces[made.resource, made.subresource] = made
    return left
