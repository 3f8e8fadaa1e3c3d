"""Asks axe-core what of a page not everybody can read or reach."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from ci.npm_packages import NotFetched, fetched

VERSION = "4.14.1"
INTEGRITY = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
SERIOUS = ("serious", "critical")


def serious(page: Page) -> list[str]:
    """Each serious violation of a page as it is now: the rule, and where. Skips where axe-core cannot be had."""
    try:
        source = (fetched("axe-core", VERSION, INTEGRITY) / "axe.min.js").read_text(encoding="utf-8")
    except NotFetched as why:
        pytest.skip(f"no axe-core: {why}")
    page.evaluate(source)
    found = page.evaluate("axe.run().then((said) => said.violations)")
    return [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
