"""The native front end: what it records, against the Python way, and what programs do with its functions."""

from __future__ import annotations

import copy
import ctypes
import importlib
import inspect
import pickle
import random
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vkharness
from tests.support.native_commands import (
    HANDLE,
    NAMES,
    Recorder,
    address,
    arguments,
    direct,
    line_of,
    native_command,
    new_log,
    new_objects,
)
from tests.support.recording import Keeper, make_rig
from vkharness.commands.buffer_transfers import new_flat_plans
from vkharness.commands.handlers import COMMANDS
from vkharness.commands.interpret import RepeatedCommand
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.device.drivers import environment, find_driver
from vkharness.findings import Finding
from vkharness.native import core, in_use
from vkharness.record import native_front, native_log
from vkharness.record import struct_layout as layout
from vkharness.record.decode import Decoder
from vkharness.record.forward import make_forwarder
from vkharness.record.native_front import call_directly
from vkharness.record.native_shapes import Shapes
from vkharness.spec._generated import HANDLES
from vkharness.spec.command_classes import decides_access
from vkharness.spec.shapes import members, signature
from vkharness.trace.calls import Call
from vkharness.trace.resources import Buffer

pytestmark = pytest.mark.skipif(not native_front.available(), reason=f"in use: {in_use}")
ffi: Any = layout.package_ffi()


@pytest.fixture(autouse=True)
def lavapipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in environment(find_driver("lavapipe")).items():
        monkeypatch.setenv(name, value)
    call_directly(True)
    yield
    call_directly(False)


# Records of the native front end, against those of the Python forwarder.


@pytest.mark.parametrize("name", NAMES)
def test_what_is_recorded_is_what_the_python_way_records(name: str) -> None:
    objects, cut, native_cut = new_objects(), set[str](), set[str]()
    for table in HANDLES:
        for raw in (HANDLE, HANDLE + 8, HANDLE + 16):
            objects.create(table, raw, 0)
    driver = ffi.callback(layout.prototype(name), lambda *args: None)
    python, native = Recorder(), Recorder()
    forward = make_forwarder(name, lambda *args: None, Decoder(objects, cut), python)
    pointer = direct(driver, native_command(name, driver, native, Decoder(objects, native_cut)))
    for seed in range(16):
        values, held = arguments(name, seed)
        forward(*values)
        pointer(*values)
        assert repr(native.calls[-1:]) == repr(python.calls[-1:]), f"seed {seed}"
        del held
    assert len(native.calls) == 16 and not native.errors and not python.errors
    assert native_cut == cut
    assert set(native.sites) == {f"{__file__}:{line}" for line in lines_of("        pointer(*values)")}


def lines_of(text: str) -> list[int]:
    source = inspect.getsource(sys.modules[__name__]).splitlines()
    return [at for at, line in enumerate(source, 1) if line == text]


def structs_of_python(name: str) -> set[str]:
    """The structs of a command that Python reads, chains aside."""
    shapes, shape = Shapes(Decoder(new_objects())), signature(name)
    assert shape is not None
    shapes.of_command(name, shape)
    return {struct for struct, (kind, _) in shapes._made.items() if kind == "p"}


def test_commands_are_read_natively_with_nearly_all_their_structs() -> None:
    """Chains are left to Python, and structs with strings, lists of pointers, or pointers in a union."""
    assert {struct for name in NAMES for struct in structs_of_python(name)} == {
        "VkClusterAccelerationStructureInputInfoNV",
        "VkCuLaunchInfoNVX",
        "VkCudaLaunchInfoNV",
        "VkDebugMarkerMarkerInfoEXT",
        "VkDebugUtilsLabelEXT",
        "VkMicromapBuildInfoEXT",
    }


