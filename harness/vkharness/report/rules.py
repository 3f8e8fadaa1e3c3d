"""The rule of docs/rules.md that a finding names.

This labels findings for the reader. The deciders are `harness/vkharness/syncval` and `harness/vkharness/model`; each
cites the same anchors.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

from vkharness.findings import Finding, Hazard, HostStep
from vkharness.spec.command_classes import PRESENT

SITE = ""
"""The address of the documentation site, with a slash at its end. Where it is empty, links lead to the files of this
installation. ci/site_pages.py builds the site with it."""
PAGE, HAZARDS_PAGE = "docs/rules.md", "docs/hazards.md"
PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = (PACKAGE / "_docs", PACKAGE.parents[1] / "docs")
"""Where the two pages are in an installed package, and in a checkout."""
DESTROYED, OF_PRESENT = "/destroyed", "/present"
"""The suffixes of the use of a semaphore that destroys it, and of one after a present waited for it."""
SUBPASS = "/subpass"
"""The suffix of a race's name when it is inside one queue, between subpasses."""
WAITED_FOR = "/waited for"
"""The suffix of a hazard's name when the host waits before its write, but the device's write is not in its domain."""

RULE_OF_FINDING: tuple[tuple[str, str, str, str], ...] = (
    ("ownership-not-transferred", "*", "*", "contents-must-be-transferred-to-another-family"),
    ("ownership-not-acquired", "*", "*", "what-was-released-must-be-acquired"),
    ("ownership-not-released", "*", "*", "an-acquire-needs-its-release"),
    ("ownership-without-contents", "*", "*", "contents-that-nobody-wrote-are-not-lost"),
    ("ownership-mismatch", "*", "*", "both-halves-of-a-transfer-agree"),
    ("vkCmdResetEvent-set-race", "*", "*", "a-reset-must-come-after-a-set"),
    ("vkCmdResetEvent-wait-race", "*", "*", "a-reset-must-come-after-a-wait"),
    ("vkResetEvent-wait-race", "*", "*", "a-reset-must-come-after-a-wait"),
    ("vkCmdWaitEvents-unsynchronized-setops", "*", "*", "a-wait-needs-sets-in-order"),
    ("vkCmdWaitEvents-reset-race", "*", "*", "a-wait-must-come-after-a-reset"),
    ("vkCmdWaitEvents-another-queue", "*", "*", "events-stay-on-their-queue"),
    ("vkCmdWaitEvents*-*", "*", "*", "a-wait-must-match-its-set"),
    ("vkSetEvent-pending-wait", "*", "*", "the-host-sets-an-event-before-the-submit"),
    ("vkCmdSetEvent*-reset-race", "*", "*", "a-set-must-come-after-a-reset"),
    ("vkCmdSetEvent*-set-race", "*", "*", "a-set-must-come-after-a-set"),
    ("vkCmdSetEvent*-wait", "*", "*", "a-set-must-come-after-a-wait"),
    ("query-unordered", "*", "*", "operations-on-a-query-are-in-order"),
    ("query-not-reset", "*", "*", "a-query-is-reset-before-each-use"),
    ("query-not-awaited", "*", "*", "a-copy-of-results-waits-for-them"),
    ("query-without-result", "*", "*", "a-copy-needs-results"),
    ("barrier-before-availability", "*", "*", "what-is-made-visible-should-be-available"),
    ("barrier-racing-write", "*", "*", "a-write-should-not-race-with-a-barrier"),
    ("semaphore-in-use/present", "*", "*", "a-semaphore-of-a-present-is-free-again"),
    ("semaphore-in-use/destroyed", "*", "*", "a-semaphore-is-destroyed-after-its-uses"),
    ("semaphore-in-use", "*", "*", "a-signal-finds-its-semaphore-unsignaled"),
    ("semaphore-already-signaled", "*", "*", "a-signal-finds-its-semaphore-unsignaled"),
    ("semaphore-not-signaled", "*", "*", "a-wait-finds-its-signal-submitted"),
    ("fence-*", "*", "*", "a-fence-is-reset-between-its-uses"),
    ("sparse-binding-race", "*", "*", "a-binding-is-in-order-with-accesses-through-it"),
    ("sparse-not-bound", "*", "*", "unbound-ranges-have-no-memory"),
    ("attachment-preserved-*", "*", "*", "preserved-attachments-are-not-used"),
    ("attachment-operation-*", "*", "*", "writes-to-one-aspect-may-rewrite-the-other"),
    ("vkInvalidateMappedMemoryRanges-*", "*", "*", "an-invalidate-says-that-the-host-reads"),
    ("PRESENT_AFTER_*", "*", "*", "a-present-waits-for-the-frame"),
    ("*", "*", "*_PRESENT_PRESENTED_*", "a-presented-image-belongs-to-the-engine"),
    ("*", "*", "*_PRESENT_ACQUIRE_READ_*", "an-acquired-image-waits-for-its-semaphore"),
    ("*", "SYNC_HOST_HOST_READ", "*", "a-host-read-needs-a-dependency-and-a-wait"),
    ("*" + WAITED_FOR, "SYNC_HOST_HOST_WRITE", "*", "a-host-write-needs-the-host-domain"),
    ("*", "SYNC_HOST_HOST_WRITE", "*", "a-host-write-waits-for-the-device"),
    ("*", "*", "SYNC_HOST_HOST_WRITE", "a-submit-shows-host-writes-to-the-device"),
    ("*_RACING_*" + SUBPASS, "*", "*", "subpasses-without-a-path-race"),
    ("*_RACING_*", "*_OWNERSHIP_TRANSFER", "*", "a-semaphore-orders-the-halves-of-a-transfer"),
    ("*_RACING_*", "*", "*", "queues-without-a-semaphore-race"),
    ("*", "*_OWNERSHIP_TRANSFER", "*", "a-semaphore-orders-the-halves-of-a-transfer"),
    ("*", "*", "*_OWNERSHIP_TRANSFER", "a-semaphore-orders-the-halves-of-a-transfer"),
    ("*", "SYNC_IMAGE_LAYOUT_TRANSITION", "*", "a-transition-is-a-write"),
    ("*", "*", "SYNC_IMAGE_LAYOUT_TRANSITION", "accesses-wait-for-the-transition"),
    ("*", "*_INPUT_ATTACHMENT_READ", "*_ATTACHMENT_WRITE", "input-attachments-are-read-by-the-shader"),
    ("*", "*_ATTACHMENT_WRITE", "*_INPUT_ATTACHMENT_READ", "input-attachments-are-read-by-the-shader"),
    ("READ_AFTER_WRITE", "*", "*", "read-after-write"),
    ("WRITE_AFTER_READ", "*", "*", "write-after-read"),
    ("WRITE_AFTER_WRITE", "*", "*", "write-after-write"),
)
"""(hazard, access, prior access) as patterns, and the anchor of their rule. The first row that fits counts."""
OTHERWISE = "hazards"


