"""One command on one input, many in one forked process, each with a limit of time and of memory.

A command that ends otherwise than it promises has a *fault*: a traceback, an exit code that it does not have, several
lines where one is due, a character that a terminal obeys, too much time, too much memory, the death of its process.
"""

from __future__ import annotations

import faulthandler
import gc
import io
import json
import os
import random
import re
import resource
import selectors
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from vkharness.device.parent_death import kill_with_parent
from vkharness.fuzz.hostile.call_streams import CallStream
from vkharness.fuzz.hostile.commands import OTHER, SUBJECT, ways
from vkharness.fuzz.hostile.line_counter import Line, LineCounter
from vkharness.fuzz.hostile.samples import PACKED, PROCESS, TRACE, Sample
from vkharness.fuzz.process_memory import address_space_bytes, peak_bytes, reset_peak, resident_bytes

Main = Callable[[list[str]], None]
PROMISED = (0, 1, 2, 3)
"""Exit codes."""
INTERNAL = 70
HANGS = "hangs"
"""How the fault of a command begins that neither works nor ends."""
_FRAME = re.compile(r'File "[^"]*?((?:vkharness|site-packages)/[^"]+)", line (\d+)(?:,)? in (\S+)')
OF_A_MEGABYTE = 10.0
"""Seconds that a packed trace may take: it holds up to a megabyte of lines in few bytes."""
_PATIENCE = 6
"""How many times its processor time a command may take by the clock of a busy machine."""


class Limits(NamedTuple):
    """The processor time and memory that one command may use."""

    seconds: float = 10.0
    """Of the processor, however small the input is: so long takes the work that a command may do for it."""
    seconds_a_kilobyte: float = 1.0
    memory: int = 1 << 30
    """Bytes."""

    def time(self, sample: Sample) -> float:
        """Seconds of the processor for an input."""
        least = OF_A_MEGABYTE if sample.kind == PACKED else self.seconds
        return max(least, self.seconds_a_kilobyte * sample.size / 1000)


class Trial(NamedTuple):
    """One command on one input."""

    sample: Sample
    arguments: tuple[str, ...]


class TrialEnd(NamedTuple):
    """The result of a trial: its fault, if any, and what it cost."""

    fault: str = ""
    """The fault and its place, the same text for inputs with the same cause; empty where there is no fault."""
    text: str = ""
    seconds: float = 0.0
    memory: int = 0
    """The most bytes in RAM while the command ran."""
    grown: int = 0
    """Those of them that were not there before."""
    code: int = 0
    lines: frozenset[Line] = frozenset()
    """Lines of this package that no input before it reached."""