def test_what_is_no_address_is_lost_and_the_call_goes_through() -> None:
    recorder, reached = Recorder(), []
    driver = ffi.callback(layout.prototype("vkCmdCopyBuffer"), lambda *args: reached.append(args[3]))
    pointer = direct(driver, native_command("vkCmdCopyBuffer", driver, recorder, Decoder(new_objects())))
    nowhere = ffi.cast("VkBufferCopy *", 1 << 62)
    some = ffi.new("VkBufferCopy[1]")
    for count, regions in ((1, nowhere), (0xFFFFFFFF, ffi.cast("VkBufferCopy *", (1 << 47) - 64)), (1, some)):
        pointer(ffi.NULL, ffi.NULL, ffi.NULL, count, regions)
    assert reached == [1, 0xFFFFFFFF, 1]
    assert len(recorder.calls) == 1
    assert [str(error) for error in recorder.errors] == ["pRegions leads to no memory"] * 2


# Errors, interrupts, threads.


@pytest.mark.parametrize("error", [ValueError("of the recorder"), KeyboardInterrupt()])
def test_errors_of_the_recorder_are_lost_and_interrupts_are_not(error: BaseException) -> None:
    class Failing(Recorder):
        def record_at(self, name: str, args: dict[str, Any], result: int | None, site: str | None) -> None:
            raise error

    recorder, reached = Failing(), []
    driver = ffi.callback(layout.prototype("vkCmdEndRendering"), lambda *args: reached.append(1))
    pointer = direct(driver, native_command("vkCmdEndRendering", driver, recorder, Decoder(new_objects())))
    if isinstance(error, Exception):
        pointer(ffi.NULL)
        assert error.__traceback__ is not None
    else:
        with pytest.raises(KeyboardInterrupt):
            pointer(ffi.NULL)
    assert recorder.errors == [error] and reached == [1]


def test_the_driver_is_called_without_the_lock_of_the_interpreter() -> None:
    """A C function that waits for another thread of Python: it would wait for ever."""
    libc = ctypes.CDLL(None)
    semaphore = ctypes.create_string_buffer(64)
    libc.sem_init(semaphore, 0, 0)
    recorder = Recorder()
    real = ffi.cast(layout.prototype("vkCmdEndRendering"), ctypes.cast(libc.sem_wait, ctypes.c_void_p).value)
    pointer = direct(real, native_command("vkCmdEndRendering", real, recorder, Decoder(new_objects())))
    started = threading.Event()

    def post() -> None:
        started.wait()
        libc.sem_post(semaphore)

    thread = threading.Thread(target=post)
    thread.start()
    started.set()
    pointer(ffi.cast("VkCommandBuffer", ctypes.addressof(semaphore)))
    thread.join()
    assert len(recorder.calls) == 1


def test_errno_is_that_of_cffi() -> None:
    def fail(*args: Any) -> None:
        seen.append(ffi.errno)
        ffi.errno = 77

    seen: list[int] = []
    driver = ffi.callback(layout.prototype("vkCmdEndRendering"), fail)
    pointer = direct(driver, native_command("vkCmdEndRendering", driver, Recorder(), Decoder(new_objects())))
    ffi.errno = 5
    pointer(ffi.NULL)
    assert (seen, ffi.errno) == ([5], 77)


# Uses of the functions by programs, besides calls.


def test_a_native_function_is_to_python_what_the_packages_is() -> None:
    vk: Any = importlib.import_module("vulkan")
    genuine = vk.vkCmdDraw
    with vkharness.attach(mirror=Keeper()):
        native = vk.vkCmdDraw
        assert native is not genuine
        assert inspect.signature(native) == inspect.signature(genuine)
        assert native.__wrapped__ is genuine
        for name in ("__name__", "__qualname__", "__module__", "__doc__", "__code__", "__defaults__"):
            assert getattr(native, name) == getattr(genuine, name), name
        assert repr(native) == repr(genuine)
        assert copy.copy(native) is native and copy.deepcopy(native) is native
        assert pickle.loads(pickle.dumps(native)) is native
        assert native == weakref.ref(native)()
        native.mark = 5
        assert genuine.mark == 5
        del native.mark
        assert not hasattr(genuine, "mark")
        holder: Any = type("Holder", (), {"draw": native})
        assert holder.draw is native
        method = holder().draw
        assert method.__func__ is native and inspect.ismethod(method)
    assert vk.vkCmdDraw is genuine


