"""Hostile streams of the mirror layer: how they are made of one that is whole, and that each gets a verdict."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.written_streams import MirrorStream
from vkharness import cli
from vkharness.fuzz.hostile.hunt import Hunt
from vkharness.fuzz.hostile.record_changes import changed_segment, trimmed
from vkharness.fuzz.hostile.samples import PROCESS, RECORDS, Sample, read_samples
from vkharness.fuzz.hostile.trial import Limits, Trial, Trials
from vkharness.fuzz.process_memory import resident_bytes
from vkharness.live.records import RecordStream
from vkharness.trace.codec import load

TRACE = Path(__file__).parents[1] / "data" / "formats" / "trace" / "version-2.jsonl"

pytestmark = pytest.mark.driver


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole stream of several segments, with room in each."""
    stream = MirrorStream(tmp_path / "process-7", process=7, segment=1 << 12)
    for block in load(TRACE):
        stream.block(block)
    assert stream.segments > 1
    return stream.folder


def test_a_sample_has_all_that_the_process_wrote(folder: Path) -> None:
    samples = read_samples([folder.parent])
    names = [f"{PROCESS}/{each.name}" for each in sorted(folder.glob("segment-*"))]
    assert [(each.kind, each.subject) for each in samples] == [(RECORDS, name) for name in names]
    assert set(samples[0].files) == {*names, f"{PROCESS}/control"}


def test_a_segment_without_its_room_has_the_same_records(folder: Path) -> None:
    def taken() -> list[bytes]:
        stream = RecordStream(folder, keeps=True)
        found = []
        while (record := stream.take()) is not None:
            found.append(record.payload())
        stream.close()
        return found

    before = taken()
    for path in folder.glob("segment-*"):
        path.write_bytes(trimmed(path.read_bytes()) if path.stat().st_size > 1 << 11 else path.read_bytes())
    assert taken() == before and len(before) > 10


def test_the_same_seed_changes_a_segment_in_the_same_way(folder: Path) -> None:
    data = trimmed((folder / "segment-00000000").read_bytes())
    made = [changed_segment(random.Random(seed), data) for seed in range(40)]
    assert made == [changed_segment(random.Random(seed), data) for seed in range(40)]
    assert len(set(made)) > 30


def test_each_changed_stream_has_a_verdict(folder: Path, tmp_path: Path) -> None:
    (whole, *_) = read_samples([folder])
    rng = random.Random(5)
    changed = [Hunt._changed_records(rng, whole) for _ in range(30)]
    limits = Limits(seconds=10.0, memory=resident_bytes() + (300 << 20))
    trials = [Trial(each, ("check", PROCESS)) for each in (whole, *changed)]
    ends = Trials(cli.main, tmp_path, limits, False).run(trials)
    assert [each.fault for each in ends] == [""] * 31, [each.text for each in ends if each.fault]
    assert ends[0].code == 1 and len({each.code for each in ends}) > 1


def test_a_segment_that_holds_nothing_is_left_as_it_is() -> None:
    assert trimmed(bytes(200)) == bytes(200)
    assert isinstance(Hunt._changed_records(random.Random(1), Sample(RECORDS, "a", {"a": bytes(20)})), Sample)
