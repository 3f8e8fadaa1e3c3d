"""Runs a dispatch on the host: work group after work group, invocation after invocation, up to each control barrier.

An invocation that waits for others makes a pause, in which these run, and so does a work group in which all invocations
wait that are not at a control barrier. Whoever does not wait keeps its place in the order, however long it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from vkharness.shader.execution.executed_module import ExecutedModule, refusing_malformed
from vkharness.shader.execution.function_code import PAUSE, Running, run_function
from vkharness.shader.execution.outside import Allowance, NotInterpreted, ShaderResources
from vkharness.shader.opcodes import Decoration, StorageClass
from vkharness.shader.reflect import workgroup_size
from vkharness.spec.enums import VkShaderStage

Size = tuple[int, int, int]
OVER = object()
Order = Callable[[int], Sequence[int]]
"""The order in which this many work groups, or invocations of a work group, run: a permutation of range(n)."""


def last_to_first(count: int) -> Sequence[int]:
    """The order that begins with the last one."""
    return range(count - 1, -1, -1)


BOTH_ORDERS: tuple[Order, Order] = (range, last_to_first)
"""What these leave different, no order of the specification's decides ("Shader Invocation Order")."""


def place_of(index: int, size: Size) -> Size:
    """Where a work group, or an invocation, of this number is in a grid of this size."""
    x, y, _ = size
    return index % x, index // x % y, index // (x * y)


def execute_dispatch(
    module: bytes,
    entry: str,
    groups: Size,
    base: Size,
    resources: ShaderResources,
    specialization: Mapping[int, bytes],
    limit: int | Allowance,
    order: Order = range,
) -> None:
    """Execute the compute shader `entry` over `groups` work groups from `base`, and write what it writes.

    `specialization` maps constant ids to their bytes. At most `limit` instructions are executed; one that moves a
    composite counts once more for every 16 scalars, and a variable without a layout once for each scalar. Invocations
    run one at a time in `order`, each to its end or to the next control barrier. Where they race, the result is that of
    this order.

    Raises NotInterpreted, one line, for what is not known, not defined, or over the limit, and any UserError that the
    resources or the module give; what was written until then stays written.
    """
    with refusing_malformed():
        Dispatch(module, entry, (groups, base), resources, specialization, limit).run(order)


class Dispatch(ExecutedModule):
    """All work groups of a dispatch."""

    def __init__(
        self,
        code: bytes,
        entry: str,
        extent: tuple[Size, Size],
        resources: ShaderResources,
        specialization: Mapping[int, bytes],
        limit: int | Allowance,
    ) -> None:
        super().__init__(code, entry, VkShaderStage.COMPUTE, resources, specialization, limit)
        size = workgroup_size(self.declarations, self.modes)
        if size is None:
            raise NotInterpreted("the size of the work group is not known")
        self.groups, self.base = extent
        self.size = size
        self.shared = self.by_class.get(StorageClass.Workgroup, [])
        self.inputs = {
            id: self.declarations.decorations(id)[Decoration.BuiltIn]
            for id in self.by_class.get(StorageClass.Input, [])
        }

    def run(self, order: Order) -> None:
        """All work groups."""
        x, y, z = self.groups
        running: Iterable[Iterator[None]] = (self._group(self.group_at(index), order) for index in order(x * y * z))
        while running:
            running = [each for each in running if next(each, OVER) is not OVER]

    def group_at(self, index: int) -> Size:
        """The WorkgroupId of the work group of this number."""
        (x, y, z), base = place_of(index, self.groups), self.base
        return base[0] + x, base[1] + y, base[2] + z

    def _group(self, group: Size, order: Order) -> Iterator[None]:
        """One work group, up to the next pause each time."""
        shared = self.bound | self.cells(self.shared)
        count = self.size[0] * self.size[1] * self.size[2]
        self.allowance.spend(1 + count)
        waiting: Iterable[tuple[int, Running]] = enumerate(self._invocations(group, shared, order(count)))
        while True:
            met: set[int | None] = set()
            still: dict[int, Running] = {}
            left = count
            while left:
                paused = []
                for at, running in waiting:
                    place = next(running, None)
                    if place == PAUSE:
                        paused.append((at, running))
                        continue
                    met.add(place)
                    if place is not None:
                        still[at] = running
                if len(paused) == left:
                    yield
                waiting, left = paused, len(paused)
            if len(met) > 1:
                raise NotInterpreted("not all invocations of a work group reach the same control barrier")
            if not still:
                return
            self._passed_barrier()
            waiting, count = sorted(still.items()), len(still)

    def _passed_barrier(self) -> None:
        """All invocations of a work group are at one control barrier."""

    def _invocations(self, group: Size, shared: dict[int, Any], order: Sequence[int]) -> Iterator[Running]:
        for index in order:
            yield run_function(self.reader.codes[self.entry], (), _Invocation(self, group, index, shared))


class _Invocation:
    """One invocation: its built-in inputs and private variables; it implements function_code.RunningState."""

    def __init__(self, dispatch: Dispatch, group: Size, index: int, shared: dict[int, Any]) -> None:
        local = place_of(index, dispatch.size)
        every = [at * size + own for at, size, own in zip(group, dispatch.size, local, strict=True)]
        inputs = {24: dispatch.groups, 26: group, 27: local, 28: every, 29: (index,)}
        self._shared = shared
        self._own = dispatch.cells(dispatch.private)
        for id, built_in in dispatch.inputs.items():
            self._own[id] = ([value & 0xFFFFFFFF for value in inputs[built_in]], 0, 0)
        self.spend = dispatch.allowance.spend

    def pointer(self, variable: int) -> Any:
        """The pointer that a module-scope variable is."""
        return self._own[variable] if variable in self._own else self._shared[variable]
