"""Two traces as one: what belongs together, whose ids are whose, and in which order the calls come."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.payloads import Programs
from tests.support.streams import struct
from vkharness.check import Analysis
from vkharness.cli.join import join as command
from vkharness.findings import UserError
from vkharness.joining.join import Joined, join
from vkharness.model import judge
from vkharness.replay.schedule.one_payload import with_one_payload
from vkharness.trace.calls import PAYLOAD, Block, Call, HostWrite
from vkharness.trace.codec import load, read_header, save


class Side(Programs):
    """One process, on one queue."""

    def write(self, semaphore: int, buffer: int, wait: int = 0) -> None:
        """Fills the shared buffer and signals."""
        self.begin()
        self.barrier()
        self.fill(buffer, 7)
        self.run(self.queue, waits=[wait] if wait else None, signals=[semaphore])

    def read(self, semaphore: int, buffer: int, done: int = 0) -> None:
        """Waits, and copies the shared buffer."""
        mine = self.buffer(16)
        self.begin()
        self.copy(buffer, mine, 16)
        self.run(self.queue, waits=[semaphore] if semaphore else None, signals=[done] if done else None)


def files(known: bool, name: str) -> str:
    return name if known else ""


def programs(frames: int = 3, *, known: bool = True, waits: bool = True, done: bool = True) -> tuple[Side, Side]:
    """A client that fills a buffer of the server, and the server, which copies it."""
    server, client = Side(), Side()
    memory = server.memory()
    buffer, rendered, copied = server.buffer(16, memory), server.semaphore(), server.semaphore()
    server.export(memory, "Memory", 1, file=files(known, "1:1"))
    server.export(rendered, file=files(known, "1:2"))
    server.export(copied, file=files(known, "1:3"))
    target = client.buffer(16, client.bring_memory(70, file=files(known, "1:1")))
    mine, theirs = client.semaphore(), client.semaphore()
    client.bring(mine, 71, file=files(known, "1:2"))
    client.bring(theirs, 72, file=files(known, "1:3"))
    for frame in range(frames):
        client.write(mine, target, theirs if frame and done else 0)
        server.read(rendered if waits else 0, buffer, copied)
    return client, server


def found(made: Joined) -> set[str]:
    """The hazards of both judges, which must agree."""
    analysis = Analysis().follow(made.blocks)
    assert analysis.unmodelled == {} and analysis.unjudged.outside_waits == 0
    assert bool(judge(made.blocks).everything) == bool(analysis.findings)
    return {each.hazard.value for each in analysis.findings}


def both(client: Side, server: Side) -> list[list[Block]]:
    return [client.blocks, server.blocks]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("client_first", [True, False])
def test_what_is_ordered_is_clean(known: bool, client_first: bool) -> None:
    client, server = programs(known=known)
    one, other = both(client, server) if client_first else both(client, server)[::-1]
    made = join(one, other, {})
    assert made.shared == "1 memory objects, 2 semaphores"
    assert found(made) == set()
    assert [block.index for block in made.blocks] == list(range(1, len(one) + len(other) + 1))


@pytest.mark.parametrize(("waits", "done"), [(False, True), (True, False)])
def test_each_alone_is_clean_and_both_together_race(waits: bool, done: bool) -> None:
    client, server = programs(waits=waits, done=done)
    for each in (client, server):
        assert each.hazards() == []
    assert found(join(client.blocks, server.blocks, {})) & {"READ_RACING_WRITE", "WRITE_RACING_READ"}


def test_ids_threads_and_host_writes_are_of_one_process() -> None:
    client, server = programs()
    for side in (client, server):
        side.host_write(side.memory(), 0, b"1234")
        named = struct("VkDebugUtilsObjectNameInfoEXT", objectType=9, objectHandle=side.queue, pObjectName="queue")
        side.call("vkSetDebugUtilsObjectNameEXT", device=side.device, pNameInfo=named)
    made = join(client.blocks, server.blocks, {}).blocks
    calls = [each for each in made if isinstance(each, Call)]
    assert len({each.args["pDevice"] for each in calls if each.name == "vkCreateDevice"}) == 2
    assert {each.thread for each in calls} == {0, 1}
    names = [each.args["pNameInfo"] for each in calls if each.name == "vkSetDebugUtilsObjectNameEXT"]
    queues = {each.args["queue"] for each in calls if each.name == "vkQueueSubmit"}
    assert {each["objectHandle"] for each in names} == queues and len(queues) == 2
    allocated = [each.args["pMemory"] for each in calls if each.name == "vkAllocateMemory"]
    written = [each.memory for each in made if isinstance(each, HostWrite)]
    assert len(set(allocated)) == len(allocated) and set(written) < set(allocated)


def test_a_wait_never_comes_before_its_signal() -> None:
    client, server = programs(frames=5)
    pending: dict[int, int] = {}
    same: dict[str, int] = {}
    for call in join(client.blocks, server.blocks, {}).blocks:
        assert isinstance(call, Call)
        if call.name == "vkGetSemaphoreFdKHR":
            same[call.args[PAYLOAD]] = call.args["pGetFdInfo"]["semaphore"]
        if call.name == "vkImportSemaphoreFdKHR":
            same[call.args["pImportSemaphoreFdInfo"]["semaphore"]] = same[call.args[PAYLOAD]]
        for info in call.args["pSubmits"] if call.name == "vkQueueSubmit" else ():
            for each in info["pWaitSemaphores"] or ():
                pending[same.get(each, each)] -= 1
            for each in info["pSignalSemaphores"] or ():
                pending[same.get(each, each)] = pending.get(same.get(each, each), 0) + 1
            assert set(pending.values()) <= {0, 1}


@pytest.mark.parametrize("by", ["fence", "value"])
def test_the_host_waits_for_what_the_other_process_signals(by: str) -> None:
    client, server = Side(), Side()
    memory = server.memory()
    buffer = server.buffer(16, memory)
    server.export(memory, "Memory", 1, file="1:1")
    target = client.buffer(16, client.bring_memory(70, file="1:1"))
    if by == "fence":
        done, mine = (side.make("vkCreateFence", "pFence", struct("VkFenceCreateInfo")) for side in (server, client))
        server.export(done, "Fence", 1, file="1:2")
        client.bring(mine, 71, "Fence", 1, file="1:2")
    else:
        done, mine = server.semaphore(timeline=True), client.semaphore(timeline=True)
        server.export(done, file="1:2")
        client.bring(mine, 71, file="1:2")
    server.call("vkQueueWaitIdle", queue=server.queue)  # both hosts wait before the signal
    server.begin()
    server.fill(buffer, 7)
    values = struct("VkTimelineSemaphoreSubmitInfo", pSignalSemaphoreValues=[3])
    server.run(server.queue, signals=[done] if by == "value" else None, fence=done if by == "fence" else 0)
    submit = server.blocks[-1]
    assert isinstance(submit, Call)
    submit.args["pSubmits"][0]["pNext"] = values if by == "value" else None
    if by == "fence":
        client.call("vkWaitForFences", device=client.device, fenceCount=1, pFences=[mine], waitAll=1)
    else:
        info = struct("VkSemaphoreWaitInfo", pSemaphores=[mine], pValues=[3])
        client.call("vkWaitSemaphores", device=client.device, pWaitInfo=info, timeout=1)
    waited = client.blocks[-1]
    assert isinstance(waited, Call)
    waited.result = 0
    client.begin()
    client.fill(target, 8)
    client.run(client.queue)
    assert found(join(client.blocks, server.blocks, {})) == set()


def test_the_user_can_say_what_belongs_together() -> None:
    client, server = programs(known=False)
    exports = [each.index for each in server.blocks if isinstance(each, Call) and each.name == "vkGetSemaphoreFdKHR"]
    imports = [each.index for each in client.blocks if isinstance(each, Call) and each.name == "vkImportSemaphoreFdKHR"]
    crossed = dict(zip(imports, reversed(exports), strict=True))
    assert found(join(client.blocks, server.blocks, crossed))
    assert found(join(client.blocks, server.blocks, dict(zip(imports, exports, strict=True)))) == set()


def test_several_that_nobody_can_tell_apart_are_refused() -> None:
    client, server = programs(known=False)
    server.export(server.semaphore())
    with pytest.raises(UserError, match=r"3 semaphores are exported and 2 imported .* --pair"):
        join(client.blocks, server.blocks, {})
    with pytest.raises(UserError, match="--pair 1=1: these blocks are no export and import"):
        join(client.blocks, server.blocks, {1: 1})


def test_strangers_are_refused() -> None:
    with pytest.raises(UserError, match="share nothing"):
        join(Side().blocks, Side().blocks, {})


def test_high_numbers_of_objects_are_refused() -> None:
    client, server = programs()
    server.call("vkDestroyImage", device=server.device, image=1 << 60)
    with pytest.raises(UserError, match="too high"):
        join(client.blocks, server.blocks, {})


def test_device_addresses_of_both_are_refused() -> None:
    client, server = programs()
    for side in (client, server):
        info = struct("VkBufferDeviceAddressInfo", buffer=1)
        side.call("vkGetBufferDeviceAddress", device=side.device, pInfo=info)
    with pytest.raises(UserError, match="device addresses"):
        join(client.blocks, server.blocks, {})


def test_calls_that_mean_nothing_are_one_line() -> None:
    client, server = programs()
    server.export(server.semaphore())
    broken = server.blocks[-1]
    assert isinstance(broken, Call)
    broken.args["pGetFdInfo"] = None
    with pytest.raises(UserError, match="cannot be joined: TypeError"):
        join(client.blocks, server.blocks, {})


def test_a_replay_makes_one_object_of_what_is_shared() -> None:
    client, server = programs()
    with pytest.raises(UserError, match="other side is not in the trace"):
        with_one_payload(client.blocks)
    assert with_one_payload(server.blocks) is server.blocks
    joined = join(client.blocks, server.blocks, {}).blocks
    left = [each for each in with_one_payload(joined) if isinstance(each, Call)]
    assert not {"vkImportSemaphoreFdKHR", "vkGetSemaphoreFdKHR"} & {each.name for each in left}
    bound = [each.args["memory"] for each in left if each.name == "vkBindBufferMemory"]
    before = [each for each in joined if isinstance(each, Call) and each.name == "vkBindBufferMemory"]
    assert len(set(bound)) == len(bound) == len(before) - 1  # the buffers of both are one
    broken = next(each for each in client.blocks if isinstance(each, Call) and each.name == "vkImportSemaphoreFdKHR")
    broken.args["pImportSemaphoreFdInfo"] = None
    with pytest.raises(UserError, match="is malformed"):
        with_one_payload(client.blocks)


def test_the_command_writes_a_trace_that_is_read(tmp_path: Path) -> None:
    client, server = programs(waits=False)
    client.host_write(client.memory(), 0, b"some bytes of the client")
    for name, side in (("client", client), ("server", server)):
        save(tmp_path / f"{name}.jsonl", side.blocks)
    target = tmp_path / "joined.jsonl"
    paths = [str(tmp_path / "client.jsonl"), str(tmp_path / "server.jsonl"), "-o", str(target)]
    result = CliRunner().invoke(command, paths)
    assert result.exit_code == 0, result.output
    assert "which share 1 memory objects, 2 semaphores" in result.output
    assert read_header(target)["vkharness"]["joined"] == {"from": ["client.jsonl", "server.jsonl"]}
    blocks = load(target)
    assert [each.data for each in blocks if isinstance(each, HostWrite)] == [b"some bytes of the client"]
    assert Analysis().follow(blocks).verdict == "hazards"


@pytest.mark.parametrize("said", ["a=b", "1", "1=", "=", "²=1"])
def test_a_pair_is_two_numbers(tmp_path: Path, said: str) -> None:
    save(tmp_path / "a.jsonl", Side().blocks)
    path = str(tmp_path / "a.jsonl")
    result = CliRunner().invoke(command, [path, path, "-o", str(tmp_path / "o.jsonl"), "--pair", said])
    assert isinstance(result.exception, UserError) and "two blocks" in str(result.exception)
