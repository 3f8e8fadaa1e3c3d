"""A trace with calls inserted and changed, which remembers where each of its calls came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from vkharness.trace.calls import Block, Call


class Edit(NamedTuple):
    """One call that an edited trace has and the trace before it has not."""

    position: int
    """Where it is in `EditedTrace.blocks`."""
    before: Call | None
    """The call that it stands for; None for one that was inserted."""
    after: Call


@dataclass(frozen=True, slots=True)
class EditedTrace:
    """The blocks of a trace, numbered from 1, with what was done to them. Each edit makes another one.

    `origins` has for each block its index in the trace that was read, and for each inserted call a negative number that
    is its own.
    """

    source: tuple[Block, ...]
    """The blocks of the trace that was read."""
    blocks: tuple[Block, ...]
    origins: tuple[int, ...]

    @classmethod
    def of(cls, blocks: Iterable[Block]) -> EditedTrace:
        """A trace that nobody has edited."""
        source = tuple(blocks)
        return cls(source, _numbered(source), tuple(block.index for block in source))

    @property
    def device(self) -> int:
        """The id of the first device that the trace makes; 0 where it makes none."""
        made = (each for each in self.blocks if isinstance(each, Call) and each.name == "vkCreateDevice")
        return next((each.args.get("pDevice", 0) for each in made), 0)

    def inserted(self, position: int, calls: Sequence[Call]) -> EditedTrace:
        """With calls before the block at a position."""
        lowest = min((0, *self.origins))
        fresh = tuple(lowest - number for number in range(1, len(calls) + 1))
        blocks = (*self.blocks[:position], *calls, *self.blocks[position:])
        return replace(
            self, blocks=_numbered(blocks), origins=(*self.origins[:position], *fresh, *self.origins[position:])
        )

    def with_each_inserted(self, calls: Mapping[int, Call]) -> EditedTrace:
        """With one call before the block at each of these positions, the last of which gets the first number."""
        lowest = min((0, *self.origins))
        fresh = {position: lowest - number for number, position in enumerate(sorted(calls, reverse=True), 1)}
        blocks: list[Block] = []
        origins: list[int] = []
        for position, (block, origin) in enumerate(zip(self.blocks, self.origins, strict=True)):
            if position in calls:
                blocks.append(calls[position])
                origins.append(fresh[position])
            blocks.append(block)
            origins.append(origin)
        return replace(self, blocks=_numbered(blocks), origins=tuple(origins))

    def with_calls(self, calls: Mapping[int, Call | None]) -> EditedTrace:
        """With other calls in place of those with these origins, and without those that map to None."""
        kept = [
            (calls.get(origin, block) or block, origin)
            for block, origin in zip(self.blocks, self.origins, strict=True)
            if calls.get(origin, block) is not None
        ]
        return replace(
            self, blocks=_numbered([block for block, _ in kept]), origins=tuple(origin for _, origin in kept)
        )

    def changed(self, position: int, args: Mapping[str, Any]) -> EditedTrace:
        """With other arguments of the call at a position."""
        return self.replaced(position, replace(self.call(position), args=dict(args)))

    def replaced(self, position: int, call: Call) -> EditedTrace:
        """With another call at a position."""
        fitted = replace(call, index=position + 1)
        return replace(self, blocks=(*self.blocks[:position], fitted, *self.blocks[position + 1 :]))

    def call(self, position: int) -> Call:
        """The call at a position, where there is one."""
        block = self.blocks[position]
        assert isinstance(block, Call)
        return block

    def origin(self, index: int) -> int:
        """Where the block with this index, in `blocks`, came from."""
        return self.origins[index - 1]

    def edits(self) -> Iterator[Edit]:
        """Every call that was inserted or changed, in the order of the trace."""
        source = {block.index: block for block in self.source}
        for position, (block, origin) in enumerate(zip(self.blocks, self.origins, strict=True)):
            if not isinstance(block, Call):
                continue
            before = source.get(origin)
            if origin < 0:
                yield Edit(position, None, block)
            elif isinstance(before, Call) and (before.name, before.args) != (block.name, block.args):
                yield Edit(position, before, block)


def _numbered(blocks: Sequence[Block]) -> tuple[Block, ...]:
    return tuple(
        block if block.index == number else replace(block, index=number) for number, block in enumerate(blocks, 1)
    )


def with_value(value: Any, path: Sequence[str | int], new: Any) -> Any:
    """A copy of nested dictionaries and lists in which one value is another; what is not on the way is shared."""
    if not path:
        return new
    step, *rest = path
    if isinstance(value, list):
        assert isinstance(step, int)
        return [*value[:step], with_value(value[step], rest, new), *value[step + 1 :]]
    return {**value, step: with_value(value[step], rest, new)}


def value_at(value: Any, path: Sequence[str | int]) -> Any:
    """The value to which a path of keys and positions leads."""
    for step in path:
        value = value[step]
    return value
