"""Attaching: every style of call is mirrored, nothing else changes, and the package is given back as it was."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import vkharness
from tests.support.recording import PROGRAMS, Keeper, make_rig
from vkharness.device.drivers import environment, find_driver
from vkharness.device.manifests import find_layers
from vkharness.findings import UserError
from vkharness.record.native_front import replaceable
from vkharness.record.session import Session

KHRONOS = "VK_LAYER_KHRONOS_validation"
FOREVER = 0xFFFFFFFFFFFFFFFF


@pytest.fixture(autouse=True)
def lavapipe(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    variables = environment(find_driver("lavapipe"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def session(keeper: Keeper) -> Iterator[Session]:
    with vkharness.attach(mirror=keeper) as attached:
        yield attached


def module_of(source: str, name: str) -> types.ModuleType:
    """A module made from source, known to Python under `name` as an imported one is."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(source, module.__dict__)
    return module


@pytest.fixture
def star() -> Iterator[Any]:
    yield module_of("from vulkan import *\nfrom vulkan import lib as own_lib", "a_program_with_a_star_import")
    del sys.modules["a_program_with_a_star_import"]


def fill(vk: Any, rig: Any, commands: Any) -> None:
    vk.vkCmdFillBuffer(commands, rig.made[0][0], 0, 16, 1)


def test_detaching_gives_every_attribute_back(keeper: Keeper, star: Any) -> None:
    import vulkan
    import vulkan._vulkan

    modules = (vulkan, vulkan._vulkan, star)
    before = [dict(vars(module)) for module in modules]
    session = vkharness.attach(mirror=keeper)
    changed = {name for name, value in vars(vulkan._vulkan).items() if before[1].get(name) is not value}
    make_rig().close()
    session.detach()
    assert changed == {"lib", "_callApi", "_new"} | replaceable(vulkan._vulkan).keys()
    for module, old in zip(modules, before, strict=True):
        new = vars(module)
        assert new.keys() == old.keys()
        assert [name for name in old if new[name] is not old[name]] == []


def test_a_module_that_imported_the_package_while_attached_gets_the_real_one_back(keeper: Keeper) -> None:
    import vulkan as vk

    real = vk.lib
    with vkharness.attach(mirror=keeper):
        late = module_of("from vulkan import *\nimport vulkan", "a_late_program")
        assert late.lib is not real
    assert late.lib is real
    del sys.modules["a_late_program"]


def test_a_module_that_an_earlier_session_saw_is_looked_at_again(keeper: Keeper) -> None:
    import vulkan as vk

    real = vk.lib
    seen = module_of("import vulkan", "a_program_that_two_sessions_see")
    with vkharness.attach(mirror=keeper):
        pass
    exec("from vulkan import lib as early", seen.__dict__)
    with vkharness.attach(mirror=keeper):
        assert seen.early is not real
        exec("from vulkan import lib as late; early = None", seen.__dict__)
        assert seen.late is not real
    assert seen.late is real and seen.early is None
    exec("del late; from vulkan import lib as other", seen.__dict__)
    with vkharness.attach(mirror=keeper):
        assert seen.other is not real
    assert seen.other is real
    del sys.modules["a_program_that_two_sessions_see"]


def test_package_functions_taken_before_are_mirrored(star: Any, keeper: Keeper) -> None:
    early = star.vkCmdFillBuffer
    with vkharness.attach(mirror=keeper):
        rig = make_rig()
        buffer, _ = rig.buffer()
        commands = rig.commands()
        early(commands, buffer, 4, 8, 9)
        rig.submit(commands)
        rig.close()
    args = keeper.last("vkCmdFillBuffer").args
    assert (args["dstOffset"], args["size"], args["data"]) == (4, 8, 9)
    assert args["dstBuffer"] == keeper.last("vkCreateBuffer").args["pBuffer"]


def test_raw_calls_are_mirrored_whoever_holds_the_library(star: Any, keeper: Keeper) -> None:
    import vulkan as vk

    with vkharness.attach(mirror=keeper):
        rig = make_rig()
        buffer, _ = rig.buffer()
        commands = rig.commands()
        for library in (vk.lib, vk._vulkan.lib, star.lib, star.own_lib):
            library.vkCmdFillBuffer(commands, buffer, 0, 16, 1)
        # C's own conversions: a list of initializers becomes an array.
        vk.lib.vkCmdCopyBuffer(commands, buffer, buffer, 1, [(0, 512, 16)])
        rig.submit(commands)
        rig.close()
    assert keeper.names.count("vkCmdFillBuffer") == 4
    assert keeper.last("vkCmdCopyBuffer").args["pRegions"] == [{"srcOffset": 0, "dstOffset": 512, "size": 16}]


