"""Random streams in stream text: valid Vulkan apart from missing dependencies.

`make` builds one stream from a sequence of choices, which somebody else makes: Hypothesis in `agreement_fuzz`. A choice
that would make the stream invalid (a wait for a semaphore that nobody signals, for an event that nobody sets) adds
nothing. So every sequence of choices gives a valid stream, and Hypothesis can shrink the sequence freely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from vkharness.fuzz.random_passes import LAYOUTS, MANY, Pick, RandomPasses

FEATURES = (
    "images",
    "queues",
    "timelines",
    "events",
    "passes",
    "host",
    "batches",
    "secondaries",
    "families",
    "presents",
    "queries",
    "shares",
    "sparse",
    "devices",
)
"""Features that a stream may have beyond accesses of buffers, barriers and submits."""

_BUFFERS = ("a", "b", "a[0:32]", "a[32:64]", "a[16:48]")
_IMAGES = ("i", "i[0:32]", "j")
_INCOHERENT = ("n", "n[0:32]", "n[16:24]")
_SPARSE = ("z", "z[0:32]", "z[32:64]")
_SHOWN = "p"
"""The image of a swapchain."""
_FAMILY = {"q1": 0, "q2": 1}
_WRITES = (
    "COPY_TRANSFER_WRITE",
    "CLEAR_TRANSFER_WRITE",
    "COMPUTE_SHADER_SHADER_STORAGE_WRITE",
    "FRAGMENT_SHADER_SHADER_STORAGE_WRITE",
)
_READS = (
    "COPY_TRANSFER_READ",
    "COMPUTE_SHADER_SHADER_STORAGE_READ",
    "COMPUTE_SHADER_UNIFORM_READ",
    "FRAGMENT_SHADER_SHADER_STORAGE_READ",
    "VERTEX_SHADER_UNIFORM_READ",
    "DRAW_INDIRECT_INDIRECT_COMMAND_READ",
)
_SCOPES = (
    "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE",
    "ALL_COMMANDS",
    "ALL_COMMANDS/MEMORY_READ",
    "ALL_COMMANDS/MEMORY_WRITE",
    "COPY/TRANSFER_WRITE",
    "COPY/TRANSFER_READ",
    "COPY/TRANSFER_READ|TRANSFER_WRITE",
    "COPY",
    "CLEAR/TRANSFER_WRITE",
    "CLEAR",
    "ALL_TRANSFER/TRANSFER_READ|TRANSFER_WRITE",
    "COMPUTE_SHADER/SHADER_STORAGE_WRITE",
    "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE",
    "COMPUTE_SHADER/SHADER_READ",
    "COMPUTE_SHADER/UNIFORM_READ",
    "COMPUTE_SHADER",
    "VERTEX_SHADER",
    "VERTEX_SHADER/UNIFORM_READ",
    "FRAGMENT_SHADER/SHADER_STORAGE_READ",
    "FRAGMENT_SHADER/SHADER_STORAGE_WRITE",
    "FRAGMENT_SHADER",
    "DRAW_INDIRECT/INDIRECT_COMMAND_READ",
    "ALL_GRAPHICS/MEMORY_WRITE",
    "TOP_OF_PIPE",
    "BOTTOM_OF_PIPE",
    "NONE",
)
_HOST_SCOPES = (
    "HOST/HOST_READ",
    "HOST/HOST_WRITE",
    "HOST/HOST_READ|HOST_WRITE",
    "HOST",
    "ALL_COMMANDS|HOST/MEMORY_READ|HOST_READ",
)
_STAGES = (
    "ALL_COMMANDS",
    "COPY",
    "CLEAR",
    "ALL_TRANSFER",
    "COMPUTE_SHADER",
    "VERTEX_SHADER",
    "FRAGMENT_SHADER",
    "TOP_OF_PIPE",
    "BOTTOM_OF_PIPE",
    "NONE",
)
_QUERIES = ("y1[0:1]", "y1[0:1]", "y1[1:2]", "y1[0:2]")
_EVENTS = ("e1", "e1", "e1", "e2")
_FROM_HOST = ("HOST/HOST_WRITE", "HOST/HOST_WRITE", "HOST", "HOST/HOST_READ|HOST_WRITE")


def feature_sets(features: Sequence[str]) -> list[tuple[str, ...]]:
    """Gives the features of the streams of a hunt, to be taken in turn: each of the given ones alone; where none is
    given, each that there is, and an empty set, for which `make` chooses any of them together."""
    return [(each,) for each in features or FEATURES] + [()] * (not features)


def make(pick: Pick, features: Sequence[str] = ()) -> str:
    """The text of a stream that may use `features` (some of FEATURES; any of them when none is given)."""
    chosen = features or [each for each in FEATURES if pick(("no", "yes")) == "yes"]
    made = TextOfGroups(pick, frozenset(chosen))
    if "queries" in made.features:
        made.lines.append("host creates y1[0:2]")
    for _ in range(int(pick(("1", "2", "3", "4", "5")))):
        made.stream_event()
    made.finish()
    return "\n".join(made.lines) + "\n"


def _with_one_fence(lines: list[str], header: str) -> list[str]:
    """The lines so far, without the fence of the submit whose next batch has one."""
    found = list(lines)
    for at in reversed(range(len(lines))) if header.startswith("next") and " fence " in header else ():
        words = lines[at].split()
        if words[0] in ("submit", "bind", "next") and "fence" in words:
            place = words.index("fence")
            found[at] = " ".join([*words[:place], *words[place + 2 :]])
        if words[0] in ("submit", "bind"):
            break
    return found


@dataclass(frozen=True)
class RandomSet:
    """The last set of an event."""

    queue: str
    stages: str
    """Its source stages, "2" for a set of the second form."""
    wait: str
    """The wait that matches it."""


@dataclass
class RandomText(RandomPasses):
    """A stream in the making: what was signalled and set so far decides what may come next."""

    features: frozenset[str]
    lines: list[str] = field(default_factory=list)
    pending: set[str] = field(default_factory=set)
    """Binary semaphores with a signal that nothing waited for."""
    values: dict[str, int] = field(default_factory=dict)
    """By timeline, the highest value signalled."""
    waited: int = 0
    """The highest value of a timeline that a batch waits for."""
    stuck: set[str] = field(default_factory=set)
    """Queues with a batch that waits for a value that is not signalled: they cannot signal it."""
    fences: int = 0
    events: dict[str, RandomSet] = field(default_factory=dict)
    """By event, its last set."""
    ended: set[str] = field(default_factory=set)
    """Events that were reset after that set."""
    awaited: set[str] = field(default_factory=set)
    """Events that a submit may wait for until the host sets them."""
    unheld: list[int] = field(default_factory=list)
    """Fences of submits that nothing holds back."""
    acquired: bool = False
    """Whether the program has the image of the swapchain."""
    queue: str = "q1"
    """The queue of the batch in the making."""
    shared: set[str] = field(default_factory=set)
    """Semaphores that somebody outside may signal: they can be waited for and signalled at any time."""

    def finish(self) -> None:
        """The host signals what batches still wait for: nothing is left unexecuted."""
        self.lines += [f"host sets {event}" for event in sorted(self.awaited)]
        if self._waits_for_value():
            self.lines.append(f"host signals t1={self.waited}")

    def stream_event(self) -> None:
        """One more submit, or something that the host does."""
        kinds = ["submit", "submit", "submit", "submit"]
        if not self._held_back():  # waiting for such a batch would never end
            kinds += ["waits"] * bool(self.lines) + ["waits"] * ("host" in self.features)
        elif self.unheld:
            kinds += ["waits past"] * (1 + ("host" in self.features))
        kinds += ["writes", "memory", "destroys"] * ("host" in self.features)
        kinds += ["event"] * ("events" in self.features) + ["queries"] * ("queries" in self.features)
        kinds += ["shares"] * ("shares" in self.features)
        kinds += ["bind"] * ("sparse" in self.features)
        if "presents" in self.features and not self._held_back():
            kinds += ["presents"]
        if "timelines" in self.features and self._waits_for_value():
            kinds += ["late", "late", "late"]
        if self.values:
            kinds += ["signals"] + ["waits value"] * (not self.awaited)
        kind = self.pick(kinds)
        match kind:
            case "submit" | "bind":
                self.submit(kind)
            case "waits":
                several = ["", " q1"] + [f" f{at}" for at in range(1, self.fences + 1)]
                self.lines.append(f"host waits{self.pick(several)}")
            case "waits past":
                self.lines.append(f"host waits f{self.pick([str(each) for each in self.unheld])}")
            case "writes":
                self.lines.append(f"host {self.pick(('writes', 'reads'))} {self.pick(_BUFFERS)}")
            case "late":
                self.lines += _touches(self.pick)
                if self._coin():
                    self._signal(max(self.values["t1"] + 1, self.waited))
            case "destroys":
                self.lines.append(f"host destroys {self.pick(_BUFFERS)}")
            case "memory":
                verb = self.pick(("writes", "reads", "flushes", "invalidates"))
                self.lines.append(f"host {verb} {self.pick(_INCOHERENT)}{' incoherent' * (verb[0] in 'wr')}")
            case "presents":
                self._present()
            case "event":
                self._host_event()
            case "queries":
                self.lines.append(f"host {self.pick(('resets', 'resets', 'gets'))} {self.pick(_QUERIES)}")
            case "shares":
                self._share()
            case "signals":
                self._signal(self.values["t1"] + 1)
            case _:
                self.lines.append(f"host waits t1={self.pick(('1', '2'))}")

    def submit(self, kind: str = "submit") -> None:
        """A submit to a queue, or a bind of sparse memory on it, of one batch or two."""
        several = {"queues", "families", "presents", "queries", "shares", "devices"} & self.features
        queue = self.pick(("q1", "q2") if several else ("q1",))
        family = f" family {_FAMILY[queue]}" * ("families" in self.features)
        if family and not any(line.startswith("queue") for line in self.lines):
            self.lines[:0] = [f"queue {each} family {index}" for each, index in _FAMILY.items()]
            self.lines[:0] = [self.pick(("kept a", "kept a 2", "kept i", "kept i 0 1"))] * self._coin()
        self._batch(f"{kind} {queue}", family * (kind != "bind"), queue, kind == "bind")
        if "batches" in self.features and self._coin():
            self._batch("next", "", queue, kind == "bind")

    def _signal(self, value: int) -> None:
        self.values["t1"] = value
        self.lines.append(f"host signals t1={value}")

    def _share(self) -> None:
        """A semaphore is shared with somebody outside or no longer, or its signal goes over to another one."""
        if "t1" in self.values and "t1" not in self.shared and not self._held_back() and self._coin():
            self.shared.add("t1")
            self.lines.append("shared t1")
        elif "s1" in self.shared:
            self.shared.discard("s1")
            self.lines.append("unshared s1")
        elif "s1" in self.pending and "s3" not in self.pending and self._coin():
            self.pending ^= {"s1", "s3"}
            self.lines.append("copy s1 to s3")
        else:
            self.shared.add("s1")
            self.lines.append("shared s1")

    def _present(self) -> None:
        """The engine hands the image out, or gets it back."""
        if not self.acquired:
            if "s2" not in self.pending:
                self.lines.append(f"acquire {_SHOWN} signal s2")
                self.pending.add("s2")
                self.acquired = True
            return
        waits = [each for each in sorted(self.pending) if self._coin()]
        self.pending -= set(waits)
        self.fences += (fence := self._coin())
        options = f"{' wait ' * bool(waits)}{' '.join(waits)}{f' fence f{self.fences}' * fence}"
        self.lines.append(f"present {self.pick(('q1', 'q2'))} {_SHOWN}{options}")
        self.acquired = False

    def _batch(self, begin: str, family: str, queue: str, binds: bool = False) -> None:
        """One batch, with what it waits for and signals. Binding operations are in no stage."""
        stages = ("ALL_COMMANDS",) if binds else _STAGES
        self.queue = queue
        waiting = sorted(self.pending | self.shared & {"s1"})
        waits = [f"{each}@{self.pick(stages)}" for each in waiting if self._coin()]
        self.pending -= {each.partition("@")[0] for each in waits} - self.shared
        signals = []
        signalling = {"queues", "families", "presents", "queries", "shares"} & self.features
        if signalling and ("s1" not in self.pending or "s1" in self.shared) and not self._held_back() and self._coin():
            signals.append(f"s1@{self.pick(stages)}")
        waits, signals = self._timeline(queue, waits, signals, stages)
        self.fences += (fence := self._coin())
        several = range(int(self.pick(("1", "2") if binds else ("1", "2", "3", "4"))))
        body = [line for _ in several for line in ([self.pick(_SPARSE)] if binds else self.command(queue))]
        options = f" wait {', '.join(waits)}" * bool(waits) + f" signal {', '.join(signals)}" * bool(signals)
        header = f"{begin}{options}{f' fence f{self.fences}' * fence}{family}"
        self.lines = [*_with_one_fence(self.lines, header), header, *(f"    {line}" for line in body)]
        if fence and not self.awaited and queue not in self.stuck:
            self.unheld.append(self.fences)
        self.pending |= {"s1"} if any(each.startswith("s1") for each in signals) else set()

    def _held_back(self) -> bool:
        """Some batch may wait for what is not signalled yet: no binary semaphore may depend on it."""
        return bool(self.awaited) or self._waits_for_value()

    def _waits_for_value(self) -> bool:
        return "t1" not in self.shared and self.waited > self.values.get("t1", 0)

    def _host_event(self) -> None:
        """The host sets an event, late perhaps, or resets one."""
        event = self.pick(_EVENTS)
        if event in self.events and event not in self.ended and not self._held_back() and self._coin():
            self.lines.append(f"host sees {event}")
            if self._coin():
                return
        if event not in self.awaited and self._coin():
            self.lines.append(f"host resets {event}")
            self.ended.add(event)
            return
        self.lines.append(f"host sets {event}")
        self.awaited.discard(event)
        self.ended.discard(event)
        form, source = self.pick(("wait", "wait1")), self.pick(_FROM_HOST)
        self.events[event] = RandomSet("host", "HOST", f"{form} {event} {source} > {self.pick(_SCOPES)}")

    def _timeline(
        self, queue: str, waits: list[str], signals: list[str], stages: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        if "timelines" not in self.features:
            return waits, signals
        if not self.values:
            self.lines.insert(0, "semaphore t1 = 0")
            self.values["t1"] = 0
        if not signals and self._coin():
            self.waited = max(self.waited, int(value := self.pick(MANY)))
            waits = [*waits, f"t1={value}@{self.pick(stages)}"]
            self.stuck |= {queue} if self._held_back() else set()
        if not self._held_back():
            self.stuck.clear()
        if queue not in self.stuck and self._coin():
            self.values["t1"] += 1
            signals = [*signals, f"t1={self.values['t1']}@{self.pick(stages)}"]
        return waits, signals

    def command(self, queue: str) -> list[str]:
        """A command, or a whole render pass instance."""
        if "secondaries" in self.features and self.pick(("no", "no", "yes")) == "yes":
            inner = [self._pipeline_barrier() if self._coin() else self._access() for _ in range(1 + self._coin())]
            return [f"execute {' / '.join(inner)}"]
        kinds = ["access", "access", "access", "barrier", "barrier"]
        kinds += ["event"] * ("events" in self.features) + ["pass"] * ("passes" in self.features)
        kinds += ["query", "query"] * ("queries" in self.features)
        match self.pick(kinds):
            case "access":
                return [self._access()]
            case "barrier":
                return [self._pipeline_barrier()]
            case "event":
                return [self._event(queue)]
            case "query":
                return [f"query {_query(self.pick)}"]
            case _:
                return self._pass()

    def _access(self) -> str:
        """Makes the accesses of a command: a read, a write, or both, as one operation or as two. They may go through a
        sparse resource."""
        read, write = f"{self.pick(_READS)} {self._resource()}", f"{self.pick(_WRITES)} {self._resource()}"
        made = self.pick((write, read, f"{read}; {write}", f"{write}; next; {read}"))
        through = "sparse" in self.features and self._coin()
        return f"binding {made.split()[0]} {self.pick(_SPARSE)}; {made}" if through else made

    def _resource(self) -> str:
        if {"host", "timelines"} & self.features and self._coin():
            return self.pick(_INCOHERENT)
        if self.acquired and self._coin():
            return _SHOWN
        return self.pick(_IMAGES if "images" in self.features and self._coin() else _BUFFERS)

    def _barrier(self, may_name_host: bool = True) -> str:
        parts: list[str] = []
        moved = False
        for _ in range(1 + self._coin()):
            to_host = may_name_host and "host" in self.features and self._coin()
            before = _FROM_HOST if may_name_host and self.waited and self._coin() else _SCOPES
            scopes = f"{self.pick(before)} > {self.pick(_HOST_SCOPES if to_host else _SCOPES)}"
            if "families" in self.features and not moved and self._coin():
                moved = True
                pair = self.pick(("0->1", "1->0", "0->1 stages", "1->0 stages", *_outside(self.features, self.queue)))
                layouts = f" {self.pick(LAYOUTS)}" * ("images" in self.features and self._coin())
                parts.append(f"{self._resource()}{layouts} family {pair} {scopes}")
            elif not self._coin():
                parts.append(scopes)
            elif "images" in self.features and not moved and self._coin():
                moved = True  # a range can be moved once by one command
                parts.append(f"{self.pick(_IMAGES)} {self.pick(LAYOUTS)} {scopes}")
            else:
                parts.append(f"{self._resource()} {scopes}")
        return ", ".join(parts)

    def _pipeline_barrier(self) -> str:
        """A barrier outside of render pass instances: by region, perhaps, where there are any."""
        return f"barrier {'region ' * ('passes' in self.features and self._coin())}{self._barrier()}"

    def _event(self, queue: str) -> str:
        """An operation on an event: mostly a wait that matches the last set, sometimes one that breaks a rule."""
        event = self.pick(_EVENTS)
        held = self.events.get(event)
        if (held is None or event in self.ended) and self.pick(("no", "no", "yes")) == "yes" and not self.pending:
            self.awaited.add(event)  # the host sets it later
            return f"{self.pick(('wait', 'wait1'))} {event} {self.pick(_FROM_HOST)} > {self.pick(_SCOPES)}"
        if held is not None and self._coin():
            self.awaited |= {event} & self.ended
            return held.wait if self._coin() else self._other_wait(event, held, queue)
        if held is not None and self._coin():
            self.ended.add(event)
            return f"reset {event} {self.pick(_STAGES)}"
        if self._coin():
            self.ended.discard(event)
            if self.pick(("no", "no", "yes")) == "yes":
                made, wait = _asymmetric(self.pick, event, self._resource())
                self.events[event] = RandomSet(queue, "2", wait)
                return made
            barrier = self._barrier(may_name_host=False)
            self.events[event] = RandomSet(queue, "2", f"wait {event} {barrier}")
            return f"set {event} {barrier}"
        stages = self.pick(_STAGES)
        accesses = "/MEMORY_WRITE" if self._coin() else ""
        self.ended.discard(event)
        self.events[event] = RandomSet(queue, stages, f"wait1 {event} {stages}{accesses} > {self.pick(_SCOPES)}")
        return f"set1 {event} {stages}"

    def _other_wait(self, event: str, held: RandomSet, queue: str) -> str:
        """A wait of either form with scopes of its own, or for two events at once."""
        both = [each for each in _EVENTS if each in self.events]
        if len(both) == 2 and self._coin():
            first = all(self.events[each].wait.startswith("wait1 ") for each in both)
            if first and self._coin():
                self.awaited |= self.ended & set(both)
                stages = "|".join(dict.fromkeys(self.events[each].stages for each in both))
                return f"wait1 {' '.join(both)} {stages}/MEMORY_WRITE > {self.pick(_SCOPES)}"
            if not first:
                waits = [self.events[each].wait for each in both if self.events[each].wait.startswith("wait ")]
                self.awaited |= self.ended & set(both)
                return " & ".join([waits[0], *(each.removeprefix("wait ") for each in waits[1:])])
        if self._coin():
            return f"wait {event} {self._barrier()}"
        return f"wait1 {event} {self.pick(_SCOPES)} > {self.pick(_SCOPES)}"


def _touches(pick: Pick) -> list[str]:
    """Lines by which the host writes or reads memory, and flushes it perhaps."""
    where, verb, coins = pick(_INCOHERENT), pick(("writes", "writes", "reads")), ("no", "yes")
    lines = [f"host {verb} {where}{' incoherent' * (pick(coins) == 'yes')}"]
    if verb == "writes" and pick(coins) == "yes":
        lines.append(f"host flushes {pick((where, where, *_INCOHERENT))}")
    return lines


def _asymmetric(pick: Pick, event: str, resource: str) -> tuple[str, str]:
    """A set that gives stages alone, and the wait for it, which mostly has no other ones."""
    stages = pick(_STAGES[:7])
    accesses = pick(("", "/MEMORY_WRITE", "/MEMORY_READ|MEMORY_WRITE"))
    before = f"{stages}{accesses}" if pick(("same", "same", "other")) == "same" else pick(_SCOPES)
    wait = f"wait {event} asymmetric {pick(('', f'{resource} '))}{before} > {pick(_SCOPES)}"
    return f"set {event} asymmetric {stages} > NONE", wait


def _query(pick: Pick) -> str:
    """A command on queries."""
    one, several = pick(_QUERIES[:3]), pick(_QUERIES)
    match pick(("reset", "reset", "use", "use", "timestamp", "copy", "copy-waiting", "copy-telling")):
        case "use":
            return f"begin {one}; query end {one}"
        case "timestamp":
            return f"timestamp {one} {pick(_STAGES[:7])}"
        case word:
            return f"{word} {several}"


def _outside(features: frozenset[str], queue: str) -> tuple[str, ...]:
    """Halves of transfers with another program on a queue. Both halves are in the stream."""
    family = _FAMILY[queue]
    return (f"{family}->4294967294 traced", f"4294967294->{family} traced") if "shares" in features else ()


@dataclass
class TextOfGroups(RandomText):
    """A stream in the making that may have barriers between physical devices, each of which has a queue of its own."""

    end: tuple[str, str] | None = None
    """The queue whose physical device has signaled such a barrier, and the ranges of that."""

    def _timeline(
        self, queue: str, waits: list[str], signals: list[str], stages: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """With one end of such a barrier, or none. Its other end is on another queue. Binds have none."""
        waits, signals = super()._timeline(queue, waits, signals, stages)
        if "devices" not in self.features or len(stages) == 1 or self._held_back():
            return waits, signals
        if self.end is not None and self.end[0] != queue:
            waits = [*waits, f"barrier:s5@{self.pick(_SCOPES)}{self.end[1]}"]
            self.end = None
        elif self.end is None and self._coin():
            self.end = queue, self.pick(("", "~a", "~b[0:32]"))
            signals = [*signals, f"barrier:s5@{self.pick(_SCOPES)}{self.end[1]}"]
        return waits, signals
