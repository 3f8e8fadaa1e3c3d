"""The partial order of a trace as a picture, in Graphviz' language or as SVG through its `dot`.

Each queue is a column, and so is the host. Each execution of a command is a box, with a cell for each stage that does
work and for each side of a dependency. An arrow leads from what must be complete first to what comes after it. The two
ends of a conflict are red, the existing chain between them is blue, and the missing edge is dashed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from itertools import pairwise
from pathlib import Path

import graphviz

from harness.findings import Place, UserError
from harness.model import Conflict, Opinion
from harness.model.order import ACTION, DST, FENCE, HOST, SRC, SUBMIT, TRANSITION, ExecutionOrder, Node
from harness.report.conflicts import conflict_text, missing_text
from harness.report.files import write_whole
from harness.report.neighbourhood import Group, Neighbourhood, group_of, part_of
from harness.report.printable import printable, quoted
from harness.spec import names

RED, BLUE, GREY = "#c0392b", "#1f5fa8", "#8a8a8a"
FILL = {ACTION: "#eef3fa", SRC: "#f6efdd", DST: "#e7f3e4", TRANSITION: "#f0e6f5"}
"""Background of a cell by what its node stands for; white for the rest."""
FAINT = (SUBMIT, HOST, FENCE)
"""Kinds of nodes with very many arrows, which are drawn pale."""
PALE = "#d8d8d8"
MOST_STAGES = 3
"""The most names of stages in a cell. Further stages are counted."""


def draw(opinion: Opinion, conflict: Conflict | None, limit: int) -> str:
    """The order around a conflict, or all of it, in Graphviz' language. At most about `limit` commands are drawn."""
    order, part = opinion.order, part_of(opinion, conflict, limit)
    ends = {conflict.prior.node, conflict.current.node} if conflict is not None else set()
    path = order.chain(conflict.prior.node, conflict.current.node) if conflict is not None else []
    graph = graphviz.Digraph(
        "order", graph_attr=_graph_attributes(opinion, conflict, part), node_attr=_NODE, edge_attr=_EDGE
    )
    for queue in dict.fromkeys(queue for queue, *_ in part.groups):
        with graph.subgraph(name=f"cluster_{queue}") as lane:
            name = opinion.debug.names.get(queue, "")
            lane.attr(
                label=f"queue {queue}{_quoted(name)}" if queue else "host", style="rounded", color=GREY, fontsize="14"
            )
            for group, nodes in part.groups.items():
                if group[0] == queue:
                    box = _box(order, nodes, ends, conflict, _said(opinion, order.nodes[nodes[0]].place))
                    lane.node(_name(group), label=box, shape="plain")
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
        label = f"missing: {_missing(conflict)}"
        graph.edge(
            _port(order, conflict.prior.node, "s"),
            _port(order, conflict.current.node, "n"),
            style="dashed",
            color=RED,
            fontcolor=RED,
            penwidth="2",
            label=_wrapped(label),
        )
    return str(graph.source)


def write_graph(path: Path, text: str) -> None:
    """Writes a graph as what the file's name ends in: `.dot`, or `.svg` by Graphviz' `dot`.

    Raises `UserError` for another ending, or when `dot` is not there.
    """
    if path.suffix == ".dot":
        write_whole(path, text)
        return
    if path.suffix != ".svg":
        raise UserError(f"{path}: a graph is written as .svg or .dot")
    try:
        picture = graphviz.Source(text).pipe(format="svg", encoding="utf-8", quiet=True)
    except graphviz.ExecutableNotFound:
        raise UserError(f"{path}: Graphviz' dot is not installed (package graphviz); write a .dot instead") from None
    except graphviz.CalledProcessError as error:
        raise UserError(f"{path}: Graphviz' dot cannot draw it ({error})") from None
    write_whole(path, picture)


_NODE = {"fontname": "Helvetica", "fontsize": "11"}
_EDGE = {"color": GREY, "fontname": "Helvetica", "fontsize": "10", "arrowsize": "0.7"}


def _said(opinion: Opinion, place: Place) -> str:
    """What the program says of a place: its label regions and its frame."""
    frame = opinion.debug.frames.of(place.submit or place.call)
    labels = printable(" / ".join(opinion.debug.labels_at(place)))
    return ", ".join([*([labels] if labels else ()), *([f"frame {frame}"] if frame is not None and place.call else ())])


def _quoted(name: str) -> str:
    """A debug name behind what it names."""
    return graphviz.escape(f" {quoted((name,))}") if name else ""