def rule_of(finding: Finding) -> str:
    """The anchor in docs/rules.md of the rule that a finding names."""
    inside = finding.hazard.is_race and finding.place.queue == finding.prior.queue
    waited = finding.gap is HostStep.DEPENDENCY_TO_WRITE
    if finding.hazard is Hazard.SEMAPHORE_IN_USE:
        destroyed, presented = finding.place.command == "vkDestroySemaphore", finding.prior.command == PRESENT
        suffix = DESTROYED if destroyed else OF_PRESENT * presented
        return rule_of_hazard(finding.hazard + suffix, finding.access, finding.prior_access)
    return rule_of_hazard(finding.hazard + SUBPASS * inside + WAITED_FOR * waited, finding.access, finding.prior_access)


def rule_of_hazard(hazard: str, access: str, prior_access: str) -> str:
    """The same for the words of a layer: `rule_of_hazard("READ_AFTER_WRITE", "SYNC_COPY_TRANSFER_READ", "")`."""
    said = (hazard, access, prior_access)
    return next((anchor for *row, anchor in RULE_OF_FINDING if all(map(fnmatchcase, said, row))), OTHERWISE)


def rule_name(anchor: str) -> str:
    """What is written for a rule: its address on the site, else `docs/rules.md#read-after-write`."""
    return address(anchor) if SITE else f"{PAGE}#{anchor}"


def address(anchor: str, page: str = PAGE) -> str:
    """Where a reader finds a section of a page: on the site, else in the file of this installation.

    >>> address("read-after-write").rpartition("/")[2]
    'rules.md#read-after-write'
    """
    name = Path(page).name
    return f"{SITE}{Path(name).with_suffix('.html')}#{anchor}" if SITE else f"{_file(name).as_uri()}#{anchor}"


def _file(name: str) -> Path:
    return next((folder / name for folder in FOLDERS if (folder / name).is_file()), FOLDERS[0] / name)


class RuleSection(NamedTuple):
    """The section of docs/rules.md about one rule."""

    title: str
    text: str
    """Markdown; links within the page name the page."""
    specification: str
    """Links into the Vulkan specification, as Markdown."""


@cache
def rule_sections() -> dict[str, RuleSection]:
    """The rules of docs/rules.md by anchor; none where the page is not there.

    >>> rule_sections()["read-after-write"].title
    'Read after write'
    """
    found = {}
    for title, body in _sections(PAGE):
        text, mark, rest = body.partition("* Specification: ")
        if mark:
            found[_anchor(title)] = RuleSection(title, text.strip(), rest.partition("\n")[0].strip())
    return found


class HazardSection(NamedTuple):
    """The section of docs/hazards.md about one hazard, or about several that are alike."""

    anchor: str
    hazards: tuple[str, ...]
    text: str
    """Markdown; links within the page name the page."""


@cache
def hazard_sections() -> dict[str, HazardSection]:
    """The sections of docs/hazards.md by the value of `Hazard`; none where the page is not there.

    >>> hazard_sections()["READ_AFTER_WRITE"].anchor
    'read_after_write'
    """
    found: dict[str, HazardSection] = {}
    for title, body in _sections(HAZARDS_PAGE):
        hazards = tuple(re.findall(r"`([^`]+)`", title))
        found |= dict.fromkeys(hazards, HazardSection(_anchor(title), hazards, body.strip()))
    return found


def hazard_address(hazard: str) -> str:
    """Where a reader finds the section about a hazard."""
    section = hazard_sections().get(hazard)
    return address("" if section is None else section.anchor, HAZARDS_PAGE)


def _sections(page: str) -> list[tuple[str, str]]:
    """Headings and texts of a page."""
    file = _file(Path(page).name)
    if not file.is_file():
        return []
    parts = re.split(r"^##+ (.+)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [(title, body.replace("](#", f"]({page}#")) for title, body in zip(parts[::2], parts[1::2], strict=True)]


def _anchor(title: str) -> str:
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip())
