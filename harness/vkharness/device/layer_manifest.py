"""Writes the loader manifest of a layer library that came without one: `layer_manifest.py LIBRARY > MANIFEST`.

Name, version and extensions are asked of the library itself, by the functions that the loader's layer interface
makes it export.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

NAME_BYTES = 256


class LayerProperties(ctypes.Structure):
    """VkLayerProperties."""

    _fields_ = (
        ("name", ctypes.c_char * NAME_BYTES),
        ("spec_version", ctypes.c_uint32),
        ("implementation_version", ctypes.c_uint32),
        ("description", ctypes.c_char * NAME_BYTES),
    )


class ExtensionProperties(ctypes.Structure):
    """VkExtensionProperties."""

    _fields_ = (("name", ctypes.c_char * NAME_BYTES), ("spec_version", ctypes.c_uint32))


def enumerate_properties(function: Any, kind: type[Any], *first: Any) -> list[Any]:
    """Returns the list of one of Vulkan's two-call enumerations. Raises RuntimeError where a call fails."""
    count = ctypes.c_uint32(0)
    if function(*first, ctypes.byref(count), None) != 0:
        raise RuntimeError("the layer would not say what it is")
    found = (kind * count.value)()
    function(*first, ctypes.byref(count), found)
    return list(found)[: count.value]


def manifest(library: Path) -> dict[str, Any]:
    """The manifest of the one layer in `library`, which lies beside it."""
    layer = ctypes.CDLL(str(library.resolve()))
    properties = enumerate_properties(layer.vkEnumerateInstanceLayerProperties, LayerProperties)[0]
    version = properties.spec_version
    extensions = enumerate_properties(
        layer.vkEnumerateInstanceExtensionProperties, ExtensionProperties, ctypes.c_char_p(properties.name)
    )
    return {
        "file_format_version": "1.2.0",
        "layer": {
            "name": properties.name.decode(),
            "type": "GLOBAL",
            "library_path": f"./{library.name}",
            "api_version": f"{version >> 22}.{version >> 12 & 0x3FF}.{version & 0xFFF}",
            "implementation_version": str(properties.implementation_version),
            "description": properties.description.decode(),
            "instance_extensions": [
                {"name": extension.name.decode(), "spec_version": str(extension.spec_version)}
                for extension in extensions
            ],
        },
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: layer_manifest.py LIBRARY > MANIFEST")
    json.dump(manifest(Path(sys.argv[1])), sys.stdout, indent=2)
    print()