def test_extension_functions_are_mirrored_by_both_ways(session: Session, keeper: Keeper) -> None:
    import vulkan as vk

    rig = make_rig(extensions=["VK_KHR_synchronization2"])
    commands = rig.commands()
    info = vk.VkDependencyInfo()
    vk.vkGetDeviceProcAddr(rig.device, "vkCmdPipelineBarrier2KHR")(commands, info)
    raw = vk.lib.vkGetDeviceProcAddr(rig.device, b"vkCmdPipelineBarrier2KHR")
    vk.ffi.cast("PFN_vkCmdPipelineBarrier2KHR", raw)(commands, vk.ffi.addressof(info))
    core = vk.lib.vkGetInstanceProcAddr(rig.instance, b"vkCmdPipelineBarrier")
    vk.ffi.cast("PFN_vkCmdPipelineBarrier", core)(commands, 1, 1, 0, 0, vk.ffi.NULL, 0, vk.ffi.NULL, 0, vk.ffi.NULL)
    rig.submit(commands)
    rig.close()
    assert keeper.names.count("vkCmdPipelineBarrier2KHR") == 2
    assert keeper.names.count("vkCmdPipelineBarrier") == 1
    assert not any("ProcAddr" in name for name in keeper.names)


def test_an_extension_function_got_before_the_session_is_mirrored(keeper: Keeper) -> None:
    import vulkan as vk

    rig = make_rig(extensions=["VK_KHR_synchronization2"])
    barrier = vk.vkGetDeviceProcAddr(rig.device, "vkCmdPipelineBarrier2KHR")
    commands = rig.commands()
    with vkharness.attach(mirror=keeper):
        barrier(commands, vk.VkDependencyInfo())
    rig.submit(commands)
    rig.close()
    # The package's own function bears the core name.
    assert keeper.names == ["vkCmdPipelineBarrier2"]
    assert keeper.calls[0].args["commandBuffer"] == 1


def test_functions_of_the_library_stay_c_functions(session: Session) -> None:
    import vulkan as vk

    function = vk.lib.vkCmdFillBuffer
    assert vk.ffi.typeof(function) == vk.ffi.typeof("PFN_vkCmdFillBuffer")
    assert vk.ffi.cast("PFN_vkCmdFillBuffer", function) == function
    assert vk.lib.VK_STRUCTURE_TYPE_SUBMIT_INFO == vk.VK_STRUCTURE_TYPE_SUBMIT_INFO
    assert "vkCmdFillBuffer" in dir(vk.lib)
    with pytest.raises(AttributeError):
        _ = vk.lib.vkNoSuchFunction


def test_pointers_kept_after_detaching_forward_and_are_not_recorded(keeper: Keeper) -> None:
    import vulkan as vk

    with vkharness.attach(mirror=keeper):
        raw_fill = vk.lib.vkCmdFillBuffer
        rig = make_rig(extensions=["VK_KHR_synchronization2"])
        barrier = vk.vkGetDeviceProcAddr(rig.device, "vkCmdPipelineBarrier2KHR")
    seen = len(keeper.blocks)
    buffer, memory = rig.buffer()
    commands = rig.commands()
    raw_fill(commands, buffer, 0, 16, 0x01020304)
    barrier(commands, vk.VkDependencyInfo())
    rig.submit(commands)
    assert bytes(vk.vkMapMemory(rig.device, memory, 0, 16, 0)) == b"\x04\x03\x02\x01" * 4
    rig.close()
    assert len(keeper.blocks) == seen
    again = Keeper()
    with vkharness.attach(mirror=again):
        rig = make_rig()
        commands = rig.commands()
        buffer, _ = rig.buffer()
        raw_fill(commands, buffer, 0, 16, 5)
        rig.submit(commands)
        rig.close()
    assert again.names.count("vkCmdFillBuffer") == 1
    assert again.calls[0].index == 1


def test_one_session_at_a_time(session: Session) -> None:
    with pytest.raises(UserError, match="attached already"):
        vkharness.attach(mirror=Keeper())
    session.detach()
    session.detach()
    vkharness.attach(mirror=Keeper()).detach()


