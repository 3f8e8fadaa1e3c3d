"""The playground of the documentation site: its links hold what they claim, and it judges in a browser."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from ci import build_playground, try_it
from tests.support.axe import serious
from vkharness.report.rules import rule_of
from vkharness.text_form.format import canonical
from vkharness.text_form.text_mends import judged

ROOT = Path(__file__).resolve().parents[2]

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
SHELL = """<!doctype html><html lang="en"><meta charset="utf-8"><title>playground</title>
<link rel="stylesheet" href="playground/playground.css">
<body><main><div id="stream-playground"></div></main>
<script type="module" src="playground/playground.js"></script></body></html>"""
FILL, COPY = "    CLEAR_TRANSFER_WRITE a", "    COPY_TRANSFER_READ a"
TYPED = (
    (("submit q1", FILL, COPY), "hazards: 1"),
    (("submit q1", FILL, "    COPY_TRANSFER_READ b"), "clean"),
    (("submit q1", FILL, "    barrier CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ", COPY), "clean"),
    (("submit q1", FILL, "submit q2", COPY), "hazards: 1"),
    (("submit q1", FILL, COPY, "    COMPUTE_SHADER_SHADER_STORAGE_WRITE a"), "hazards: 2"),
    (("host writes a", "submit q1", COPY), "clean"),
    (("submit q1", COPY, "host writes a"), "hazards: 1"),
    (("semaphore t1 = 0", "submit q1 signal t1=1@COPY"), "clean"),
    (("acquire p signal s1", "submit q1 wait s1@COPY", "    COPY_TRANSFER_WRITE p", "present q1 p"), "hazards: 1"),
    (("submit q1", "    vkCmdDispatch: COMPUTE_SHADER_SHADER_STORAGE_READ a atomic"), "clean"),
)
"""Ten streams as a person types them, with what the page says."""


def type_lines(page: Page, lines: tuple[str, ...]) -> None:
    """Types lines: the editor keeps their margin, and Backspace takes it away."""
    inside = False
    for line in lines:
        if inside and not line.startswith(" "):
            page.keyboard.press("Backspace")
        page.keyboard.type(line.strip())
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        inside = line.startswith((" ", "submit"))


def test_each_stream_of_a_hazard_has_a_link_and_is_mended() -> None:
    page = (ROOT / "docs" / "hazards.md").read_text(encoding="utf-8")
    streams = list(try_it.of_hazards(page))
    linked = try_it.with_links("hazards.md", page)
    assert linked.count('class="try-it"') == 2 * len(streams) > 80
    for _, bad, good in streams:
        assert try_it.href(bad.text) in linked and good.finds == ()


def test_each_stream_of_a_rule_has_a_finding_of_it() -> None:
    rules = try_it.of_rules()
    linked = try_it.with_links("rules.md", (ROOT / "docs" / "rules.md").read_text(encoding="utf-8"))
    assert linked.count('class="try-it"') == len(rules) > 35
    for anchor, stream in rules.items():
        findings = judged(stream.text)
        assert anchor in map(rule_of, findings)
        assert tuple(each.hazard for each in findings) == stream.finds


def test_each_page_about_a_system_has_streams_that_find_what_they_say() -> None:
    pages = {each.stem for each in (ROOT / "docs" / "systems").glob("*.md")} - {"index"}
    assert set(try_it.of_systems()) == pages
    for page, streams in try_it.of_systems().items():
        assert "Try it: " in try_it.with_links(f"systems/{page}.md", "# A system\n\nText\n")
        for _, stream in streams:
            assert tuple(each.hazard for each in judged(stream.text)) == stream.finds


def test_a_link_holds_the_text() -> None:
    text = 'submit q1 # "<&\n    COPY_TRANSFER_READ a\n'
    assert unquote(try_it.href(text).partition("#")[2]) == text


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page with the playground alone."""
    try:
        build_playground.build(build_playground.BUILT)
    except build_playground.NotBuilt as why:
        pytest.skip(f"no playground: {why}")
    folder = tmp_path_factory.mktemp("site")
    (folder / "playground.html").write_text(SHELL)
    (folder / "playground").symlink_to(build_playground.BUILT)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/playground.html"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), "")
    if not found:
        pytest.skip(f"no browser ({', '.join(BROWSERS)}): ci/setup installs one")
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def said(page: Page, verdict: str) -> None:
    page.wait_for_function(
        "said => document.querySelector('.pg-verdict').textContent.startsWith(said)", arg=verdict, timeout=120_000
    )


@pytest.mark.slow
def test_the_page_judges_what_is_typed_and_asks_no_other_host(browser: Browser, site: str) -> None:
    page = browser.new_page()
    asked: list[str] = []
    problems: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(site)
    said(page, "hazards: 1")
    text = page.locator(".pg-text")
    for typed, verdict in TYPED:
        text.fill("")
        type_lines(page, typed)
        said(page, verdict)
        assert page.locator(".pg-fault").inner_text() == ""
        assert canonical(text.input_value()) == "\n".join([*typed, ""])
    text.fill("submit q1\n    COPY_TRANSFER_READ a\n    barrier COPY|CLAER > COPY")
    said(page, "not judged")
    assert page.locator(".pg-fault").inner_text() == "line 3, column 18: 'CLAER' is no stage: did you mean CLEAR?"
    assert page.locator(".wrong").inner_text() == "CLAER"
    assert problems == []
    assert {url.partition("/playground")[0] for url in asked} == {site.partition("/playground")[0]}
    page.close()


@pytest.mark.slow
def test_completion_mends_and_links(browser: Browser, site: str) -> None:
    page = browser.new_page()
    text = "submit q1\n    CLEAR_TRANSFER_WRITE a\n    COPY_TRANSFER_READ a\n"
    page.goto(f"{site}#{try_it.href(text).partition('#')[2]}")
    said(page, "hazards: 1")
    assert page.locator(".pg-text").input_value() == text
    assert page.locator(".found").count() == 2
    page.get_by_role("button", name="line 3").click()
    page.wait_for_function("document.querySelector('.pg-pairs').textContent.includes('CONFLICT unordered')")
    assert page.locator(".pg-picture svg > title").count() == 1
    assert serious(page) == []
    page.get_by_role("button", name="apply").click()
    said(page, "clean")
    assert "barrier CLEAR/TRANSFER_WRITE > COPY/TRANSFER_READ" in unquote(page.url)
    page.keyboard.press("Control+End")
    page.locator(".pg-text").press("Control+End")
    page.keyboard.type("    barrier CLE")
    assert page.locator(".pg-offers li").all_inner_texts()[0] == "CLEAR"
    page.keyboard.press("Tab")
    assert page.locator(".pg-text").input_value().endswith("    barrier CLEAR")
    page.close()
