"""Environment variables that turn synchronization validation on, submit-time checks included, and all else off.

The environment reaches also instances that a program creates on its own. Layers before `VK_EXT_layer_settings`
(Debian's 1.3.239) read `VK_LAYER_ENABLES` and `VK_LAYER_DISABLES`, layers since read a `VK_VALIDATION_*` for each
setting. The layer reads the environment in `vkCreateInstance` and never again. What the user has set for layers is to
be taken out before (`vkharness.device.layer_settings`); settings files are kept out here.
"""

from __future__ import annotations

import os

from vkharness.device.layer_settings import NO_SETTINGS
from vkharness.findings import UserError
from vkharness.layer.manifest import LayerInfo, Version

OLD_ENABLES = (
    "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
    "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT",
)
OLD_DISABLES = tuple(
    f"VK_VALIDATION_FEATURE_DISABLE_{check}_EXT"
    for check in ("THREAD_SAFETY", "API_PARAMETERS", "OBJECT_LIFETIMES", "CORE_CHECKS", "UNIQUE_HANDLES")
)
"""Not SHADERS: the state tracker's reflection feeds the shader accesses. Not ALL: it also turns off what syncval needs.
Without UNIQUE_HANDLES the handles in messages are those that the driver gave.
"""

FULL_VALIDATION_SINCE: Version = (1, 4, 364)
"""Execution of command buffers at submit has a setting of its own since (measured: the older one is deprecated there);
before, `syncval_submit_time_validation` tests first accesses."""

NO_HOME = {"XDG_DATA_HOME": os.devnull}
"""A layer takes `vulkan/settings.d/vk_layer_settings.txt` of the user's data folder before the file that
`VK_LAYER_SETTINGS_PATH` names (measured: 1.3.239 and 1.4.364). Nothing can lie below this path."""

PATHS = ("VK_LAYER_PATH", "VK_ADD_LAYER_PATH")

TODAYS_SETTINGS: dict[str, bool] = {
    "validate_sync": True,
    "syncval_shader_accesses_heuristic": True,
    "syncval_message_extra_properties": True,
    "validate_core": False,
    "thread_safety": False,
    "stateless_param": False,
    "object_lifetime": False,
    "unique_handles": False,
}


def has_layer_settings(layer: LayerInfo) -> bool:
    """True for layers of today's style, which take `VK_EXT_layer_settings`."""
    return "VK_EXT_layer_settings" in layer.instance_extensions


def said_settings(layer: LayerInfo) -> dict[str, str]:
    """Of the variables of `environment` those that say what the layer does. Raises `UserError` as that."""
    return {name: value for name, value in environment(layer).items() if name not in (*NO_SETTINGS, *NO_HOME, *PATHS)}


def environment(layer: LayerInfo) -> dict[str, str]:
    """Variables to set before `vkCreateInstance`. Raises `UserError` when the layer's manifest offers neither style."""
    # The loader takes this manifest and no other: of several layers of one name it takes the first.
    path = dict(zip(PATHS, (str(layer.manifest), ""), strict=True)) | {**NO_SETTINGS, **NO_HOME}
    if layer.silenced:
        # Old layers separate what a variable lists with colons.
        path["VK_LAYER_MESSAGE_ID_FILTER"] = ("," if has_layer_settings(layer) else ":").join(layer.silenced)
    if has_layer_settings(layer):
        full = layer.version >= FULL_VALIDATION_SINCE
        submit = "syncval_full_validation" if full else "syncval_submit_time_validation"
        values = TODAYS_SETTINGS | {submit: True}
        variables = {f"VK_VALIDATION_{name.upper()}": str(int(on)) for name, on in values.items()}
        # Else the layer goes silent after ten messages of one kind, which looks like agreement.
        return variables | path | {"VK_LAYER_ENABLE_MESSAGE_LIMIT": "0"}
    if "VK_EXT_validation_features" in layer.instance_extensions:
        return {"VK_LAYER_ENABLES": ":".join(OLD_ENABLES), "VK_LAYER_DISABLES": ":".join(OLD_DISABLES)} | path
    raise UserError(
        f"{layer.name} {layer.version_text} ({layer.manifest}) offers neither VK_EXT_layer_settings nor "
        "VK_EXT_validation_features, so synchronization validation cannot be switched on"
    )
