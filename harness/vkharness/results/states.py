"""States of a row. The words are those of deqp-runner, which Mesa's lists of known results use, too."""

from __future__ import annotations

from enum import StrEnum


class RowState(StrEnum):
    """The state of a row. The first seven are what a row did; the others hold that against a baseline."""

    PASS = "Pass"
    FAIL = "Fail"
    """A judge disagrees, or the scenario itself is wrong."""
    SKIP = "Skip"
    """The device lacks an extension, a feature or a queue that the row needs, or a baseline says to skip it."""
    CRASH = "Crash"
    """The process of the driver ended."""
    TIMEOUT = "Timeout"
    """The row gave no answer within its time limit."""
    DEVICE_LOST = "DeviceLost"
    """The driver answered VK_ERROR_DEVICE_LOST. deqp-runner has no word for it and takes it for a crash."""
    FLAKE = "Flake"
    """Attempts of one run differ."""
    KNOWN_FLAKE = "KnownFlake"
    """The row did not pass and stands in the list of flakes."""
    EXPECTED_FAIL = "ExpectedFail"
    """The row did what the list of failures says."""
    IMPROVED_PASS = "UnexpectedImprovement(Pass)"
    """The list of failures says otherwise, and the row passed."""
    IMPROVED_SKIP = "UnexpectedImprovement(Skip)"
    """The list of failures says otherwise, and the row was skipped."""
    IMPROVED_FAIL = "UnexpectedImprovement(Fail)"
    """The list of failures says crash, time-out or device lost, and the row only failed."""
    MISSING = "Missing"
    """Another run has the row, and this one has not."""


RESULTS = frozenset(list(RowState)[:7])
"""States of a row by itself, without a baseline."""
GOOD = frozenset({RowState.PASS, RowState.SKIP, RowState.FLAKE, RowState.KNOWN_FLAKE, RowState.EXPECTED_FAIL})
"""States that fail no run. A flake is among them, as it is for deqp-runner: it is counted and named."""
