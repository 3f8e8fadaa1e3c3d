"""Builds the native core and the mirror layer while the project is installed (a hook of hatchling). Without a compiler
there are none."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeCore(BuildHookInterface):  # type: ignore[type-arg]  # generic to type checkers alone
    """An editable installation gets core and layer beside their sources, a wheel gets its own."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds core and layer to what is built; `version` is "standard" or "editable"."""
        folder = Path(self.root, "harness", "vkharness", "native")
        # By its path: the environment that builds has none of the packages that the harness imports.
        found = importlib.util.spec_from_file_location("vkharness_native_build", folder / "build.py")
        assert found is not None and found.loader is not None
        building = importlib.util.module_from_spec(found)
        found.loader.exec_module(building)
        if building.is_refused():
            return
        name = building.file_name()
        if version != "editable":
            self._made = tempfile.TemporaryDirectory()
            folder = Path(self._made.name)
        try:
            building.build(folder / name)
        except building.NotBuilt as why:
            self.app.display_warning(f"vkharness: pure Python, because the native core was not built: {why}")
            return
        if version != "editable":
            build_data["force_include"][str(folder / name)] = f"vkharness/native/{name}"
            build_data["pure_python"], build_data["infer_tag"] = False, True
        why_not = building.build_mirror_layer(None if version == "editable" else folder)
        if why_not is not None:
            self.app.display_warning(why_not)
        elif version != "editable":
            for made in folder.glob("*VkLayer_*"):
                build_data["force_include"][str(made)] = f"vkharness/mirror_layer/built/{made.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what only the wheel needed."""
        if hasattr(self, "_made"):
            self._made.cleanup()
