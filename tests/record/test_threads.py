"""Threads of a program at once: the order of the stream, calls in the middle of other calls, the verdict."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import vkharness
from hunts import thread_hunt
from hunts.thread_programs import Gate
from tests.support.recording import Keeper, make_rig
from vkharness.device.drivers import environment, find_driver
from vkharness.device.process import Worker
from vkharness.findings import Finding
from vkharness.record import in_flight
from vkharness.record.in_flight import CallsInFlight
from vkharness.record.session import Session
from vkharness.trace.calls import Block, Call

SEED = 2026
LONG = 30
"""Seconds after which a test fails that would hang otherwise."""


@pytest.fixture(autouse=True)
def lavapipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(find_driver("lavapipe")).items():
        monkeypatch.setenv(name, value)


def test_sixteen_threads_get_the_verdict_of_one() -> None:
    print(f"seed {SEED}")
    with Worker(find_driver("lavapipe"), packages=("hunts",)) as worker:
        answer = thread_hunt.ask(worker, SEED, 16, 1)
    assert answer["problems"] == []
    assert answer["calls"] > 2000
    assert answer["findings"] > 50


def test_a_call_that_is_lost_or_judged_otherwise_is_told() -> None:
    run = {"vkCmdFillBuffer": 0, "vkCmdCopyBuffer": 0}
    whole, lost = noted([*run, "vkCmdDispatch"]), noted([*run])
    told = thread_hunt._differences(whole, lost)
    assert len(told) == 1
    assert told[0].startswith("call of the threads alone") and "vkCmdDispatch" in told[0]


def test_a_warning_of_the_process_is_told() -> None:
    class Warned:
        printed = "a driver says hello\nx.py:1: ResourceWarning: unclosed file\n"

        def call(self, *_: Any) -> dict[str, Any]:
            return {"calls": 1, "findings": 1, "memory": 1, "problems": ["one"]}

    worker: Any = Warned()
    assert thread_hunt.ask(worker, 1, 2, 3)["problems"] == ["one", "x.py:1: ResourceWarning: unclosed file"]


def noted(names: list[str]) -> thread_hunt.ThreadRun:
    """A run of one program that made these calls."""
    session, origins = Session(Keeper()), thread_hunt.Origins()
    work = thread_hunt.ThreadWork(3, iter(()))
    work.advance()
    origins.here.work = work
    for index, name in enumerate(names, 1):
        origins.note(Call(index, name, {}))
    return thread_hunt.ThreadRun(session, origins)


def test_an_object_is_known_by_the_call_that_made_it() -> None:
    class Unknown(NamedTuple):
        unmodelled: dict[str, int]

    texts = []
    for id in (5, 70):
        session: Any = Unknown({f"what may read VkBuffer {id}": 2, "VkBuffer 900": 1})
        run = noted([])._replace(session=session)
        run.origins.note(Call(1, "vkCreateBuffer", {"pBuffer": id}))
        texts.append(run.unmodelled())
    assert texts[0] == texts[1] and texts[0]["VkBuffer of 900"] == 1
    assert [times for text, times in texts[0].items() if "vkCreateBuffer" in text] == [2]


def test_programs_run_in_one_thread_in_the_order_of_the_stream() -> None:
    ran: list[tuple[int, int]] = []

    def parts(number: int) -> Any:
        for part in range(3):
            ran.append((number, part))
            yield

    works = [thread_hunt.ThreadWork(number, parts(number)) for number in range(2)]
    order = [(-1, 0), (1, 0), (0, 0), (0, 1), (1, 2)]
    stage = thread_hunt.ThreadStage(works, thread_hunt.Origins(), lambda: None, Gate())
    thread_hunt.in_one_thread(stage, order)
    assert ran == [(1, 0), (0, 0), (0, 1), (1, 1), (1, 2), (0, 2)]


class Late(Session):
    """A session that comes to record vkSetEvent only when the wait for the queue has returned in another thread."""

    def __init__(self, mirror: Keeper) -> None:
        super().__init__(mirror)
        self.returned = threading.Event()

    def record(self, name: str, args: dict[str, Any], result: int | None) -> None:
        if name == "vkSetEvent":
            assert self.returned.wait(LONG)
        super().record(name, args, result)

    def after(self, name: str) -> Callable[[dict[str, Any], int | None], None] | None:
        found = super().after(name)
        if name != "vkQueueWaitIdle" or found is None:
            return found
        then = found

        def leave(args: dict[str, Any], result: int | None) -> None:
            self.returned.set()
            then(args, result)

        return leave


def test_a_wait_stands_behind_the_set_that_ended_it() -> None:
    import vulkan as vk

    keeper = Keeper()
    with Late(keeper).start():
        rig = make_rig()
        event = vk.vkCreateEvent(rig.device, vk.VkEventCreateInfo(), None)
        commands = rig.commands()
        host, all_commands = 0x4000, 0x10000
        vk.vkCmdWaitEvents(commands, 1, [event], host, all_commands, 0, None, 0, None, 0, None)
        rig.submit(commands, wait=False)
        waiter = threading.Thread(target=vk.vkQueueWaitIdle, args=(rig.queue,))
        waiter.start()
        vk.vkSetEvent(rig.device, event)
        waiter.join()
        vk.vkDestroyEvent(rig.device, event, None)
        rig.close()
    order = [name for name in keeper.names if name in ("vkSetEvent", "vkQueueWaitIdle")]
    assert order == ["vkSetEvent", "vkQueueWaitIdle"]


def wait_for_others(calls: CallsInFlight) -> threading.Thread:
    """Another thread that lets the calls in flight finish, and waits by now."""
    waiter = threading.Thread(target=calls.let_others_finish)
    waiter.start()
    while waiter.is_alive() and not any(each.waiting for each in list(calls.threads.values())):
        pass
    return waiter


def test_a_wait_lets_no_later_call_finish() -> None:
    calls = CallsInFlight()
    calls.enter()
    waiter = wait_for_others(calls)
    calls.returned()
    calls.leave()
    calls.enter()
    waiter.join(LONG)
    assert not waiter.is_alive()


def test_what_came_back_from_the_driver_is_waited_for_however_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "DRIVER_LIMIT", 0.0)
    calls = CallsInFlight()
    calls.enter()
    stuck = wait_for_others(calls)
    stuck.join(LONG)  # the driver may wait for what this thread does next
    assert not stuck.is_alive()
    calls.returned()
    waiter = wait_for_others(calls)
    assert waiter.is_alive()
    calls.leave()
    waiter.join(LONG)
    assert not waiter.is_alive()


class Finalizing(Keeper):
    """A judge in the middle of whose step the program makes another call, once, as a finalizer would."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self.call: Callable[[], object] | None = call
        self.inside = False

    def step(self, block: Block) -> list[Finding]:
        assert not self.inside, "a step in the middle of a step"
        self.inside = True
        if isinstance(block, Call) and block.name == "vkCmdFillBuffer" and self.call is not None:
            call, self.call = self.call, None
            call()
        self.inside = False
        return super().step(block)


