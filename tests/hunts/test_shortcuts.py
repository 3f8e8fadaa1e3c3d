"""Shortcuts that make the judge fast change nothing: random programs are judged with all of them, and without."""

from __future__ import annotations

from collections import Counter

import pytest

import vkharness
from hunts.frame_hunt import KINDS
from hunts.frame_programs import FrameStream
from hunts.front_programs import CallProgram, FrontProgram, deaf_driver
from tests.support.shortcuts import judged_plainly, keep_little
from vkharness.check import Analysis
from vkharness.findings import Finding

pytestmark = pytest.mark.driver
SEEDS = 3


def told(findings: list[Finding]) -> list[str]:
    """All that findings say, in order."""
    return [f"{each.message} {each.missing} {each}" for each in findings]


def run(seed: int, stream: FrameStream, keep_trace: bool) -> vkharness.Session:
    """The session of a program on a driver that does nothing."""
    program = CallProgram(stream.calls, stream.objects, of_package=seed % 3 / 2, hostile=0)
    with deaf_driver() as vk, vkharness.attach(keep_trace=keep_trace, strict=True) as session:
        list(FrontProgram(seed, program, vk).run(range(len(program.calls))))
    return session


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("little", [False, True])
def test_the_findings_are_those_of_a_judge_without_shortcuts(
    kind: type[FrameStream], little: bool, fresh_seed: int
) -> None:
    counts = Counter[str]()
    for seed in (*range(SEEDS), *range(fresh_seed, fresh_seed + SEEDS)):
        stream = kind(seed)
        with pytest.MonkeyPatch.context() as patch:
            if little:
                keep_little(patch, seed)
            sessions = [run(seed, stream, keep_trace) for keep_trace in (True, False)]
            followed = Analysis().follow(sessions[0].blocks or [])
        blocks = sessions[0].blocks or []
        plain = judged_plainly(blocks)
        for session in sessions:
            assert told(session.findings) == told(plain.findings), seed
            assert session.unmodelled == plain.unmodelled and not session.internal_errors, seed
        assert told(followed.findings) == told(plain.findings), seed
        counts.update(blocks=len(blocks), findings=len(plain.findings))
    assert counts["blocks"] > 100 * SEEDS and counts["findings"] > 20 * SEEDS, counts
