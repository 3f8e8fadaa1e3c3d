"""The user's settings of layers, which stay out of the harness's own processes.

A setting that is meant for another program silences a layer that the harness asks: `VK_LAYER_ENABLES` with one check
does so to the Khronos layer 1.4.364, as does a `vk_layer_settings.txt` in the current folder to every version.
Where layers are looked for (`VK_LAYER_PATH`, `VK_ADD_LAYER_PATH`) remains the user's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

NO_SETTINGS = {"VK_LAYER_SETTINGS_PATH": str(Path(__file__).with_name("no_layer_settings.txt"))}
"""Has layers read a file without settings, instead of those of the current folder and of the home folder."""

KEPT = "VK_LAYER_PATH"
"""A place and no setting, although its name begins as theirs do."""
PREFIXES = ("VK_LAYER_", "VK_VALIDATION_", "VK_KHRONOS_VALIDATION_")
"""Of the variables that the Khronos layers read: each setting has one with any of these."""
ENABLING = ("VK_INSTANCE_LAYERS", "VK_LOADER_LAYERS_ENABLE", "VK_LOADER_LAYERS_ALLOW")
"""Variables by which the loader adds layers to those that an instance is created with."""
DISABLING = "VK_LOADER_LAYERS_DISABLE", "~implicit~"
"""The variable by which it leaves layers out, and what that is while the harness binds a driver."""
FILE = "vk_layer_settings.txt"
_OF_USER = (".local/share/vulkan/settings.d", ".config/vulkan/settings.d")


def is_layer_setting(name: str) -> bool:
    """True for an environment variable that enables layers or says what they do.

    >>> [is_layer_setting(name) for name in ("VK_LAYER_ENABLES", "VK_INSTANCE_LAYERS", "VK_LAYER_PATH")]
    [True, True, False]
    """
    return name in ENABLING or (name.startswith(PREFIXES) and name != KEPT)


def without_layer_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the user's settings of layers, and with `NO_SETTINGS`."""
    return {name: value for name, value in environ.items() if not is_layer_setting(name)} | NO_SETTINGS


def put_aside(environ: Mapping[str, str]) -> list[str]:
    """Returns the user's settings that would reach layers and are put aside: names of variables, paths of files."""
    home = Path(environ.get("HOME", "/nonexistent"))
    data = environ.get("XDG_DATA_HOME")
    folders = [Path(), *(home / each for each in _OF_USER), *([Path(data, "vulkan/settings.d")] if data else [])]
    files = [folder / FILE for folder in folders]
    ours = {**NO_SETTINGS, DISABLING[0]: DISABLING[1]}
    named = (name for name in environ if is_layer_setting(name) or name == DISABLING[0])
    set_here = [name for name in named if environ[name] != ours.get(name)]
    return sorted(set_here) + [str(each) for each in files if each.is_file()]
