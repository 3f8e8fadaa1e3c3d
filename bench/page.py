"""Cost of the page of a large run: `python bench/page.py`.

3,000 rows, of which half have a hazard with a trace and a picture, on two drivers: how long the page takes to make, how
large it is, and how long Chromium takes to show its list, and then the last row.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import sync_playwright

from tests.report.test_page_in_browser import program
from tests.support.run_results import LAVAPIPE, SWIFTSHADER, clean_row, hazardous_row, header, result, write_source
from vkharness.suite.result_page import write_page

ROWS = 3_000
OPENED = 5
"""Times that the page is opened; the middle one counts."""


def make(folder: Path) -> tuple[Path, float]:
    """The page, and the seconds that it took."""
    write_source(folder)
    results = []
    for number in range(ROWS // 4):
        name = f"family{number % 20}/scenario_number_{number}"
        for where in (LAVAPIPE, SWIFTSHADER):
            results += [result(clean_row(name, where)), result(hazardous_row(folder, where, name))]
    lines = [each.to_dict() for each in results]
    start = time.perf_counter()
    index = write_page(folder / "page", header().to_dict(), lines, folder, folder)
    return index, time.perf_counter() - start


def main() -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        index, seconds = make(Path(folder))
        files = [each for each in index.parent.rglob("*") if each.is_file()]
        size = sum(each.stat().st_size for each in files) / (1 << 20)
        print(f"{ROWS:,} rows: made in {seconds:.1f} s, {size:.1f} MiB in {len(files):,} files")
        browser = play.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        listed, shown = [], []
        for _ in range(OPENED):
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(index.as_uri())
            page.wait_for_selector(".row")
            listed.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            start = time.perf_counter()
            page.keyboard.press("End")
            page.wait_for_selector("#pane-Verdict")
            shown.append(1000 * (time.perf_counter() - start))
            page.close()
        browser.close()
    first, last = (sorted(each)[OPENED // 2] for each in (listed, shown))
    print(f"its list is shown after {first:.0f} ms, the last row {last:.0f} ms after its key")


if __name__ == "__main__":
    main()
