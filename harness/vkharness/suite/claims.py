"""Claims: what a scenario says must happen, whole and with each named dependency left out or weakened.

    @scenario(
        without={"fill before copy": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]},
        weakened={"fill before copy / execution only": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]},
    )
    def scenario_copy_reads_a_filled_buffer(rig: Rig) -> None:
        a, b = rig.buffer(), rig.buffer()
        with rig.submission() as commands:
            commands.fill(a, 1)
            commands.barrier("fill before copy", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ",
                             weaker={"execution only": {"src": "CLEAR", "dst": "COPY"}})
            commands.copy(a, b)

The whole scenario must be clean (or show `expects`); each twin must show exactly the hazards declared for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vkharness.findings import Hazard

if TYPE_CHECKING:
    from vkharness.rig.rig import Rig

WHOLE = "whole"
WITHOUT = "without"
WEAKENED = "weakened"


@dataclass(frozen=True, slots=True, order=True)
class ExpectedHazard:
    """One hazard that must be found: its kind, the command that meets it and the one it conflicts with."""

    hazard: Hazard
    command: str
    prior: str

    def __str__(self) -> str:
        return f"{self.hazard} {self.command} after {self.prior}"


def read_after_write(command: str, prior: str) -> ExpectedHazard:
    """A read that no memory dependency orders after a write."""
    return ExpectedHazard(Hazard.READ_AFTER_WRITE, command, prior)


def write_after_read(command: str, prior: str) -> ExpectedHazard:
    """A write that no execution dependency orders after a read."""
    return ExpectedHazard(Hazard.WRITE_AFTER_READ, command, prior)


def write_after_write(command: str, prior: str) -> ExpectedHazard:
    """A write that no memory dependency orders after a write."""
    return ExpectedHazard(Hazard.WRITE_AFTER_WRITE, command, prior)


def race(hazard: str, command: str, prior: str) -> ExpectedHazard:
    """Any other hazard, by its name."""
    return ExpectedHazard(Hazard(hazard), command, prior)


@dataclass(frozen=True, slots=True)
class Variant:
    """The whole scenario, or one twin of it: a dependency left out, or weakened in a named way."""

    kind: str = WHOLE
    dependency: str = ""
    weakness: str = ""

    @property
    def name(self) -> str:
        """The name of the variant in test ids."""
        if self.kind == WHOLE:
            return WHOLE
        text = f"without {self.dependency}" if self.kind == WITHOUT else f"{self.dependency} {self.weakness}"
        return text.replace(" ", "_")


@dataclass(frozen=True)
class Claim:
    """A scenario function with what it declares."""

    function: Callable[[Rig], None]
    variants: Mapping[Variant, tuple[ExpectedHazard, ...]]
    needs: tuple[str, ...] = ()
    """Extensions without which the scenario cannot be recorded; with "no " before its name, one that must be absent."""
    queues: tuple[str, ...] = ()
    """Kinds of the queues that it takes beside the first (`vkharness.rig.queues.QUEUE_KINDS`)."""
    rule: str = ""
    """Anchors in docs/rules.md of the rules that the scenario claims, separated by commas."""
    known: Mapping[str, str] = field(default_factory=dict)
    """Judges that may disagree, `witness` or `layer VERSION`, each with the reason, as `expectations.toml` has them."""
    name: str = field(default="")

    def expected(self, variant: Variant) -> tuple[ExpectedHazard, ...]:
        """The hazards that this variant must show."""
        return self.variants[variant]

    def variant(self, name: str) -> Variant:
        """The variant of this name."""
        return next(each for each in self.variants if each.name == name)


def scenario(
    *,
    expects: Iterable[ExpectedHazard] = (),
    without: Mapping[str, Iterable[ExpectedHazard]] | None = None,
    weakened: Mapping[str, Iterable[ExpectedHazard]] | None = None,
    needs: Iterable[str] = (),
    queues: Iterable[str] = (),
    rule: str = "",
    known: Mapping[str, str] | None = None,
) -> Callable[[Callable[[Rig], None]], Claim]:
    """Declares a scenario. `without` is keyed by dependency, `weakened` by "dependency / weakness".

    `known` is for scenarios that stand alone: why the judge `witness`, or `layer VERSION`, may disagree.
    """
    variants: dict[Variant, tuple[ExpectedHazard, ...]] = {Variant(): _expected(expects)}
    for dependency, shown in (without or {}).items():
        variants[Variant(WITHOUT, dependency)] = _expected(shown)
    for key, shown in (weakened or {}).items():
        dependency, separator, weakness = key.partition(" / ")
        if not separator:
            raise ValueError(f"weakened[{key!r}]: write it as 'dependency / weakness'")
        variants[Variant(WEAKENED, dependency, weakness)] = _expected(shown)

    def declare(function: Callable[[Rig], None]) -> Claim:
        if not (function.__doc__ or "").strip():
            raise ValueError(f"{function.__name__} has no docstring: a scenario states its claim")
        return Claim(function, variants, tuple(needs), tuple(queues), rule, known or {}, function.__name__)

    return declare


def _expected(shown: Iterable[ExpectedHazard]) -> tuple[ExpectedHazard, ...]:
    return tuple(sorted(set(shown)))
