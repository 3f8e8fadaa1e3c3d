"""Earlier operations on queries are looked for once a command, however many queries that has."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream, struct
from vkharness.check import Analysis
from vkharness.spec.enums import VkQueryType
from vkharness.syncval import query

QUERIES = 64


def test_a_copy_of_many_queries_follows_their_links_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, walks, reached = Stream(), list[int](), query._reached

    def counted(made: query.Used) -> set[int]:
        walks.append(made.number)
        return reached(made)

    monkeypatch.setattr(query, "_reached", counted)
    info = struct("VkQueryPoolCreateInfo", queryType=VkQueryType.TIMESTAMP, queryCount=QUERIES)
    pool = stream.make("vkCreateQueryPool", "pQueryPool", info)
    stream.begin()
    stream.cmd("ResetQueryPool", queryPool=pool, queryCount=QUERIES)
    for at in range(QUERIES):
        stream.cmd("WriteTimestamp", pipelineStage=0x2000, queryPool=pool, query=at)
        if at == QUERIES // 2:
            stream.barrier()
    copy = stream.cmd(
        "CopyQueryPoolResults", queryPool=pool, queryCount=QUERIES, dstBuffer=stream.buffer(512), stride=8
    )
    stream.submit()
    found = Analysis().follow(stream.blocks).findings
    assert {each.prior.command for each in found if each.place.call == copy} == {"vkCmdWriteTimestamp"}
    assert len(walks) == len(set(walks)) + 1  # before the copy's own links are known, and once with them
