"""A hook of mkdocs: puts README, CONTRIBUTING, CHANGELOG and the examples on the site, with links that hold there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from vkharness.report.rules import SITE

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"README.md": "index.md", **{name: name for name in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")}}
"""File of the checkout to page of the site."""
EXAMPLES = ("attach", "two_submits", "check_trace", "show_corruption", "test_own_tests", "scenario_own", "device")
LINKS = (
    (r"\]\(docs/", "]("),
    (r"\]\(examples/\)", "](examples.md)"),
    (r"\]\(examples/(\w+)\.py\)", r"](examples.md#\1)"),
)
"""Links in the checkout, and on the site."""


def on_config(config: MkDocsConfig) -> None:
    """The site's address is the one that findings lead to."""
    config.site_url = SITE


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        for there, here in LINKS:
            text = re.sub(there, here, text)
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "examples.md", content=examples()))
    return files


def examples() -> str:
    """The examples, a section each: what the docstring says, then the program."""
    page = "# Examples\n\nEach program is in `examples/` of the checkout, and a test runs it as it stands here.\n"
    for name in EXAMPLES:
        text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
        said = ast.get_docstring(ast.parse(text), clean=False) or ""
        code = text.split('"""', 2)[2].strip()
        page += f"\n## {name}.py {{#{name}}}\n\n{said}\n\n```python\n{code}\n```\n"
    return page
