"""Findings held against observations, by hand: what refutes one, and all that does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.streams import R8G8B8A8, struct
from vkharness.findings import Box, Finding, Hazard, Place, UserError
from vkharness.refutation import Refutation
from vkharness.trace.calls import Call
from vkharness.trace.observations import ALL, Observation, Observations, ObservedCommand, TraceDigest

STORE, LOAD, COPY = (
    "SYNC_COMPUTE_SHADER_SHADER_STORAGE_WRITE",
    "SYNC_COMPUTE_SHADER_UNIFORM_READ",
    "SYNC_COPY_TRANSFER_READ",
)
BLOCKS = [
    Call(1, "vkCreateImage", {"pImage": 7, "pCreateInfo": struct("VkImageCreateInfo", format=R8G8B8A8)}),
    Call(2, "vkCmdDispatch", {}),
    Call(3, "vkCmdCopyBuffer", {}),
]
BLOCKS[0].args["pCreateInfo"] |= {"extent": {"width": 4, "height": 4, "depth": 1}, "mipLevels": 1, "arrayLayers": 1}
BLOCKS[0].args["pCreateInfo"] |= {"imageType": 1}
FOUND = Finding(
    Hazard.READ_AFTER_WRITE,
    COPY,
    STORE,
    Place(3, "vkCmdCopyBuffer", None),
    Place(2, "vkCmdDispatch", None),
    5,
    "VkBuffer",
    ranges=((64, 64),),
)


def seen(call: int = 2, **members: object) -> Observation:
    """An observation of a dispatch; every shader noted all."""
    given: dict[str, object] = {"shaders": ALL, **members}
    return Observation((ObservedCommand(call, "vkCmdDispatch", 9, 0, 0),), **given)  # type: ignore[arg-type]


def refuted(finding: Finding, *pieces: Observation) -> str:
    digest = TraceDigest()
    list(digest.follow(BLOCKS))
    refutation = Refutation(Observations(digest.text, "lavapipe", list(pieces)), "seen")
    assert list(refutation.follow(BLOCKS)) == BLOCKS
    found = replace(finding)
    refutation.mark([found])
    assert found.counts is not (found.advice or bool(found.refuted))
    return found.refuted


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([seen(shader_writes={5: ((0, 64),)})], "on lavapipe, noted by its shaders"),
        ([seen(shader_writes={5: ((0, 65),)})], ""),
        ([seen(shader_reads={5: ((0, 256),)})], "on lavapipe, noted by its shaders"),
        ([seen(), seen(shader_writes={5: ((100, 104),)})], ""),
        ([seen(shaders="a reason", writes={5: ((0, 4),)})], "on lavapipe, found by experiment"),
        ([seen(shaders="a reason", writes={5: ((64, 68),)})], ""),
        ([seen(shaders="a reason", notes=("resource 6 is not observed: it is shared",))], ""),
        ([seen(notes=("resource 6 is not observed: it is shared",))], "on lavapipe, noted by its shaders"),
        ([seen(problem="the driver died")], ""),
        ([seen(call=3)], ""),
        ([], ""),
    ],
)
def test_a_store_before_a_copy(pieces: list[Observation], reason: str) -> None:
    """The copy reads [64, 128) for certain; the shader is declared to write there."""
    assert refuted(FOUND, *pieces) == reason


def test_two_shaders_that_only_read_what_they_share() -> None:
    finding = replace(FOUND, access=LOAD)
    apart = [seen(2, shader_writes={5: ((0, 96),)}), seen(3, shader_reads={5: ((96, 128),)})]
    assert refuted(finding, *apart) == "on lavapipe, noted by its shaders"
    assert refuted(finding, apart[0], seen(3, shader_reads={5: ((92, 96),)})) == ""
    assert refuted(finding, seen(2, shader_reads={5: ((64, 128),)}), apart[1]) == "on lavapipe, noted by its shaders"


def test_what_is_known_to_the_byte_is_never_refuted() -> None:
    assert refuted(replace(FOUND, prior_access="SYNC_COPY_TRANSFER_WRITE"), seen(), seen(3)) == ""


@pytest.mark.parametrize(
    "changed", [{"through": 6}, {"resource_type": "VkDeviceMemory"}, {"hazard": Hazard.SET_EVENT_AFTER_WAIT}]
)
def test_other_findings_stay(changed: dict[str, object]) -> None:
    assert refuted(replace(FOUND, **changed), seen()) == ""  # type: ignore[arg-type]


def test_two_commands_of_one_piece() -> None:
    both = seen()
    both.commands = (*both.commands, ObservedCommand(3, "vkCmdDispatch", 9, 0, 0))
    assert refuted(replace(FOUND, access=LOAD), both) == ""


def test_texels_of_an_image() -> None:
    box = Box(1, 0, 0, (0, 1, 0), (4, 1, 1))
    finding = replace(FOUND, resource=7, resource_type="VkImage", ranges=(), boxes=(box,))
    assert refuted(finding, seen(shader_writes={7: ((0, 4), (8, 16))})) == "on lavapipe, noted by its shaders"
    assert refuted(finding, seen(shader_writes={7: ((7, 8),)})) == ""


def test_another_trace() -> None:
    refutation = Refutation(Observations("abc", "lavapipe"), "seen.jsonl")
    with pytest.raises(UserError, match=r"seen.jsonl: the observations are of another trace"):
        list(refutation.follow(BLOCKS))
