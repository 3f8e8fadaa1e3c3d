"""Writes of software drivers without right are excused at their addresses, and nowhere else."""

from __future__ import annotations

from vkharness.replay.observation.declared import Declared
from vkharness.replay.observation.driver_faults import known_faults
from vkharness.replay.schedule.steps import Identity, Step, StepKind
from vkharness.spec.enums import VkFormat
from vkharness.trace.calls import Call
from vkharness.trace.resources import Image

IMAGE = Image(7, 1, VkFormat.R8G8B8A8_UNORM, (4, 4, 1), 1, 3)


def step(name: str, **args: int) -> Step:
    return Step(StepKind.ACTION, Identity(9, 0, 0, 1), Call(1, name, args))


def test_a_resolve_reaches_the_first_layer_on_lavapipe_and_its_whole_layer_on_swiftshader() -> None:
    declared = Declared(resolves={7: [(37, 38)]})
    steps = [step("vkCmdEndRendering")]
    assert known_faults("lavapipe", steps, declared, {7: IMAGE}).spans == {7: [(0, 16)]}
    assert known_faults("swiftshader", steps, declared, {7: IMAGE}).spans == {7: [(32, 48)]}
    assert known_faults("radv", steps, declared, {7: IMAGE}).spans == {}


def test_a_copy_of_query_results_reaches_its_strides_when_availability_is_asked_for() -> None:
    asked = {"dstBuffer": 5, "dstOffset": 56, "stride": 16, "queryCount": 2}
    for flags, driver, spans in ((4, "lavapipe", {5: [(56, 88)]}), (0, "lavapipe", {}), (4, "swiftshader", {})):
        steps = [step("vkCmdCopyQueryPoolResults", flags=flags, **asked)]
        assert known_faults(driver, steps, Declared(), {}).spans == spans


def test_a_draw_reaches_a_texel_beyond_in_multisampled_images_only() -> None:
    many = Image(8, 1, VkFormat.R8G8B8A8_UNORM, (4, 4, 1), 1, 1, samples=4)
    declared = Declared(writes={7: [(5, 6)], 8: [(5, 6)]})
    found = known_faults("lavapipe", [step("vkCmdDraw")], declared, {7: IMAGE, 8: many})
    assert found.spans == {8: [(0, 3), (4, 7), (8, 11)]}
    assert known_faults("lavapipe", [step("vkCmdDispatch")], declared, {7: IMAGE, 8: many}).spans == {}


def test_a_draw_reaches_where_a_second_colour_attachment_is_loaded() -> None:
    """ "If a color attachment at a given Location does not have an output variable declared, the values must not be
    modified." """
    two, one = Declared(colors={7: [(0, 4)], 8: [(4, 8)]}), Declared(colors={7: [(0, 4)]})
    assert known_faults("lavapipe", [step("vkCmdDraw")], two, {7: IMAGE}).spans == two.colors
    assert known_faults("lavapipe", [step("vkCmdDraw")], one, {7: IMAGE}).spans == {}
    assert known_faults("swiftshader", [step("vkCmdDraw")], two, {7: IMAGE}).spans == {}
