"""Executes commands by their forms (`command_forms` has the theory), many in one call of the native store."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from vkharness import native
from vkharness.syncval.command_forms import OF_INSTANCES, FormMaker, NoForm, Standpoint, outside
from vkharness.syncval.context import Context
from vkharness.syncval.entries import DetectedHazard
from vkharness.syncval.event import Events
from vkharness.syncval.execution import Execution, Result
from vkharness.syncval.journal import LENGTH
from vkharness.syncval.query import QueryOperations
from vkharness.syncval.race import NO_RACING_WORK, RacingWork
from vkharness.syncval.range_store import MetSteps
from vkharness.syncval.sparse_bindings import SparseBindings
from vkharness.trace.effects import Access, Barrier, Command, EffectPlan
from vkharness.trace.query_effects import UseQueries
from vkharness.trace.recorded_commands import CommandColumns


def make_execution(
    context: Context,
    events: Events | None = None,
    queries: QueryOperations | None = None,
    bindings: SparseBindings | None = None,
) -> Execution:
    """An execution of the form that is in use."""
    kind = Execution if native.core is None else FormedExecution
    return kind(context, events, queries, bindings)


class PlanColumn:
    """The plans of a sequence of commands, and which commands are open."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self.commands = commands
        self._columns = commands if isinstance(commands, CommandColumns) else None
        self.plans: list[EffectPlan]
        """By place. There may be more of them than commands."""
        self._open: list[int]
        if self._columns is None:
            self.plans = [each.plan for each in commands]
            self._open = [at for at, each in enumerate(commands) if each.sure is not None]
        else:
            self.plans, self._open = self._columns.all_plans, []
        self._known = 0

    def next_open(self, begin: int, end: int) -> int:
        """The place of the first command, from a place on, of which contents of memory decide what it does."""
        if self._columns is not None and self._known != len(self._columns.sure):
            self._open = sorted(self._columns.sure)
            self._known = len(self._open)
        if not self._open:
            return end
        at = bisect_left(self._open, begin)
        return min(self._open[at], end) if at < len(self._open) else end


