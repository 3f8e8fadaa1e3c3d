"""Finding the layer by its manifest, the settings for old and today's layers, and the real layer switched on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.findings import UserError
from harness.layer.enable import TODAYS_SETTINGS, LayerInfo, find_layer, parse_version, settings
from harness.layer.manifest import KHRONOS_LAYER
from harness.layer.witness import LayerWitness
from tests.layer_rig import Rig, rig

NOTHING = {"XDG_DATA_DIRS": "/nonexistent", "XDG_CONFIG_DIRS": "/nonexistent"}


def manifest(folder: Path, version: str, *extensions: str, **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    layer = {
        "name": KHRONOS_LAYER,
        "library_path": "./libVkLayer.so",
        "api_version": version,
        "implementation_version": "1",
        "instance_extensions": [{"name": name, "spec_version": "1"} for name in extensions],
    }
    path = folder / "layer.json"
    path.write_text(json.dumps({"file_format_version": "1.2.0", "layer": layer | more}))
    return path


def made(path: Path) -> LayerInfo:
    found = find_layer(environ=NOTHING | {"VK_LAYER_PATH": str(path), "HOME": str(path)})
    assert found is not None
    return found


def test_layer_path_replaces_the_standard_folders(tmp_path: Path) -> None:
    standard = tmp_path / "share" / "vulkan" / "explicit_layer.d"
    manifest(standard, "1.3.239")
    manifest(tmp_path / "mine", "1.4.350")
    environ = NOTHING | {"XDG_DATA_DIRS": str(tmp_path / "share"), "HOME": str(tmp_path)}
    found = find_layer(environ=environ)
    assert found is not None and found.api_version == (1, 3, 239)
    found = find_layer(environ=environ | {"VK_LAYER_PATH": str(tmp_path / "mine")})
    assert found is not None and found.api_version == (1, 4, 350)
    assert found.library == str(tmp_path / "mine" / "libVkLayer.so")
    assert find_layer(environ=environ | {"VK_LAYER_PATH": str(tmp_path / "none")}) is None


def test_broken_manifests_are_passed_over(tmp_path: Path) -> None:
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"layer": {"name": "x"}}'), ("d", '{"layers": [1, null]}')):
        (tmp_path / f"{name}.json").write_text(text)
    (tmp_path / "e.json").write_text(json.dumps({"layer": {"name": KHRONOS_LAYER, "api_version": "one"}}))
    assert find_layer(environ=NOTHING | {"VK_LAYER_PATH": str(tmp_path), "HOME": str(tmp_path)}) is None
    good = json.dumps({"layers": [{"name": KHRONOS_LAYER, "api_version": "1.3.1", "library_path": "libx.so"}]})
    (tmp_path / "f.json").write_text(good)
    assert made(tmp_path).library == "libx.so"


@pytest.mark.parametrize("text", ["", "1.2.3.4", "a", "1.x"])
def test_versions(text: str) -> None:
    assert parse_version("1.3") == (1, 3, 0)
    with pytest.raises(ValueError):
        parse_version(text)


def test_old_settings(tmp_path: Path) -> None:
    manifest(tmp_path, "1.3.239", "VK_EXT_debug_utils", "VK_EXT_validation_features")
    layer = made(tmp_path)
    parts = settings(layer, {"VK_LAYER_PATH": str(tmp_path)})
    assert parts.environ == {"VK_LAYER_ENABLES": "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT"}
    assert parts.layer_names == (KHRONOS_LAYER,)
    features = parts.chain(None).head
    assert features.sType == 1000247000
    assert [features.pEnabledValidationFeatures[i] for i in range(features.enabledValidationFeatureCount)] == [4]
    assert features.disabledValidationFeatureCount == 5


def test_todays_settings(tmp_path: Path) -> None:
    from vulkan import ffi

    manifest(tmp_path, "1.4.350", "VK_EXT_debug_utils", "VK_EXT_validation_features", "VK_EXT_layer_settings")
    parts = settings(made(tmp_path), {"VK_LAYER_PATH": str(tmp_path)})
    assert "VK_EXT_layer_settings" in parts.instance_extensions
    assert parts.environ["VK_VALIDATION_SYNCVAL_MESSAGE_EXTRA_PROPERTIES"] == "1"
    assert parts.environ["VK_LAYER_ENABLE_MESSAGE_LIMIT"] == "0"
    chain = parts.chain(None)
    entries = [chain.head.pSettings[i] for i in range(chain.head.settingCount)]
    values = {
        ffi.string(entry.pSettingName).decode(): bool(ffi.cast("uint32_t*", entry.pValues)[0]) for entry in entries
    }
    assert values == TODAYS_SETTINGS
    following = parts.chain(chain.head)
    assert following.head.pNext == chain.head


def test_a_layer_outside_the_loader_folders_is_put_on_its_path(tmp_path: Path) -> None:
    path = manifest(tmp_path / "cache" / "vkharness" / "khronos", "1.3.239", "VK_EXT_validation_features")
    environ = NOTHING | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    layer = find_layer(environ=environ)
    assert layer is not None and layer.manifest == path
    assert settings(layer, environ).environ["VK_ADD_LAYER_PATH"] == str(path.parent)
    both = settings(layer, environ | {"VK_ADD_LAYER_PATH": "/elsewhere"}).environ["VK_ADD_LAYER_PATH"]
    assert both == f"{path.parent}{os.pathsep}/elsewhere"


def test_a_layer_without_synchronization_validation(tmp_path: Path) -> None:
    manifest(tmp_path, "1.1.70", "VK_EXT_debug_report")
    with pytest.raises(UserError, match="neither"):
        settings(made(tmp_path))


def test_no_layer_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (NOTHING | {"VK_LAYER_PATH": str(tmp_path), "HOME": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match="not installed"), LayerWitness.open():
        pass


@pytest.fixture(scope="module")
def real() -> Any:
    if find_layer() is None:
        pytest.skip("the Khronos validation layer is not installed")
    with rig() as device:
        yield device


def test_real_layer_speaks_at_record(real: Rig) -> None:
    a, b = real.buffer(), real.buffer()
    with real.recording() as buffer:
        real.fill(buffer, a)
        real.copy(buffer, a, b)
    said = real.witness.take(call=7)
    assert [(m.hazard, m.command, m.prior_command, m.call) for m in said] == [
        ("READ_AFTER_WRITE", "vkCmdCopyBuffer", "vkCmdFillBuffer", 7)
    ]
    assert real.witness.messages[-1] is said[0]
    assert int(real.vk.ffi.cast("uintptr_t", a)) in {handle for _, handle in said[0].objects}


def test_real_layer_speaks_at_submit(real: Rig) -> None:
    a = real.buffer()
    with real.recording() as buffer:
        real.fill(buffer, a)
    real.submit(buffer)
    assert real.said() == []
    real.submit(buffer, wait=True)
    assert [(m.kind, m.hazard, m.command) for m in real.said()] == [("submit", "WRITE_AFTER_WRITE", "vkCmdFillBuffer")]


def test_other_checks_are_off(real: Rig) -> None:
    """A copy past the end of a buffer breaks VUID-vkCmdCopyBuffer-size-00115, which core checks would report."""
    a, b = real.buffer(64), real.buffer(64)
    before = list(real.witness.other_messages)
    with real.recording() as buffer:
        real.copy(buffer, a, b, (0, 0, 128))
    real.said()
    assert real.witness.other_messages == before


def test_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    if find_layer() is None:
        pytest.skip("the Khronos validation layer is not installed")
    monkeypatch.setenv("VK_LAYER_ENABLES", "before")
    monkeypatch.setenv("VK_VALIDATION_VALIDATE_SYNC", "before")
    with LayerWitness.open() as witness:
        assert all(os.environ[name] == value for name, value in witness.settings.environ.items())
    assert os.environ["VK_LAYER_ENABLES"] == os.environ["VK_VALIDATION_VALIDATE_SYNC"] == "before"


def test_the_package_callback_stays_free(real: Rig) -> None:
    """The package has one callback slot a type for the whole process; the witness must not take a program's own."""
    from vulkan import _vulkan

    heard: list[str] = []

    def hear(*_: Any) -> int:
        heard.append("program")
        return 0

    info = real.vk.VkDebugUtilsMessengerCreateInfoEXT(messageSeverity=0x1000, messageType=0x2, pfnUserCallback=hear)
    create = real.vk.vkGetInstanceProcAddr(real.instance, "vkCreateDebugUtilsMessengerEXT")
    destroy = real.vk.vkGetInstanceProcAddr(real.instance, "vkDestroyDebugUtilsMessengerEXT")
    messenger = create(real.instance, info, None)
    try:
        a, b = real.buffer(), real.buffer()
        with real.recording() as buffer:
            real.fill(buffer, a)
            real.copy(buffer, a, b)
        assert heard == ["program"]
        assert len(real.said()) == 1
    finally:
        destroy(real.instance, messenger, None)
        _vulkan._internal_vkDebugUtilsMessengerCallbackEXT = None
