"""The partial order of a trace as a picture, in Graphviz' language or as SVG.

Each queue is a column, and so is the host. Each execution of a command is a box, with a cell for each stage that does
work and for each side of a dependency. An arrow leads from what must be complete first to what comes after it. The two
ends of a conflict are red, the existing chain between them is blue, and the missing edge is dashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from vkharness.extras import brought_by
from vkharness.findings import Finding, UserError
from vkharness.generated_text import markup
from vkharness.model import Conflict, Opinion
from vkharness.model.order import ACTION, DST, SRC, TRANSITION, ExecutionOrder
from vkharness.report.conflicts import conflict_text
from vkharness.report.neighbourhood import Group, group_of, part_of
from vkharness.report.order_boxes import FAINT, BoxText, CellText, box_of, missing_label, notes_of, queue_name, title_of
from vkharness.whole_file import write_whole

RED, BLUE, GREY = "#c0392b", "#1f5fa8", "#8a8a8a"
FILL = {ACTION: "#eef3fa", SRC: "#f6efdd", DST: "#e7f3e4", TRANSITION: "#f0e6f5"}
"""Background of a cell by what its node stands for; white for the rest."""
PALE = "#d8d8d8"


def _graphviz() -> Any:
    """The package, which writes the language."""
    with brought_by("graph", "the picture of an order"):
        import graphviz
    return graphviz


def draw(opinion: Opinion, conflict: Conflict | None, limit: int, finding: Finding | None = None) -> str:
    """The order around a conflict, or all of it, with what the finding about it says of its commands, in Graphviz'
    language. At most about `limit` commands are drawn."""
    opinion, notes = opinion.around(conflict), notes_of(finding)
    order, part = opinion.order, part_of(opinion, conflict, limit, notes)
    path = order.chain(conflict.prior.node, conflict.current.node) if conflict is not None else []
    graph = _graphviz().Digraph(
        "order",
        graph_attr=_GRAPH | {"label": _label(title_of(opinion, conflict, part))},
        node_attr=_NODE,
        edge_attr=_EDGE,
    )
    for queue in dict.fromkeys(queue for queue, *_ in part.groups):
        with graph.subgraph(name=f"cluster_{queue}") as lane:
            lane.attr(label=_label([queue_name(opinion, queue)]), style="rounded", color=GREY, fontsize="14")
            for group, nodes in part.groups.items():
                if group[0] == queue:
                    lane.node(_name(group), label=_table(box_of(opinion, conflict, nodes, notes)), shape="plain")
            own = [group for group in part.groups if group[0] == queue]
            for above, below in pairwise(own):  # a column reads down in stream order
                lane.edge(_name(above), _name(below), style="invis", weight="20")
    on_chain = set(pairwise(path))
    for edge in part.edges:
        if group_of(order, edge.first) == group_of(order, edge.second):
            continue  # the rows of a box read down
        look = {"color": BLUE, "penwidth": "2"} if (edge.first, edge.second) in on_chain else {}
        if order.nodes[edge.first].kind in FAINT and not look:
            look = {"color": PALE}
        graph.edge(_port(order, edge.first, "s"), _port(order, edge.second, "n"), tooltip=edge.rule, **look)
    if conflict is not None:
        graph.edge(
            _port(order, conflict.prior.node, "s"),
            _port(order, conflict.current.node, "n"),
            style="dashed",
            color=RED,
            fontcolor=RED,
            penwidth="2",
            label="\n".join(missing_label(conflict)),
        )
    return str(graph.source)


def write_graph(path: Path, text: str, drawn_here: Callable[[], str]) -> None:
    """Writes a graph as what the file's name ends in: `.dot`, or `.svg` by Graphviz' `dot`; without `dot`, as what
    `drawn_here` gives.

    Raises `UserError` for another ending.
    """
    if path.suffix == ".dot":
        write_whole(path, text)
        return
    if path.suffix != ".svg":
        raise UserError(f"{path}: a graph is written as .svg or .dot")
    graphviz = _graphviz()
    try:
        picture = graphviz.Source(text).pipe(format="svg", encoding="utf-8", quiet=True)
    except graphviz.ExecutableNotFound:
        picture = drawn_here()
    except graphviz.CalledProcessError as error:
        first = str(error.stderr or error).strip().partition("\n")[0]
        raise UserError(f"{path}: Graphviz' dot cannot draw it ({first})") from None
    write_whole(path, picture)


_GRAPH = {"rankdir": "TB", "labelloc": "t", "fontname": "Helvetica", "ranksep": "0.45", "newrank": "true"}
_NODE = {"fontname": "Helvetica", "fontsize": "11"}
_EDGE = {"color": GREY, "fontname": "Helvetica", "fontsize": "10", "arrowsize": "0.7"}


def _label(lines: Iterable[str]) -> str:
    return "\n".join(_graphviz().escape(line) for line in lines)


def _name(group: Group) -> str:
    return "c" + "_".join(map(str, group))


def _port(order: ExecutionOrder, node: int, side: str) -> str:
    return f"{_name(group_of(order, node))}:n{node}:{side}"


def _table(box: BoxText) -> str:
    width = max([1, *map(len, box.rows)])
    notes = "".join(f'<BR/><FONT POINT-SIZE="9" COLOR="{GREY}">{markup(each)}</FONT>' for each in box.notes)
    port = "" if box.own is None else f' PORT="n{box.own}"{_END if box.own_is_end else ""}'
    title = f'<TR><TD COLSPAN="{width}"{port}><B>{markup(box.name)}</B>{box.call}{notes}</TD></TR>'
    rows = "".join(_row(row, width) for row in box.rows)
    return f'<<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="2" CELLPADDING="4">{title}{rows}</TABLE>>'


_END = f' COLOR="{RED}" BORDER="2"'


def _row(row: Sequence[CellText], width: int) -> str:
    cells = []
    for at, cell in enumerate(row):
        span = width - len(row) + 1 if at == len(row) - 1 else 1
        text = "<BR/>".join(markup(line) for line in cell.lines)
        colours = f' BGCOLOR="{FILL.get(cell.kind, "white")}"{_END if cell.is_end else ""}'
        cells.append(f'<TD PORT="n{cell.node}" COLSPAN="{span}"{colours}>{text}</TD>')
    return f"<TR>{''.join(cells)}</TR>"


def summary(opinion: Opinion, conflicts: Iterable[Conflict], findings: Mapping[int, int]) -> list[str]:
    """One numbered line a conflict or remark, for choosing one; the verdict when there is no conflict. `findings` has
    the number of the finding of a conflict, by the number of the conflict."""
    lines = [
        f"{number}: {conflict_text(each)}{f', finding {findings[number]}' if number in findings else ''}"
        for number, each in enumerate(conflicts, 1)
    ]
    if not opinion.conflicts:
        lines.insert(0, "no conflict: " + ("something is not modelled" if opinion.unmodelled else "clean"))
    return lines
