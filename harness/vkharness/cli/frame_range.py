"""The option `--frames`."""

from __future__ import annotations

import re

import click


class FrameRange(click.ParamType):  # type: ignore[type-arg]
    """`30`: the first 30 frames. `2-5`: the second to the fifth. As (first, last)."""

    name = "N|A-B"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int] | None:
        """The range; refused when it is none."""
        if value is None or isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(?:(\d{1,9})-)?(\d{1,9})", str(value))
        first, last = (int(found[1] or 1), int(found[2])) if found else (0, 0)
        if not 1 <= first <= last:
            self.fail(f"{value!r} is no number of frames, and no range such as 2-5", param, ctx)
        return first, last
