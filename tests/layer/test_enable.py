"""Finding the layer by its manifest, the settings for old and today's layers, and the real layer switched on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vkharness.device.drivers import find_driver
from vkharness.device.layer_settings import NO_SETTINGS
from vkharness.findings import UserError
from vkharness.layer.enable import NO_HOME, OLD_DISABLES, OLD_ENABLES, environment, has_layer_settings
from vkharness.layer.listen import LayerListener, offered_version
from vkharness.layer.manifest import KHRONOS_LAYER, LayerInfo, find_layer, find_layers, parse_version
from vkharness.rig.rig import Rig

NOTHING = {"XDG_DATA_DIRS": "/nonexistent", "XDG_CONFIG_DIRS": "/nonexistent"}


def manifest(folder: Path, version: str, *extensions: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    layer = {
        "name": KHRONOS_LAYER,
        "library_path": "./libVkLayer.so",
        "api_version": version,
        "implementation_version": "1",
        "instance_extensions": [{"name": name, "spec_version": "1"} for name in extensions],
    }
    path = folder / "layer.json"
    path.write_text(json.dumps({"file_format_version": "1.2.0", "layer": layer}))
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
    assert found is not None and found.version == (1, 3, 239)
    found = find_layer(environ=environ | {"VK_LAYER_PATH": str(tmp_path / "mine")})
    assert found is not None and found.version == (1, 4, 350)
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
    assert environment(layer) == {
        "VK_LAYER_ENABLES": ":".join(OLD_ENABLES),
        "VK_LAYER_DISABLES": ":".join(OLD_DISABLES),
        "VK_LAYER_PATH": str(layer.manifest),
        "VK_ADD_LAYER_PATH": "",
        **NO_SETTINGS,
        **NO_HOME,
    }


@pytest.mark.parametrize(
    ("version", "submit"), [("1.4.350", "SYNCVAL_SUBMIT_TIME_VALIDATION"), ("1.4.364", "SYNCVAL_FULL_VALIDATION")]
)
def test_todays_settings(tmp_path: Path, version: str, submit: str) -> None:
    manifest(tmp_path, version, "VK_EXT_debug_utils", "VK_EXT_validation_features", "VK_EXT_layer_settings")
    variables = environment(made(tmp_path))
    assert variables["VK_LAYER_ENABLE_MESSAGE_LIMIT"] == "0"
    on = {name.removeprefix("VK_VALIDATION_") for name, value in variables.items() if value == "1"}
    extra = {"VALIDATE_SYNC", "SYNCVAL_SHADER_ACCESSES_HEURISTIC", "SYNCVAL_MESSAGE_EXTRA_PROPERTIES"}
    assert on == {*extra, submit}


def test_versions_of_the_cache_and_of_the_standard_folders(tmp_path: Path) -> None:
    old = manifest(tmp_path / "share" / "vulkan" / "explicit_layer.d", "1.3.239", "VK_EXT_validation_features")
    today = manifest(tmp_path / "cache" / "vkharness" / "khronos", "1.4.364", "VK_EXT_layer_settings")
    environ = NOTHING | {"XDG_DATA_DIRS": str(tmp_path / "share"), "HOME": str(tmp_path)}
    environ |= {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert [layer.version_text for layer in find_layers(environ)] == ["1.3.239", "1.4.364"]
    named = {"old": old, "1.3.239": old, "today": today, "1.4.364": today, None: old}
    for version, path in named.items():
        layer = find_layer(version, environ)
        assert layer is not None and layer.manifest == path
        assert environment(layer)["VK_LAYER_PATH"] == str(path)
    assert find_layer("1.3.240", environ) is None
    with pytest.raises(UserError, match="neither 'old', 'today' nor a version"):
        find_layer("newest", environ)
    with pytest.raises(UserError, match=r"of version 0\.1\.2 found"), LayerListener.open("0.1.2"):
        pass
    only = environ | {"VK_LAYER_PATH": str(old.parent)}
    assert [layer.version_text for layer in find_layers(only)] == ["1.3.239"], "then the cache is left out"


def test_one_layer_is_both_old_and_todays(tmp_path: Path) -> None:
    manifest(tmp_path, "1.3.250", "VK_EXT_validation_features")
    environ = NOTHING | {"VK_LAYER_PATH": str(tmp_path), "HOME": str(tmp_path)}
    assert find_layer("old", environ) == find_layer("today", environ) == made(tmp_path)


def test_a_layer_that_the_loader_does_not_offer(tmp_path: Path) -> None:
    """The manifest is gone since it was found, so that nothing would be loaded, or something else."""
    path = manifest(tmp_path, "1.3.250", "VK_EXT_validation_features")
    layer = made(tmp_path)
    path.unlink()
    before = dict(os.environ)
    with pytest.raises(UserError, match=r"the loader offers none, not 1\.3\.250"), LayerListener.open(layer):
        pass
    assert dict(os.environ) == before


def test_a_layer_without_synchronization_validation(tmp_path: Path) -> None:
    manifest(tmp_path, "1.1.70", "VK_EXT_debug_report")
    with pytest.raises(UserError, match="neither"):
        environment(made(tmp_path))


def test_no_layer_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (NOTHING | {"VK_LAYER_PATH": str(tmp_path), "HOME": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match="not installed"), LayerListener.open():
        pass


NOT_INSTALLED = pytest.param(None, marks=pytest.mark.skip("the Khronos layer is not installed"))
INSTALLED: list[Any] = [*find_layers()] or [NOT_INSTALLED]


@pytest.fixture(scope="module", params=INSTALLED, ids=lambda layer: layer.version_text if layer else "none")
def real(request: pytest.FixtureRequest) -> Iterator[tuple[Rig, LayerListener]]:
    """A rig on lavapipe under each layer; the environment is put back afterwards."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("VK_ICD_FILENAMES", str(find_driver("lavapipe").manifest))
        with LayerListener.open(request.param) as witness, Rig((), witness) as device:
            yield device, witness


