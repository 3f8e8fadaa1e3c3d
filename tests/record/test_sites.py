"""The line of the program that made a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vkharness.native import core
from vkharness.record.sites import Sites

SOURCE = "def ask(caller):\n    return caller()\n"


def asker(path: str) -> Callable[[Callable[[], Any]], Any]:
    """A function of a file that says what every such file says."""
    names: dict[str, Any] = {}
    exec(compile(SOURCE, path, "exec"), names)
    made: Callable[[Callable[[], Any]], Any] = names["ask"]
    return made


@pytest.mark.parametrize(
    "natively", [False, pytest.param(True, marks=pytest.mark.skipif(core is None, reason="there is no native core"))]
)
def test_equal_functions_of_two_files_are_two_sites(natively: bool) -> None:
    """Code of two files is equal where the files say the same in the same lines."""
    sites = Sites()
    caller = core.Sites(sites.explain).caller if natively and core is not None else sites.caller
    one, other = asker("/program/one.py"), asker("/program/other.py")
    assert one.__code__ == other.__code__
    found = [each(caller) for each in (one, other, one)]
    assert found == ["/program/one.py:2", "/program/other.py:2", "/program/one.py:2"]
