"""Findings as a notebook shows them: what the terminal says, as HTML in the notebook's own colours, with links."""

from __future__ import annotations

from collections.abc import Sequence

from vkharness.findings import Finding
from vkharness.generated_text import markup
from vkharness.groups import Group
from vkharness.report.rules import address, rule_name, rule_of
from vkharness.report.text import finding_text, group_text

MOST = 20
"""Groups that are shown."""


def finding_html(finding: Finding) -> str:
    """One finding."""
    return _block(finding_text(finding).plain, rule_of(finding))


def session_html(verdict: str, groups: Sequence[Group]) -> str:
    """The verdict, and each group of findings."""
    more = f"<p>{len(groups) - MOST} more groups of findings</p>" if len(groups) > MOST else ""
    blocks = "".join(_block(group_text(each).plain, rule_of(each.first)) for each in groups[:MOST])
    return f"<p>vkharness: <strong>{markup(verdict)}</strong></p>{blocks}{more}"


def _block(text: str, rule: str) -> str:
    name = markup(rule_name(rule))
    link = f'<a href="{markup(address(rule))}">{name}</a>'
    return f"<pre>{link.join(markup(text.rstrip()).rsplit(name, 1))}</pre>"
