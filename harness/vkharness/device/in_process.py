"""Jobs in this very process, for a debugger: what a `Worker` does in a child, without one.

A driver that dies takes this process with it, which is what a debugger is there for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pkgutil import resolve_name
from types import TracebackType
from typing import Any, Self

from vkharness.device.drivers import Driver, environment
from vkharness.device.layer_settings import without_layer_settings
from vkharness.device.process import check_target


class InProcess:
    """Calls functions of vkharness, as a context manager: inside it this process is bound to one driver.

    It has a worker's environment, which is put back at the end.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._before: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._before = dict(os.environ)
        bound = without_layer_settings(os.environ) | environment(self._driver)
        for name in self._before.keys() - bound.keys():
            del os.environ[name]
        os.environ.update(bound)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for name in os.environ.keys() - self._before.keys():
            del os.environ[name]
        os.environ.update(self._before)

    def call(self, target: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Calls 'package.module:function' with keyword arguments and returns its dictionary. Raises `UserError` for a
        target that may not be called, and what the function raises."""
        check_target(target, ["vkharness"])
        value = resolve_name(target)(**(arguments or {}))
        assert isinstance(value, dict)
        return value
