"""Whether a Khronos layer starts on the driver of this process. It runs in a worker, since that can crash."""

from __future__ import annotations

from typing import Any

from vkharness.device.headless import Headless
from vkharness.layer.listen import LayerListener


def start_job(layer: str) -> dict[str, Any]:
    """Makes a device below the layer of that manifest: `{"device": name}`.

    Raises `UserError` when the layer has no synchronization validation, or the loader does not load it.
    """
    with (
        LayerListener.open(layer) as listener,
        Headless(layers=(listener.layer.name,), instance_extensions=("VK_EXT_debug_utils",)) as headless,
    ):
        return {"device": headless.device_name}
