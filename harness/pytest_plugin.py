"""The pytest plugin: `pytest --vk-sync` mirrors the Vulkan calls of anyone's tests and fails those that cause a hazard.

One session lasts for the whole run, since devices and buffers often come from fixtures that many tests share; each
finding belongs to the test during which it came up. A finding of the set-up or of the test itself fails the test,
one of the tear-down is an error there. A test that fails by itself keeps its own failure, with the findings beside it.

Nothing of Vulkan is imported unless the option is given.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.record.session import Session

pytest_plugins = ("harness.suite.plugin",)

GROUP = "vkharness"
"""Name of the option group that holds all options of this plugin."""


class VkSyncWarning(pytest.PytestWarning):
    """Something in a test that the mirror could not judge."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the options."""
    group = parser.getgroup(GROUP, "Vulkan synchronization (vkharness)")
    group.addoption(
        "--vk-sync", action="store_true", help="mirror the Vulkan calls of the tests; a test that causes a hazard fails"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Attaches before test modules are imported."""
    if config.getoption("--vk-sync"):
        from harness import attach

        config.pluginmanager.register(VkSync(attach()), "vkharness-sync")


class VkSync:
    """Watches the tests of one process."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._seen = 0
        self._unjudged: set[str] = set()

    def pytest_unconfigure(self) -> None:
        """Gives the `vulkan` package back."""
        self.session.detach()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """A failing set-up keeps its failure; what a passing one did is reported with the test."""
        self._seen = len(self.session.findings)
        try:
            return (yield)
        except BaseException:
            self._attach_report(item, "setup")
            raise

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fails a test that passed and caused a hazard."""
        return (yield from self._judge(item, "call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fails a tear-down that caused a hazard."""
        return (yield from self._judge(item, "teardown"))

    def _judge(self, item: pytest.Item, when: str) -> Generator[None, object, object]:
        try:
            result = yield
        except BaseException:
            self._attach_report(item, when)
            raise
        self._warn(item)
        text = self._new_text()
        if text:
            pytest.fail(text, pytrace=False)
        return result

    def _attach_report(self, item: pytest.Item, when: str) -> None:
        text = self._new_text()
        if text:
            item.add_report_section(when, "vkharness", text)

    def _new_text(self) -> str:
        """Findings since the last look, one paragraph each; empty when there are none."""
        new = self.session.findings[self._seen :]
        self._seen += len(new)
        return "\n".join(
            f"{found.vuid}: {found.message}\n    {found.place.command} at {found.place.site}\n"
            f"    {found.prior.command} at {found.prior.site}"
            for found in new
        )

    def _warn(self, item: pytest.Item) -> None:
        unjudged = {f"unmodelled: {name}" for name in self.session.unmodelled}
        unjudged |= {f"internal error: {text.splitlines()[-1]}" for text in self.session.internal_errors}
        for text in sorted(unjudged - self._unjudged):
            item.warn(VkSyncWarning(f"no verdict without it, {text}"))
        self._unjudged |= unjudged
