"""Builds the mirror layer: `python harness/vkharness/mirror_layer/layer_build.py [FOLDER]`.

Without a folder it lies in `built`, which is no package: nobody imports the library. The build needs a C++ compiler,
the standard library and this source tree, which need not be installed. The manifest is written last, and says of which
sources the library was built: none is used that is older than they are.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import zlib
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from vkharness.mirror_layer.layer_tables import written
from vkharness.native.build import FOLDER as NATIVE
from vkharness.native.build import NotBuilt, compile_library, is_refused
from vkharness.spec import _generated

FOLDER = Path(__file__).resolve().parent
BUILT = FOLDER / "built"
NAME = "VK_LAYER_VKHARNESS_mirror"
LIBRARY, MANIFEST = "libVkLayer_vkharness_mirror.so", "VkLayer_vkharness_mirror.json"
SOURCES = "vkharness_sources"
"""Key of the layer in its manifest that holds the checksum. Loaders pass over what they do not know there."""
SHARED = ("readable.hpp", "changed_words.hpp", "dirty_pages.hpp", "page_protection.hpp", "page_segments.hpp")
"""Files of the native core that the layer is built of, too."""
TABLES = ("_generated.py", "command_classes.py", "enums.py", "followed.py", "shapes.py")


def checksum() -> int:
    """Of all sources and tables."""
    spec = FOLDER.parent / "spec"
    paths = [path for kind in ("*.py", "*.[ch]pp") for path in sorted(FOLDER.glob(kind))]
    paths += [NATIVE / name for name in SHARED] + [spec / name for name in TABLES] + sorted(spec.glob("data/*.json"))
    found = 0
    for path in paths:
        found = zlib.crc32(path.read_bytes(), found)
    return found


def build(folder: Path) -> None:
    """Makes library and manifest in a folder; NotBuilt when that cannot be."""
    version = re.search(r"registry (\d+\.\d+\.\d+)", _generated.__doc__ or "")
    if version is None:
        raise NotBuilt("the tables do not say of which registry they are")
    folder.mkdir(exist_ok=True)
    manifest = folder / MANIFEST
    manifest.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as made:
        Path(made, "generated.hpp").write_text(written(), encoding="utf-8")
        include = (
            f"-I{FOLDER}",
            f"-I{NATIVE}",
            f"-I{made}",
            f"-ffile-prefix-map={made}=made",
            f"-ffile-prefix-map={NATIVE}=native",
        )
        # A loader unloads its layers with the last instance; threads and forks of the process may be in this one still.
        link = ("-pthread", "-Wl,-z,nodelete", "-Wl,-z,defs")
        compile_library(FOLDER / "layer.cpp", folder / LIBRARY, (*include, *link))
    layer = {
        "name": NAME,
        "type": "GLOBAL",
        "library_path": f"./{LIBRARY}",
        "api_version": version[1],
        "implementation_version": "1",
        "description": "Writes each Vulkan call into a stream that vkharness judges",
        SOURCES: checksum(),
    }
    text = json.dumps({"file_format_version": "1.2.0", "layer": layer}, indent=1)
    manifest.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Builds into the folder that is named. Says in one line, and by its exit code, when that cannot be."""
    if is_refused():
        return
    try:
        build(Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT)
    except NotBuilt as why:
        sys.exit(f"vkharness: the mirror layer was not built: {why}")


if __name__ == "__main__":
    main()
