"""A hook of mkdocs: puts README, CONTRIBUTING, CHANGELOG and the examples on the site, with links that hold there."""

from __future__ import annotations

import ast
import re
import shutil
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from vkharness.report.rules import SITE

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the script `mkdocs` begins without it
from ci import build_playground, try_it  # noqa: E402

without_playground = ""
"""Why there is no playground; empty where there is one."""
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
    """The site's address is the one that findings lead to. The playground is built, where that can be."""
    global without_playground  # noqa: PLW0603
    config.site_url = SITE
    try:
        build_playground.build(build_playground.BUILT)
        without_playground = ""
    except build_playground.NotBuilt as why:
        without_playground = str(why)
        print(f"ci/docs: the site has no playground: {why}", file=sys.stderr)


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Adds the links to the playground."""
    return markdown if without_playground else try_it.with_links(page.file.src_uri, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Puts the playground beside the pages."""
    if not without_playground:
        shutil.copytree(build_playground.BUILT, Path(config.site_dir, "playground"), dirs_exist_ok=True)


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