def _graph_attributes(opinion: Opinion, conflict: Conflict | None, part: Neighbourhood) -> dict[str, str]:
    title = conflict_text(conflict) if conflict is not None else "no conflict"
    if conflict is not None and conflict.resource in opinion.debug.names:
        title += f"\non {conflict.resource}{_quoted(opinion.debug.names[conflict.resource])}"
    if part.left_out:
        title += f"\n{part.left_out} commands further away are not drawn"
    return {
        "rankdir": "TB",
        "label": title,
        "labelloc": "t",
        "fontname": "Helvetica",
        "ranksep": "0.45",
        "newrank": "true",
    }


def _name(group: Group) -> str:
    return "c" + "_".join(map(str, group))


def _port(order: ExecutionOrder, node: int, side: str) -> str:
    return f"{_name(group_of(order, node))}:n{node}:{side}"


def _box(order: ExecutionOrder, nodes: list[int], ends: set[int], conflict: Conflict | None, said: str) -> str:
    """A table: the command, what the program says of it, then the sides of its dependencies and its work, a row each
    kind."""
    place = order.nodes[nodes[0]].place
    rows: dict[str, list[int]] = {}
    for node in nodes:
        rows.setdefault(order.nodes[node].kind, []).append(node)
    width = max(map(len, rows.values()))
    notes = [each for each in (printable(_site(place.site or "")), said) if each]
    site = "".join(f'<BR/><FONT POINT-SIZE="9" COLOR="{GREY}">{escape(each)}</FONT>' for each in notes)
    first = order.nodes[nodes[0]]
    call = f" (call {place.call})" if place.call else ""
    lone = first.kind not in FILL  # such a node is all of its box: the title says what it is
    name = _brief(first.label).removesuffix(f" ({place.call})") if lone else place.command
    mark = f' COLOR="{RED}" BORDER="2"' if lone and nodes[0] in ends else ""
    port = f' PORT="n{nodes[0]}"{mark}' if lone else ""
    title = f'<TR><TD COLSPAN="{width}"{port}><B>{escape(name)}</B>{call}{site}</TD></TR>'
    body = (
        _row(order, several, width, ends, conflict) for several in rows.values() if not lone or several != nodes[:1]
    )
    return f'<<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="2" CELLPADDING="4">{title}{"".join(body)}</TABLE>>'


def _row(order: ExecutionOrder, nodes: list[int], width: int, ends: set[int], conflict: Conflict | None) -> str:
    cells = []
    for at, node in enumerate(nodes):
        span = width - len(nodes) + 1 if at == len(nodes) - 1 else 1
        each = order.nodes[node]
        colours = f' COLOR="{RED}" BORDER="2"' if node in ends else ""
        lines = _cell(each) + (_uses(node, conflict) if node in ends else [])
        text = "<BR/>".join(escape(line) for line in lines)
        fill = FILL.get(each.kind, "white")
        cells.append(f'<TD PORT="n{node}" COLSPAN="{span}" BGCOLOR="{fill}"{colours}>{text}</TD>')
    return f"<TR>{''.join(cells)}</TR>"


def _cell(node: Node) -> list[str]:
    if node.kind == ACTION:
        return [_stages(node.stages)]
    if node.kind in (SRC, DST):
        side = "from" if node.kind == SRC else "to"
        return [f"{side} {_brief(node.label.rpartition(f' {side} ')[2])}"]
    return [node.kind if node.kind == TRANSITION else _brief(node.label)]


def _uses(node: int, conflict: Conflict | None) -> list[str]:
    uses = (conflict.prior, conflict.current) if conflict is not None else ()
    return [f"{'writes' if use.write else 'reads'} {_short(use.access)}" for use in uses if use.node == node]


def _short(access: str) -> str:
    return access.removeprefix("SYNC_")


def _stages(mask: int) -> str:
    """The stages of a scope: a few by name, logically earlier and later ones counted."""
    each = _brief(names.stages(mask)).split("|")
    if len(each) <= MOST_STAGES:
        return ", ".join(each)
    return f"{', '.join(each[:MOST_STAGES])} and {len(each) - MOST_STAGES} more"


def _site(site: str) -> str:
    return site.rsplit("/", 1)[-1]


def _missing(conflict: Conflict) -> str:
    return _brief(missing_text(conflict).partition(":")[0])


def _brief(text: str) -> str:
    """Names of stages and accesses without what is the same in all of them."""
    return re.sub(r"VK_(?:PIPELINE_STAGE|ACCESS)_2_(\w+?)(?:_BIT(?:_[A-Z]+)?)?\b", r"\1", text)


def _wrapped(text: str, width: int = 44) -> str:
    """Words on lines of about that many characters."""
    lines: list[str] = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def summary(opinion: Opinion, conflicts: Iterable[Conflict]) -> list[str]:
    """One numbered line a conflict, for choosing one; the verdict when there is none."""
    lines = [f"{number}: {conflict_text(each)}" for number, each in enumerate(conflicts, 1)]
    return lines or ["no conflict: " + ("something is not modelled" if opinion.unmodelled else "clean")]
