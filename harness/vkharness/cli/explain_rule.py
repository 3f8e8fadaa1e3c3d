"""`vkharness explain-rule NAME`: what the pages that this installation carries say of a rule or a hazard."""

from __future__ import annotations

import click

from vkharness.cli.last_resort import echo
from vkharness.cli.near import did_you_mean
from vkharness.findings import UserError


@click.command("explain-rule")
@click.argument("name", required=False)
def explain_rule(name: str | None) -> None:
    """Print what docs/rules.md says of a rule, or docs/hazards.md of a hazard. Without NAME, list both.

    NAME is as a finding has it: `READ_AFTER_WRITE`, `read-after-write` or `docs/rules.md#read-after-write`.
    """
    from vkharness.report.rules import PAGE, address, hazard_address, hazard_sections, rule_sections

    rules, hazards = rule_sections(), hazard_sections()
    if not rules:
        raise UserError(f"{PAGE} is not in this installation: install vkharness anew")
    if name is None:
        listed = [f"  {anchor:60}  {rule.title}" for anchor, rule in rules.items()]
        echo("\n".join(["hazards:", *(f"  {each}" for each in hazards), "rules:", *listed]))
        return
    wanted = name.rpartition("#")[2]
    found = next((each for each in (wanted, wanted.lower(), wanted.upper()) if each in hazards or each in rules), None)
    if found is None:
        raise UserError(f"no rule and no hazard is named {wanted!r}{did_you_mean(wanted, [*rules, *hazards])}")
    if found in hazards:
        section = hazards[found]
        said, where = [", ".join(section.hazards), section.text], hazard_address(found)
    else:
        rule = rules[found]
        said, where = [rule.title, rule.text, f"* Specification: {rule.specification}"], address(found)
    echo("\n\n".join([*said, where]))
