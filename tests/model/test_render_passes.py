"""The model: subpasses, their dependencies (by region too), automatic transitions, rasterization order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.effects import IMAGE, B, Effects, access, barrier, dependency, ranged
from tests.support.model_streams import run
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.effects import (
    EXTERNAL,
    Access,
    AutomaticTransition,
    PassBegin,
    PassEnd,
    RenderingBegin,
    SubpassBegin,
    SubpassDependency,
)

COLOR_STAGE = "COLOR_ATTACHMENT_OUTPUT"
WRITTEN, USED = f"{COLOR_STAGE}/COLOR_ATTACHMENT_WRITE", f"{COLOR_STAGE}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
INPUT = "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ"
MOVE = (AutomaticTransition(IMAGE, IMAGE, ((0, 64),), 0, 2, users=(0,)),)
LAST = (replace(MOVE[0], leaves=(0,)),)
COPY_READ, COPY_WRITE = access("COPY_TRANSFER_READ", IMAGE), access("COPY_TRANSFER_WRITE", IMAGE)


def color(what: str, operation: AttachmentOperation = AttachmentOperation.ORDINARY) -> Access:
    name = f"COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_{what}"
    return access(name, IMAGE, order=RasterizationOrder.COLOR, operation=operation)


DRAW, LOAD, STORE = color("WRITE"), color("READ", AttachmentOperation.LOAD), color("WRITE", AttachmentOperation.STORE)
RENDERING = RenderingBegin()
READ_INPUT = access("FRAGMENT_SHADER_INPUT_ATTACHMENT_READ", IMAGE, order=RasterizationOrder.RASTER)


def depends(src: int, dst: int, first: str, second: str, by_region: bool = False) -> SubpassDependency:
    return SubpassDependency(src, dst, dependency(first, second), by_region=by_region)


def begin(*given: SubpassDependency, subpasses: int = 2, move: tuple[AutomaticTransition, ...] = ()) -> Effects:
    return (PassBegin(subpasses, given), SubpassBegin(0, transitions=move))


def two(*given: SubpassDependency, second: Access = READ_INPUT) -> list[str]:
    """A draw in the first subpass, an access in the second."""
    return run(begin(*given), DRAW, SubpassBegin(1), second, PassEnd())


def test_commands_of_different_subpasses_are_unordered() -> None:
    assert two() == ["unordered"]
    assert two(depends(0, 1, WRITTEN, INPUT)) == []
    assert two(depends(0, 1, COLOR_STAGE, INPUT)) == ["unavailable"]
    assert two(depends(0, 1, WRITTEN, "FRAGMENT_SHADER")) == ["invisible"]
    assert two(depends(1, 1, WRITTEN, INPUT)) == ["unordered"]  # a self-dependency orders nothing


def test_barriers_inside_a_subpass_stay_there() -> None:
    inside = barrier(WRITTEN, INPUT)
    assert run(begin(), DRAW, inside, READ_INPUT, PassEnd()) == []
    assert run(begin(), DRAW, inside, SubpassBegin(1), READ_INPUT, PassEnd()) == ["unordered"]
    assert run(COPY_WRITE, begin(), barrier("COPY/TRANSFER_WRITE", INPUT), READ_INPUT, PassEnd()) == ["unordered"]


def test_barriers_before_a_pass_reach_into_every_subpass() -> None:
    before = barrier("COPY/TRANSFER_WRITE", INPUT)
    assert run(COPY_WRITE, before, begin(), READ_INPUT, SubpassBegin(1), READ_INPUT, PassEnd()) == []


def test_what_is_outside_needs_a_dependency_with_external() -> None:
    into = depends(EXTERNAL, 0, "COPY/TRANSFER_WRITE", USED)
    out = depends(0, EXTERNAL, WRITTEN, "COPY/TRANSFER_READ")
    assert run(COPY_WRITE, begin(into), LOAD, PassEnd()) == []
    assert run(COPY_WRITE, begin(into), SubpassBegin(1), LOAD, PassEnd()) == ["unordered"]
    assert run(begin(out), DRAW, PassEnd(), COPY_READ) == []
    assert run(begin(), DRAW, PassEnd(), COPY_READ) == ["unordered"]
    after = barrier(WRITTEN, "COPY/TRANSFER_READ")
    assert run(begin(), DRAW, PassEnd(), after, COPY_READ) == []


def test_dependencies_chain_through_a_subpass_without_commands() -> None:
    into = depends(EXTERNAL, 0, "COPY/TRANSFER_WRITE", COLOR_STAGE)
    on = depends(0, 1, COLOR_STAGE, f"{COLOR_STAGE}/COLOR_ATTACHMENT_READ")
    assert run(COPY_WRITE, begin(into, on), SubpassBegin(1), LOAD, PassEnd()) == []
    assert run(COPY_WRITE, begin(on), SubpassBegin(1), LOAD, PassEnd()) == ["unordered"]


def test_two_dependencies_into_one_subpass_do_not_chain() -> None:
    apart = (
        depends(EXTERNAL, 0, "COPY/TRANSFER_WRITE", "FRAGMENT_SHADER"),
        depends(EXTERNAL, 0, "FRAGMENT_SHADER", USED),
    )
    assert run(COPY_WRITE, begin(*apart), LOAD, PassEnd()) == ["invisible"]


def test_an_automatic_transition_is_between_the_scopes_of_all_its_dependencies() -> None:
    into = depends(EXTERNAL, 0, "COPY/TRANSFER_WRITE", USED)
    assert run(COPY_WRITE, begin(into, move=MOVE), LOAD, PassEnd()) == []
    assert run(COPY_WRITE, begin(depends(EXTERNAL, 0, "COPY", USED), move=MOVE), LOAD, PassEnd()) == ["unavailable"]
    assert run(COPY_WRITE, begin(move=MOVE), LOAD, PassEnd()) == ["unordered"] * 3
    narrow = depends(EXTERNAL, 0, "COPY/TRANSFER_WRITE", WRITTEN)
    assert run(COPY_WRITE, begin(narrow, move=MOVE), LOAD, PassEnd()) == ["invisible"]


def test_the_final_transition_is_before_what_comes_after() -> None:
    out = depends(0, EXTERNAL, WRITTEN, "COPY/TRANSFER_READ")
    assert run(begin(out), DRAW, PassEnd(transitions=LAST), COPY_READ) == []
    assert run(begin(depends(0, EXTERNAL, WRITTEN, "NONE")), DRAW, PassEnd(transitions=LAST), COPY_READ) == [
        "unordered"
    ]
    assert run(begin(), DRAW, PassEnd(transitions=LAST))[0] == "unordered"
    assert run(COPY_READ, begin(out), PassEnd(transitions=(replace(MOVE[0], users=()),))) == ["unordered"]


def test_rasterization_order_is_inside_a_subpass() -> None:
    assert run(begin(), LOAD, DRAW, DRAW, STORE, PassEnd()) == []
    assert run(begin(), DRAW, READ_INPUT, PassEnd()) == ["unordered"]
    assert run(begin(), READ_INPUT, DRAW, PassEnd()) == ["unordered"]
    assert run(begin(), READ_INPUT, STORE, PassEnd()) == []
    assert run(begin(), color("WRITE", AttachmentOperation.LOAD), READ_INPUT, PassEnd()) == []
    assert two(second=DRAW) == ["unordered"]


def test_instances_of_dynamic_rendering_are_told_apart() -> None:
    assert run(RENDERING, LOAD, DRAW, STORE) == []
    assert run(RENDERING, LOAD, DRAW, STORE, RENDERING, LOAD) == ["unordered"]
    assert run(RENDERING, LOAD, DRAW, DRAW) == []  # suspended and resumed: one instance
    assert run(RENDERING, DRAW, RENDERING, DRAW) == ["unordered"]  # nothing loaded, nothing stored
    assert run(RENDERING, LOAD, STORE, ranged(WRITTEN, USED, IMAGE), RENDERING, LOAD, DRAW, STORE) == []


@pytest.mark.parametrize(("by_region", "met"), [(False, []), (True, ["unordered"])])
def test_by_region_orders_attachments_alone(by_region: bool, met: list[str]) -> None:
    written = access("FRAGMENT_SHADER_SHADER_STORAGE_WRITE", B)
    read = access("FRAGMENT_SHADER_SHADER_STORAGE_READ", B)
    shader = depends(0, 1, "FRAGMENT_SHADER/SHADER_STORAGE_WRITE", "FRAGMENT_SHADER/SHADER_STORAGE_READ", by_region)
    steps = written, SubpassBegin(1), read, PassEnd()
    assert run(begin(shader), *steps) == met
    assert two(depends(0, 1, WRITTEN, INPUT, by_region)) == []


def test_by_region_means_nothing_beyond_framebuffer_space() -> None:
    written = access("VERTEX_SHADER_SHADER_STORAGE_WRITE", B)
    read = access("FRAGMENT_SHADER_SHADER_STORAGE_READ", B)
    wide = depends(0, 1, "VERTEX_SHADER/SHADER_STORAGE_WRITE", "FRAGMENT_SHADER/SHADER_STORAGE_READ", by_region=True)
    assert run(begin(wide), written, SubpassBegin(1), read, PassEnd()) == []
