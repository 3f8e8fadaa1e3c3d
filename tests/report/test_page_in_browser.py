"""The page of a run as a browser shows it, opened from the disk: what is drawn, the filters, the panes, the keys."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.axe import serious
from tests.support.run_results import (
    EVIL,
    LAVAPIPE,
    SWIFTSHADER,
    clean_row,
    failed_row,
    hazardous_row,
    header,
    result,
    write_clean_trace,
    write_source,
)
from vkharness.results.result_lines import RowResult
from vkharness.results.states import RowState
from vkharness.results.stories import stories_of
from vkharness.suite.result_page import write_page

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MANY = 3000
IN_SIGHT = 60
"""Elements of rows that a page may have at once."""
SCREEN = {"width": 1280, "height": 800}


def program() -> str:
    """The path of the browser that is here; empty without one."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, with no window."""
    if not (found := program()):
        pytest.skip(f"no browser ({', '.join(BROWSERS)}): ci/setup installs one")
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run of six rows: one with pictures on each driver, a failed one, a crash, two that passed."""
    folder = tmp_path_factory.mktemp("small")
    write_source(folder)
    crashed = clean_row("draw/scenario_triangle")
    crashed.problem = "the driver process was killed by SIGSEGV"
    results = [
        *(result(hazardous_row(folder, where)) for where in (LAVAPIPE, SWIFTSHADER)),
        result(failed_row("barrier/scenario_wide", f"model only: {EVIL}", SWIFTSHADER), RowState.FAIL, seconds=3),
        result(crashed, RowState.CRASH),
        result(clean_row("barrier/scenario_wide"), title=EVIL),
        result(clean_row("barrier/scenario_narrow"), RowState.SKIP),
    ]
    write_clean_trace(folder, clean_row("barrier/scenario_wide"))
    changes = [
        {"kind": "new failures", "row": results[2].nodeid, "text": EVIL},
        {"kind": "rows that went", "row": "gone", "text": ""},
    ]
    return page_of(folder, results, changes=changes)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run of 3,000 rows."""
    folder = tmp_path_factory.mktemp("large")
    rows = [
        clean_row(f"family{at % 20}/scenario_number_{at // 2}", (LAVAPIPE, SWIFTSHADER)[at % 2]) for at in range(MANY)
    ]
    return page_of(folder, [result(row) for row in rows])


def page_of(folder: Path, results: list[RowResult], changes: list[dict[str, str]] | None = None) -> Path:
    lines = [each.to_dict() for each in results]
    run = header().to_dict()
    stories = stories_of(results)
    return write_page(folder / "page", run, lines, folder, folder, changes=changes, stories=stories, processes=1)


