"""Random programs that do what programs do beside Vulkan, run bare, with the native core and in Python alone.

Each is made of parts in a random order: signals, alarms, threads, processes, garbage, debuggers. It runs on a driver
that does nothing, and says itself what it saw. Its three runs must print the same, end the same way and make the same
calls.
One process for each way makes a child for each program, so that a program costs milliseconds:

    python -m tests.record.random_programs --first 0 --count 1000
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

ROOT = Path(__file__).parents[2]
WAYS = {"bare": "1", "core": "0", "pure": "1"}
"""The value of `VKHARNESS_PURE` in each way of running."""
LIMIT = 20
"""Seconds after which a program hangs: it takes some milliseconds."""
UNCOUNTED = "vkCmdSetLineWidth"
"""The call of loops of which nobody knows how often they go around."""
LOST = "lost"

DRIVER = r"""
#include <stdio.h>
#include <unistd.h>
#include <sys/syscall.h>
static int told;
void hear_with(int file) { told = file; }
static int hear(const char *name) {
    char line[80];
    const int size = snprintf(line, sizeof line, "%d\t%ld\t%s\n", getpid(), syscall(SYS_gettid), name);
    return write(told, line, size) != size;
}
"""
CALLS = (
    "vkBeginCommandBuffer", "vkCmdFillBuffer", "vkCmdPipelineBarrier", "vkEndCommandBuffer", "vkCreateBuffer",
    "vkQueueSubmit", "vkQueueWaitIdle", "vkDeviceWaitIdle",
)  # fmt: skip
"""The calls that the driver of the programs has beside `UNCOUNTED`: C, so that no Python runs in it."""

HEAD = '''
import asyncio, atexit, contextvars, ctypes, faulthandler, gc, os, signal, subprocess, sys, tempfile, threading, weakref
import vulkan as vk

class Limit(Exception): pass

def at(kind, number): return vk.ffi.cast(kind, number)
def raises(number, frame): raise Limit(number)
def call(number=1):
    commands, buffer = at("VkCommandBuffer", 16 * number), at("VkBuffer", 32)
    vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
    vk.vkCmdFillBuffer(commands, buffer, 0, 64, number)
    vk.lib.vkCmdFillBuffer(commands, buffer, 64, 64, number)
    barrier = vk.VkMemoryBarrier(srcAccessMask=0x1000, dstAccessMask=0x1000)
    vk.vkCmdPipelineBarrier(commands, 0x1000, 0x1000, 0, 1, [barrier], 0, None, 0, None)
    vk.vkEndCommandBuffer(commands)
def spin(number=7): vk.vkCmdSetLineWidth(at("VkCommandBuffer", 16 * number), 1.0)
def say(*words): print(*words, flush=True)
class Number:
    """An argument that runs code of the program when it is converted."""
    def __init__(self, act): self.act, self.asked = act, False
    def __index__(self):
        if not self.asked:
            self.asked = True
            self.act()
        return 4
    __int__ = __index__
'''
"""The begin of each program."""

PARTS: dict[str, str] = {
    "call": "call({n})",
    "signal": '''
before = signal.signal(signal.SIGUSR1, raises)
for number in range({n}):
    try:
        call(number)
        signal.raise_signal(signal.SIGUSR1)
        say("not raised")
    except Limit as error: say("limit", error)
say(signal.getsignal(signal.SIGUSR1) is raises, signal.signal(signal.SIGUSR1, before) is raises)
''',
    "signal in an argument": '''
signal.signal(signal.SIGUSR1, raises)
for function in (vk.vkCmdFillBuffer, vk.lib.vkCmdFillBuffer):
    try:
        number = Number(lambda: signal.raise_signal(signal.SIGUSR1))
        function(at("VkCommandBuffer", 16), at("VkBuffer", 32), number, 4, 0)
        say("not raised")
    except Limit: say("limit in an argument")
    except Exception as error: say(type(error).__name__)
''',
    "call in a handler": '''
def handler(number, frame): call(3)
signal.signal(signal.SIGUSR2, handler)
for number in range({n}): call(); os.kill(os.getpid(), signal.SIGUSR2)
''',
    "alarm": '''
signal.signal(signal.SIGALRM, raises)
for number in range({n}):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0003 * (number + 1))
        while True: spin()
    except Limit: say("alarm")
    signal.setitimer(signal.ITIMER_REAL, 0)
call()
''',
    "interval": '''
told = []
signal.signal(signal.SIGALRM, lambda number, frame: told.append(number))
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
while len(told) < {n}: spin()
signal.setitimer(signal.ITIMER_REAL, 0)
say("told")
''',
    "masks": '''
signal.signal(signal.SIGUSR1, raises)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
call()
say(sorted(signal.sigpending()), signal.sigwait([signal.SIGUSR1]) == signal.SIGUSR1)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
say(signal.signal(signal.SIGUSR1, signal.SIG_IGN) is raises)
os.kill(os.getpid(), signal.SIGUSR1)
call()
''',
    "wakeup": '''
read, write = os.pipe()
os.set_blocking(write, False)
before = signal.set_wakeup_fd(write)
signal.signal(signal.SIGUSR1, lambda *_: say("handled"))
for number in range({n}): call(); signal.raise_signal(signal.SIGUSR1)
say(list(os.read(read, 100)), signal.set_wakeup_fd(before) == write)
os.close(read); os.close(write)
''',
    "threads": '''
def work(number):
    for each in range({n}): call(number + each)
threads = [threading.Thread(target=work, args=[each], name=f"worker {{each}}") for each in range({n})]
for each in threads: each.start()
for each in threads: each.join()
say("joined", threading.active_count())
''',
    "raised in a thread": '''
class Stop(Exception): pass
def loop():
    try:
        inside.set()
        while True: spin(9)
    except Stop: say("stopped")
inside = threading.Event()
thread = threading.Thread(target=loop, name="loop")
thread.start()
inside.wait()
while not ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Stop)): pass
thread.join()
''',
    "thread that fails": '''
threading.excepthook = lambda given: say("thread:", given.exc_type.__name__, given.exc_value)
def fails(): call(); raise ValueError({n})
thread = threading.Thread(target=fails, name="fails"); thread.start(); thread.join()
threading.excepthook = threading.__excepthook__
''',
    "process": '''
words = [sys.executable, "-I", "-S", "-c", "import sys; print('child'); sys.exit({n})"]
done = subprocess.run(words, capture_output=True)
say(done.stdout, done.returncode)
''',
    "fork": '''
child = os.fork()
if child == 0:
    call(5)
    signal.signal(signal.SIGUSR1, raises)
    try: signal.raise_signal(signal.SIGUSR1)
    except Limit: say("limit in a child")
    os._exit({n})
say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
call()
''',
    "garbage": '''
class Ring:
    def __init__(self): self.ring = self
    def __del__(self): call(6); say("gone")
gc.collect()
rings = [Ring() for _ in range({n})]
del rings
say(gc.isenabled(), gc.get_threshold(), len(gc.callbacks), gc.collect() > 0, gc.garbage)
''',
    "garbage in a call": '''
class Drop:
    def __del__(self): call(6)
held = [Drop()]
for function in (vk.vkCmdFillBuffer, vk.lib.vkCmdFillBuffer):
    function(at("VkCommandBuffer", 16), at("VkBuffer", 32), Number(held.clear), 4, 0)
''',
    "devices": '''
for device in range(1, {n} + 1):
    owner = at("VkDevice", 4096 * device)
    made = [vk.vkCreateBuffer(owner, vk.VkBufferCreateInfo(size=64 * device, usage=3), None) for _ in range(2)]
    call(device)
    info = vk.VkSubmitInfo(pCommandBuffers=[at("VkCommandBuffer", 16 * device)])
    vk.vkQueueSubmit(at("VkQueue", 48 * device), 1, [info], None)
    vk.vkQueueWaitIdle(at("VkQueue", 48 * device))
    vk.vkDeviceWaitIdle(owner)
''',
    "interpreters": '''
import _xxsubinterpreters as interpreters
for each in range({n}):
    other = interpreters.create()
    interpreters.run_string(other, "import sys; print('in', sys.gettrace(), flush=True)")
    call()
    interpreters.destroy(other)
''',
    "tasks": '''
async def task(number):
    for each in range(3):
        call(number)
        await asyncio.sleep(0)
    return number
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: say("in the loop"))
    signal.raise_signal(signal.SIGUSR1)
    say(await asyncio.gather(*(task(each) for each in range({n}))))
    try: await asyncio.wait_for(asyncio.Event().wait(), 0.001)
    except TimeoutError: say("timeout")
asyncio.run(main())
''',
    "faulthandler": '''
with tempfile.TemporaryFile("w+") as file:
    say(faulthandler.is_enabled())
    faulthandler.enable(file)
    faulthandler.register(signal.SIGUSR2, file=file, all_threads=False)
    call()
    signal.raise_signal(signal.SIGUSR2)
    call()
    say(faulthandler.unregister(signal.SIGUSR2), faulthandler.is_enabled())
    faulthandler.disable()
    file.seek(0)
    say(sum("<module>" in line for line in file))
''',
    "debugger": '''
seen = []
def trace(frame, event, value):
    if frame.f_code.co_filename == __file__:
        seen.append((event, frame.f_code.co_name))
        return trace
sys.settrace(trace); call({n}); call(2); spin(); sys.settrace(None)
say(len(seen), seen[:3], sys.gettrace(), len([each for each in seen if each[0] == "line"]))
''',
    "profiler": '''
seen = []
def profile(frame, event, value):
    if frame.f_code.co_filename == __file__ and event in ("call", "return"): seen.append((event, frame.f_code.co_name))
sys.setprofile(profile); call({n}); sys.setprofile(None)
say(seen)
''',
    "debugger that stops": '''
def trace(frame, event, value):
    if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "call" and event == "line":
        lines.append(1)
        if len(lines) == {n}: raise Limit("traced")
    return trace
lines = []
sys.settrace(trace)
try: call()
except Limit as error: say(error)
finally: sys.settrace(None)
''',
    "weak references": '''
class Thing: pass
things = [Thing() for _ in range({n})]
for number, each in enumerate(things):
    weakref.finalize(each, lambda number=number: (call(number), say("final", number)))
structs = [vk.VkBufferCreateInfo(size=64, usage=3) for _ in range({n})]
kept = [weakref.ref(each) for each in structs]
vk.vkCreateBuffer(at("VkDevice", 4096), structs[0], None)
del structs, each
things.pop()
gc.collect()
say([each() is None for each in kept])
''',
    "exit handler": '''atexit.register(lambda: (call({n}), say("at exit", {n})))''',
    "exit handler that fails": '''
def fails(): call(); raise ValueError("at exit")
atexit.register(fails)
''',
    "refused argument": '''
for function in (vk.vkCmdFillBuffer, vk.lib.vkCmdFillBuffer, vk.lib.vkEndCommandBuffer):
    try: function(at("VkCommandBuffer", 16), "no buffer", -1, 4, 0)
    except Exception as error: say(type(error).__name__)
''',
    "generator": '''
def steps():
    try:
        while True:
            call()
            yield
    finally: call(8)
made = steps()
for _ in range({n}): next(made)
try: made.throw(Limit("thrown"))
except Limit as error: say(error)
''',
    "context": '''
var = contextvars.ContextVar("var", default=0)
def inside(): var.set({n}); call(); return var.get()
say(contextvars.copy_context().run(inside), var.get())
''',
    "hooks": '''
sys.unraisablehook = lambda given: say("unraisable", given.exc_type.__name__)
class Bad:
    def __del__(self): call(); raise ValueError
Bad()
sys.unraisablehook = sys.__unraisablehook__
''',
}  # fmt: skip
ENDS = (
    "", "", "sys.exit({n})", "sys.exit('words')", "raise ValueError({n})", "raise KeyboardInterrupt", "os._exit({n})",
    "signal.signal(signal.SIGTERM, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGTERM)",
    "signal.signal(signal.SIGUSR1, raises); signal.raise_signal(signal.SIGUSR1)",
)  # fmt: skip


def program(seed: int) -> str:
    """The source of a seed's program."""
    chosen = random.Random(f"side by side {seed}")
    parts = [PARTS[chosen.choice([*PARTS])] for _ in range(chosen.randrange(2, 8))]
    parts.append(chosen.choice(ENDS))
    return HEAD + "\n".join(f"\n{each}".format(n=chosen.randrange(1, 5)) for each in parts) + "\n"


