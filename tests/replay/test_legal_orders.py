"""Legal orders: what may change places, what may not, and what a command takes along; no driver needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.support.streams import DST, GENERAL, SRC, TRANSFER, UNDEFINED, Stream, struct, two_buffers, words
from vkharness.findings import UserError
from vkharness.model import judge
from vkharness.replay.outcomes.executor import Probe
from vkharness.replay.outcomes.reorder import Reorder
from vkharness.replay.schedule.legal_orders import LegalOrders
from vkharness.replay.schedule.steps import Step, flatten
from vkharness.replay.schedule.units import Unit, units_of
from vkharness.replay.strategies import names as strategy_names
from vkharness.replay.strategies.priority import CHANGES, Priority


def legal(stream: Stream) -> LegalOrders:
    return LegalOrders(units_of(flatten(stream.blocks)), judge(stream.blocks))


def calls(stream: Stream, strategy: str = "reverse", seed: int = 0) -> list[int]:
    """The blocks that reach memory, in a legal order."""
    held = legal(stream)
    return [held.units[number].steps[0].block.index for number in Reorder(held, strategy, seed).order]


def every_order(stream: Stream) -> set[tuple[int, ...]]:
    """All legal orders of the blocks that reach memory."""
    held = legal(stream)
    found: set[tuple[int, ...]] = set()
    pending: list[list[int]] = [[]]
    while pending:
        script = pending.pop()
        at = 0

        def choose(ready: Sequence[int], script: list[int] = script) -> int:
            nonlocal at
            if at == len(script):
                pending.extend([*script, other] for other in range(1, len(ready)))
                script.append(0)
            at += 1
            return ready[script[at - 1]]

        order = held.extension(choose)
        found.add(tuple(held.units[number].steps[0].block.index for number in order if held.acts(number)))
    return found


def names(plan: Sequence[Step | Probe]) -> Iterator[str]:
    for step in plan:
        assert isinstance(step, Step)
        if step.name.startswith("vkCmd"):
            yield step.name.removeprefix("vkCmd")


def barrier(stream: Stream, source: int, target: int) -> None:
    """An execution dependency between two stages."""
    stream.cmd("PipelineBarrier", srcStageMask=source, dstStageMask=target)


class TestWhatMayMove:
    def test_all_orders_of_two_pairs_with_a_barrier_between(self) -> None:
        stream = Stream()
        a, b, c, d = (stream.buffer(16) for _ in range(4))
        stream.begin()
        fills = stream.fill(a, 1), stream.fill(b, 2)
        stream.barrier()
        copies = stream.copy(a, c, 16), stream.copy(b, d, 16)
        stream.submit()
        assert every_order(stream) == {
            (*first, *second) for first in (fills, fills[::-1]) for second in (copies, copies[::-1])
        }

    def test_without_the_barrier_every_order_is_legal(self) -> None:
        stream, a, b = two_buffers()
        stream.begin()
        stream.fill(a, 1)
        stream.copy(a, b, 16)
        stream.fill(a, 2)
        stream.submit()
        assert len(every_order(stream)) == 6

    def test_a_barrier_holds_its_stages_alone(self) -> None:
        stream, a, b = two_buffers()
        dispatch = stream.compute("fill_words", [b], words(1))
        stream.begin()
        fill, run = stream.fill(a, 1), dispatch.run()
        barrier(stream, TRANSFER, TRANSFER)
        last = stream.fill(a, 2)
        stream.submit()
        assert every_order(stream) == {(fill, run, last), (fill, last, run), (run, fill, last)}

    def test_commands_of_later_submits_may_come_first(self) -> None:
        stream, a, b = two_buffers()
        fills = []
        for buffer in (a, b):
            stream.begin()
            fills.append(stream.fill(buffer, 1))
            stream.submit(wait=False)
        assert calls(stream) == fills[::-1]

    def test_a_wait_of_the_host_keeps_submits_apart(self) -> None:
        stream, a, b = two_buffers()
        fills = []
        for buffer in (a, b):
            stream.begin()
            fills.append(stream.fill(buffer, 1))
            stream.submit()
        assert every_order(stream) == {tuple(fills)}

    def test_semaphores_order_queues(self) -> None:
        for ordered in (False, True):
            stream = Stream()
            other, a, b = stream.id(), stream.buffer(16), stream.buffer(16)
            stream.call("vkGetDeviceQueue", device=stream.device, queueIndex=1, pQueue=other)
            semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
            fills = []
            for buffer, queue, way in ((a, stream.queue, "Signal"), (b, other, "Wait")):
                stream.begin()
                fills.append(stream.fill(buffer, 1))
                stream.end()
                given = {f"p{way}Semaphores": [semaphore], f"{way.lower()}SemaphoreCount": 1} if ordered else {}
                stages = {"pWaitDstStageMask": [TRANSFER]} if ordered and way == "Wait" else {}
                commands = {"commandBufferCount": 1, "pCommandBuffers": [stream.commands]}
                info = struct("VkSubmitInfo", **commands, **given, **stages)
                stream.call("vkQueueSubmit", queue=queue, pSubmits=[info])
            assert every_order(stream) == ({tuple(fills)} if ordered else {tuple(fills), tuple(fills[::-1])})


class TestWhatKeepsItsOrder:
    def test_transitions_of_one_queue(self) -> None:
        stream = Stream()
        images = [stream.image((4, 4, 1)) for _ in range(3)]
        stream.begin()
        made = [stream.transition(image, UNDEFINED, DST, access=0) for image in images]
        stream.submit()
        assert every_order(stream) == {tuple(made)}

    def test_what_uses_an_image_after_its_transition(self) -> None:
        stream = Stream()
        image, other = stream.image((4, 4, 1)), stream.buffer(16)
        stream.begin()
        early, moved = stream.fill(other, 1), stream.transition(image, UNDEFINED, GENERAL)
        cleared = stream.clear(image, (1, 1, 1, 1), layout=GENERAL)
        stream.submit()
        assert calls(stream) == [early, moved, cleared]

    def test_atomics_of_one_buffer(self) -> None:
        stream, a, b = two_buffers()
        both = stream.compute("atomic_add", [a]), stream.compute("atomic_add", [a])
        alone = stream.compute("atomic_add", [b])
        stream.begin()
        first, second, apart = both[0].run(), both[1].run(), alone.run()
        stream.submit()
        assert judge(stream.blocks).clean
        assert every_order(stream) == {(first, second, apart), (first, apart, second), (apart, first, second)}

    def test_what_uses_one_query_pool(self) -> None:
        stream = Stream()
        a = stream.buffer(64)
        info = struct("VkQueryPoolCreateInfo", queryCount=2)
        pool, other = (stream.make("vkCreateQueryPool", "pQueryPool", info) for _ in range(2))
        stream.begin()
        reset = stream.cmd("ResetQueryPool", queryPool=pool, queryCount=2)
        ended = stream.cmd("BeginQuery", queryPool=pool)
        stream.cmd("EndQuery", queryPool=pool)
        stream.cmd("ResetQueryPool", queryPool=other, queryCount=2)
        copied = stream.cmd("CopyQueryPoolResults", queryPool=pool, queryCount=1, dstBuffer=a, stride=4, flags=2)
        stream.submit()
        orders = every_order(stream)
        assert {tuple(each for each in order if each in (reset, ended, copied)) for order in orders} == {
            (reset, ended, copied)
        }
        assert len(orders) == 4

    def test_host_writes_stand_before_what_is_submitted_later_and_after_what_was_waited_for(self) -> None:
        stream = Stream()
        memory = stream.memory(256)
        a, b = stream.buffer(16, memory), stream.buffer(32)
        order = []
        for step in range(2):
            order.append(stream.host_write(memory, 0, words(step, step, step, step)))
            stream.begin()
            order.append(stream.copy(a, b, 16, to=16 * step))
            stream.submit()
        assert every_order(stream) == {tuple(order)}

    def test_a_host_write_without_a_wait_may_come_before_the_work(self) -> None:
        stream = Stream()
        memory = stream.memory(256)
        a, b = stream.buffer(16, memory), stream.buffer(16)
        stream.begin()
        copied = stream.copy(a, b, 16)
        stream.submit(wait=False)
        written = stream.host_write(memory, 0, words(1, 1, 1, 1))
        assert every_order(stream) == {(copied, written), (written, copied)}

    def test_what_the_host_changes_under_commands_keeps_its_place(self) -> None:
        stream, a, b = two_buffers()
        fills = []
        for buffer in (a, b):
            stream.begin()
            fills.append(stream.fill(buffer, 1))
            stream.submit(wait=False)
            stream.call("vkDestroyBuffer", device=stream.device, buffer=buffer)
        assert every_order(stream) == {tuple(fills)}

    def test_descriptor_sets_are_updated_after_what_uses_them(self) -> None:
        for same in (False, True):
            stream, a, b = two_buffers()
            first, second = stream.compute("fill_words", [a], words(1)), stream.compute("fill_words", [b], words(2))
            runs = []
            for dispatch in (first, second):
                stream.begin()
                runs.append(dispatch.run())
                stream.submit(wait=False)
                write = struct(
                    "VkWriteDescriptorSet",
                    dstSet=first.set if same else second.set,
                    descriptorCount=1,
                    descriptorType=7,
                    pBufferInfo=[struct("VkDescriptorBufferInfo", buffer=b, range=16)],
                )
                written = {"descriptorWriteCount": 1, "pDescriptorWrites": [write]}
                stream.call("vkUpdateDescriptorSets", device=stream.device, **written)
            assert calls(stream) == (runs if same else runs[::-1])

    def test_executions_of_one_secondary(self) -> None:
        stream = Stream()
        a = stream.buffer(16)
        secondary = stream.begin(level=1)
        fill = stream.fill(a, 1)
        stream.end()
        stream.begin()
        execute = {"commandBufferCount": 1, "pCommandBuffers": [secondary]}
        stream.cmd("ExecuteCommands", **execute)
        stream.barrier()
        between = stream.fill(a, 2)
        stream.barrier()
        stream.cmd("ExecuteCommands", **execute)
        stream.submit()
        assert every_order(stream) == {(fill, between, fill)}


class TestUnits:
    def units(self, stream: Stream) -> list[Unit]:
        return [unit for unit in units_of(flatten(stream.blocks)) if not unit.host]

    def test_a_render_pass_instance_is_one_and_leaves_its_state(self) -> None:
        stream = Stream()
        a = stream.buffer(16)
        stream.begin()
        stream.cmd("SetLineWidth", lineWidth=1.0)
        stream.cmd("BeginRendering", pRenderingInfo=struct("VkRenderingInfo"))
        stream.cmd("BindPipeline", pipeline=77)
        stream.cmd("Draw", vertexCount=3, instanceCount=1)
        stream.cmd("EndRendering")
        stream.fill(a, 1)
        stream.submit()
        rendering, fill = self.units(stream)
        assert list(names(rendering.steps)) == ["BeginRendering", "BindPipeline", "Draw", "EndRendering"]
        assert list(names(rendering.before)) == ["SetLineWidth"]
        assert list(names(fill.before)) == ["SetLineWidth", "BindPipeline"]

    def test_state_goes_along_without_what_was_overwritten(self) -> None:
        stream = Stream()
        stream.begin()
        for pipeline in (1, 2):
            stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=pipeline)
        stream.cmd("BindPipeline", pipelineBindPoint=0, pipeline=3)
        for offset, value in ((0, 1), (4, 2), (0, 3)):
            stream.cmd("PushConstants", stageFlags=0x20, offset=offset, size=4, pValues=words(value))
        stream.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)
        stream.submit()
        (dispatch,) = self.units(stream)
        held = [step.block.args for step in dispatch.before[1:]]  # type: ignore[union-attr]
        assert [each["pipeline"] for each in held[:2]] == [2, 3]
        assert [each["pValues"] for each in held[2:]] == [words(2), words(3)]

    def test_a_command_buffer_inherits_nothing(self) -> None:
        stream = Stream()
        stream.begin()
        stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=1)
        stream.end()
        first = stream.commands
        stream.begin()
        stream.cmd("Dispatch", groupCountX=1)
        stream.end()
        stream.submit(first, stream.commands)
        (dispatch,) = self.units(stream)
        assert list(names(dispatch.before)) == []

    def test_only_barriers_that_transition_are_units(self) -> None:
        stream = Stream()
        image = stream.image((4, 4, 1))
        stream.begin()
        stream.barrier()
        moved = stream.transition(image, UNDEFINED, DST)
        stream.transition(image, DST, DST)
        other = stream.transition(image, DST, SRC)
        stream.submit()
        assert [unit.steps[0].block.index for unit in self.units(stream)] == [moved, other]


def independent(count: int = 8) -> Stream:
    """Fills that are ordered with nothing."""
    stream = Stream()
    buffers = [stream.buffer(16) for _ in range(count)]
    stream.begin()
    for value, buffer in enumerate(buffers):
        stream.fill(buffer, value)
    stream.submit()
    return stream


class TestStrategies:
    @pytest.mark.parametrize("strategy", strategy_names())
    def test_equal_seeds_give_equal_orders(self, strategy: str) -> None:
        assert calls(independent(), strategy, 5) == calls(independent(), strategy, 5)

    @pytest.mark.parametrize("strategy", ["random", "priority"])
    def test_seeds_give_different_orders(self, strategy: str) -> None:
        orders = {tuple(calls(independent(), strategy, seed)) for seed in range(20)}
        assert len(orders) == 20

    def test_reverse_turns_independent_commands_round(self) -> None:
        assert calls(independent()) == sorted(calls(independent(), "random"), reverse=True)

    def test_outcomes_name_the_strategy_and_the_seed(self) -> None:
        held = legal(independent())
        made = [Reorder(held, *chosen) for chosen in (("reverse", 3), ("random", 7), ("priority", 9))]
        assert [each.outcome for each in made] == [
            "reorder reverse",
            "reorder random seed=7",
            "reorder priority seed=9",
        ]
        assert made[0].moved == 7
        with pytest.raises(UserError, match="unknown strategy 'sideways': use one of priority, random, reverse"):
            Reorder(held, "sideways")

    def test_priorities_hold_but_for_the_changes(self) -> None:
        """With the same units ready all the time the order is by priority, apart from the units put behind."""
        for seed in range(20):
            fixed, changing = Priority(seed, 50), Priority(seed, 50)
            fixed._changes.clear()
            orders: list[list[int]] = []
            for picker in (fixed, changing):
                ready = list(range(50))
                orders.append([])
                while ready:
                    orders[-1].append(picker.pick(ready))
                    ready.remove(orders[-1][-1])
            kept, changed = orders
            assert sorted(changed) == sorted(kept)
            behind = changed[-CHANGES:]
            assert [each for each in changed if each not in behind] == [each for each in kept if each not in behind]

    @pytest.mark.parametrize("strategy", strategy_names())
    def test_no_order_breaks_the_models(self, strategy: str) -> None:
        stream = Stream()
        buffers = [stream.buffer(64) for _ in range(4)]
        stream.begin()
        for round in range(12):
            stream.copy(buffers[round % 4], buffers[round * 5 % 3], 4, from_=32)
            if round % 3 == 2:
                barrier(stream, TRANSFER, TRANSFER)
            stream.fill(buffers[round % 4], round, size=4)
        stream.submit()
        order = judge(stream.blocks).order
        node = {each.place.call: at for at, each in enumerate(order.nodes) if each.kind == "action"}
        for seed in range(10):
            found = calls(stream, strategy, seed)
            assert len(found) == 24
            for at, later in enumerate(found):
                assert not any(order.precedes(node[later], node[earlier]) for earlier in found[:at])