@pytest.fixture
def seen(browser: Browser) -> Iterator[Page]:
    """A tab. No page may log an error, or ask for anything but files."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
    yield page
    assert page.evaluate("window.hacked") is None
    context.close()
    assert wrong == []


def opened(page: Page, index: Path, address: str = "") -> Page:
    page.goto(f"{index.as_uri()}{address}")
    page.wait_for_selector(".row")
    return page


def names(page: Page) -> list[str]:
    """Scenario and device of the rows in sight."""
    rows = page.locator(".row").all()
    return [f"{each.locator('.name').inner_text()} {each.locator('.where').inner_text()}" for each in rows]


def test_three_thousand_rows_cost_what_is_in_sight(seen: Page, large: Path) -> None:
    asked: list[str] = []
    seen.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
    opened(seen, large)
    assert 10 < seen.locator(".row").count() <= IN_SIGHT
    assert seen.locator("#count").inner_text() == f"{MANY} rows"
    assert seen.evaluate("document.getElementsByTagName('*').length") < 700
    assert asked == ["index.html", "page.css", "rows.js", "surface.js", "detail.js", "page.js", "run.js"]
    seen.keyboard.press("End")
    seen.wait_for_selector("#pane-Verdict")
    assert 10 < seen.locator(".row").count() <= IN_SIGHT
    assert seen.locator(".row[aria-selected=true]").count() == 1
    assert len(asked) == 8, "one scenario is read when one row is opened"


def test_the_worst_rows_come_first(seen: Page, small: Path) -> None:
    opened(seen, small)
    assert names(seen)[:2] == ["draw / triangle lavapipe", "barrier / wide swiftshader"]
    assert seen.locator("#totals").inner_text().startswith("2 of 6 rows need a look")
    seen.select_option("#order", "name")
    assert names(seen)[0] == "barrier / narrow lavapipe"
    seen.select_option("#order", "seconds")
    assert names(seen)[0] == "barrier / wide swiftshader"


def test_a_story_leads_to_its_first_row(seen: Page, small: Path) -> None:
    opened(seen, small)
    told = [each.inner_text() for each in seen.locator("#stories li").all()]
    assert len(told) == 2 and told[0].startswith(
        "Crash, the driver process was killed by SIGSEGV, rule read-after-write"
    )
    assert told[1].startswith("Fail, model, rule read-after-write on swiftshader: 1 row, ")
    assert seen.locator("#overview").inner_text().startswith(told[0]), "the first line of the page"
    seen.locator("#stories button").nth(0).click()
    seen.wait_for_selector("#pane-Verdict")
    assert "triangle" in seen.title()


def test_filters_narrow_the_list_and_are_in_the_address(seen: Page, small: Path) -> None:
    opened(seen, small)
    seen.select_option("#family", "barrier")
    assert seen.locator("#count").inner_text() == "3 of 6 rows"
    seen.select_option("#device", SWIFTSHADER)
    assert names(seen) == ["barrier / wide swiftshader"]
    address = seen.url
    seen.select_option("#family", "")
    seen.select_option("#hazard", "READ_AFTER_WRITE")
    assert names(seen) == ["transfer / copy swiftshader"]
    seen.select_option("#hazard", "none")
    assert names(seen) == ["barrier / wide swiftshader"]
    seen.goto("about:blank")
    opened(seen, small, address[address.index("#") :])
    assert names(seen) == ["barrier / wide swiftshader"]


def test_status_and_text_filter(seen: Page, small: Path) -> None:
    opened(seen, small)
    seen.click("#chips [data-state=Crash]")
    assert names(seen) == ["draw / triangle lavapipe"]
    seen.click("#chips [data-state=Crash]")
    seen.fill("#text", "without FILL swift")
    assert names(seen) == ["transfer / copy swiftshader"]
    seen.fill("#text", "killed by sigsegv")
    assert names(seen) == ["draw / triangle lavapipe"]
    seen.fill("#text", "nothing like this")
    assert seen.locator("#count").inner_text() == "0 of 6 rows"


def test_keys(seen: Page, small: Path) -> None:
    opened(seen, small)
    seen.keyboard.press("ArrowDown")
    assert seen.locator("h2.title").inner_text().startswith("draw / triangle")
    seen.keyboard.press("ArrowDown")
    seen.keyboard.press("ArrowDown")
    seen.keyboard.press("ArrowUp")
    assert seen.locator(".row[aria-selected=true] .name").inner_text() == "barrier / wide"
    seen.keyboard.press("/")
    seen.keyboard.type("transfer")
    assert seen.locator("#count").inner_text() == "2 of 6 rows"
    seen.keyboard.press("ArrowDown")
    assert seen.locator("h2.title").inner_text().startswith("transfer / copy")
    seen.keyboard.press("4")
    assert seen.locator("#pane-Order").bounding_box() is not None
    assert in_view(seen, "#pane-Order h3")
    seen.keyboard.press("1")
    assert in_view(seen, "#pane-Verdict h2")
    seen.keyboard.press("Escape")
    assert seen.locator("#overview").is_visible()
    seen.keyboard.press("/")
    seen.keyboard.press("Escape")
    assert seen.locator("#count").inner_text() == "6 rows"


def in_view(page: Page, selector: str) -> bool:
    box = page.locator(selector).first.bounding_box()
    return box is not None and 0 <= box["y"] < SCREEN["height"]


def test_a_row_says_everything(seen: Page, small: Path) -> None:
    opened(seen, small, "#text=transfer+lavapipe")
    seen.click(".row")
    verdict = seen.locator("#pane-Verdict").inner_text()
    assert "A copy waits." in verdict
    assert "leaves out the dependency “fill before copy”" in verdict
    assert re.search(r"syncval\s+READ_AFTER_WRITE vkCmdCopyBuffer after vkCmdFillBuffer\s+✓", verdict)
    assert re.search(r"Khronos layer 1.3.239\s+agrees \(1 by version\)\s+✓", verdict)
    assert re.search(r"pixels\s+shown 1/1\s+✓", verdict)
    assert (
        "64 differ, first at byte 16: 11111111 expected, aeaeaeae observed" in seen.locator("#pane-Pixels").inner_text()
    )
    marked = {
        kind: seen.locator(f".listing .{kind} .no").all_inner_texts() for kind in ("prior", "current", "dependency")
    }
    assert marked == {"prior": ["8"], "current": ["10"], "dependency": ["9"]}
    assert seen.locator("#pane-Order svg .missing").count() == 1
    assert "missing: a memory dependency from" in (seen.locator("#pane-Order svg").text_content() or "")
    mend = seen.locator("#pane-Mend").inner_text()
    assert "VK_ACCESS_2_TRANSFER_WRITE_BIT" in mend
    assert "pytest 'scenarios/transfer/scenario_copies.py::scenario_copy[without_fill_before_copy-lavapipe]'" in mend
    assert "vkharness replay" in mend


def test_a_clean_row_says_what_orders_its_accesses(seen: Page, small: Path) -> None:
    opened(seen, small, "#text=wide+lavapipe")
    seen.click(".row")
    order = seen.locator("#pane-Order")
    assert "available by vkCmdPipelineBarrier" in order.inner_text()
    assert order.locator("svg .chain").count() >= 2 and order.locator("svg .missing").count() == 0
    assert "vkharness explain" in seen.locator("#pane-Mend").inner_text()


def test_the_slider_divides_expected_from_observed(seen: Page, small: Path) -> None:
    opened(seen, small, "#text=transfer+lavapipe")
    seen.click(".row")
    seen.wait_for_selector("#pane-Pixels canvas")
    palette = seen.locator(".scale .swatch").evaluate_all("several => several.map(each => each.style.backgroundColor)")
    assert seen.locator(".scale").inner_text().startswith("11111111 ×256 expected, ×192 observed")
    wrong_word = 4  # byte 16, in the first row of 16 words
    slide(seen, 1000)
    assert colour_at(seen, wrong_word, 0) == palette[0], "all of it is expected"
    slide(seen, 0)
    assert colour_at(seen, wrong_word, 0) == palette[1], "all of it is observed"
    assert colour_at(seen, 0, 0) == palette[0], "the first word is right in both"
    seen.keyboard.press("Escape")  # out of the slider
    seen.keyboard.press("s")
    assert colour_at(seen, wrong_word, 0) == "rgb(255, 64, 32)", "the difference"
    seen.keyboard.press("s")
    assert seen.locator("#pane-Pixels canvas").count() == 2


def slide(page: Page, to: int) -> None:
    page.locator("#pane-Pixels input[type=range]").fill(str(to))


LEFT, TOP = 58, 18
"""Pixels of the scale beside a picture."""


def place_of(page: Page, x: int, y: int) -> tuple[float, float]:
    """The middle of a texel in a canvas, in pixels; a row has 16 words."""
    box = page.locator("#pane-Pixels canvas").first.bounding_box()
    assert box is not None
    factor = (box["width"] - LEFT - 2) / 16
    return LEFT + (x + 0.5) * factor, TOP + (y + 0.5) * factor


def colour_at(page: Page, x: int, y: int) -> str:
    """Beside the middle of a texel, which the line of the slider may cover."""
    left, top = place_of(page, x, y)
    script = (
        "(canvas, [x, y]) => Array.from(canvas.getContext('2d').getImageData(x, y, 1, 1).data).slice(0, 3).join(', ')"
    )
    return f"rgb({page.locator('#pane-Pixels canvas').first.evaluate(script, [int(left) + 4, int(top)])})"


def test_the_value_under_the_pointer(seen: Page, small: Path) -> None:
    opened(seen, small, "#text=transfer+lavapipe")
    seen.click(".row")
    seen.wait_for_selector("#pane-Pixels canvas")
    seen.locator("#pane-Pixels canvas").scroll_into_view_if_needed()
    for x, words in ((4, "byte 16 (word 4)  differs"), (3, "byte 12 (word 3)  the same")):
        left, top = place_of(seen, x, 0)
        seen.locator("#pane-Pixels canvas").hover(position={"x": left, "y": top})
        text = seen.locator(".under-pointer").inner_text()
        assert text.startswith(words)
        assert "expected 11111111  0x11111111 = 286331153" in text
    seen.click("#pane-Pixels summary")
    seen.wait_for_selector(".hex tr")
    assert seen.locator(".hex tr").count() == 1 + 16, "a head, and the sixteen lines that differ"
    assert seen.locator(".hex .at").first.inner_text() == "0x0010"
    assert seen.locator(".hex .wrong").count() == 2 * 64


def test_names_are_text(seen: Page, small: Path) -> None:
    """Markup in the title of a claim, in a reason, in the name of a buffer, in a change: each is shown as it is."""
    opened(seen, small)
    assert EVIL in seen.locator("#changes").inner_text()
    for row in seen.locator(".row").all():
        row.click()
        seen.wait_for_selector("#pane-Verdict")
        assert EVIL in seen.locator("#pane-Verdict").inner_text()
    opened(seen, small, "#text=transfer+lavapipe")
    seen.click(".row")
    for pane in ("Pixels", "Code", "Order"):
        assert "<script>window.hacked" in seen.locator(f"#pane-{pane}").inner_text(), pane
    assert seen.locator("#detail script, #detail img, #overview img").count() == 0


def test_a_change_leads_to_its_row(seen: Page, small: Path) -> None:
    opened(seen, small)
    assert "new failures: 1" in seen.locator("#changes").inner_text()
    assert "gone" in seen.locator("#changes").inner_text()
    seen.click("#changes button")
    assert seen.locator("h2.title").inner_text().startswith("barrier / wide")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(browser: Browser, small: Path, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = opened(context.new_page(), small, "#text=transfer+lavapipe")
    page.click(".row")
    page.wait_for_selector("#pane-Order svg")
    script = "(element, name) => getComputedStyle(element)[name]"
    back = luminance(page.locator("body").evaluate(script, "backgroundColor"))
    assert (back < 0.1) == (scheme == "dark")
    for selector, name in (
        (".claim", "color"),
        (".badge", "color"),
        (".under", "color"),
        (".order text", "fill"),
        ("pre", "color"),
    ):
        text = luminance(page.locator(selector).first.evaluate(script, name))
        assert (max(text, back) + 0.05) / (min(text, back) + 0.05) > 4.5, f"{selector} on the page"
    context.close()


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it for contrast."""
    parts = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_file_that_is_missing_is_said(browser: Browser, small: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(small.parent, tmp_path / "page"))
    for each in copy.glob("data/[0-9]*.js"):
        each.unlink()
    page = opened(browser.new_page(), copy / "index.html")
    page.click(".row")
    page.wait_for_selector("#detail .bad")
    assert "is not in this folder" in page.locator("#detail").inner_text()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_and_reach_all_of_it(
    browser: Browser, small: Path, scheme: Literal["light", "dark"]
) -> None:
    page = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 800}).new_page()
    opened(page, small)
    assert serious(page) == []
    for at in range(page.locator(".row").count()):
        page.keyboard.press("ArrowDown")
        page.wait_for_selector(".row[aria-selected=true]")
        for pane in page.locator("nav.panes button:not([disabled]):not(.copy)").all() if at < 2 else []:
            pane.click()
            assert serious(page) == []
    page.context.close()
