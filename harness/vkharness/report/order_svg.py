"""The partial order of a trace as SVG, drawn here: for where Graphviz' `dot` is not installed, and for pages.

The picture is that of `vkharness.report.graph`: a column for each queue and for the host, a box for each command, a
cell for each node. Commands stand in stream order, and below everything that must be complete before them.

Colours are classes with colours of their own, so that a page can give them others (dark mode).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from vkharness.findings import Finding
from vkharness.generated_text import markup
from vkharness.model import Conflict, Opinion
from vkharness.model.explanation import PairExplanation
from vkharness.report.neighbourhood import Group, group_of, part_of
from vkharness.report.order_boxes import (
    FAINT,
    BoxText,
    CellText,
    Ends,
    Notes,
    box_of,
    missing_label,
    notes_of,
    queue_name,
    title_of,
)

CHARACTER, BOLD_CHARACTER, LINE = 6.8, 8.2, 15.0
"""Width and height of text in pixels, at most about."""
PADDING, GAP, LANE_GAP, TOP = 7.0, 26.0, 46.0, 14.0
LONGEST = 46
"""Characters of a line of text; a longer one ends in an ellipsis."""
TITLE = "What must be complete before what"
STYLE = """
.box{fill:#fff;stroke:#8a8a8a}.lane{fill:none;stroke:#c4c4c4;stroke-dasharray:2 3}.cell{stroke:none;fill:#f4f4f4}
.action{fill:#eef3fa}.source{fill:#f6efdd}.destination{fill:#e7f3e4}.transition{fill:#f0e6f5}
text{font:11px Helvetica,Arial,sans-serif;fill:#222}.name{font-weight:bold}.note{fill:#6a6a6a}
.edge{fill:none;stroke:#8a8a8a}.faint{stroke:#d8d8d8}.chain{stroke:#1f5fa8;stroke-width:2}
.missing{stroke:#c0392b;stroke-width:2;stroke-dasharray:6 4;fill:none}.label{fill:#c0392b;font-weight:bold}
.end{stroke:#c0392b;stroke-width:2}
"""


@dataclass(slots=True)
class Rectangle:
    """A place in the picture, in pixels."""

    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0

    def attributes(self) -> dict[str, str]:
        """As SVG has them."""
        return {name: f"{getattr(self, name):.1f}" for name in ("x", "y", "width", "height")}


@dataclass(slots=True)
class DrawnBox:
    """One command: its words, and where it and its cells are drawn."""

    text: BoxText
    title: list[str]
    lane: int
    place: Rectangle = field(default_factory=Rectangle)

    @classmethod
    def of(cls, text: BoxText, lane: int) -> DrawnBox:
        """The box with its size."""
        box = cls(text, [_shortened(line) for line in (text.name + text.call, *text.notes)], lane)
        rows = [sum(_width(cell.lines) for cell in row) + PADDING * (len(row) + 1) for row in text.rows]
        box.place.width = max([_width(box.title) + 2 * PADDING, *rows])
        box.place.height = PADDING + LINE * len(box.title) + sum(_height(row) + 3 for row in text.rows) + PADDING / 2
        return box

    def cells(self) -> Iterator[tuple[CellText, Rectangle]]:
        """Each cell with its place: the cells of a row share the width of the box by what they hold."""
        y = self.place.y + PADDING / 2 + LINE * len(self.title) + 3
        for row in self.text.rows:
            free = self.place.width - PADDING * (len(row) + 1) - sum(_width(cell.lines) for cell in row)
            x = self.place.x + PADDING
            for cell in row:
                width = _width(cell.lines) + free / len(row)
                yield cell, Rectangle(x, y, width, _height(row))
                x += width + PADDING
            y += _height(row) + 3


class _Drawing:
    """The picture as it is made."""

    def __init__(self, opinion: Opinion, conflict: Ends | None, limit: int, notes: Notes) -> None:
        self.opinion, self.conflict = opinion, conflict
        self.part = part_of(opinion, conflict, limit, notes)
        self.title = title_of(opinion, conflict, self.part)
        queues = list(dict.fromkeys(group[0] for group in self.part.groups))
        self.lanes = [queue_name(opinion, queue) for queue in queues]
        self.boxes = {
            group: DrawnBox.of(box_of(opinion, conflict, nodes, notes), queues.index(group[0]))
            for group, nodes in self.part.groups.items()
        }
        edges = dict.fromkeys(self.part.edges)
        if isinstance(conflict, PairExplanation):  # a shortest path may take edges that others imply
            drawn = {node for nodes in self.part.groups.values() for node in nodes}
            edges |= dict.fromkeys(each for each in conflict.path if {each.first, each.second} <= drawn)
        self.edges = [edge for edge in edges if self._group(edge.first) != self._group(edge.second)]
        self._look = " ordered" if isinstance(conflict, PairExplanation) else ""
        self.places: dict[int, Rectangle] = {}
        self.parts: list[str] = []

    def _group(self, node: int) -> Group:
        return group_of(self.opinion.order, node)

    def _box_at(self, node: int) -> DrawnBox:
        return self.boxes[self._group(node)]

    def _between(self, first: int, second: int) -> str:
        """A curve from the lower side of one's box, below it, to the upper side of the other's."""
        one, other = self._box_at(first).place, self._box_at(second).place
        x, to_x = (self.places[each].x + self.places[each].width / 2 for each in (first, second))
        return _down(x, one.y + one.height, to_x, other.y)

    def text(self) -> str:
        """The whole picture."""
        width, height = self._lay_out()
        for at, line in enumerate(self.title):
            self._write(TOP, TOP + LINE * at + 4, line, "name", "start")
        self._draw_edges()
        for box in self.boxes.values():
            self._draw_box(box)
        if isinstance(self.conflict, Conflict):
            self._draw_missing(self.conflict)
        width = max(width, max(map(len, self.title)) * BOLD_CHARACTER + 2 * TOP)
        title = " ".join(self.title) or TITLE
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="order{self._look}" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img"><title>{markup(title)}</title>'
            f"<defs>{_MARKERS}</defs>{''.join(self.parts)}</svg>"
        )

    def _lay_out(self) -> tuple[float, float]:
        """Places all boxes; the size of the picture."""
        above: dict[Group, list[Group]] = {}
        for edge in self.edges:
            above.setdefault(self._group(edge.second), []).append(self._group(edge.first))
        widths = [len(name) * CHARACTER + 2 * PADDING for name in self.lanes]
        for box in self.boxes.values():
            widths[box.lane] = max(widths[box.lane], box.place.width)
        lefts = [LANE_GAP + sum(widths[:lane]) + LANE_GAP * 1.6 * lane for lane in range(len(widths))]
        room = self._room_for_name(lefts)
        lefts = [left + room for left in lefts]
        top = TOP + LINE * (len(self.title) + 1) + GAP
        bottoms = [top] * len(widths)
        for group, box in self.boxes.items():
            others = [self.boxes[each].place for each in above.get(group, ())]
            box.place.x = lefts[box.lane] + (widths[box.lane] - box.place.width) / 2
            box.place.y = max([bottoms[box.lane], *(each.y + each.height + GAP for each in others)])
            bottoms[box.lane] = box.place.y + box.place.height + GAP
            self.places |= {cell.node: place for cell, place in box.cells()}
            if box.text.own is not None:
                self.places[box.text.own] = box.place
        height = max(bottoms, default=top)
        for name, x, width in zip(self.lanes, lefts, widths, strict=True):
            lane = Rectangle(x - 16, top - GAP, width + 32, height - top + GAP)
            self._add("rect", class_="lane", rx=8, **lane.attributes())
            self._write(x + width / 2, top - GAP + LINE, name, "note")
        return (lefts[-1] + widths[-1] if lefts else 0) + LANE_GAP, height + TOP

    def _room_for_name(self, lefts: Sequence[float]) -> float:
        """Pixels that the name of the missing edge needs more than there are left of the column in which both ends
        are."""
        if not isinstance(self.conflict, Conflict):
            return 0
        name = max(map(len, missing_label(self.conflict))) * BOLD_CHARACTER
        return max(0.0, name + LANE_GAP - lefts[self._box_at(self.conflict.prior.node).lane])

    def _draw_edges(self) -> None:
        order, on_chain = self.opinion.order, set(pairwise(self._chain()))
        for edge in self.edges:
            faint = " faint" if order.nodes[edge.first].kind in FAINT else ""
            kind = " chain" if (edge.first, edge.second) in on_chain else faint
            path = self._between(edge.first, edge.second)
            self._add("path", f"<title>{markup(edge.rule)}</title>", d=path, class_=f"edge{kind}", marker_end=_ARROW)

    def _chain(self) -> list[int]:
        """The nodes from the first of the two accesses to the second, or as far as there is an order."""
        if isinstance(self.conflict, PairExplanation):
            path = self.conflict.path
            return [each.first for each in path] + [each.second for each in path[-1:]]
        if self.conflict is None:
            return []
        return self.opinion.order.chain(self.conflict.prior.node, self.conflict.current.node)

    def _draw_box(self, box: DrawnBox) -> None:
        self._add("rect", class_=f"box{_END if box.text.own_is_end else ''}", rx=3, **box.place.attributes())
        for at, line in enumerate(box.title):
            kind = "note" if at else "name"
            self._write(box.place.x + box.place.width / 2, box.place.y + LINE * (at + 1), line, kind)
        for cell, place in box.cells():
            self._add("rect", class_=f"cell {cell.kind}{_END if cell.is_end else ''}", **place.attributes())
            for at, line in enumerate(cell.lines):
                self._write(place.x + place.width / 2, place.y + LINE * (at + 1) - 2, line)

    def _draw_missing(self, conflict: Conflict) -> None:
        """The dependency that is missing: left of everything where both of its ends stand in one column."""
        one, other = self.places[conflict.prior.node], self.places[conflict.current.node]
        lines = missing_label(conflict)
        if self._box_at(conflict.prior.node).lane == self._box_at(conflict.current.node).lane:
            path, (x, y) = _aside(one, other)
            anchor = "end"
        else:
            path = self._between(conflict.prior.node, conflict.current.node)
            x, y, anchor = (one.x + other.x) / 2, (one.y + other.y) / 2, "start"
        self._add("path", d=path, class_="missing", marker_end=_ARROW)
        for at, line in enumerate(lines):
            self._write(x, y + LINE * (at - (len(lines) - 1) / 2), line, "label", anchor)

    def _add(self, tag: str, content: str = "", **attributes: object) -> None:
        """An element; `content` is markup. A `_` at the end of a name is left out, another one is a hyphen."""
        names = {name: name.rstrip("_").replace("_", "-") for name in attributes}
        text = "".join(f' {names[name]}="{markup(str(value))}"' for name, value in attributes.items())
        self.parts.append(f"<{tag}{text}>{content}</{tag}>")

    def _write(self, x: float, y: float, line: str, kind: str = "", anchor: str = "middle") -> None:
        self._add("text", markup(line), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_=kind)


_ARROW, _END = "url(#arrow)", " end"
_MARKERS = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker>'
)


def draw_svg(opinion: Opinion, conflict: Conflict | None, limit: int, finding: Finding | None = None) -> str:
    """The order around a conflict, or all of it, with what the finding about it says of its commands. At most about
    `limit` commands are drawn.

    The colours are those of the document around it: `standalone` gives the picture its own.
    """
    return _Drawing(opinion.around(conflict), conflict, limit, notes_of(finding)).text()


def draw_ordered_svg(pair: PairExplanation, limit: int) -> str:
    """The same around two accesses that are in order, with the path between them."""
    return _Drawing(Opinion(order=pair.order, debug=pair.debug), pair, limit, {}).text()


def standalone(svg: str) -> str:
    """The drawing as a file of its own: with its colours."""
    return svg.replace("<defs>", f"<style>{STYLE}</style><defs>", 1) + "\n"


def _width(lines: Sequence[str]) -> float:
    return max((len(line) for line in lines), default=0) * CHARACTER + PADDING


def _height(row: Sequence[CellText]) -> float:
    return max(len(cell.lines) for cell in row) * LINE + 5


def _down(x: float, y: float, to_x: float, to_y: float) -> str:
    reach = min(60.0, max(10.0, abs(to_y - y) / 2))
    return f"M{x:.1f} {y:.1f}C{x:.1f} {y + reach:.1f} {to_x:.1f} {to_y - reach:.1f} {to_x:.1f} {to_y - 1:.1f}"


def _aside(one: Rectangle, other: Rectangle) -> tuple[str, tuple[float, float]]:
    """A curve from left side to left side, and the place of its name, which ends there."""
    y, to_y = one.y + one.height / 2, other.y + other.height / 2
    away = min(one.x, other.x) - 40
    return (
        f"M{one.x:.1f} {y:.1f}C{away:.1f} {y:.1f} {away:.1f} {to_y:.1f} {other.x - 1:.1f} {to_y:.1f}",
        (away + 4, (y + to_y) / 2),
    )


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
