"""Campaigns: chunks, the file of results, and a cluster whose workers die."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from vkharness.campaign.cluster import _result, conduct, connected
from vkharness.campaign.kinds import cause_of, do_chunk
from vkharness.campaign.plan import CampaignChunk, ChunkResult, Discovery, Plan
from vkharness.campaign.record import CampaignFile, causes, read_campaign, totals
from vkharness.cli import main
from vkharness.findings import UserError
from vkharness.syncval.validator import Validator

PLAN = Plan("agreement", seed=5, count=120, size=10, families=("images",))


def result(number: int, *discoveries: Discovery) -> ChunkResult:
    return ChunkResult(number, {"streams": 10}, discoveries, 0.5)


def test_a_chunk_gives_the_same_wherever_it_is_done() -> None:
    one, other = (do_chunk(PLAN.to_dict(), 3, 30, 10) for _ in range(2))
    assert {**one, "seconds": 0} == {**other, "seconds": 0}
    assert one["counts"]["streams"] == 10
    assert one["discoveries"] == []


def test_a_hunt_goes_on_after_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Validator, "consume", lambda self, stream_event: [])
    found = ChunkResult.from_dict(do_chunk(PLAN.to_dict(), 0, 0, 10))
    assert found.counts["streams"] == 10
    assert len(found.discoveries) > 1
    assert {each.cause.partition(":")[0] for each in found.discoveries} == {"model only"}
    assert len({each.seed for each in found.discoveries}) == len(found.discoveries)


def test_the_file_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with CampaignFile(path, PLAN) as record:
        record.add(result(0))
        record.add(result(1))
        record.add(result(1))
    whole = path.read_bytes()
    for cut in range(1, len(whole.splitlines()[2]) + 2):
        path.write_bytes(whole[:-cut])
        with CampaignFile(path, PLAN) as record:
            assert set(record.results) == {0}
            record.add(result(1))
        assert path.read_bytes() == whole
    assert totals(read_campaign(path).results.values()) == Counter(streams=20)


def test_a_worker_that_dies_before_it_is_one_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(**_: object) -> None:
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", dies)
    told = pytest.raises(UserError, match="the workers could not be started, run the same command again: Nanny failed")
    with told, connected(None, 1, "1GiB"):
        pass


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"[]\n", "not a line of a campaign"),
        (b"\xff\n", "not a line of a campaign"),
        (b'{"format":"other"}\n', "format is 'other'"),
        (b'{"format":"vkharness campaign","version":2,"plan":{}}\n', "version 2 is not known here"),
        (b'{"format":"vkharness campaign","version":1,"plan":{"families":[]}}\n', "no plan of a campaign"),
        (b'{"format":"vkharness campaign","version":1,"plan":' + b"[" * 100_000 + b"\n", "not a line of a campaign"),
    ],
)
def test_what_is_no_file_of_a_campaign_is_told(tmp_path: Path, line: bytes, told: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(line)
    with pytest.raises(UserError, match=told):
        CampaignFile(path, PLAN)
    with pytest.raises(UserError, match=r"results\.jsonl:1: "):
        read_campaign(path)
    assert path.read_bytes() == line


def test_the_file_of_another_campaign_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with CampaignFile(path, PLAN) as record, pytest.raises(UserError, match="another campaign is writing it"):
        CampaignFile(path, PLAN)
    record.close()
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"another plan .agreement, 120 from seed 5, 10 a chunk, images."):
        CampaignFile(path, Plan("agreement", seed=6, count=120, size=10))
    path.write_bytes(before + json.dumps(result(12).to_dict()).encode() + b"\n")
    with pytest.raises(UserError, match="a chunk that its plan has not"):
        CampaignFile(path, PLAN)


def test_discoveries_of_one_cause_are_one() -> None:
    lines = [
        "syncval only: hazard (call 5) after x (call 3)",
        "syncval only: hazard (call 15) after x (call 2)",
        "other",
    ]
    found = causes(
        result(number, Discovery(cause_of(line), number, line + "!" * number)) for number, line in enumerate(lines)
    )
    assert [(each.times, each.example.seed) for each in found] == [(2, 0), (1, 2)]


class KilledWorker(Exception):  # the name that Dask gives it
    """As Dask's."""


class Killed:
    """A future's answer for a chunk of which workers died."""

    def exception(self) -> Exception:
        return KilledWorker("chunk-3\nmore")


def test_a_chunk_that_kills_its_workers_is_a_discovery_with_its_seeds() -> None:
    lost = _result(Killed(), CampaignChunk(3, 30, 10), PLAN)
    assert (lost.counts, lost.discoveries[0].cause, lost.discoveries[0].seed) == ({"lost": 10}, "workers died", 35)


def test_a_killed_worker_costs_nothing_and_no_chunk_is_done_twice(tmp_path: Path) -> None:
    victims: list[int] = []

    def kill_one(done: ChunkResult) -> None:
        if not victims:
            victims.append(next(iter(client.run(os.getpid).values())))
            os.kill(victims[0], signal.SIGKILL)

    path = tmp_path / "results.jsonl"
    with CampaignFile(path, PLAN) as record, connected(None, 2, "1GiB") as client:
        conduct(PLAN, record, client, kill_one)
    assert victims
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert sorted(each["number"] for each in lines) == list(range(12))
    assert totals(record.results.values())["streams"] == 120
    assert causes(record.results.values()) == []


def test_the_command_goes_on_and_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.jsonl"
    with CampaignFile(path, PLAN) as record:
        for number in range(12):
            record.add(result(number))
    command = ["campaign", "fuzz", "images", "--count", "120", "--chunk", "10", "--seed", "5", "-o", str(path)]
    with pytest.raises(SystemExit) as left:
        main(command)
    assert left.value.code == 0
    assert capsys.readouterr().out.splitlines() == [
        "agreement, 120 from seed 5, 10 a chunk, images; 12 of 12 chunks were done",
        "120 streams",
    ]


def test_the_command_knows_its_families(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for hunt, family, told in (
        ("agreement", "x", "--hunt agreement knows no 'x'"),
        ("orders", "events", "takes no FAMILIES"),
    ):
        with pytest.raises(SystemExit) as left:
            main(["campaign", "fuzz", "--hunt", hunt, family, "-o", str(tmp_path / "r")])
        assert left.value.code == 2
        assert told in capsys.readouterr().err


def test_the_workers_of_a_scheduler_do_the_chunks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.jsonl"
    with connected(None, 1, "1GiB") as client, pytest.raises(SystemExit) as left:
        address = str(client.scheduler_info()["address"])
        command = ["campaign", "fuzz", "images", "--count", "20", "--chunk", "10", "--scheduler", address]
        main([*command, "-o", str(path)])
    assert left.value.code == 0
    assert set(read_campaign(path).results) == {0, 1}
    assert "20 streams" in capsys.readouterr().out


def test_nobody_answers_behind_an_address(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as left:
        main(["campaign", "fuzz", "--scheduler", "nowhere", "-o", str(tmp_path / "results.jsonl")])
    assert left.value.code == 2
    assert "nowhere: no scheduler answers" in capsys.readouterr().err
