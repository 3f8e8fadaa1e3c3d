"""The layer as a witness: whoever creates the instance takes the parts from here, and reads what the layer said.

    with LayerListener.open() as listener:
        …vkCreateInstance with listener.layer.name and VK_EXT_debug_utils…
        listener.install(instance)
        …vkCmdCopyBuffer(…)…
        messages = listener.take(call.index)

The messenger goes through a `dlopen` of its own and a callback of its own, not through the `vulkan` package's
functions: the package has one callback per function-pointer type for the whole process, which a program's own
messenger would take, and a mirror attached to the package must not record the listener.

The callback answers VK_FALSE: a call that the layer objects to is still made, and the layer's state follows it. It
must: with VK_TRUE the call is dropped and every later message would be about a stream that we did not record.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from vkharness.device.layer_settings import is_layer_setting
from vkharness.device.manifests import keep_loaded
from vkharness.findings import UserError
from vkharness.layer.enable import environment
from vkharness.layer.manifest import KHRONOS_LAYER, LayerInfo, Version, find_layer
from vkharness.layer.parse import LayerMessage, is_synchronization, parse
from vkharness.spec.enums import VkDebugUtilsMessageSeverity, VkDebugUtilsMessageType, VkStructureType

IdOf = Callable[[str, int], int | None]
"""The id of a live handle, by its type and value."""
SEVERITIES = VkDebugUtilsMessageSeverity.WARNING | VkDebugUtilsMessageSeverity.ERROR
"""At VERBOSE and INFO the loader chats through the same messenger."""
TYPES = VkDebugUtilsMessageType.VALIDATION | VkDebugUtilsMessageType.PERFORMANCE


def offered_version(name: str) -> Version | None:
    """The version of the layer that `vkCreateInstance` would take for `name` now; None when it knows none."""
    from vulkan import ffi

    enumerate_layers = ffi.dlopen("libvulkan.so.1").vkEnumerateInstanceLayerProperties
    count = ffi.new("uint32_t*")
    enumerate_layers(count, ffi.NULL)
    properties = ffi.new("VkLayerProperties[]", count[0])
    enumerate_layers(count, properties)
    for entry in properties[0 : count[0]]:
        if ffi.string(entry.layerName).decode() == name:
            version = entry.specVersion
            return version >> 22, version >> 12 & 0x3FF, version & 0xFFF
    return None


class HeardMessage(NamedTuple):
    """One message of a layer in its own words."""

    severity: str
    """`error` or `warning`."""
    id: str
    """`pMessageIdName`: `SYNC-HAZARD-READ-AFTER-WRITE`, a VUID."""
    text: str
    """`pMessage`, as it came."""
    call: int | None
    """Block index of the API call in which it came; None where nobody said."""


class LayerListener:
    """Collects synchronization messages of one instance. `open` makes one."""

    def __init__(self, layer: LayerInfo) -> None:
        """`layer` comes from `find_layer`."""
        self.layer = layer
        self.other_messages: list[tuple[str, str]] = []
        """(identifier, text) of warnings and errors that are not about synchronization: the stream is not valid."""
        self.messages: list[LayerMessage] = []
        """Every message taken so far, in order."""
        self.heard: list[HeardMessage] = []
        """The same and the others, in the layer's words and in the order in which they came."""
        self._raw: list[tuple[int, str, str]] = []
        self._callback: Any = None
        self._lib: Any = None
        self._instance: Any = None
        self._messenger: Any = None

    @classmethod
    @contextmanager
    def open(cls, layer: LayerInfo | str | None = None) -> Iterator[LayerListener]:
        """A witness with the environment set up for `vkCreateInstance`, the user's settings of layers taken out; the
        environment is put back at the end.

        `layer` is a layer, or a version as `find_layer` takes it.

        Raises `UserError` when no layer is installed, it has no synchronization validation, or the loader would take
        another one.
        """
        found = layer if isinstance(layer, LayerInfo) else find_layer(layer)
        if found is None:
            which = "" if layer is None else f" of version {layer}"
            raise UserError(f"no manifest of {KHRONOS_LAYER}{which} found: that validation layer is not installed")
        variables = environment(found)
        before = {name: os.environ[name] for name in os.environ if is_layer_setting(name) or name in variables}
        witness = cls(found)
        for name in before:
            del os.environ[name]
        os.environ.update(variables)
        try:
            offered = offered_version(found.name)
            if offered != found.version:
                which = "none" if offered is None else ".".join(map(str, offered))
                raise UserError(f"{found.manifest}: the loader offers {which}, not {found.version_text}")
            keep_loaded(found.library)
            yield witness
        finally:
            witness.uninstall()
            for name in variables:
                os.environ.pop(name, None)
            os.environ.update(before)

    def install(self, instance: Any) -> None:
        """Creates the messenger on `instance` (a `VkInstance` of the `vulkan` package)."""
        from vulkan import ffi

        if self._messenger is not None:
            raise UserError("the layer witness is installed already; one witness serves one instance")
        self._lib = ffi.dlopen("libvulkan.so.1")
        self._instance = instance
        self._callback = ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", self._hear, error=0)
        info = ffi.new("VkDebugUtilsMessengerCreateInfoEXT*")
        info.sType = VkStructureType.DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT
        info.messageSeverity = SEVERITIES
        info.messageType = TYPES
        info.pfnUserCallback = self._callback
        messenger = ffi.new("VkDebugUtilsMessengerEXT*")
        result = self._function("vkCreateDebugUtilsMessengerEXT")(instance, info, ffi.NULL, messenger)
        if result != 0:
            raise UserError(f"vkCreateDebugUtilsMessengerEXT failed with VkResult {result}")
        self._messenger = messenger[0]

    def uninstall(self) -> None:
        """Destroys the messenger, if any. Call it before the instance is destroyed."""
        if self._messenger is not None:
            from vulkan import ffi

            self._function("vkDestroyDebugUtilsMessengerEXT")(self._instance, self._messenger, ffi.NULL)
        self._messenger = self._instance = self._lib = None

    def take(
        self, call: int | None = None, id_of: Callable[[str, int], int | None] | None = None
    ) -> list[LayerMessage]:
        """Messages since the last `take`, attributed to the call with block index `call` when given. `id_of` gives the
        id of a live handle, by its type and value."""
        raw, self._raw = self._raw, []
        taken: list[LayerMessage] = []
        for severity, vuid, text in raw:
            word = "error" if severity & VkDebugUtilsMessageSeverity.ERROR else "warning"
            self.heard.append(HeardMessage(word, vuid, text, call))
            message = parse(vuid, text)
            if is_synchronization(message.vuid):
                resource = id_of(*message.handle) if id_of is not None else None
                taken.append(message if call is None else message.during(call, resource or 0))
            else:
                self.other_messages.append((message.vuid, text))
        self.messages += taken
        return taken

    def _function(self, name: str) -> Any:
        from vulkan import ffi

        pointer = self._lib.vkGetInstanceProcAddr(self._instance, name.encode())
        if pointer == ffi.NULL:
            raise UserError(f"{name} is missing: create the instance with VK_EXT_debug_utils")
        return ffi.cast(f"PFN_{name}", pointer)

    def _hear(self, severity: int, kinds: int, data: Any, user: Any) -> int:
        """The messenger's callback. Only copies: parsing may fail, and nothing may be raised into C."""
        from vulkan import ffi

        def text(pointer: Any) -> str:
            return "" if pointer == ffi.NULL else ffi.string(pointer).decode("utf-8", "replace")

        self._raw.append((severity, text(data.pMessageIdName), text(data.pMessage)))
        return 0