class FormedExecution(Execution):
    """An execution over a native store."""

    _column = PlanColumn(())
    """Those that were executed last."""
    _inside: Standpoint | None = None
    """The standpoint of the next command, where a render pass instance goes on of which all commands had forms."""
    _racing: RacingWork = NO_RACING_WORK
    """Who races with the current viewer there."""

    @cached_property
    def _maker(self) -> FormMaker:
        return FormMaker()

    def run(self, command: Command, queue_flags: int) -> list[Result]:
        """See `Execution.run`."""
        if self._inside is not None and any(type(effect) in OF_INSTANCES for effect in command.effects):
            self._inside = None
        return super().run(command, queue_flags)

    def run_ahead(
        self, commands: Sequence[Command], begin: int, end: int, queue_flags: int
    ) -> tuple[int, list[Result]]:
        """See `Execution.run_ahead`."""
        context = self.context
        first = here = self._standpoint(queue_flags)
        if first is None or here is None:
            return begin, []
        if self._column.commands is not commands:
            self._column = PlanColumn(commands)
        plans, end = self._column.plans, self._column.next_open(begin, end)
        outer = context.racing if self.instance is None else self.instance.racing
        context.store.set_clock(context.queue, outer.clock)
        journal = context.journal
        notes = LENGTH if journal.on else 0
        keeps = self.batch.submitted  # a recording is judged once
        at, made, hazards, results = begin, -1, list[DetectedHazard](), list[Result]()
        while at < end:
            run = context.store.run(plans, at, end, self.batch.next, here, notes, keeps)
            self.batch.next += run.stopped - at
            if notes and run.noted:
                journal.add_several(context.queue, self.batch.tag, run.noted, run.notes)
            results += self._operate(plans, at, run.stopped, queue_flags)
            at, here = run.stopped, run.standpoint
            if run.met:
                hazards = self._hazards(plans[at - 1], run.before, outer, run.met)
                if hazards:
                    break
            elif run.left or at in (made, end):
                break
            else:
                made = at
                self._make(plans[at], here)
        if here is not first:
            self._stand(here, outer)
        if hazards:
            number = self.batch.next - 1
            findings = results.pop().findings if results and results[-1].number == number else []
            results.append(Result(number, self._place(number), hazards, findings))
        return at, results

    def _operate(self, plans: list[EffectPlan], begin: int, end: int, queue_flags: int) -> list[Result]:
        """Does what commands that were executed do to queries, and to operations on events and queries that go on.
        Answers with those that met something so."""
        order, queries, queue = self.events.order, self.queries, self.context.queue
        results: list[Result] = []
        if not order.live and (queries is None or not queries.follows(queue)):
            return results
        for number, plan in enumerate(plans[begin:end], self.batch.next - (end - begin)):
            acts = plan.acts
            if acts is None:
                acts = plan.acts = tuple([each for each in plan.effects if type(each) is not Access])
            for effect in acts:
                if queries is not None and type(effect) is UseQueries:
                    place = self._place(number)
                    if found := queries.use(effect, place, queue_flags):
                        results.append(Result(number, place, [], found))
                    continue
                if queries is not None:
                    queries.close(queue)
                if isinstance(effect, Barrier):
                    order.after_barrier(effect, queue_flags)
        return results

    def _standpoint(self, queue_flags: int) -> Standpoint | None:
        """Where the next command stands; None where nobody knows."""
        context, inside = self.context, self._inside
        if self.batch.submitted and not context.queue:  # of a hostile trace: it would be taken for a recording
            return None
        if self.instance is None:
            if context.viewer != context.queue or context.racing.subpasses:
                return None
            races = context.racing is not NO_RACING_WORK
            return outside(context.queue, queue_flags, self.family, races, context.queue in context.closed)
        if inside is None or inside.queue_flags != queue_flags:
            return None
        return inside if context.viewer == inside.viewer and context.racing is self._racing else None

    def _stand(self, at: Standpoint, outer: RacingWork) -> None:
        """The next command stands there."""
        context = self.context
        if at.instance is None:
            self._inside = self.instance = None
        else:
            self._inside, self.instance = at, at.instance.copied(context, outer)
        context.viewer = at.viewer
        context.racing = self._racing = self._racing_at(at.racing, outer)
        if at.is_closed:
            context.closed.add(at.queue)
        else:
            context.closed.discard(at.queue)

    def _racing_at(self, noted: RacingWork, outer: RacingWork) -> RacingWork:
        """Who races now where forms say this."""
        return outer._replace(queue=self.context.queue, subpasses=noted.subpasses) if noted.subpasses else outer

    def _make(self, plan: EffectPlan, at: Standpoint) -> None:
        """Makes the form of a command; one that says that there is none where there is none. A flat plan needs none."""
        if plan.engine is False:
            return
        try:
            noted, behind = self._maker.made(at, plan)
            steps = tuple([each.step for each in noted])
        except NoForm:
            steps, behind = None, at
        plan.engine = self.context.store.form(plan.engine, at, behind, steps)

    def _hazards(self, plan: EffectPlan, at: Standpoint, outer: RacingWork, met: MetSteps) -> list[DetectedHazard]:
        """The hazards of a command that was executed: the rules are asked about what it met."""
        context = self.context
        before = context.viewer, context.racing
        noted = self._maker.noted(at, plan)
        hazards: list[DetectedHazard] = []
        for number, (begin, end, entry) in met:
            each, span = noted[number], (begin, end)
            context.viewer, context.racing = each.viewer, self._racing_at(each.racing, outer)
            assert each.access is not None, "only accesses and transitions meet something"
            if each.sources is None:
                hazards += context.access_hazards(span, entry, each.access)
            else:
                hazards += context.transition_hazards(span, entry, each.access, each.sources)
        context.viewer, context.racing = before
        return hazards
