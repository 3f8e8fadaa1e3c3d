"""Twins: the same recording with one named dependency left out, or with some of its options replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vkharness.findings import UserError
from vkharness.suite.claims import WHOLE, WITHOUT, Variant


class Twin:
    """Decides what becomes of each named dependency; `finish` reports a variant that met nothing to change."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self._names: set[str] = set()
        self._changed = variant.kind == WHOLE

    def amend(
        self, name: str, written: Mapping[str, Any], weaker: Mapping[str, Mapping[str, Any]]
    ) -> Mapping[str, Any] | None:
        """Gives the form in which a dependency is recorded: as written, a weaker form, or None to record none.

        Raises `UserError` where the dependency has no weaker form of the variant's name."""
        self._names.add(name)
        if name != self.variant.dependency or self.variant.kind == WHOLE:
            return written
        self._changed = True
        if self.variant.kind == WITHOUT:
            return None
        if self.variant.weakness not in weaker:
            known = ", ".join(sorted(weaker)) or "none"
            raise UserError(f"dependency {name!r} has no weaker form {self.variant.weakness!r} (it has: {known})")
        return {**written, **weaker[self.variant.weakness]}

    def finish(self) -> None:
        """UserError when the dependency that the variant names was never recorded."""
        if not self._changed:
            known = ", ".join(sorted(self._names)) or "none"
            raise UserError(f"no dependency {self.variant.dependency!r} was recorded (there are: {known})")
