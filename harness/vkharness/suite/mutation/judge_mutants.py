"""Mutants of scenarios, recorded and judged in worker processes side by side. A scenario that raises takes its own
mutants with it, and so does a driver that dies or loses its device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vkharness.device.failed_calls import failed_call
from vkharness.device.process import DEFAULT_TIMEOUT
from vkharness.findings import DeviceLostError, UserError
from vkharness.layer.manifest import chosen_layers
from vkharness.model import judge_stream_events
from vkharness.rig.core import Amend
from vkharness.suite.claims import WITHOUT, Claim
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.mutation.mutant import Changed, DependencyLog, Mutant
from vkharness.suite.mutation.operators import Written, mutants
from vkharness.suite.runner import NoAnswer, run_tasks
from vkharness.verdicts import Status

Named = tuple[Path, str]
"""A scenario: its file and its name there."""


def claims(paths: Sequence[Path], *, every: bool = False, rules: Collection[str] = ()) -> list[Named]:
    """Every scenario with a named dependency in these files and folders, in order; with `every` those without, too.
    With `rules` only those that claim one of them."""
    files = [file for path in paths for file in (sorted(path.rglob("scenario_*.py")) if path.is_dir() else [path])]
    found = []
    for file in files:
        if not file.is_file():
            raise UserError(f"{file}: no such file")
        for name, value in vars(load_module(file.resolve())).items():
            if not isinstance(value, Claim) or (rules and set(value.rule.split(",")).isdisjoint(rules)):
                continue
            if every or len(value.variants) > 1:
                found.append((file.resolve(), name))
    return found


def judge_mutants(
    several: Sequence[Named],
    device: str,
    layer: str,
    processes: int,
    advance: Callable[[int], object] = lambda _: None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Iterator[tuple[Named, list[Mutant]]]:
    """The mutants of each of these scenarios, recorded on `device` within `timeout` seconds; `advance` is called with
    how many are done."""
    tasks = [{"module": str(file), "scenario": name, "layer": layer} for file, name in several]
    for at, answer in run_tasks(f"{__name__}:run", tasks, device, processes, advance, timeout):
        if isinstance(answer, NoAnswer):
            file, name = several[at]
            lost = answer.status is not Status.UNAVAILABLE
            yield several[at], [Mutant(f"{file.parent.name}/{name}", "", "", "", problem=str(answer), lost=lost)]
        else:
            yield several[at], [Mutant.from_dict(each) for each in answer["mutants"]]


def run(module: str, scenario: str, layer: str) -> dict[str, Any]:
    """All mutants of one scenario, as `{"mutants": [...]}`, in the worker.

    `layer` is which Khronos layers to ask (`chosen_layers`). Raises `UserError` when the device
    cannot record the scenario at all.
    """
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    judges = _Judges(claim, layer)
    whole = DependencyLog()
    baseline = judges.ask(whole.amend)
    found = []
    for dependency, position, operator, change in _all(claim, whole.written):
        mutant = Mutant(f"{Path(module).parent.name}/{scenario}", dependency, operator, change)
        changed = Changed(dependency, position)
        try:
            judges.ask(changed.amend).into(mutant, baseline)
        except Exception as error:  # a scenario may not be able to go on without its dependency
            failed = failed_call(error)
            if isinstance(error, DeviceLostError) or (failed is not None and failed.is_lost):
                raise
            mutant.problem = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        found.append(mutant.to_dict())
    return {"mutants": found}


def _all(claim: Claim, written: Mapping[str, Written]) -> Iterator[tuple[str, int, str, str]]:
    """(dependency, number of the mutation, operator, change) of every mutant. What a scenario merely chooses
    (`Rig.choose`) is no dependency, and one that no twin leaves out is not left out here: a wait for what nobody
    signals never ends."""
    dispensable = {variant.dependency for variant in claim.variants if variant.kind == WITHOUT}
    for name, each in written.items():
        if set(each) != {"value"}:
            for at, (operator, change, mutated) in enumerate(mutants(each)):
                if mutated is not None or name in dispensable:
                    yield name, at, operator, change


class _Said:
    """The hazards that each judge reported of one recording, as comparable text."""

    def __init__(self, model: set[str], syncval: set[str], unmodelled: list[str]) -> None:
        self.model, self.syncval, self.unmodelled = model, syncval, unmodelled
        self.layers: dict[str, set[str]] = {}

    def into(self, mutant: Mutant, baseline: _Said) -> None:
        """Stores in `mutant` the reports that are not in `baseline`, those of the whole scenario. Commands that are not
        modelled become its problem."""
        mutant.model = sorted(self.model - baseline.model)
        mutant.syncval = sorted(self.syncval - baseline.syncval)
        for version, said in self.layers.items():
            mutant.layers[version] = sorted(said - baseline.layers.get(version, set()))
        if self.unmodelled:
            mutant.problem = f"not modelled: {', '.join(self.unmodelled)}"


class _Judges:
    """Records variants of one claim and asks everybody."""

    def __init__(self, claim: Claim, layer: str) -> None:
        self._claim = claim
        self._layers = chosen_layers(layer)

    def ask(self, amend: Amend) -> _Said:
        """One recording without a layer, judged by syncval and the model, and one for each layer; a layer that would
        see other queues than the scenario names is not asked."""
        session, _, logical = record(self._claim, amend, None)
        opinion = judge_stream_events(session.events)
        said = _Said(
            {f"{each.kind} {each.current.command} after {each.prior.command}" for each in opinion.conflicts},
            {f"{each.hazard} {each.place.command} after {each.prior.command}" for each in session.findings},
            sorted(session.unmodelled) + session.internal_errors,
        )
        for layer in () if logical else self._layers:
            _, listener, _ = record(self._claim, amend, layer)
            messages = listener.messages if listener is not None else ()
            said.layers[layer.version_text] = {f"{each.hazard} {each.command}" for each in messages}
        return said
