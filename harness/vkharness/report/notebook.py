"""Findings as a notebook shows them: what the terminal says, as HTML in the notebook's own colours, with a link."""

from __future__ import annotations

from vkharness.findings import Finding
from vkharness.generated_text import markup
from vkharness.report.rules import address, rule_name, rule_of


def finding_html(finding: Finding) -> str:
    """One finding."""
    from vkharness.report.text import finding_text

    rule = rule_of(finding)
    name = markup(rule_name(rule))
    link = f'<a href="{markup(address(rule))}">{name}</a>'
    return f"<pre>{link.join(markup(finding_text(finding).plain.rstrip()).rsplit(name, 1))}</pre>"
