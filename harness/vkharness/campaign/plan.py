"""The plan of a campaign, its chunks, and their results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from vkharness.findings import UserError


@dataclass(frozen=True, slots=True)
class CampaignChunk:
    """Consecutive inputs of a plan: the unit that is done, lost and done again."""

    number: int
    first: int
    count: int


class Discovery(NamedTuple):
    """One thing that should not be."""

    cause: str
    """The fault, without the numbers of this stream: discoveries with one cause are grouped."""
    seed: int
    text: str
    """The smallest input that shows it, or what was said of it."""


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The counts and discoveries of one chunk that is done."""

    number: int
    counts: dict[str, int]
    discoveries: tuple[Discovery, ...]
    seconds: float
    """How long a worker took."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {**asdict(self), "discoveries": [each._asdict() for each in self.discoveries]}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> ChunkResult:
        """Inverse of `to_dict`. Raises KeyError, TypeError, ValueError or OverflowError for anything else."""
        return cls(
            number=int(value["number"]),
            counts={str(name): int(count) for name, count in value["counts"].items()},
            discoveries=tuple(
                Discovery(str(each["cause"]), int(each["seed"]), str(each["text"])) for each in value["discoveries"]
            ),
            seconds=float(value["seconds"]),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A campaign. Two campaigns with equal plans do the same chunks.

    `count` inputs from `seed` on are cut into chunks of `size`. `families` are the features or the families of steps
    that inputs have, `device` and `layer` what runs and judges them; what a kind of work does not need stays empty.
    """

    work: str
    seed: int
    count: int
    size: int
    families: tuple[str, ...] = ()
    device: str = ""
    layer: str = ""
    every: int = 1
    """Of the cells of a matrix, those whose number this divides are executed and shown to the layer."""

    def chunks(self) -> Iterator[CampaignChunk]:
        """Every chunk, in order."""
        for number, first in enumerate(range(0, self.count, self.size)):
            yield CampaignChunk(number, first, min(self.size, self.count - first))

    @property
    def chunk_count(self) -> int:
        """The number of chunks."""
        return -(-self.count // self.size)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {**asdict(self), "families": list(self.families)}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Plan:
        """Inverse of `to_dict`. Raises `UserError` for anything else."""
        try:
            plan = cls(**{**value, "families": tuple(value["families"])})
        except (KeyError, TypeError) as error:
            raise UserError(f"no plan of a campaign: {error}") from None
        plan._check()
        return plan

    def _check(self) -> None:
        numbers = (self.seed, self.count, self.size, self.every)
        words = (self.work, self.device, self.layer, *self.families)
        if not all(isinstance(each, str) for each in words):
            raise UserError("no plan of a campaign: work, families, device and layer must be texts")
        if not all(isinstance(each, int) for each in numbers) or min(numbers[1:]) < 1:
            raise UserError(
                "no plan of a campaign: seed, count, size and every must be whole numbers, the last three over 0"
            )