class Ran(NamedTuple):
    """The visible results of a run."""

    status: int
    said: list[str]
    """The lines that it printed."""
    heard: list[list[str]]
    """The calls that the driver got, of each thread. None of those that nobody counts."""
    faults: list[str]
    """Faults of the session that no session may have."""


def _lines(text: str) -> list[str]:
    """Lines of output without addresses, and without the frames of tracebacks: those of the package are not there where
    a native function stands for its."""
    return [re.sub(r"0x[0-9a-f]+", "0x", line) for line in text.splitlines() if not line.startswith("  ")]


class Way:
    """A process that runs programs in one way, each in a child."""

    def __init__(self, name: str, driver: Path) -> None:
        environment = {**os.environ, "VKHARNESS_PURE": WAYS[name], "VKHARNESS_HEARING": str(driver)}
        words = [sys.executable, "-m", "tests.record.random_programs", "--serve", name]
        self._process = subprocess.Popen(
            words, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, seed: int) -> None:
        """Begins to run a program."""
        assert self._process.stdin is not None
        print(seed, file=self._process.stdin, flush=True)

    def ran(self) -> Ran:
        """Returns the results of the run."""
        assert self._process.stdout is not None
        return Ran(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class SideBySide:
    """All ways, as a context manager."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory()
        driver = build_driver(Path(self._folder.name))
        self._ways = {name: Way(name, driver) for name in WAYS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._ways.values():
            each.close()
        self._folder.cleanup()

    def differences(self, seed: int) -> list[str]:
        """Lists the differences between the ways of running one program."""
        for each in self._ways.values():
            each.start(seed)
        ran = {name: each.ran() for name, each in self._ways.items()}
        bare = ran["bare"]
        found = [f"{name}: {fault}" for name, each in ran.items() for fault in each.faults]
        for name, answer in ran.items():
            for what, one, other in zip(Ran._fields[:3], bare, answer, strict=False):
                if one != other:
                    found.append(f"{name}: {what}: {_first(one, other)}")
        return found


def _first(one: Any, other: Any) -> str:
    """Where two answers differ first."""
    while isinstance(one, list) and isinstance(other, list):
        at = next((n for n, both in enumerate(zip(one, other, strict=False)) if both[0] != both[1]), None)
        if at is None:
            return f"bare has {len(one)}, and not {len(other)}: {[*one, *other][min(len(one), len(other)) :][:2]}"
        one, other = one[at], other[at]
    return f"{other}, and bare {one}"


def serve(way: str) -> None:
    """Runs the programs whose seeds are lines of input. The child of a program returns from here: Python ends it."""
    from vkharness.device.headless import import_vulkan

    import_vulkan()
    if way != "bare":
        from tests.record.interrupted_program import run

        run((Exception,))  # what is made once is made
    for line in sys.stdin:
        folder = Path(tempfile.mkdtemp())  # the parent's alone to remove
        path = folder / "program.py"
        path.write_text(program(int(line)))
        child = os.fork()
        if child == 0:
            _begin(path)
            _run(way, path)
            return
        status = _status(child)
        out, err, told = ((folder / name).read_text() for name in ("out", "err", "told"))
        shutil.rmtree(folder)
        heard, faults = _heard(told)
        print(json.dumps([status, _lines(out) + _lines(err), heard, faults]), flush=True)


def _status(child: int) -> int:
    ended = os.pidfd_open(child)
    try:
        if not select.select([ended], [], [], LIMIT)[0]:
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return status if status >= 0 else 128 - status  # as shells say it
    finally:
        os.close(ended)


def _begin(path: Path) -> None:
    for number, name in ((1, "out"), (2, "err")):
        made = os.open(path.with_name(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(made, number)
        os.close(made)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _run(way: str, path: Path) -> None:
    """Runs a program on a driver that writes down what it hears."""
    told = os.open(path.with_name("told"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)  # until the end, whoever ends it
    os.write(told, f"{os.getpid()}\n".encode())
    _hear(told)
    sys.argv = [str(path)]
    if way == "bare":
        sys.path[0] = str(path.parent)
        _run_bare(path)
        return
    import vkharness
    from vkharness.record.program_runner import run_program
    from vkharness.trace.calls import block_name

    with vkharness.attach(keep_trace=True) as session:
        status = run_program(str(path), [], session)
    recorded = [name for name in map(block_name, session.blocks or ()) if name != UNCOUNTED]
    lines = [f"{LOST}\t{each!r}\n" for each in session.internal_errors]
    lines.append(f"recorded\t{json.dumps(recorded)}\t{session.verdict}\t{json.dumps(session.unmodelled)}\n")
    os.write(told, "".join(lines).encode())
    sys.exit(status)


def _run_bare(path: Path) -> None:
    import types

    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=str(path), __builtins__=__builtins__)
    sys.modules["__main__"] = main
    exec(compile(path.read_bytes(), str(path), "exec"), main.__dict__)


class CDriver:
    """In place of the package's `lib`."""

    def __init__(self, package: Any, told: int) -> None:
        self._lib = package.lib
        heard = ctypes.CDLL(os.environ["VKHARNESS_HEARING"])
        heard.hear_with(told)
        for name in (*CALLS, UNCOUNTED):
            address = ctypes.cast(heard[name], ctypes.c_void_p).value
            setattr(self, name, package.ffi.cast(package.ffi.typeof(getattr(package.lib, name)), address))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)


