"""What creates an instance with synchronization validation on, submit-time checks included, and all else off.

Two styles, chosen by what the layer's manifest offers:

* before `VK_EXT_layer_settings` (Debian's 1.3.239): `VkValidationFeaturesEXT` in the instance's pNext chain, and
  `VK_LAYER_ENABLES` in the environment, because submit-time checks were alpha then and have no enumerator;
* since: `VkLayerSettingsCreateInfoEXT`, and the same settings as `VK_VALIDATION_*` in the environment, which reaches
  also instances that a program creates on its own.

The layer reads the environment in `vkCreateInstance` and never again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.findings import UserError
from harness.layer.manifest import LayerInfo, Version
from harness.spec.enums import (
    VkLayerSettingType,
    VkStructureType,
    VkValidationFeatureDisable,
    VkValidationFeatureEnable,
)

DISABLED_CHECKS = (
    VkValidationFeatureDisable.THREAD_SAFETY,
    VkValidationFeatureDisable.API_PARAMETERS,
    VkValidationFeatureDisable.OBJECT_LIFETIMES,
    VkValidationFeatureDisable.CORE_CHECKS,
    VkValidationFeatureDisable.UNIQUE_HANDLES,
)
"""VkValidationFeatureDisableEXT: THREAD_SAFETY, API_PARAMETERS, OBJECT_LIFETIMES, CORE_CHECKS, UNIQUE_HANDLES.

Not SHADERS: the state tracker's reflection feeds the shader accesses. Not ALL: it also turns off what syncval needs.
Without UNIQUE_HANDLES the handles in messages are those that the driver gave.
"""

SUBMIT_TIME_ENABLE = "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT"

FULL_VALIDATION_SINCE: Version = (1, 4, 364)
"""Execution of command buffers at submit has a setting of its own since (measured: the older one is deprecated there);
before, `syncval_submit_time_validation` tests first accesses."""

TODAYS_SETTINGS: dict[str, bool] = {
    "validate_sync": True,
    "syncval_shader_accesses_heuristic": True,
    "syncval_message_extra_properties": True,
    "validate_core": False,
    "thread_safety": False,
    "stateless_param": False,
    "object_lifetime": False,
    "unique_handles": False,
    # Else the layer goes silent after ten messages of one kind, which looks like agreement.
    "enable_message_limit": False,
}


def todays_settings(version: Version) -> dict[str, bool]:
    """The settings of a layer of today's style, by name."""
    submit = "syncval_full_validation" if version >= FULL_VALIDATION_SINCE else "syncval_submit_time_validation"
    return TODAYS_SETTINGS | {submit: True}


@dataclass(slots=True)
class SettingsChain:
    """A pNext chain in C memory. Keep the object until `vkCreateInstance` has returned."""

    head: Any
    """cffi struct pointer for `VkInstanceCreateInfo.pNext`."""
    keep: tuple[Any, ...] = field(default=())
    """Everything that the structs point at."""


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """How to create an instance under the layer."""

    layer: LayerInfo
    environ: dict[str, str]
    """Variables to set before `vkCreateInstance`."""
    layer_names: tuple[str, ...]
    instance_extensions: tuple[str, ...]
    chain: Callable[[Any], SettingsChain]
    """Builds the pNext chain; the argument is what the chain continues with (a cffi pointer or None)."""


def has_layer_settings(layer: LayerInfo) -> bool:
    """True for layers of today's style, which take `VK_EXT_layer_settings`."""
    return "VK_EXT_layer_settings" in layer.instance_extensions


def settings(layer: LayerInfo) -> LayerSettings:
    """Settings for that layer.

    Raises `UserError` when the layer's manifest offers neither style.
    """
    path = _path_to(layer)
    if has_layer_settings(layer):
        values = todays_settings(layer.version)
        variables = {f"VK_VALIDATION_{name.upper()}": str(int(on)) for name, on in values.items()}
        # Of this one, this spelling is the one that was measured; the layer takes both prefixes.
        variables["VK_LAYER_ENABLE_MESSAGE_LIMIT"] = "0"
        # Loaders older than VK_EXT_layer_settings refuse instance extensions that they do not know.
        variables["VK_LOADER_DISABLE_INST_EXT_FILTER"] = "1"
        return LayerSettings(
            layer,
            variables | path,
            (layer.name,),
            ("VK_EXT_debug_utils", "VK_EXT_layer_settings"),
            lambda following: _layer_settings_chain(layer.name, values, following),
        )
    if "VK_EXT_validation_features" in layer.instance_extensions:
        return LayerSettings(
            layer,
            {"VK_LAYER_ENABLES": SUBMIT_TIME_ENABLE} | path,
            (layer.name,),
            ("VK_EXT_debug_utils", "VK_EXT_validation_features"),
            _validation_features_chain,
        )
    raise UserError(
        f"{layer.name} {layer.version_text} ({layer.manifest}) offers neither VK_EXT_layer_settings nor "
        "VK_EXT_validation_features, so synchronization validation cannot be switched on"
    )


def _path_to(layer: LayerInfo) -> dict[str, str]:
    """What makes the loader take this manifest and no other: of several layers of one name it takes the first."""
    return {"VK_LAYER_PATH": str(layer.manifest), "VK_ADD_LAYER_PATH": ""}


def _validation_features_chain(following: Any) -> SettingsChain:
    from vulkan import ffi

    enabled = ffi.new("VkValidationFeatureEnableEXT[]", [VkValidationFeatureEnable.SYNCHRONIZATION_VALIDATION])
    disabled = ffi.new("VkValidationFeatureDisableEXT[]", list(DISABLED_CHECKS))
    features = ffi.new("VkValidationFeaturesEXT*")
    features.sType = VkStructureType.VALIDATION_FEATURES_EXT
    features.pNext = ffi.NULL if following is None else following
    features.enabledValidationFeatureCount = len(enabled)
    features.pEnabledValidationFeatures = enabled
    features.disabledValidationFeatureCount = len(disabled)
    features.pDisabledValidationFeatures = disabled
    return SettingsChain(features, (enabled, disabled, following))


def _layer_settings_chain(layer_name: str, values: Mapping[str, bool], following: Any) -> SettingsChain:
    from vulkan import ffi

    keep: list[Any] = [following]

    def text(value: str) -> Any:
        keep.append(ffi.new("char[]", value.encode()))
        return keep[-1]

    array = ffi.new("VkLayerSettingEXT[]", len(values))
    for entry, (name, on) in zip(array, values.items(), strict=True):
        entry.pLayerName = text(layer_name)
        entry.pSettingName = text(name)
        entry.type = VkLayerSettingType.BOOL32
        keep.append(ffi.new("VkBool32[1]", [int(on)]))
        entry.valueCount = 1
        entry.pValues = keep[-1]
    info = ffi.new("VkLayerSettingsCreateInfoEXT*")
    info.sType = VkStructureType.LAYER_SETTINGS_CREATE_INFO_EXT
    info.pNext = ffi.NULL if following is None else following
    info.settingCount = len(array)
    info.pSettings = array
    return SettingsChain(info, (array, *keep))
