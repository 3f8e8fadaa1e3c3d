"""Random streams in stream text: valid Vulkan apart from missing dependencies.

`make` builds one stream from a sequence of choices, which somebody else makes: Hypothesis in `agreement_fuzz`. A choice
that would make the stream invalid (a wait for a semaphore that nobody signals, for an event that nobody sets) adds
nothing. So every sequence of choices gives a valid stream, and Hypothesis can shrink the sequence freely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Pick = Callable[[Sequence[str]], str]
"""Chooses one of several texts."""

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
)
"""What a stream may have beside accesses of buffers, barriers and submits."""

_BUFFERS = ("a", "b", "a[0:32]", "a[32:64]", "a[16:48]")
_IMAGES = ("i", "i[0:32]", "j")
_INCOHERENT = ("n", "n[0:32]", "n[16:24]")
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
_PASS_SCOPES = (
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE",
    "COLOR_ATTACHMENT_OUTPUT",
    "FRAGMENT_SHADER/INPUT_ATTACHMENT_READ",
    "FRAGMENT_SHADER/SHADER_STORAGE_WRITE",
    "FRAGMENT_SHADER/SHADER_STORAGE_READ",
    "EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ",
    "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE",
    "EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE",
    "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE",
    "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE",
    "ALL_GRAPHICS/MEMORY_READ|MEMORY_WRITE",
    "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE",
    "ALL_COMMANDS",
    "TOP_OF_PIPE",
    "BOTTOM_OF_PIPE",
    "NONE",
)
_EARLY = "EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT"
_LATE = "LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT"
_INSIDE = {
    "color load": ("COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ", "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE"),
    "depth_stencil load": (
        "EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ",
        "EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE",
    ),
    "color": (
        "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE",
        "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE",
        "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ",
    ),
    "color raster_ordered": ("COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE",),
    "raster": ("FRAGMENT_SHADER_INPUT_ATTACHMENT_READ",),
    "raster raster_ordered": ("FRAGMENT_SHADER_INPUT_ATTACHMENT_READ",),
    "depth_stencil": (
        f"{_EARLY}_READ; {_LATE}_READ; {_LATE}_WRITE",
        f"{_EARLY}_READ; {_EARLY}_WRITE",
        f"{_EARLY}_WRITE; {_LATE}_WRITE",
        f"{_EARLY}_READ; {_LATE}_READ",
        f"{_LATE}_READ; {_LATE}_WRITE",
        f"{_LATE}_WRITE",
    ),
    "color resolve_read": ("COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ",),
    "color resolve_write": ("COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE",),
    "color store": ("COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE",),
    "depth_stencil store": ("LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE",),
}
"""Attachment accesses of a subpass: by class and operation, those of a command."""
_LOADS = ("color load", "depth_stencil load")
_ENDS = ("color resolve_read", "color resolve_write", "color store", "depth_stencil store")
_DRAWN = tuple(each for each in _INSIDE if each not in _LOADS + _ENDS)
_LAYOUTS = ("0->1", "1->2", "2->7")
_MANY = ("1", "2", "3")
NO_USERS: dict[str, str] = {}
_VIEWS = ("views:3:3:0 ", "views:1:3:0 ", "views:1:1:0 ", "views:2:1:1 ", "views:1:2:0 ")
_QUERIES = ("y1[0:1]", "y1[0:1]", "y1[1:2]", "y1[0:2]")
_EVENTS = ("e1", "e1", "e1", "e2")
_FROM_HOST = ("HOST/HOST_WRITE", "HOST/HOST_WRITE", "HOST", "HOST/HOST_READ|HOST_WRITE")


def make(pick: Pick, features: Sequence[str] = ()) -> str:
    """The text of a stream that may use `features` (some of FEATURES; all when none is given)."""
    made = RandomText(pick, frozenset(features or FEATURES))
    if "queries" in made.features:
        made.lines.append("host creates y1[0:2]")
    for _ in range(int(pick(("1", "2", "3", "4", "5")))):
        made.stream_event()
    made.finish()
    return "\n".join(made.lines) + "\n"


@dataclass(frozen=True)
class RandomSet:
    """The last set of an event."""

    queue: str
    stages: str
    """Its source stages, "2" for a set of the second form."""
    wait: str
    """The wait that matches it."""


@dataclass
class RandomText:
    """A stream in the making: what was signalled and set so far decides what may come next."""

    pick: Pick
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

    def finish(self) -> None:
        """The host signals what batches still wait for: nothing is left unexecuted."""
        self.lines += [f"host sets {event}" for event in sorted(self.awaited)]
        if self.waited > self.values.get("t1", 0):
            self.lines.append(f"host signals t1={self.waited}")

    def stream_event(self) -> None:
        """One more submit, or something that the host does."""
        kinds = ["submit", "submit", "submit", "submit"]
        if not self._held_back():  # waiting for such a batch would never end
            kinds += ["waits"] * bool(self.lines) + ["waits"] * ("host" in self.features)
        elif self.unheld:
            kinds += ["waits past"] * (1 + ("host" in self.features))
        kinds += ["writes", "memory"] * ("host" in self.features)
        kinds += ["event"] * ("events" in self.features) + ["queries"] * ("queries" in self.features)
        if "presents" in self.features and not self._held_back():
            kinds += ["presents"]
        if self.values:
            kinds += ["signals"] + ["waits value"] * (not self.awaited)
        kind = self.pick(kinds)
        match kind:
            case "submit":
                self.submit()
            case "waits":
                several = ["", " q1"] + [f" f{at}" for at in range(1, self.fences + 1)]
                self.lines.append(f"host waits{self.pick(several)}")
            case "waits past":
                self.lines.append(f"host waits f{self.pick([str(each) for each in self.unheld])}")
            case "writes":
                self.lines.append(f"host {self.pick(('writes', 'reads'))} {self.pick(_BUFFERS)}")
            case "memory":
                verb = self.pick(("writes", "reads", "flushes", "invalidates"))
                self.lines.append(f"host {verb} {self.pick(_INCOHERENT)}{' incoherent' * (verb[0] in 'wr')}")
            case "presents":
                self._present()
            case "event":
                self._host_event()
            case "queries":
                self.lines.append(f"host {self.pick(('resets', 'resets', 'gets'))} {self.pick(_QUERIES)}")
            case "signals":
                self.values["t1"] += 1
                self.lines.append(f"host signals t1={self.values['t1']}")
            case _:
                self.lines.append(f"host waits t1={self.pick(('1', '2'))}")

    def submit(self) -> None:
        """A submit to a queue, of one batch or two."""
        several = {"queues", "families", "queries"} & self.features
        queue = self.pick(("q1", "q2") if several else ("q1",))
        family = f" family {_FAMILY[queue]}" * ("families" in self.features)
        if family and not any(line.startswith("queue") for line in self.lines):
            self.lines[:0] = [f"queue {each} family {index}" for each, index in _FAMILY.items()]
        self._batch(f"submit {queue}", family, queue)
        if "batches" in self.features and self._coin():
            self._batch("next", "", queue)

    def _present(self) -> None:
        """The engine hands the image out, or gets it back."""
        if not self.acquired:
            if "s2" not in self.pending:
                self.lines.append(f"acquire {_SHOWN} signal s2")
                self.pending.add("s2")
                self.acquired = True
            return
        waits = sorted(each for each in self.pending if self._coin())
        self.pending -= set(waits)
        self.lines.append(f"present q1 {_SHOWN}{' wait ' * bool(waits)}{' '.join(waits)}")
        self.acquired = False

    def _batch(self, begin: str, family: str, queue: str) -> None:
        """One batch, with what it waits for and signals."""
        waits = [f"{each}@{self.pick(_STAGES)}" for each in sorted(self.pending) if self._coin()]
        self.pending -= {each.partition("@")[0] for each in waits}
        signals = []
        signalling = {"queues", "families", "presents", "queries"} & self.features
        if signalling and "s1" not in self.pending and not self._held_back() and self._coin():
            signals.append(f"s1@{self.pick(_STAGES)}")
        waits, signals = self._timeline(queue, waits, signals)
        fence = self._coin()
        self.fences += fence
        body = [line for _ in range(int(self.pick(("1", "2", "3", "4")))) for line in self.command(queue)]
        options = f" wait {', '.join(waits)}" * bool(waits) + f" signal {', '.join(signals)}" * bool(signals)
        self.lines.append(f"{begin}{options}{f' fence f{self.fences}' * fence}{family}")
        self.lines += [f"    {line}" for line in body]
        if fence and not self.awaited and queue not in self.stuck:
            self.unheld.append(self.fences)
        self.pending |= {"s1"} if any(each.startswith("s1") for each in signals) else set()

    def _held_back(self) -> bool:
        """Some batch may wait for a value or an event that is not signalled yet: no binary semaphore may depend on
        it."""
        return bool(self.awaited) or self.waited > self.values.get("t1", 0)

    def _host_event(self) -> None:
        """The host sets an event, late perhaps, or resets one."""
        event = self.pick(_EVENTS)
        if event not in self.awaited and self._coin():
            self.lines.append(f"host resets {event}")
            self.ended.add(event)
            return
        self.lines.append(f"host sets {event}")
        self.awaited.discard(event)
        self.ended.discard(event)
        form, source = self.pick(("wait", "wait1")), self.pick(_FROM_HOST)
        self.events[event] = RandomSet("host", "HOST", f"{form} {event} {source} > {self.pick(_SCOPES)}")

    def _timeline(self, queue: str, waits: list[str], signals: list[str]) -> tuple[list[str], list[str]]:
        if "timelines" not in self.features:
            return waits, signals
        if not self.values:
            self.lines.insert(0, "semaphore t1 = 0")
            self.values["t1"] = 0
        if not signals and self._coin():
            value = self.pick(_MANY)
            self.waited = max(self.waited, int(value))
            waits = [*waits, f"t1={value}@{self.pick(_STAGES)}"]
            self.stuck |= {queue} if self._held_back() else set()
        if not self._held_back():
            self.stuck.clear()
        if queue not in self.stuck and self._coin():
            self.values["t1"] += 1
            signals = [*signals, f"t1={self.values['t1']}@{self.pick(_STAGES)}"]
        return waits, signals

    def command(self, queue: str) -> list[str]:
        """A command, or a whole render pass instance."""
        if "secondaries" in self.features and self.pick(("no", "no", "yes")) == "yes":
            inner = [f"barrier {self._barrier()}" if self._coin() else self._access() for _ in range(1 + self._coin())]
            return [f"execute {' / '.join(inner)}"]
        kinds = ["access", "access", "access", "barrier", "barrier"]
        kinds += ["event"] * ("events" in self.features) + ["pass"] * ("passes" in self.features)
        kinds += ["query", "query"] * ("queries" in self.features)
        match self.pick(kinds):
            case "access":
                return [self._access()]
            case "barrier":
                return [f"barrier {self._barrier()}"]
            case "event":
                return [self._event(queue)]
            case "query":
                return [f"query {_query(self.pick)}"]
            case _:
                return self._pass()

    def _coin(self) -> bool:
        return self.pick(("no", "yes")) == "yes"

    def _access(self) -> str:
        """What a command accesses: it reads, writes, or reads and writes."""
        read, write = f"{self.pick(_READS)} {self._resource()}", f"{self.pick(_WRITES)} {self._resource()}"
        return self.pick((write, read, f"{read}; {write}"))

    def _resource(self) -> str:
        if "host" in self.features and self._coin():
            return self.pick(_INCOHERENT)
        if self.acquired and self._coin():
            return _SHOWN
        return self.pick(_IMAGES if "images" in self.features and self._coin() else _BUFFERS)

    def _barrier(self) -> str:
        parts: list[str] = []
        moved = False
        for _ in range(1 + self._coin()):
            to_host = "host" in self.features and self._coin()
            scopes = f"{self.pick(_SCOPES)} > {self.pick(_HOST_SCOPES if to_host else _SCOPES)}"
            if "families" in self.features and not moved and self._coin():
                moved = True
                pair = self.pick(("0->1", "1->0", "0->1 stages", "1->0 stages"))
                layouts = f" {self.pick(_LAYOUTS)}" * ("images" in self.features and self._coin())
                parts.append(f"{self._resource()}{layouts} family {pair} {scopes}")
            elif not self._coin():
                parts.append(scopes)
            elif "images" in self.features and not moved and self._coin():
                moved = True  # a range can be moved once by one command
                parts.append(f"{self.pick(_IMAGES)} {self.pick(_LAYOUTS)} {scopes}")
            else:
                parts.append(f"{self._resource()} {scopes}")
        return ", ".join(parts)

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
            barrier = self._barrier()
            self.ended.discard(event)
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

    # -- render passes ------------------------------------------------------------------------------------------------

    def _pass(self) -> list[str]:
        if self.pick(("no", "no", "yes")) == "yes":
            return ["rendering", *self._inside(_kinds(self.pick), False)]
        many = int(self.pick(_MANY))
        dependencies, own = self._dependencies(many)
        lines = [f"pass {many} {dependencies}".rstrip()]
        moving = [*(at for at in range(many) if self._coin()), many]
        image = self.pick(("i", "i", "d"))
        moves = [f" {image} {self._move(at, many, moving)}" if at in moving else "" for at in range(many)]
        final = f" {image} 2->7 {_left(self.pick, many)}".rstrip() if self._coin() else ""
        kinds, users = _with_operations_once(
            [_kinds(self.pick) for _ in range(many)], [*moves[:-1], moves[-1] + final], image
        )
        for index, (move, chosen) in enumerate(zip(moves, kinds, strict=True)):
            inside = self._inside(chosen, index in own, users)
            loads = bool(inside) and inside[0].endswith(" load") and self._coin()
            lines.append("; ".join([f"subpass {index}{move}", *inside[:loads]]))  # one call begins and loads
            lines += inside[loads:]
        stores = lines[-1].endswith(" store") and self._coin()  # and one stores and ends
        lines[len(lines) - stores :] = ["; ".join([*lines[len(lines) - stores :], f"end{final}"])]
        return lines

    def _move(self, at: int, many: int, moving: list[int]) -> str:
        """A transition at the begin of one of the subpasses in `moving`, with those that it leaves, use and enter."""
        used = [str(each) for each in range(at, many) if each == at or self._coin()]
        later = "&".join(each for each in used[1:] if int(each) < moving[moving.index(at) + 1])
        text = f"{self.pick(_LAYOUTS)} {_left(self.pick, at)} used {'&'.join(used)}".replace("  ", " ")
        return f"{text} later {later}" if later else text

    def _dependencies(self, many: int) -> tuple[str, set[int]]:
        pairs = [f"EXTERNAL->{at}" for at in range(many)] + [f"{at}->EXTERNAL" for at in range(many)] + ["0->0"]
        pairs += [f"{one}->{other}" for other in range(many) for one in range(other)]
        chosen = [pair for pair in pairs if self._coin()]
        parts = [
            f"{'region ' if self._coin() else ''}{_views(self.pick, pair)}{pair}"
            f" {self.pick(_PASS_SCOPES)} > {self.pick(_PASS_SCOPES)}"
            for pair in chosen
        ]
        return ", ".join(parts), {0} if "0->0" in chosen else set()

    def _inside(self, chosen: list[str], barriers: bool, users: dict[str, str] = NO_USERS) -> list[str]:
        """What a subpass does: these accesses of attachments, and what its draws do beside. `users`: by image, the
        subpasses that use it."""
        lines = [_attachment(self.pick, each, users) for each in chosen]
        if self._coin():
            lines.append(f"FRAGMENT_SHADER_SHADER_STORAGE_{self.pick(('READ', 'WRITE'))} a")
        if barriers:
            between = (
                f"barrier region {self.pick(('', '', 'views '))}{self.pick(_PASS_SCOPES)} > {self.pick(_PASS_SCOPES)}"
            )
            lines.insert(int(self.pick(("0", "1", "2"))), between)
        return lines


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


def _views(pick: Pick, pair: str) -> str:
    """Between which views a dependency is, if not between all."""
    return "" if "EXTERNAL" in pair else pick(("", "", "", *_VIEWS))


def _left(pick: Pick, many: int) -> str:
    """Of the subpasses before one, those that a transition leaves: the last ones that use the image. With EXTERNAL
    they used an aliased one."""
    coins, left = ("no", "yes"), list[str]()
    if pick(coins) == "yes":
        left = [str(each) for each in range(many) if each == many - 1 or pick(coins) == "yes"]
    if left and pick(("own", "own", "aliased")) == "aliased":
        left.insert(0, "EXTERNAL")
    return f"after {'&'.join(left)}" if left else ""


def _kinds(pick: Pick) -> list[str]:
    """Accesses of attachments, out of `_INSIDE`, in the order that a subpass has."""
    several = int(pick(_MANY))
    chosen = [pick((*_LOADS, *_DRAWN, *_DRAWN, *_ENDS)) for _ in range(several)]
    return sorted(chosen, key=lambda each: (each in _LOADS, each in _DRAWN, each in _ENDS).index(True))


def _attachment(pick: Pick, kind: str, users: dict[str, str]) -> str:
    """Accesses of an attachment, behind the subpasses that use it where these are load or store operations."""
    image, made = _image(kind), pick(_INSIDE[kind]).split("; ")
    using = users.get(image, "")
    shared = "&" in using and kind.endswith((" load", " store"))
    return "; ".join([f"users {using}"] * shared + [f"{each} {image} {kind}" for each in made])


def _image(kind: str) -> str:
    return "d" if "depth" in kind else "j" if "resolve_write" in kind else "i"


def _with_operations_once(
    kinds: list[list[str]], moves: list[str], moved: str
) -> tuple[list[list[str]], dict[str, str]]:
    """The accesses of each subpass without load operations behind the first subpass that uses the attachment, and
    without store operations before the last one: an instance has one of each.
    `moves`: transitions of the image `moved`.

    With them the subpasses that use each image.
    """
    users = {}
    for image in ("i", "d"):
        using = [
            at
            for at, (chosen, move) in enumerate(zip(kinds, moves, strict=True))
            if (image == moved and move) or any(_image(each) == image for each in chosen)
        ]
        for at, chosen in enumerate(kinds):
            kinds[at] = [each for each in chosen if _image(each) != image or not _is_misplaced(each, at, using)]
        users[image] = "&".join(map(str, using))
    return kinds, users


def _is_misplaced(kind: str, at: int, using: list[int]) -> bool:
    return (kind in _LOADS and at != using[0]) or (kind.endswith(" store") and at != using[-1])