def test_a_function_of_the_library_is_a_value_of_cffi() -> None:
    import vulkan as vk

    with vkharness.attach(mirror=Keeper()):
        function = vk.lib.vkCmdDraw
        assert isinstance(function, ffi.CData)
        assert ffi.typeof(function) is ffi.typeof("PFN_vkCmdDraw")
        same_address = ffi.cast("PFN_vkCmdDraw", address(function))
        assert function == same_address and hash(function) == hash(same_address)
        assert {same_address: 1}[function] == 1
        held = ffi.new("PFN_vkCmdDraw[1]", [function])
        assert held[0] == function
        assert function == weakref.ref(function)()
        with pytest.raises(TypeError) as ours:
            function(1, 2, a=3)
        with pytest.raises(TypeError) as theirs:
            same_address(1, 2, a=3)
        assert str(ours.value) == str(theirs.value)


def test_functions_that_a_program_keeps_follow_the_sessions() -> None:
    vk: Any = importlib.import_module("vulkan")
    genuine = vk.vkCmdFillBuffer
    first, second = Keeper(), Keeper()
    with vkharness.attach(mirror=first):
        native, raw = vk.vkCmdFillBuffer, vk.lib.vkCmdFillBuffer
        rig = make_rig()
        rig.close()
    rig = make_rig()
    buffer, _ = rig.buffer()
    commands = rig.commands()
    seen = len(first.blocks)
    native(commands, buffer, 0, 16, 1)
    raw(commands, buffer, 0, 16, 1)
    with vkharness.attach(mirror=second):
        assert vk.vkCmdFillBuffer is native
        for function in (native, raw, genuine):
            function(commands, buffer, 0, 16, 1)
        native(commands, buffer, 0, size=16, data=2)
    rig.submit(commands)
    rig.close()
    assert len(first.blocks) == seen
    assert second.names == ["vkCmdFillBuffer"] * 4
    assert second.last("vkCmdFillBuffer").args["data"] == 2


def test_what_a_program_put_in_place_of_a_function_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    import vulkan._vulkan as package

    own = lambda *args: None  # noqa: E731
    monkeypatch.setattr(package, "vkCmdDraw", own)
    with vkharness.attach(mirror=Keeper()):
        assert package.vkCmdDraw is own
    assert package.vkCmdDraw is own


# The log: calls that are judged later.


class Waiting(Keeper):
    """A judge that takes some commands alone, and may hear of all later."""

    recorded_alone = frozenset({"vkCmdFillBuffer", "vkCmdUpdateBuffer"})

    def record(self, index: int, name: str, args: dict[str, Any], site: str | None) -> None:
        self.blocks.append(Call(index, name, args, None, site))

    def finish(self) -> list[Finding]:
        return []

    def stop(self, why: str) -> list[Finding]:
        raise AssertionError(why)


def test_calls_in_the_log_come_in_order_with_the_next_that_needs_them() -> None:
    vk: Any = importlib.import_module("vulkan")
    keeper = Waiting()
    with vkharness.attach(mirror=keeper) as session:
        rig = make_rig()
        buffer, _ = rig.buffer()
        commands = rig.commands()
        seen = len(keeper.blocks)
        for data in (1, 2, 1):
            vk.vkCmdFillBuffer(commands, buffer, 0, 16, data)
            vk.lib.vkCmdFillBuffer(commands, buffer, 4, 16, data)
        assert len(keeper.blocks) == seen
        assert session.findings == []
        assert len(keeper.blocks) == seen + 6
        vk.vkCmdFillBuffer(commands, buffer, 8, 16, 3)
        rig.submit(commands)
        rig.close()
    assert session.internal_errors == []
    fills = [call for call in keeper.calls if call.name == "vkCmdFillBuffer"]
    assert [(call.args["dstOffset"], call.args["data"]) for call in fills] == [
        (0, 1), (4, 1), (0, 2), (4, 2), (0, 1), (4, 1), (8, 3),
    ]  # fmt: skip
    assert [block.index for block in keeper.blocks] == list(range(1, len(keeper.blocks) + 1))
    assert fills[0].args is fills[4].args and fills[0].args is not fills[2].args
    assert keeper.names.index("vkEndCommandBuffer") == keeper.calls.index(fills[-1]) + 1


