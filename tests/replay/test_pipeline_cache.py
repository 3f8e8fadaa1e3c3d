"""Which pipelines of a replay may come from a cache: drivers confuse those for dispatches with a base with others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.streams import struct
from vkharness.replay.objects.target import ReplayDevice
from vkharness.spec.enums import VkPipelineCreate, VkStructureType

BASE = VkPipelineCreate.DISPATCH_BASE


def made(flags: int, **more: Any) -> dict[str, Any]:
    return struct("VkComputePipelineCreateInfo", flags=flags, **more)


@pytest.mark.parametrize(
    ("infos", "cached"),
    [
        ([made(0)], True),
        ([made(VkPipelineCreate.DISABLE_OPTIMIZATION)], True),
        ([made(BASE)], False),
        ([made(0), made(BASE)], False),
        ([made(0, pNext={"sType": VkStructureType.PIPELINE_CREATE_FLAGS_2_CREATE_INFO, "flags": BASE})], False),
        (None, True),
    ],
)
def test_dispatches_with_a_base_have_pipelines_of_their_own(infos: list[dict[str, Any]] | None, cached: bool) -> None:
    target: Any = SimpleNamespace(ffi=SimpleNamespace(NULL="none"))
    device = ReplayDevice(target, "device", "queue", 0, pipeline_cache="cache")
    assert device.cache_of({"pCreateInfos": infos}) == ("cache" if cached else "none")
