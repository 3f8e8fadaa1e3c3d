"""Random render pass instances in stream text: subpasses, their dependencies, and what they do with attachments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Pick = Callable[[Sequence[str]], str]
"""Chooses one of several texts."""

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
_RESOLVES = ("color resolve_read", "color resolve_write")
_STORES = ("color store", "depth_stencil store")
_OPERATIONS = (*_LOADS, *_RESOLVES, *_STORES)
_DRAWN = tuple(each for each in _INSIDE if each not in _OPERATIONS)
LAYOUTS = ("0->1", "1->2", "2->7")
MANY = ("1", "2", "3")
NO_USERS: dict[str, str] = {}
_VIEWS = ("views:3:3:0 ", "views:1:3:0 ", "views:1:1:0 ", "views:2:1:1 ", "views:1:2:0 ")


@dataclass
class RandomPasses:
    """Makes render pass instances out of choices."""

    pick: Pick

    def _coin(self) -> bool:
        return self.pick(("no", "yes")) == "yes"

    def _pass(self) -> list[str]:
        if self.pick(("no", "no", "yes")) == "yes":
            return ["rendering", *self._inside(_kinds(self.pick), False)]
        many = int(self.pick(MANY))
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
        text = f"{self.pick(LAYOUTS)} {_left(self.pick, at)} used {'&'.join(used)}".replace("  ", " ")
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
        """Lists the accesses and barriers of a subpass: the `chosen` ones of attachments, and others of its draws.
        `users`: by image, the subpasses that use it."""
        loads, drawn, ends = (
            [_attachment(self.pick, each, users) for each in chosen if each in group]
            for group in (_LOADS, _DRAWN, (*_RESOLVES, *_STORES))
        )
        if self._coin():
            drawn.append(f"FRAGMENT_SHADER_SHADER_STORAGE_{self.pick(('READ', 'WRITE'))} a")
        if barriers:
            between = (
                f"barrier region {self.pick(('', '', 'views '))}{self.pick(_PASS_SCOPES)} > {self.pick(_PASS_SCOPES)}"
            )
            drawn.insert(int(self.pick(("0", "1", "2"))), between)
        return [*loads, *drawn, *ends]


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
    """Accesses of attachments, out of `_INSIDE`, in the order that a subpass has, with each operation once."""
    several = int(pick(MANY))
    chosen = [pick((*_DRAWN, *_DRAWN, *_OPERATIONS)) for _ in range(several)]
    once = [each for at, each in enumerate(chosen) if each in _DRAWN or each not in chosen[:at]]
    groups = (_LOADS, _DRAWN, _RESOLVES, _STORES)
    return sorted(once, key=lambda each: [each in group for group in groups].index(True))


def _attachment(pick: Pick, kind: str, users: dict[str, str]) -> str:
    """Accesses of an attachment, behind the subpasses that use it where these are load, store or resolve operations."""
    image, made = _image(kind), pick(_INSIDE[kind]).split("; ")
    using = users.get(image, "")
    shared = "&" in using and kind.endswith((" load", " store", " resolve_read"))
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