def test_a_log_with_and_without_room_gives_the_same_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    vk: Any = importlib.import_module("vulkan")
    told = []
    for calls, sayings, size in ((1, 1, 1), (3, 2, 1), (3, 2, 100), (1 << 12, 1 << 12, 1 << 20)):
        monkeypatch.setattr(native_log, "MOST_CALLS", calls)
        monkeypatch.setattr(native_log, "MOST_SAYINGS", sayings)
        monkeypatch.setattr(native_log, "MOST_BYTES", size)
        keeper = Waiting()
        with vkharness.attach(mirror=keeper):
            rig = make_rig()
            buffer, _ = rig.buffer()
            commands = rig.commands()
            for data in (1, 2, 3, 1, 2, 3):
                vk.vkCmdFillBuffer(commands, buffer, 0, 16, data)
            vk.vkCmdUpdateBuffer(commands, buffer, 0, 8, ffi.new("uint32_t[2]", [1, 2]))
            rig.submit(commands)
            rig.close()
        told.append([(call.index, call.name, call.args, call.thread) for call in keeper.calls if "Cmd" in call.name])
    assert told[0] == told[1] == told[2] == told[3] and len(told[0]) == 7


@pytest.mark.parametrize("room", [1, 3, 64])
def test_calls_say_what_was_said_whatever_is_forgotten_meanwhile(room: int) -> None:
    """Also in the middle of a call, when it is known what the call says and it is not in the log yet."""
    chosen = random.Random(room)
    assert core is not None
    log = core.CallLog(1, lambda: None, 1 << 12, room, 1 << 20)
    objects, recorder = new_objects(), Recorder()
    recorder.log = log
    meanwhile = [lambda: None] * 6 + [log.forget]
    driver = ffi.callback(layout.prototype("vkCmdSetStencilWriteMask"), lambda *args: chosen.choice(meanwhile)())
    pointer = direct(driver, native_command("vkCmdSetStencilWriteMask", driver, recorder, Decoder(objects)))
    order = [chosen.randrange(6) for _ in range(9)]
    for _ in range(60):
        said = [chosen.choice(order) if chosen.random() < 0.1 else mask for mask in order]
        for mask in said:
            pointer(ffi.NULL, 3, mask)
        assert [each.args["writeMask"] for _, each, _, _ in log.take()] == said


def test_threads_that_only_leave_calls_in_the_log_are_numbered_in_order() -> None:
    vk: Any = importlib.import_module("vulkan")
    keeper = Waiting()
    with vkharness.attach(mirror=keeper):
        rig = make_rig()
        commands = rig.commands()
        for mask in range(1, 4):
            thread = threading.Thread(target=vk.vkCmdSetStencilWriteMask, args=(commands, 3, mask))
            thread.start()
            thread.join()
        rig.submit(commands)
        rig.close()
    set_masks = [call for call in keeper.calls if call.name == "vkCmdSetStencilWriteMask"]
    assert [call.args["writeMask"] for call in set_masks] == [1, 2, 3]
    threads = list(dict.fromkeys([keeper.calls[0].thread, *(call.thread for call in set_masks)]))
    assert len(threads) >= 2 and threads == list(range(len(threads)))  # the system may give a thread an old identifier


def test_what_is_told_at_once_waits_in_no_log() -> None:
    options: list[dict[str, Any]] = [{"keep_trace": True}, {"sink": lambda block: None}, {"eager": True}]
    for each in options:
        with vkharness.attach(**each) as session:
            assert session.log is None
    with vkharness.attach() as session:
        assert session.log is not None


HAVE_ADDRESSES = {
    "vkCmdConvertCooperativeVectorMatrixNV",
    "vkCmdCopyAccelerationStructureToMemoryKHR",
    "vkCmdCopyMemoryToAccelerationStructureKHR",
    "vkCmdCopyMemoryToMicromapEXT",
    "vkCmdCopyMicromapToMemoryEXT",
    "vkCmdDispatchGraphAMDX",
    "vkCmdDispatchGraphIndirectAMDX",
}
"""Commands whose structs say an address as a number, which is another one each time here."""


