"""The C declarations of today's registry as one cffi object: the `vulkan` package's where it has a name, else newer.

Importing the package needs a Vulkan loader, so that nothing here does before it is asked.
"""

from __future__ import annotations

from functools import cache
from typing import Any


class DeclaredTypes:
    """The functions of a cffi object. Types are given by name or as cffi types."""

    def __init__(self, package: Any, newer: Any) -> None:
        self._package, self._newer = package, newer
        self._types: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = getattr(self._package, name)
        return value

    def typeof(self, kind: Any) -> Any:
        """The cffi type of a name or a value. Raises `error` for a name that is not declared."""
        if not isinstance(kind, str):
            return self._package.typeof(kind)
        found = self._types.get(kind)
        if found is None:
            try:
                found = self._package.typeof(kind)
            except self._package.error:
                found = self._newer.typeof(kind)
            self._types[kind] = found
        return found

    def new(self, kind: Any, *arguments: Any) -> Any:
        """New C memory."""
        return self._package.new(self.typeof(kind) if isinstance(kind, str) else kind, *arguments)

    def cast(self, kind: Any, value: Any) -> Any:
        """A value as another type."""
        return self._package.cast(self.typeof(kind) if isinstance(kind, str) else kind, value)

    def sizeof(self, kind: Any) -> int:
        """Bytes of a type or a value."""
        return int(self._package.sizeof(self.typeof(kind) if isinstance(kind, str) else kind))


@cache
def declared_types() -> Any:
    """The cffi object. Raises OSError where there is no Vulkan loader."""
    from vulkan._vulkancache import ffi as package

    from vkharness.spec._newer_types import newer_types

    return DeclaredTypes(package, newer_types(package))
