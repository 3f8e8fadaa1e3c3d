"""Driver processes that stay for the next test, as the suite keeps them for the next row.

To start one, to make its devices and to end it takes two seconds of a processor. A process is used again by a test that
would start an equal one: same driver, packages, variables, folder and environment. One that died, lost its device or
did not answer is not kept, nor one whose test failed.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict

import pytest

from vkharness.device.process import Worker, _Child

MOST = 3
"""Processes that are kept, of which each needs about 150 MB."""
OF_ONE_TEST = "PYTEST_CURRENT_TEST"
"""A variable that pytest sets anew for each test."""


class KeptWorkers:
    """The processes that nobody uses now."""

    def __init__(self) -> None:
        self._idle: OrderedDict[tuple[object, ...], _Child] = OrderedDict()

    def keep_with(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on workers take and leave processes here, until `monkeypatch` is undone."""
        begin = Worker._live_child

        def live_child(worker: Worker) -> _Child:
            if worker._child is None:
                worker._child = self._idle.pop(_kind(worker), None)
            return begin(worker)

        def leave(worker: Worker, kind: type[BaseException] | None, *_: object) -> None:
            child, begun_as = worker._child, _kind(worker)
            if child is None or kind is not None or begun_as in self._idle:
                worker.close()
                return
            worker._child, self._idle[begun_as] = None, child
            if len(self._idle) > MOST:
                self._idle.popitem(last=False)[1].leave()

        monkeypatch.setattr(Worker, "_live_child", live_child)
        monkeypatch.setattr(Worker, "__exit__", leave)

    def close(self) -> None:
        """Ends them all."""
        while self._idle:
            self._idle.popitem()[1].leave()


def _kind(worker: Worker) -> tuple[object, ...]:
    """Equal for two workers whose processes would begin alike."""
    environ = frozenset((name, value) for name, value in os.environ.items() if name != OF_ONE_TEST)
    return worker.packages, frozenset(worker._variables.items()), environ, os.getcwd(), tuple(sys.path)
