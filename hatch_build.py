"""Builds the native core and the mirror layer while the project is installed, and gives the project its links: hooks of
hatchling. Without a compiler there is neither core nor layer."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = {"Documentation": "", "Rules": "rules.html", "Changelog": "CHANGELOG.html"}
"""Links of the project by their names, as pages of the documentation site."""


class ProjectLinks(MetadataHookInterface):
    """Gives the project its links where the site has an address."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds `urls`."""
        text = Path(self.root, "harness", "vkharness", "report", "rules.py").read_text(encoding="utf-8")
        site = re.search(r'^SITE = "(.*)"$', text, re.MULTILINE)
        if site is not None and site[1]:
            metadata["urls"] = {name: site[1] + page for name, page in PAGES.items()}


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
        is_wheel = version != "editable"
        if is_wheel:
            self._made = tempfile.TemporaryDirectory()
            folder = Path(self._made.name)
        made = {}
        name = building.file_name()
        try:
            building.build(folder / name)
            made[folder / name] = f"vkharness/native/{name}"
        except building.NotBuilt as why:
            self.app.display_warning(f"vkharness: pure Python, because the native core was not built: {why}")
        why_not = building.build_mirror_layer(folder if is_wheel else None)
        if why_not is not None:
            self.app.display_warning(why_not)
        elif is_wheel:
            made |= {each: f"vkharness/mirror_layer/built/{each.name}" for each in folder.glob("*VkLayer_*")}
        if made and is_wheel:
            build_data["force_include"] |= {str(path): name for path, name in made.items()}
            build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what only the wheel needed."""
        if hasattr(self, "_made"):
            self._made.cleanup()