class Trials:
    """Runs trials in processes forked from this one, which has loaded what they need."""

    def __init__(self, main: Main, folder: Path, limits: Limits, counted: bool) -> None:
        self._main, self._folder, self._limits = main, folder, limits
        self.known: set[Line] = set()
        self.counted = counted
        """Whether the lines that inputs reach are counted."""

    def run(self, trials: Sequence[Trial]) -> list[TrialEnd]:
        """The outcome of each. A trial that ends its process costs the others nothing."""
        return [*self.ends(trials)]

    def ends(self, trials: Sequence[Trial]) -> Iterator[TrialEnd]:
        """The same, each as soon as it is known. No other trials may run before the last one is taken."""
        done = 0
        while done < len(trials):
            for end in self._some(trials[done:]):
                done += 1
                yield end

    def _some(self, trials: Sequence[Trial]) -> Iterator[TrialEnd]:
        """Outcomes of the first trials, up to one that ended the process."""
        reading, writing = os.pipe()
        crash = self._folder / "crash.txt"
        crash.write_bytes(b"")
        parent = os.getpid()
        child = os.fork()
        if not child:
            os.close(reading)
            try:
                kill_with_parent(parent)
                self._child(trials, writing, crash)
            finally:
                os._exit(0)
        os.close(writing)
        done, last = 0, TrialEnd()
        answers = _Answers(reading)
        for trial in trials:
            answer = answers.next(_PATIENCE * self._limits.time(trial.sample) + 20)
            if answer is None:
                break
            done, last = done + 1, _outcome(answer)
            self.known |= last.lines
            yield last
        os.close(reading)
        with suppress(ProcessLookupError):
            if done < len(trials) and not _ended(child, 0.5):
                os.kill(child, signal.SIGKILL)
        status = _status(child)
        if done < len(trials) and last.memory <= self._limits.memory:
            yield self._death(status, crash.read_text(errors="replace"), trials[done])

    def _death(self, status: int, crash: str, trial: Trial) -> TrialEnd:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if number in (signal.SIGPROF, signal.SIGKILL):
            what = "slow" if number == signal.SIGPROF else HANGS
            return TrialEnd(
                f"{what}: {trial.arguments[0]}: {_outermost(crash)}", crash[-4000:], self._limits.time(trial.sample)
            )
        name = signal.Signals(number).name if number else f"status {status}"
        return TrialEnd(f"{name}: {_innermost(crash)}", crash[-4000:])

    def _child(self, trials: Sequence[Trial], writing: int, crash: Path) -> None:
        """Runs trials one after the other, a line of JSON for each."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.freeze()  # what is here already is no garbage of a trial, and would be looked through at each
        stacks = crash.open("w")
        faulthandler.enable(stacks)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        faulthandler.register(signal.SIGPROF, stacks, all_threads=False, chain=True)
        counter = LineCounter(self.known) if self.counted else None
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        room = address_space_bytes() + 2 * self._limits.memory
        room = room if hard == resource.RLIM_INFINITY else min(room, hard)
        for at, trial in enumerate(trials):
            here = self._folder / str(at % 2)
            shutil.rmtree(here, ignore_errors=True)
            here.mkdir()
            trial.sample.write(here)
            os.chdir(here)
            stacks.seek(0)
            stacks.truncate()
            print("vkharness", *trial.arguments, file=stacks, flush=True)
            resource.setrlimit(resource.RLIMIT_AS, (hard if "--device" in trial.arguments else room, hard))
            signal.setitimer(signal.ITIMER_PROF, self._limits.time(trial.sample))
            outcome = judged(self._main, trial, counter, self._limits)
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.write(writing, json.dumps({**outcome._asdict(), "lines": sorted(outcome.lines)}).encode() + b"\n")
            if outcome.memory > self._limits.memory:
                return  # the next trials begin in a process that is small again


def load_all(main: Main, folder: Path, samples: Sequence[Sample]) -> None:
    """Asks each command once, so that processes forked from this one need load nothing.

    The files are those of `samples`, one of each kind, beside a trace of next to nothing.
    """
    here = Path.cwd()
    place = folder / "first"
    place.mkdir(exist_ok=True)
    text = CallStream(random.Random(0)).text(0)
    own = Sample(TRACE, "t.jsonl", dict.fromkeys(("t.jsonl", "before.jsonl", OTHER), text))
    smallest = {each.kind: each for each in sorted(samples, key=lambda each: -each.size)}
    before = signal.signal(signal.SIGPROF, _too_slow)
    os.chdir(place)
    try:
        for sample in (own, *smallest.values()):
            for way in ways(sample.kind):
                own.write(place)
                sample.write(place)
                arguments = tuple(sample.subject if word == SUBJECT else word for word in way.arguments)
                if not way.on_device:
                    signal.setitimer(signal.ITIMER_PROF, Limits().seconds)
                    judged(main, Trial(sample, arguments), None, Limits())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        os.chdir(here)


def _too_slow(number: int, frame: object) -> None:
    raise TimeoutError("a file that was given takes long")


def judged(main: Main, trial: Trial, counter: LineCounter | None, limits: Limits) -> TrialEnd:
    """Runs a command in this process and holds its end against what commands promise."""
    out, err = _Stream(), _Stream()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, err
    gc.collect()  # what the trial before left in cycles is none of this one's memory
    code: Any = None
    escaped = ""
    reset_peak()
    held = resident_bytes()
    begun = time.process_time()
    if counter is not None:
        counter.start()
    try:
        main(list(trial.arguments))
    except SystemExit as leaving:
        code = leaving.code
    except BaseException as error:
        import traceback

        escaped = "".join(traceback.format_exception(error))
    finally:
        lines = counter.stop() if counter is not None else set()
        sys.stdout, sys.stderr = before
    seconds = time.process_time() - begun
    memory = peak_bytes()
    fault, text = _fault(code, escaped, out.text(), err.text(), memory > limits.memory)
    named = (*trial.sample.files, PROCESS, "--finding", "--pair")
    if not fault and code == 2 and "--device" not in trial.arguments and not any(each in err.text() for each in named):
        fault, text = f"an error that names no file: {err.text()[:60]!r}", err.text()
    fault = f"{fault} ({trial.arguments[0]})" if fault.startswith(("memory", "exit", "several")) else fault
    known = code if isinstance(code, int) else -1
    return TrialEnd(fault, text, seconds, memory, memory - held, known, frozenset(lines))


class _Stream(io.TextIOWrapper):
    """Standard output that keeps what is written, and refuses what no terminal could show."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", write_through=True)

    def text(self) -> str:
        """All text written so far."""
        self.flush()
        held: Any = self.buffer
        return held.getvalue().decode()  # type: ignore[no-any-return]