def hazardous(device: Rig, fills: int = 1) -> None:
    """Records fills of a buffer and a copy from it, with nothing between."""
    a, b = device.buffer(256), device.buffer(256)
    with device.commands() as commands:
        for _ in range(fills):
            commands.fill(a, 1)
        commands.copy(a, b)


def test_the_layer_asked_for_is_the_one_loaded(real: tuple[Rig, LayerListener]) -> None:
    layer = real[1].layer
    assert offered_version(KHRONOS_LAYER) == layer.version
    assert f" {Path(layer.library).resolve()}\n" in Path("/proc/self/maps").read_text()


def test_real_layer_speaks_at_record(real: tuple[Rig, LayerListener]) -> None:
    device, witness = real
    witness.take()
    hazardous(device)
    (said,) = witness.take(call=7)
    assert (said.hazard, said.command, said.prior_command) == ("READ_AFTER_WRITE", "vkCmdCopyBuffer", "vkCmdFillBuffer")
    assert said.call == 7 and witness.messages[-1] is said


def test_real_layer_speaks_at_submit(real: tuple[Rig, LayerListener]) -> None:
    device, witness = real
    a = device.buffer(256)
    with device.commands() as commands:
        commands.fill(a, 1)
    device.submit(commands)
    assert witness.take() == []
    device.submit(commands)
    device.wait()
    (said,) = witness.take()
    access = "SYNC_CLEAR_TRANSFER_WRITE" if has_layer_settings(witness.layer) else "SYNC_COPY_TRANSFER_WRITE"
    assert said.key == ("WRITE_AFTER_WRITE", "vkCmdFillBuffer", "vkCmdFillBuffer", access, access)
    assert (said.kind, said.entry) == ("submit", 0)


def test_a_hundred_messages_of_one_kind(real: tuple[Rig, LayerListener]) -> None:
    """By default today's layer falls silent after ten."""
    device, witness = real
    witness.take()
    hazardous(device, fills=101)
    assert len(witness.take()) == 101


def test_other_checks_are_off(real: tuple[Rig, LayerListener]) -> None:
    """A copy past the end of a buffer breaks VUID-vkCmdCopyBuffer-size-00115, which core checks would report."""
    device, witness = real
    a, b = device.buffer(64), device.buffer(64)
    with device.commands() as commands:
        commands.copy(a, b, (0, 0, 128))
    witness.take()
    assert witness.other_messages == []


@pytest.mark.parametrize("layer", INSTALLED, ids=lambda layer: layer.version_text if layer else "none")
def test_environment_is_put_back(monkeypatch: pytest.MonkeyPatch, layer: LayerInfo) -> None:
    monkeypatch.setenv("VK_LAYER_ENABLES", "before")
    monkeypatch.setenv("VK_VALIDATION_VALIDATE_SYNC", "before")
    with LayerListener.open(layer):
        assert all(os.environ[name] == value for name, value in environment(layer).items())
    assert os.environ["VK_LAYER_ENABLES"] == os.environ["VK_VALIDATION_VALIDATE_SYNC"] == "before"


def test_the_package_callback_stays_free(real: tuple[Rig, LayerListener]) -> None:
    """The package has one callback slot a type for the whole process; the witness must not take a program's own."""
    from vulkan import _vulkan

    device, witness = real
    heard: list[str] = []

    def hear(*_: Any) -> int:
        heard.append("program")
        return 0

    info = device.vk.VkDebugUtilsMessengerCreateInfoEXT(messageSeverity=0x1000, messageType=0x2, pfnUserCallback=hear)
    create = device.vk.vkGetInstanceProcAddr(device.gpu.instance, "vkCreateDebugUtilsMessengerEXT")
    destroy = device.vk.vkGetInstanceProcAddr(device.gpu.instance, "vkDestroyDebugUtilsMessengerEXT")
    messenger = create(device.gpu.instance, info, None)
    witness.take()
    try:
        hazardous(device)
        assert heard == ["program"]
        assert len(witness.take()) == 1
    finally:
        destroy(device.gpu.instance, messenger, None)
        _vulkan._internal_vkDebugUtilsMessengerCallbackEXT = None
