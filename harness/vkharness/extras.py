"""Packages that only some commands need: what misses one says which extra of the project brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vkharness.findings import UserError


@contextmanager
def brought_by(extra: str, what: str) -> Iterator[None]:
    """For imports of packages that `pip install vkharness` does not bring; `what` needs them. Raises UserError where
    one is missing."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise UserError(f"{what} needs the package {missing.name}: pip install 'vkharness[{extra}]'") from None