def _fault(code: Any, escaped: str, out: str, err: str, too_large: bool) -> tuple[str, str]:
    if escaped:
        return f"{_exception(escaped)} at {_innermost(escaped)}", escaped
    if code == INTERNAL:
        text = "".join(path.read_text(errors="replace") for path in Path.cwd().glob("vkharness-error-*.txt"))
        return f"{_exception(text)} at {_innermost(text)}", text or err
    if code not in PROMISED:
        return f"exit code {code}", err[-2000:]
    if "Traceback" in err:
        return f"traceback of {_exception(err)} at {_innermost(err)}", err[-4000:]
    said = [line for line in err.splitlines() if not line.startswith("vkharness: note:")]
    if code == 2 and len(said) != 1:
        return "several lines of an error", err[-2000:]
    raw = re.search(r"[^\n\x20-\x7e\u00a0-\uffff]", out + err)
    if raw and not raw[0].isprintable():
        return f"a raw character {raw[0]!a} on the terminal", (out + err)[-2000:]
    return ("memory", f"{err[-500:]}") if too_large else ("", "")


def _exception(text: str) -> str:
    names = re.findall(r"^([A-Za-z_][\w.]*)(?::|$)", text, re.MULTILINE)
    return names[-1].rpartition(".")[2] if names else "an error"


def _innermost(text: str) -> str:
    """The deepest frame of ours: the last one of a traceback, the first one of a stack by faulthandler."""
    frames = [found for found in _FRAME.findall(text) if found[0].startswith("vkharness")]
    if not frames:
        return "?"
    file, line, function = frames[0] if "most recent call first" in text else frames[-1]
    return f"{file}:{line} {function}"


def _outermost(stack: str) -> str:
    """A few frames below the command, which say what it was about."""
    frames = [found for found in _FRAME.findall(stack) if "/cli/" not in found[0] and "/hostile/" not in found[0]]
    return " > ".join(
        f"{file.removeprefix('harness/vkharness/')} {function}" for file, _, function in frames[::-1][-3:]
    )


class _Answers:
    """The lines that a child writes."""

    def __init__(self, pipe: int) -> None:
        self._pipe, self._held = pipe, bytearray()

    def next(self, seconds: float) -> dict[str, Any] | None:
        """A line; None where the child ended, or takes longer."""
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as ready:
            ready.register(self._pipe, selectors.EVENT_READ)
            while b"\n" not in self._held:
                if not ready.select(max(0.0, until - time.monotonic())) or not (more := os.read(self._pipe, 1 << 16)):
                    return None
                self._held += more
        line, _, rest = self._held.partition(b"\n")
        self._held = bytearray(rest)
        return json.loads(line)  # type: ignore[no-any-return]


def _outcome(answer: dict[str, Any]) -> TrialEnd:
    return TrialEnd(**{**answer, "lines": frozenset((file, line) for file, line in answer["lines"])})


_STATUS: dict[int, int] = {}


def _ended(child: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            _STATUS[child] = status
            return True
        time.sleep(0.01)
    return False


def _status(child: int) -> int:
    return _STATUS.pop(child) if child in _STATUS else os.waitpid(child, 0)[1]


def faults(outcomes: Sequence[TrialEnd]) -> Iterator[tuple[int, TrialEnd]]:
    """Those with a fault, with their place."""
    return ((at, each) for at, each in enumerate(outcomes) if each.fault)
