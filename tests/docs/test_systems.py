"""The pages of docs/systems: what they name exists, and what is generated of them is what the scenarios declare."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ci import frame_table, gen_systems
from vkharness.suite.claims import WHOLE

PAGES = sorted(path for path in gen_systems.FOLDER.glob("*.md") if path != gen_systems.INDEX)


def test_the_table_of_the_index_is_made_from_the_sections() -> None:
    command = [sys.executable, "ci/gen_systems.py", "--check"]
    made = subprocess.run(command, cwd=gen_systems.ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


def test_each_document_has_a_page_and_each_page_a_document() -> None:
    assert [f"{path.stem}.md" for path in PAGES] == [each.page for each in gen_systems.documents()]


def test_the_site_leads_to_each_page() -> None:
    nav = (gen_systems.ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert not [path.name for path in PAGES if f"systems/{path.name}\n" not in nav]


def test_the_table_has_a_section_for_what_it_covers(tmp_path: Path) -> None:
    empty = tmp_path / "some.toml"
    empty.write_text('document = "D"\nauthor = "A"\n[[section]]\ntitle = "Fences"\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"section 'Fences' has neither"):
        gen_systems.Document.read(empty)
    with pytest.raises(ValueError, match="has no test_that_is_not_there"):
        gen_systems.link_of("test:tests/docs/test_rules.py::test_that_is_not_there")
    with pytest.raises(ValueError, match="has no rule no-such-rule"):
        gen_systems.link_of("rule:no-such-rule")
    with pytest.raises(KeyError):
        gen_systems.link_of("no_such_scenario")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_generated_of_a_page_is_what_is_declared(page: Path) -> None:
    """Figures and tables of frames are there. A table of omissions has exactly the twins that the scenarios declare."""
    again = f"run ci/gen_systems.py {page.relative_to(gen_systems.ROOT)}"
    for kind, argument, shown in gen_systems.marks(page.read_text(encoding="utf-8")):
        if kind == "frames":
            assert shown.strip().startswith(f"| {' | '.join(frame_table.COLUMNS)} |"), again
        elif kind != "omissions":
            name = re.search(r"\(images/(.+?)\)", shown)
            assert name, again
            assert (gen_systems.FOLDER / "images" / name[1]).stat().st_size, again
        else:
            twins = [
                (f"`{scenario}`", twin.name.replace("_", " "), gen_systems.hazards(expected))
                for scenario in argument.split()
                for twin, expected in gen_systems.claims()[scenario][1].variants.items()
                if twin.kind != WHOLE
            ]
            rows = [tuple(row.strip("| ").split(" | ")[:3]) for row in shown.splitlines() if row.startswith("| `")]
            assert rows == twins, again