def test_equal_bytes_are_equal_arguments() -> None:
    """Calls with any contents: those that the log takes for the same read the same, and no others."""
    objects = new_objects()
    for name in NAMES:
        if structs_of_python(name):
            continue  # each of its calls is a saying of its own
        recorder = Recorder()
        recorder.log = log = new_log()
        driver = ffi.callback(layout.prototype(name), lambda *args: None)
        pointer = direct(driver, native_command(name, driver, recorder, Decoder(objects)))
        for seed in (*range(20), *range(20)):
            values, held = arguments(name, seed % 7, chained=False)
            pointer(*values)
            del held
        sayings = [saying for _, saying, _, _ in log.take()]
        assert len(sayings) == 40 and not recorder.errors
        texts = {id(saying): repr(saying.args) for saying in sayings}
        assert all(said.name == name for said in sayings)
        assert len(set(texts.values())) == len(texts), name
        assert len(texts) <= 7 or name in HAVE_ADDRESSES


def deciding(owner: str, held: Any) -> Any:
    """Arguments, or what a struct holds, with None for what no access follows from."""
    if isinstance(held, list):
        return [deciding(owner, each) for each in held]
    shape = signature(owner)
    rows = {each.name: each for each in (members(owner) or () if shape is None else shape.params)}
    if not isinstance(held, dict) or not rows:
        return held
    return {
        key: deciding(rows[key].type, each) if decides_access(owner, rows[key]) else None for key, each in held.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_log_has_the_arguments_when_their_memory_is_gone(name: str) -> None:
    objects = new_objects()
    for table in HANDLES:
        objects.create(table, HANDLE, 0)
    waiting, told = Recorder(), Recorder()
    waiting.log = new_log()
    drivers = [(ffi.callback(layout.prototype(name), lambda *args: None), each) for each in (waiting, told)]
    pointers = [direct(driver, native_command(name, driver, each, Decoder(objects))) for driver, each in drivers]
    for seed in range(16):
        values, held = arguments(name, seed, chained=seed % 4 == 0)
        for pointer in pointers:
            pointer(*values)
        for each in held.kept:
            memory = ffi.buffer(each)
            memory[:] = b"\xff" * len(memory)
    sayings = [said for _, said, _, _ in waiting.log.take()]
    heard = [(each, repr(deciding(name, args))) for each, args, _ in told.calls]
    assert [(said.name, repr(said.args)) for said in sayings] == heard
    assert len(sayings) == 16 and all(said.args is said.args for said in sayings)


class FlatCalls:
    """Calls of copies, fills and updates, left in a log; and what two states of objects make of them."""

    def __init__(self) -> None:
        self.recorder, handles = Recorder(), new_objects()
        self.recorder.log = new_log()
        self.ids = [handles.create(kind, HANDLE, 0) for kind in ("VkCommandBuffer", "VkBuffer")]
        self.ids.append(handles.create("VkBuffer", HANDLE + 8, 0))
        self._decoder = Decoder(handles)
        self.objects, self.reference = ObjectState(), ObjectState()
        for each in (self.objects, self.reference):
            each.add(Buffer(self.ids[1], 64))
            each.add(Buffer(self.ids[2], 64, 9, 64))
        self.buffer = CommandBuffer(self.ids[0], 0)
        self.plans = new_flat_plans(self.objects, RepeatedCommand)

    def call(self, name: str, *values: Any) -> Any:
        driver = ffi.callback(layout.prototype(name), lambda *args: None)
        direct(driver, native_command(name, driver, self.recorder, self._decoder))(*values)
        return self.recorder.log.take()

    def repeated(self, calls: Any, buffer: CommandBuffer | None = None) -> list[Any]:
        into = self.buffer if buffer is None else buffer
        found: list[Any] = calls.repeated(into, self.objects.changes, None, line_of, self.plans, None)[2]
        return found


NUMBERS = st.one_of(st.integers(0, 70), st.just((1 << 64) - 1))
REGIONS = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from([0, 4, 8, 1 << 62])), max_size=3)