def test_positive_results_that_raise_are_recorded(session: Session, keeper: Keeper) -> None:
    import vulkan as vk

    rig = make_rig()
    fence = vk.vkCreateFence(rig.device, vk.VkFenceCreateInfo(), None)
    with pytest.raises(vk.VkTimeout):
        vk.vkWaitForFences(rig.device, 1, [fence], True, 0)
    vk.vkDestroyFence(rig.device, fence, None)
    rig.close()
    call = keeper.last("vkWaitForFences")
    assert (call.result, call.succeeded) == (2, True)
    assert call.args["pFences"] == [keeper.last("vkCreateFence").args["pFence"]]


def test_failed_calls_have_no_outputs(session: Session, keeper: Keeper) -> None:
    import vulkan as vk

    with pytest.raises(vk.VkErrorLayerNotPresent):
        vk.vkCreateInstance(vk.VkInstanceCreateInfo(ppEnabledLayerNames=["VK_LAYER_that_nobody_has"]), None)
    call = keeper.last("vkCreateInstance")
    assert call.result == -6
    assert call.args["pInstance"] is None
    assert call.args["pCreateInfo"]["ppEnabledLayerNames"] == ["VK_LAYER_that_nobody_has"]


def test_calls_that_python_refuses_are_not_recorded(session: Session, keeper: Keeper) -> None:
    import vulkan as vk

    rig = make_rig()
    seen = len(keeper.blocks)
    with pytest.raises(ValueError):  # the package's own, with and without a session
        vk.vkDeviceWaitIdle("no device")
    with pytest.raises(TypeError):
        vk.lib.vkDeviceWaitIdle("no device")
    with pytest.raises((TypeError, ValueError)):
        vk.vkCmdFillBuffer(rig.commands(), None, 0, "x", 0)
    assert keeper.names[seen:] == ["vkAllocateCommandBuffers", "vkBeginCommandBuffer"]
    assert session.internal_errors == []
    rig.close()


def test_an_error_in_the_mirror_does_not_reach_the_program(keeper: Keeper) -> None:
    class Broken(Keeper):
        def step(self, block: Any) -> Any:
            raise ValueError(f"cannot take {block.name}")

    with vkharness.attach(mirror=Broken(), keep_trace=True) as session:
        make_rig().close()
    assert session.verdict == "unknown"
    assert session.blocks is not None
    assert len(session.internal_errors) == len(session.blocks)
    assert "cannot take vkCreateInstance" in session.internal_errors[0]


def test_a_sink_gets_every_block_and_its_failure_is_told(keeper: Keeper) -> None:
    taken: list[int] = []

    def sink(block: Any) -> None:
        if block.index == 3:
            raise OSError("disk full")
        taken.append(block.index)

    with vkharness.attach(mirror=keeper, sink=sink) as session:
        make_rig().close()
    assert taken == [1, 2]
    assert len(keeper.blocks) > 3
    assert "trace ends at block 3" in session.internal_errors[0]
    assert session.verdict == "unknown"


def test_an_interrupt_inside_a_raw_call_reaches_the_program() -> None:
    import vulkan as vk

    class Interrupted(Keeper):
        def step(self, block: Any) -> Any:
            if getattr(block, "name", "") == "vkDeviceWaitIdle" and not self.blocks:
                self.blocks.append(block)
                signal.raise_signal(signal.SIGINT)
            return []

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's & ignores it
    try:
        with vkharness.attach(mirror=Interrupted()):
            rig = make_rig()
            with pytest.raises(KeyboardInterrupt):
                vk.lib.vkDeviceWaitIdle(rig.device)
                threading.Event().wait(60)  # long over when the interrupt comes
            rig.close()
    finally:
        signal.signal(signal.SIGINT, before)


