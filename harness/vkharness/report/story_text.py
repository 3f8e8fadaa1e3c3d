"""Stories in words: what many rows have in common that need a look, a line for each cause."""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.report.printable import printable
from vkharness.results.result_lines import RowResult
from vkharness.results.stories import Story, stories_of

MOST_NAMED = 3
"""Devices, and commands, that are named."""


def story_lines(rows: Iterable[RowResult], most: int) -> list[str]:
    """At most `most` lines, as `stories_of` has them: `Fail, model, rule a-fence on lavapipe: 31 rows, first ID`.

    Where there are more stories, the last line says how many, and of how many rows. None where no row needs a look.
    """
    stories = stories_of(rows)
    if len(stories) <= most:
        return [story_line(each) for each in stories]
    if most <= 0:
        return []
    rest = stories[most - 1 :]
    return [
        *map(story_line, stories[: most - 1]),
        f"{len(rest)} more causes: {_rows(sum(len(each.rows) for each in rest))}",
    ]


def story_line(story: Story) -> str:
    """One story in a line."""
    count = len(story.rows)
    return printable(f"{story_heading(story)}: {_rows(count)}, {'first ' if count > 1 else ''}{story.first.nodeid}")


def story_heading(story: Story) -> str:
    """`the driver breaks barriers on lavapipe-2, always with vkCmdFillBuffer`."""
    one, *more = story.devices
    where = f"{one} and {len(more)} more" if len(more) >= MOST_NAMED else ", ".join([one, *more])
    common = f", always with {', '.join(story.commands)}" if 0 < len(story.commands) <= MOST_NAMED else ""
    return f"{story.cause} on {where}{common}"


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}"
