"""`VK_LAYER_VKHARNESS_mirror`: a Vulkan layer in C++ that writes each call of a program into a stream of records.

`layer_build` makes it at installation, of the registry's tables (`layer_tables`) and the sources here.
docs/ARCHITECTURE.md ("The mirror layer") says how it works.
"""

from __future__ import annotations

import json
from pathlib import Path

from vkharness.mirror_layer.layer_build import BUILT, LIBRARY, MANIFEST, SOURCES, checksum


def manifest() -> Path | None:
    """The manifest of the layer, as `VK_ADD_LAYER_PATH` takes it; None where none was built of today's sources."""
    found = BUILT / MANIFEST
    try:
        built_of = json.loads(found.read_bytes())["layer"][SOURCES]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return found if built_of == checksum() and (BUILT / LIBRARY).is_file() else None
