"""Judging findings with what was observed on a run: two accesses that never met there are *refuted on this run*.

The bytes that a shader may touch are those of its descriptors, so that a finding says what could happen. An observation
(`vkharness observe`) says what did: the accesses that instrumented shaders noted, or else what experiments found. A
finding of which the two sides, so narrowed, share no byte stays a finding, marked with the run that refutes it. Other
inputs may bring the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vkharness.findings import Box, Finding, Place, UserError
from vkharness.spans import Span, merge, subtract
from vkharness.trace.calls import Block, Call
from vkharness.trace.observations import ALL, Observation, Observations, Spans, TraceDigest
from vkharness.trace.resources import Image

SHADER_ACCESSES = ("UNIFORM_READ", "SHADER_SAMPLED_READ", "SHADER_STORAGE_READ", "SHADER_STORAGE_WRITE")
"""Ends of the names of accesses by shaders. All other accesses are known to the byte."""
BY_SHADERS, BY_EXPERIMENT = "noted by its shaders", "found by experiment"


class _Side(NamedTuple):
    """Reads and writes of the resource by one of the two commands, and how they are known."""

    reads: list[Span]
    writes: list[Span]
    basis: str = ""
    pieces: frozenset[int] = frozenset()


class Refutation:
    """Observations held against the findings of the same trace. Pass the blocks of the trace through `follow` first."""

    def __init__(self, observed: Observations, name: str) -> None:
        """`name` is that of the file, for errors."""
        self._observed, self._name = observed, name
        self._digest = TraceDigest()
        self._images: dict[int, Image] = {}
        self._by_call: dict[int, list[Observation]] = {}
        for piece in observed.pieces:
            for command in piece.commands:
                self._by_call.setdefault(command.call, []).append(piece)

    def follow(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """The same blocks, each noted as it passes. Raises `UserError` behind the last when it is another trace."""
        for block in self._digest.follow(blocks):
            if isinstance(block, Call) and block.name == "vkCreateImage" and block.succeeded:
                self._image(block)
            yield block
        if self._digest.text != self._observed.trace:
            raise UserError(f"{self._name}: the observations are of another trace")

    def _image(self, call: Call) -> None:
        image = Image.created(call.args["pImage"], call.args["pCreateInfo"])
        self._images[image.id] = image

    def mark(self, findings: Iterable[Finding]) -> None:
        """Sets `refuted` of every finding whose two accesses never met."""
        for finding in findings:
            finding.refuted = self._refuted(finding)

    def _refuted(self, finding: Finding) -> str:
        where = self._where(finding)
        shaders = [name for name in (finding.access, finding.prior_access) if name.endswith(SHADER_ACCESSES)]
        if not where or not shaders or finding.through or not finding.hazard.is_between_accesses:
            return ""
        current = self._side(finding.place, finding.access, finding.resource, where)
        prior = self._side(finding.prior, finding.prior_access, finding.resource, where)
        if current is None or prior is None or current.pieces & prior.pieces:
            return ""  # inside one render pass instance it is not known who did what
        if _meet(current.writes, merge([*prior.writes, *prior.reads])) or _meet(current.reads, prior.writes):
            return ""
        basis = [each for each in dict.fromkeys((current.basis, prior.basis)) if each]
        return f"on {self._observed.device}, {' and '.join(basis)}"

    def _where(self, finding: Finding) -> list[Span]:
        """The addresses of a finding; none where they are not those of a buffer or image."""
        if finding.resource_type == "VkBuffer":
            return merge([(offset, offset + size) for offset, size in finding.ranges])
        image = self._images.get(finding.resource)
        return merge([span for box in finding.boxes for span in _addresses(image, box)]) if image is not None else []

    def _side(self, place: Place, access: str, resource: int, where: list[Span]) -> _Side | None:
        """Returns the accesses of one side to the addresses. None when they are not known."""
        pieces = self._by_call.get(place.call, [])
        numbers = frozenset(map(id, pieces))
        if not access.endswith(SHADER_ACCESSES):
            return _Side([], where, pieces=numbers) if access.endswith("WRITE") else _Side(where, [], pieces=numbers)
        if not pieces or any(piece.problem for piece in pieces):
            return None
        noted = all(piece.shaders == ALL for piece in pieces)
        if not noted and any("is not observed" in note for piece in pieces for note in piece.notes):
            return None  # what reaches such a resource runs only once
        reads = [p.shader_reads if noted else p.reads for p in pieces]
        writes = [p.shader_writes if noted else p.writes for p in pieces]
        basis = BY_SHADERS if noted else BY_EXPERIMENT
        return _Side(_of(reads, resource, where), _of(writes, resource, where), basis, numbers)


def _of(several: Iterable[Spans], resource: int, where: list[Span]) -> list[Span]:
    """Returns the addresses of a resource, among those given, that any of several executions touches."""
    return _common(merge([span for each in several for span in each.get(resource, ())]), where)


def _common(one: list[Span], other: list[Span]) -> list[Span]:
    return subtract(one, subtract(one, other))


def _meet(one: list[Span], other: list[Span]) -> bool:
    return bool(_common(one, other))


def _addresses(image: Image, box: Box) -> tuple[Span, ...]:
    return image.region(box.aspect, box.mip, [box.layer], box.offset, box.extent)