def test_a_call_of_a_finalizer_comes_after_the_call_that_it_is_made_in() -> None:
    import vulkan as vk

    gone: list[Any] = []
    keeper = Finalizing(lambda: vk.vkDestroyFence(rig.device, gone.pop(), None))
    with vkharness.attach(mirror=keeper) as session:
        rig = make_rig()
        gone.append(vk.vkCreateFence(rig.device, vk.VkFenceCreateInfo(), None))
        buffer, _ = rig.buffer()
        commands = rig.commands()
        vk.vkCmdFillBuffer(commands, buffer, 0, 16, 1)
        rig.submit(commands)
        rig.close()
    assert session.internal_errors == [] and not gone
    at = keeper.names.index("vkCmdFillBuffer")
    assert keeper.names[at : at + 3] == ["vkCmdFillBuffer", "vkDestroyFence", "vkEndCommandBuffer"]
    assert [block.index for block in keeper.blocks] == list(range(1, len(keeper.blocks) + 1))


def test_threads_that_begin_at_once_have_numbers_of_their_own() -> None:
    keeper = Keeper()
    session = Session(keeper)
    begin = threading.Barrier(16)

    def call() -> None:
        begin.wait()
        session.record("vkCmdEndRenderPass", {"commandBuffer": 1}, None)
        begin.wait()  # no thread may end before another begins: its identifier could be given out again

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(call.thread for call in keeper.calls) == list(range(16))