@given(st.sampled_from(["", "2", "fill", "update"]), REGIONS, NUMBERS, st.integers(1, 60), st.booleans())
def test_flat_plans_are_found_in_the_bytes_of_calls(kind: str, several: Any, at: int, size: int, null: bool) -> None:
    calls = FlatCalls()
    into, source = ffi.cast("VkCommandBuffer", HANDLE), ffi.cast("VkBuffer", HANDLE)
    target = ffi.NULL if null and at % 3 == 0 else ffi.cast("VkBuffer", HANDLE + 8)
    data = ffi.new("char[]", bytes(range(size)))
    name: str
    values: tuple[Any, ...]
    if kind == "fill":
        name, values = "vkCmdFillBuffer", (into, target, at, 4 * size, size)
    elif kind == "update":
        name, values = "vkCmdUpdateBuffer", (into, target, at, size, ffi.NULL if null else data)
    elif not kind:
        regions = ffi.new("VkBufferCopy[]", several)
        name, values = "vkCmdCopyBuffer", (into, source, target, len(several), ffi.NULL if null else regions)
    else:
        regions = ffi.new("VkBufferCopy2[]", [(0, ffi.NULL, *each) for each in several])
        info = ffi.new(
            "VkCopyBufferInfo2 *", (0, ffi.NULL, source, target, len(several), ffi.NULL if null else regions)
        )
        name, values = "vkCmdCopyBuffer2", (into, info)
    for _ in range(2):
        took = calls.call(name, *values)
        said = took.said
        assert calls.repeated(took, CommandBuffer(calls.ids[0] + 7, 0)) == []
        plans = calls.repeated(took)
        expected = calls.plans.record(calls.buffer, calls.ids[0], calls.objects.changes, name, said.args)
        assert (plans == []) == (expected is None)
        made = COMMANDS[name](calls.objects, calls.buffer, said.args)
        reference = COMMANDS[name](calls.reference, calls.buffer, said.args)
        for each in plans:
            assert each == made and tuple(each) == tuple(reference)
            assert each.writes == reference.writes  # type: ignore[attr-defined]


def test_a_flat_plan_is_kept_from_the_second_time_on() -> None:
    calls = FlatCalls()
    values = (ffi.cast("VkCommandBuffer", HANDLE), ffi.cast("VkBuffer", HANDLE), 0, 4, 7)
    first = calls.call("vkCmdFillBuffer", *values)
    COMMANDS["vkCmdFillBuffer"](calls.objects, calls.buffer, first.said.args)
    kept = []
    for waiting in (first, *(calls.call("vkCmdFillBuffer", *values) for _ in range(2))):
        said = waiting.said
        assert [tuple(each) for each in calls.repeated(waiting)] == [tuple(COMMANDS[said.name](
            calls.reference, calls.buffer, said.args))]  # fmt: skip
        kept.append(said.kept)
    assert kept[0] is None and kept[1] is kept[2] and kept[1].buffer is calls.buffer
    calls.objects.changed(calls.ids[1])
    waiting = calls.call("vkCmdFillBuffer", *values)
    assert calls.repeated(waiting) == [] and waiting.said.kept.changes < calls.objects.changes
    waiting.said.kept = None
    assert waiting.said.kept is None


def test_a_handle_that_is_given_again_is_another_object() -> None:
    objects, recorder = new_objects(), Recorder()
    recorder.log = new_log()
    driver = ffi.callback(layout.prototype("vkCmdSetStencilWriteMask"), lambda *args: None)
    pointer = direct(driver, native_command("vkCmdSetStencilWriteMask", driver, recorder, Decoder(objects)))
    handle, ids = ffi.cast("VkCommandBuffer", HANDLE), []
    for round in range(3):
        ids.append(objects.create("VkCommandBuffer", HANDLE, 0))
        if round == 2:
            objects.create("VkCommandBuffer", HANDLE, 0)  # the older one comes back when this goes
            pointer(handle, 3, 1)
            objects.retire(objects.table("VkCommandBuffer")[HANDLE])
        pointer(handle, 3, 1)
        pointer(handle, 3, 1)
        if round < 2:
            objects.retire(ids[-1])
    found = [said.args["commandBuffer"] for _, said, _, _ in recorder.log.take()]
    assert found == [ids[0], ids[0], ids[1], ids[1], ids[2] + 1, ids[2], ids[2]] and len(set(ids)) == 3
