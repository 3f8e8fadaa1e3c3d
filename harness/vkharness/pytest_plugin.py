"""The pytest plugin: `pytest --vk-sync` mirrors the Vulkan calls of anyone's tests and fails those that cause a hazard.

One session lasts for the whole run, since devices and buffers often come from fixtures that many tests share; each
finding belongs to the test during which it came up. A finding of the set-up or of the test itself fails the test,
one of the tear-down is an error there. A test that fails by itself keeps its own failure, with the findings beside it.

The other options are of scenarios: claims that a module declares become items, which `vkharness.suite.items` runs.

Every run of pytest where this package is installed loads this module. So it imports nothing of ours before an option or
a claim asks for it.
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from collections.abc import Generator, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from vkharness.failing_tests import KeptTrace
    from vkharness.findings import Finding
    from vkharness.ignore_file import IgnoreFile
    from vkharness.record.session import Session

CHECKED = [f"--vk-{name}" for name in ("device", "layer", "shard", "resume", "baseline", "update-baseline")]
"""Options that are looked at before anything is collected."""
GROUP = "vkharness"
"""Name of the option group that holds all options of this plugin."""


IGNORED = "vkharness-ignored"
"""Key in the output of xdist workers: for each entry of the ignore file, how many findings it covered."""


def _count(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def _native(text: str) -> int | str:
    """A value of --vk-native; a number where that is all it says."""
    from vkharness.findings import UserError
    from vkharness.suite.native_times import native_times

    try:
        native_times(text)
    except UserError as error:
        raise ArgumentTypeError(str(error)) from None
    return int(text) if text.isdecimal() else text


def _seconds(text: str) -> float:
    """A number of seconds that something may take."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


SEEN = "vkharness-seen"
"""Key in the output of xdist workers: the calls seen, the findings and the unjudged ones of the worker."""
DRAWN = "vkharness-drawn"
"""Key in the output of xdist workers: lines about the pictures of failing tests."""
MARKER = (
    "vk_sync(allow=[NAME, ...]): hazards that do not count in this test with --vk-sync, as READ_AFTER_WRITE or "
    "SYNC-HAZARD-READ-AFTER-WRITE"
)
OF_SYNC = ("ignore", "bounds", "strict")
"""Options that say how --vk-sync judges. A file of settings may have them also for runs without it."""
PATHS = ("ignore", "artifacts", "report", "baseline")
"""Options that are relative to the root folder where a file of settings gives them."""


OPTIONS: dict[str, dict[str, Any]] = {
    "sync": {"action": "store_true", "help": "mirror the Vulkan calls of the tests; a test that causes a hazard fails"},
    "bounds": {
        "action": "store_true",
        "help": "with --vk-sync: judge the most that draws could reach where contents of memory are unknown",
    },
    "strict": {
        "action": "store_true",
        "help": "with --vk-sync: count what is a hazard by the letter alone, and that hardly anybody would mend",
    },
    "ignore": {
        "metavar": "FILE",
        "help": "with --vk-sync: findings that this file names do not count (pytest itself has an --ignore)",
    },
    "device": {
        "action": "append",
        "default": [],
        "metavar": "NAME|MANIFEST|NAME=MANIFEST",
        "help": "driver to run scenarios on, by name or by its manifest (repeatable; default: those that "
        "VK_DRIVER_FILES lists, else lavapipe, lavapipe-25 and swiftshader)",
    },
    "layer": {
        "action": "append",
        "default": [],
        "metavar": "auto|off|VERSION|MANIFEST",
        "help": "ask the Khronos validation layer too: every version on this machine (auto, the default), none (off), "
        "or one by version ('old', 'today', '1.3.239') or by its manifest (repeatable)",
    },
    "artifacts": {
        "default": "artifacts",
        "metavar": "DIR",
        "help": "folder for pictures, records and traces of hazards",
    },
    "table": {"action": "store_true", "help": "print a line for each row at the end (so does -v)"},
    "report": {"metavar": "DIR", "help": "make a page of the run in this folder; open its index.html in a browser"},
    "native": {
        "type": _native,
        "default": 0,
        "metavar": "N[:STRATEGY,...]|all",
        "help": "also run each stream N times as recorded (on a GPU a missing barrier may show by itself), under each "
        "of these strategies (default: plain) or all; `all` alone runs each 3 times",
    },
    "retries": {
        "type": _count,
        "default": 0,
        "metavar": "N",
        "help": "run a row that does not pass up to N more times; one that then passes is a flake",
    },
    "timeout": {"type": _seconds, "default": 300.0, "metavar": "S", "help": "seconds for each row (default: 300)"},
    "time-limit": {
        "type": _seconds,
        "metavar": "S",
        "help": "seconds for all rows: what is left then fails the run, and --vk-resume runs it",
    },
    "shard": {"metavar": "K/N", "help": "run the K-th of N parts of the scenarios; a row stays in its part for ever"},
    "resume": {
        "action": "store_true",
        "help": "go on with the run of which the results are in the folder of --vk-artifacts: run only the rest",
    },
    "min-rows": {
        "type": _count,
        "default": 0,
        "metavar": "N",
        "help": "fail when fewer than N rows of scenarios ran; rows that are skipped do not count",
    },
    "baseline": {
        "metavar": "DIR",
        "help": "folder of known results: DRIVER-fails.txt, DRIVER-skips.txt and DRIVER-flakes.txt",
    },
    "update-baseline": {"action": "store_true", "help": "write these lists so that they say what this run did"},
}
"""Options by name, without the prefix that all have."""