def build_driver(folder: Path) -> Path:
    """The library that is the driver."""
    made, source = folder / "driver.so", folder / "driver.c"
    lines = [
        *(f'int {name}(void) {{ return hear("{name}"); }}' for name in CALLS),
        f"int {UNCOUNTED}(void) {{ return 0; }}",
    ]
    source.write_text(DRIVER + "\n".join(lines) + "\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
    return made


def _hear(told: int) -> None:
    """Puts the driver in place, for good."""
    from vkharness.record.rebind import rebind

    package: Any = sys.modules["vulkan._vulkan"]
    driver = CDriver(package, told)
    rebind(package.lib, driver)
    globals()["kept"] = driver


def _heard(told: str) -> tuple[list[list[str]], list[str]]:
    """The calls of each thread, those of the main thread first, and what a session may not say."""
    main, *lines = told.splitlines() or [""]
    heard: dict[tuple[str, str], list[str]] = {(main, main): []}
    faults: list[str] = []
    for line in lines:
        first, second, *rest = line.split("\t")
        if first == LOST:
            faults.append(second[:400])
        elif first == "recorded":
            faults += _of_record(json.loads(second), [heard[each] for each in heard if each[0] == main], *rest)
        else:
            heard.setdefault((first, second), []).append(rest[0])
    mains, *others = heard.values()
    return [mains, *sorted(others)], faults


def _of_record(recorded: Sequence[str], heard: list[list[str]], verdict: str, unmodelled: str) -> list[str]:
    """Lists the faults of a record of the calls that the driver heard from the threads of this process."""
    calls = [name for names in heard for name in names]
    if sorted(recorded) == sorted(calls):
        return ["recorded in another order"] if len(heard) == 1 and [*recorded] != calls else []
    if verdict == "clean" or "interrupted" not in unmodelled:
        return [f"{len(calls)} calls, of which {len(recorded)} are recorded, and the verdict is {verdict}"]
    return []


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    differ = 0
    with SideBySide() as ways:
        for seed in range(given.first, given.first + given.count):
            if found := ways.differences(seed):
                differ += 1
                print(f"seed {seed}", *(each[:1000] for each in found), sep="\n  ", flush=True)
    print(f"{given.count} programs, {differ} differ")


if __name__ == "__main__":
    main()