def test_sites_name_the_line_of_the_program(session: Session, keeper: Keeper, tmp_path: Path) -> None:
    import vulkan as vk

    rig = make_rig()
    commands = rig.commands()
    buffer, _ = rig.buffer()
    path = tmp_path / "lines.py"
    source = (
        "def go(vk, c, b):\n"
        "    vk.vkCmdFillBuffer(c, b, 0, 4, 0)\n"
        "    vk.lib.vkCmdFillBuffer(c, b, 0, 4, 0); vk.vkCmdFillBuffer(\n"
        "        c, b, 0, 4, 0)\n"
        "    with ExitStack() as last:\n"
        "        last.callback(vk.vkCmdFillBuffer, c, b, 0, 4, 0)\n"
    )
    names: dict[str, Any] = {"ExitStack": ExitStack}
    exec(compile(source, str(path), "exec"), names)
    names["go"](vk, commands, buffer)
    rig.submit(commands)
    rig.close()
    sites = [call.site for call in keeper.calls if call.name == "vkCmdFillBuffer"]
    assert sites == [f"{path}:{line}" for line in (2, 3, 3, 5)]


def test_a_blocking_wait_holds_up_no_other_thread(session: Session, keeper: Keeper) -> None:
    import vulkan as vk

    rig = make_rig()
    fence = vk.vkCreateFence(rig.device, vk.VkFenceCreateInfo(), None)
    waiting = threading.Event()
    done: list[int] = []

    def wait() -> None:
        waiting.set()
        vk.vkWaitForFences(rig.device, 1, [fence], True, FOREVER)
        done.append(1)

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    commands = rig.commands()
    buffer, _ = rig.buffer()
    vk.vkCmdFillBuffer(commands, buffer, 0, 16, 1)
    vk.vkEndCommandBuffer(commands)
    vk.vkQueueSubmit(rig.queue, 1, [vk.VkSubmitInfo(pCommandBuffers=[commands])], fence)
    thread.join()
    vk.vkDestroyFence(rig.device, fence, None)
    rig.close()
    assert done == [1]
    order = [name for name in keeper.names if name in ("vkQueueSubmit", "vkWaitForFences")]
    assert order == ["vkQueueSubmit", "vkWaitForFences"]
    assert keeper.last("vkWaitForFences").thread != keeper.last("vkQueueSubmit").thread
    assert [block.index for block in keeper.blocks] == list(range(1, len(keeper.blocks) + 1))


def test_pointees_of_structs_in_lists_stay_alive(session: Session) -> None:
    import vulkan as vk

    def stages(i: int) -> Any:
        return [vk.VkPipelineShaderStageCreateInfo(stage=1, pName=f"entry_{i}")]

    infos = [vk.VkGraphicsPipelineCreateInfo(pStages=stages(i)) for i in range(500)]
    infos += [vk.VkGraphicsPipelineCreateInfo(pStages=stages(i)) for i in range(500, 1000)]
    names = [vk.ffi.string(info.pStages[0].pName).decode() for info in infos]
    assert names == [f"entry_{i}" for i in range(1000)]


def test_the_lifetime_bug_may_be_left_alone(keeper: Keeper) -> None:
    import vulkan._vulkan as package

    new = package._new
    with vkharness.attach(mirror=keeper, keep_alive=False):
        assert package._new is new


def run_python(source: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, **variables, "PYTHONPATH": f"{PROGRAMS}:{PROGRAMS.parents[1]}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_attaching_comes_before_the_import(lavapipe: dict[str, str]) -> None:
    ran = run_python(
        "import vkharness, sys\n"
        "assert 'vulkan' not in sys.modules\n"
        "session = vkharness.attach(keep_trace=True)\n"
        "import fill_copy\n"
        "print([f.hazard for f in session.findings])\n",
        lavapipe,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "['READ_AFTER_WRITE']"


def test_without_the_package_there_is_nothing_to_mirror() -> None:
    ran = run_python(
        "import sys\nsys.modules['vulkan'] = None\nimport vkharness\n"
        "session = vkharness.attach()\nprint(session.verdict)\nsession.detach()\nimport vulkan\n",
        {},
    )
    assert ran.stdout == "clean\n"
    assert "ModuleNotFoundError" in ran.stderr
    assert "vkharness" not in ran.stderr.split("Traceback")[1]


def test_the_layer_and_its_messenger_work_in_the_same_process(lavapipe: dict[str, str]) -> None:
    if not any(layer.name == KHRONOS for layer in find_layers()):
        pytest.skip(f"{KHRONOS} is not installed (ci/setup installs it)")
    ran = run_python("import runpy; runpy.run_module('under_the_layer', run_name='__main__')", lavapipe)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["layer: SYNC-HAZARD-READ-AFTER-WRITE", "mirror: SYNC-HAZARD-READ-AFTER-WRITE"]
