"""The matrix as a page to look at: one HTML file with nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment

from vkharness.generated_text import visible
from vkharness.suite.matrix.totals import Judged, grid, sums
from vkharness.verdicts import Status
from vkharness.whole_file import write_whole

TEMPLATE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Operation matrix</title>
<style>
  body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff; }
  table { border-collapse: collapse; margin: 0 0 2rem; }
  th { font-weight: 600; text-align: left; padding: 2px 8px; }
  thead th { text-align: right; }
  tr > th:first-child { white-space: nowrap; text-align: left; }
  td { text-align: right; padding: 2px 6px; border: 1px solid #fff; min-width: 2.6rem; }
  td.none { background: #f4f4f4; }
  td.right { background: #cfe8cf; }
  td.wrong { background: #f3b0a8; font-weight: 600; }
  small { color: #555; display: block; line-height: 1.1; }
  li { margin-bottom: .3rem; }
</style>
<h1>Operation matrix</h1>
<p>{{ total }} cells on {{ devices|join(", ") }}. First operation down, second across: how many cells agree with
the rules (each with one primitive and one defect, judged by syncval, the model and the Khronos layers), and below it
how many of their hazards were shown in bytes.</p>
{% for kind, names, rows in grids %}
<h2>{{ kind }}</h2>
<table>
  <thead><tr><th></th>{% for name in names %}<th title="{{ name }}">{{ loop.index }}</th>{% endfor %}</tr></thead>
  {% for cells in rows %}
  <tr><th>{{ loop.index }} {{ names[loop.index0] }}</th>
    {%- for each in cells %}
    {%- if not each.cells %}<td class="none"></td>
    {%- else %}<td class="{{ "right" if each.is_right else "wrong" }}">
      {{- each }}
      {%- if each.hazards %}<small>{{ each.shown }}/{{ each.hazards }}</small>{% endif %}</td>
    {%- endif %}{% endfor %}</tr>
  {% endfor %}
</table>
{% endfor %}
{% for by, counted in totals %}
<h2>By {{ by }}</h2>
<table>
  <thead><tr><th>{{ by }}</th>
    {%- for each in ("cells", "agree", "skipped", "hazards run", "shown") %}<th>{{ each }}</th>{% endfor %}</tr></thead>
  {% for name, each in counted.items() %}
  <tr><th>{{ name }}</th>
    {%- for number in (each.cells, each.agreed, each.skipped, each.hazards, each.shown) -%}
    <td>{{ number }}</td>{% endfor %}</tr>
  {% endfor %}
</table>
{% endfor %}
{% if failed %}
<h2>Cells that do not agree</h2>
<ul>
  {% for row in failed %}<li>{{ row.scenario }} ({{ row.device }}): {{ row.reasons|join("; ") or row.problem }}</li>
  {% endfor %}
</ul>
{% endif %}
</html>
"""


def write_page(path: Path, judged: Sequence[Judged]) -> None:
    """Writes the page, whole or not at all. Raises `UserError` when it cannot be written."""
    kinds = dict.fromkeys(cell.resource.kind for cell, _ in judged)
    grids: list[tuple[str, Any, Any]] = [
        (kind, *grid([each for each in judged if each[0].resource.kind == kind])) for kind in kinds
    ]
    page = Environment(autoescape=True, finalize=visible).from_string(TEMPLATE)
    text = page.render(
        total=len(judged),
        devices=list(dict.fromkeys(row.device for _, row in judged)),
        grids=grids,
        totals=[(by, sums(judged, by)) for by in ("primitive", "defect", "resource")],
        failed=[row for _, row in judged if row.status not in (Status.PASSED, Status.UNAVAILABLE)],
    )
    write_whole(path, text)