class VkSyncWarning(pytest.PytestWarning):
    """Something in a test that the mirror could not judge."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the options."""
    group = parser.getgroup(GROUP, "Vulkan synchronization (vkharness)")
    for name, option in OPTIONS.items():
        group.addoption(f"--vk-{name}", **option)
        kind: Any = {"store_true": "bool", "append": "args"}.get(option.get("action", ""), "string")
        parser.addini(_key(name), f"as --vk-{name}", type=kind, default=None)


def _key(name: str) -> str:
    """The name of an option in files of settings, and in `config.option`."""
    return f"vk_{name.replace('-', '_')}"


def _take_settings(config: pytest.Config) -> None:
    """Options that the command line leaves out, from the file of settings."""
    for name, option in OPTIONS.items():
        given, default = config.getini(_key(name)), option.get("default", None if "action" not in option else False)
        if given is None or getattr(config.option, _key(name)) != default:
            continue
        try:
            value = option["type"](given) if "type" in option else given
        except (ValueError, ArgumentTypeError) as error:
            raise pytest.UsageError(f"{_key(name)}: {error}") from None
        setattr(config.option, _key(name), str(config.rootpath / value) if name in PATHS and value else value)


_SETTINGS = ("pytest.toml", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Files in which pytest looks for settings of a project."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Attaches before test modules are imported."""
    config.addinivalue_line("markers", MARKER)
    _check_root(config)
    given = [name for name in OF_SYNC if config.getoption(f"--vk-{name}")]
    _take_settings(config)
    if config.getoption("--vk-sync"):
        from vkharness import attach
        from vkharness.failing_tests import KeptTrace

        ignored = _ignore_file(config.getoption("--vk-ignore"))
        trace = KeptTrace(_trace_path(config))
        bounds, strict = config.getoption("--vk-bounds"), config.getoption("--vk-strict")
        session = attach(bounds=bounds, strict=strict, sink=trace.write)
        config.pluginmanager.register(VkSync(session, ignored, trace), "vkharness-sync")
    elif given:
        raise pytest.UsageError(f"--vk-{given[0]} goes with --vk-sync")


def _check_root(config: pytest.Config) -> None:
    """Refuses paths that pytest took for places of tests, which lost it the project's settings.

    pytest looks for its root before it knows the options of plugins: `--vk-device FILE` is then an option and a place.
    """
    given = config.invocation_params
    above = (given.dir, *given.dir.parents)
    if config.inipath is not None or not any((folder / name).exists() for folder in above for name in _SETTINGS):
        return
    for option, value in pairwise(map(str, given.args)):
        path = given.dir / value
        if option.startswith("--vk-") and "=" not in option and path.exists() and not path.is_relative_to(given.dir):
            raise pytest.UsageError(f"pytest takes {value} for a place of tests: write {option}={value}")


def _trace_path(config: pytest.Config) -> Path | None:
    """Where this process keeps its trace; None with an empty --vk-artifacts."""
    folder, worker = config.getoption("--vk-artifacts"), getattr(config, "workerinput", {}).get("workerid")
    return config.invocation_params.dir / folder / f"vk-sync{f'-{worker}' if worker else ''}.jsonl" if folder else None


def _ignore_file(name: str | None) -> IgnoreFile:
    """The entries of the file, as of today; none without a file."""
    from vkharness.findings import UserError
    from vkharness.ignore_file import IgnoreFile, read_ignore_file

    try:
        return IgnoreFile([]) if name is None else read_ignore_file(Path(name), date.today())
    except UserError as error:
        raise pytest.UsageError(str(error)) from None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Files of scenarios need no setting of `python_files`: `scenario_*.py` that names this package is one."""
    if file_path.suffix != ".py" or not file_path.name.startswith("scenario_") or parent.session.isinitpath(file_path):
        return None
    patterns = parent.config.getini("python_files")
    if any(file_path.match(each) for each in patterns) or b"vkharness.suite" not in file_path.read_bytes():
        return None
    module: pytest.Module = pytest.Module.from_parent(parent, path=file_path)
    return module


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[pytest.Item] | None:
    """A claim becomes one item for each variant and device. Where nobody imported `Claim`, there are none."""
    claims = sys.modules.get("vkharness.suite.claims")
    if claims is None or not name.startswith("scenario_") or not isinstance(obj, claims.Claim):
        return None
    from vkharness.suite.items import items

    return list(items(collector, name, obj))


def pytest_sessionstart(session: pytest.Session) -> None:
    """A device or a layer that was named and cannot start ends the run here, before anything is collected."""
    if any(session.config.getoption(option) for option in CHECKED):
        from vkharness.findings import UserError
        from vkharness.suite import items
        from vkharness.suite.suite_run import suite_run, usage_error

        try:
            assert items  # from here on the other hooks know that this run is one of the suite
            suite_run(session.config).check()
        except UserError as error:
            raise usage_error(error) from None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: object) -> None:
    """Tells a worker of pytest-xdist what is done already, and when the run began."""
    config = getattr(node, "config")  # noqa: B009 (xdist has no types)
    if config.getoption("--vk-resume") or config.getoption("--vk-time-limit"):
        from vkharness.suite.suite_run import TOLD, suite_run

        getattr(node, "workerinput")[TOLD] = suite_run(config).for_workers()  # noqa: B009


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what belongs to another shard, and what is done already."""
    if "vkharness.suite.items" in sys.modules:
        from vkharness.suite.items import select

        select(config, items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begins the results file when there is a scenario to run."""
    items = sys.modules.get("vkharness.suite.items")
    if items is not None and not session.config.option.collectonly:
        items.begin_run(session.config, [each.nodeid for each in session.items])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: object, ids: Sequence[str]) -> None:
    """The same where the processes of pytest-xdist collect: they tell the names of what they found."""
    if any("::scenario_" in each for each in ids):
        from vkharness.suite.items import begin_run

        config = getattr(node, "config")  # noqa: B009 (xdist has no types)
        begin_run(config, ids)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Ends the results file."""
    if "vkharness.suite.items" in sys.modules:
        from vkharness.suite.items import end_run

        end_run(session, int(exitstatus))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the driver processes."""
    if "vkharness.suite.items" in sys.modules:
        from vkharness.suite.items import close_workers

        close_workers(config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of a row carries its line of the results file, also from a process of pytest-xdist."""
    report = yield
    result = getattr(item, "result", None) if "vkharness.suite.items" in sys.modules else None
    if result is not None:
        from vkharness.suite.row_progress import carry

        carry(report, result)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The summary of all rows, whichever process ran them, and the files that a run leaves."""
    if "vkharness.suite.items" in sys.modules:
        from vkharness.suite.run_end import tell_end

        tell_end(terminalreporter)


class VkSync:
    """Watches the tests of one process."""

    def __init__(self, session: Session, ignored: IgnoreFile, trace: KeptTrace) -> None:
        self.session = session
        self.ignored = ignored
        self.trace = trace
        self._seen = 0
        self._unjudged: set[str] = set()
        self._of_workers = [0, 0, 0]
        self._drawn: list[str] = []

    def pytest_unconfigure(self) -> None:
        """Gives the `vulkan` package back."""
        self.session.detach()
        self.trace.close()
        self.trace.clear()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """A marker that allows what is no hazard ends the run."""
        from vkharness.findings import Hazard

        known = {name for each in Hazard for name in (each.value, each.vuid)}
        for item in items:
            for marker in item.iter_markers("vk_sync"):
                if marker.args or marker.kwargs.keys() - {"allow"} or isinstance(marker.kwargs.get("allow"), str):
                    raise pytest.UsageError(f"{item.nodeid}: write the marker as vk_sync(allow=[NAME, ...])")
            for name in sorted(_allowed(item) - known):
                raise pytest.UsageError(f"{item.nodeid}: vk_sync(allow=[{name!r}]): no hazard has that name")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """A failing set-up keeps its failure; what a passing one did is reported with the test."""
        self._seen = len(self.session.findings)
        self.trace.begin()
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
        new = self._take(item)
        text = _failure(new)
        if any(each.counts for each in new):
            pytest.fail(text + self.trace.keep(item.nodeid, new), pytrace=False)
        elif text:
            item.warn(VkSyncWarning(text))
        return result

    def _attach_report(self, item: pytest.Item, when: str) -> None:
        new = self._take(item)
        text = _failure(new)
        if text:
            kept = self.trace.keep(item.nodeid, new) if any(each.counts for each in new) else ""
            item.add_report_section(when, "vkharness", text + kept)

    def _take(self, item: pytest.Item) -> list[Finding]:
        """The findings since the last look, without those that are ignored or that the test allows."""
        new = self.session.findings[self._seen :]
        self._seen += len(new)
        allowed = _allowed(item)
        for each in new:
            if each.hazard in allowed or each.vuid in allowed:
                each.ignored = "allowed by the marker vk_sync of the test"
        self.ignored.mark(each for each in new if not each.ignored)
        return [each for each in new if not each.ignored]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Draws what made tests fail. A worker of xdist tells of that, and what it ignored. Elsewhere an entry that
        covered nothing in a whole run is an error."""
        self.trace.close()
        self._drawn += self.trace.draw(session.config.getoption("--vk-device"))
        matches = [each.matches for each in self.ignored.entries]
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[IGNORED] = matches
            session.config.workeroutput[SEEN] = self._numbers()
            session.config.workeroutput[DRAWN] = self._drawn
        elif exitstatus == pytest.ExitCode.OK and self._unused(session.config):
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Adds the numbers, the picture lines and the ignored findings that a worker of xdist reports."""
        output = getattr(node, "workeroutput", {})
        self._of_workers = [a + b for a, b in zip(self._of_workers, output.get(SEEN, (0, 0, 0)), strict=True)]
        self._drawn += output.get(DRAWN, ())
        told = output.get(IGNORED, ())
        for entry, matches in zip(self.ignored.entries, told, strict=False):
            entry.matches += matches

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says what was seen, how many findings were ignored, and which entries covered none."""
        calls, found, unjudged = (a + b for a, b in zip(self._numbers(), self._of_workers, strict=True))
        terminalreporter.write_line(f"vkharness: {calls} calls seen, {found} findings, {unjudged} unjudged")
        for line in self._drawn:
            terminalreporter.write_line(f"vkharness: {line}")
        times = sum(each.matches for each in self.ignored.entries)
        if times:
            terminalreporter.write_line(f"vkharness: {times} findings are ignored")
        for line in self._unused(terminalreporter.config):
            terminalreporter.write_line(f"vkharness: {line}", red=True)

    def _numbers(self) -> list[int]:
        """Calls and writes of the host that were seen, findings, and kinds of calls that could not be judged."""
        unjudged = len(self.session.unmodelled) + len(self.session.internal_errors)
        return [self.trace.blocks, len(self.session.findings), unjudged]

    def _unused(self, config: pytest.Config) -> list[str]:
        """Entries that covered nothing. Where -k or -m leave tests out, nothing is known of them."""
        return [] if config.option.keyword or config.option.markexpr else self.ignored.unused()

    def _warn(self, item: pytest.Item) -> None:
        unjudged = {f"unmodelled: {name}" for name in self.session.unmodelled}
        unjudged |= {f"internal error: {text.splitlines()[-1]}" for text in self.session.internal_errors}
        for text in sorted(unjudged - self._unjudged):
            item.warn(VkSyncWarning(f"no verdict without it, {text}"))
        self._unjudged |= unjudged


def _allowed(item: pytest.Item) -> set[str]:
    """Names of the hazards that the markers of a test allow."""
    return {str(name) for marker in item.iter_markers("vk_sync") for name in marker.kwargs.get("allow", ())}


def _failure(findings: Sequence[Finding]) -> str:
    """Groups of findings, one paragraph each; empty when there are none."""
    if not findings:
        return ""
    from vkharness.groups import groups_of
    from vkharness.report.text import failure_text

    return "\n".join(map(failure_text, groups_of(findings)))
