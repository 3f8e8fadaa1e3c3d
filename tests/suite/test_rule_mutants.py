"""Mutants of the judges: what they change, that a wrong judge is noticed, and that the right one is not."""

from __future__ import annotations

import pytest

from vkharness.suite.mutation.rule_coverage import functions_run
from vkharness.suite.mutation.rule_judging import Corpus, Noticed, judge_deciders, judged
from vkharness.suite.mutation.rule_mutants import EQUIVALENT, RuleMutant, deciders, rule_mutants
from vkharness.suite.mutation.rule_score import needless_entries, noticed_rules, unnoticed_functions
from vkharness.text_form.stream_text import parse

HAZARD = "submit q1\n    COPY_TRANSFER_WRITE a\n    COPY_TRANSFER_READ a\n"
BARRIER = "    barrier COPY/TRANSFER_WRITE > COPY/TRANSFER_READ\n"
CLEAN = HAZARD.replace("    COPY_TRANSFER_READ", f"{BARRIER}    COPY_TRANSFER_READ")


def judge_each(mutants: list[RuleMutant], corpus: Corpus) -> list[Noticed]:
    return [noticed for _, (noticed,) in judge_deciders([[each] for each in mutants], corpus, 1)]


def test_every_mutant_has_a_name_of_its_own_and_each_judge_at_least_sixty_rules() -> None:
    mutants = rule_mutants()
    assert len({(each.decider, each.number) for each in mutants}) == len(mutants)
    for judge in ("syncval", "model"):
        assert len({each.decider for each in mutants if each.judge == judge}) >= 60


@pytest.mark.parametrize("text", [HAZARD, CLEAN])
def test_a_rule_that_reads_need_no_order_is_noticed(text: str) -> None:
    mutants = [each for each in rule_mutants() if each.decider == "vkharness.syncval.access:_read_conflicts"]
    corpus = Corpus([judged("a scenario", parse(text), shown=text == HAZARD)])
    corpus.random = corpus.kept = corpus.scenarios
    noticed = judge_each(mutants, corpus)
    assert any(each.pixels if text == HAZARD else each.scenarios for each in noticed)
    for each in noticed:
        assert bool(each.scenarios) == bool(each.agreement) == bool(each.kept)
        assert not each.pixels or text == HAZARD


def test_each_stream_has_the_functions_that_it_alone_would_run() -> None:
    streams = [parse(HAZARD), parse(CLEAN), parse(HAZARD)]
    first, second, third = functions_run(streams, 1)
    assert first == third and first == functions_run([parse(CLEAN), parse(HAZARD)], 1)[1]
    assert second - first >= {"vkharness.syncval.barrier:view_after", "vkharness.model.rules.barrier:pipeline_barrier"}


def test_only_streams_that_run_a_function_are_judged_for_its_mutants() -> None:
    corpus = Corpus([judged("one", parse(HAZARD), shown=True)], [judged("two", parse(CLEAN), shown=False)]).covered(1)
    assert [
        len(corpus.of(each).scenarios)
        for each in ("vkharness.syncval.access:_read_conflicts", "vkharness.syncval.event:Events.set")
    ] == [1, 0]
    assert [each.name for each in corpus.of("vkharness.model.rules.barrier:pipeline_barrier").kept] == ["two"]


def test_a_corpus_that_says_nothing_notices_nothing() -> None:
    mutants = rule_mutants()[:3]
    noticed = judge_each(mutants, Corpus())
    assert {str(each.mutant) for each in noticed} == {str(each) for each in mutants} and not any(noticed)
    assert unnoticed_functions(noticed) == sorted({each.decider for each in mutants})


def test_a_rule_is_noticed_when_one_of_its_mutants_is() -> None:
    one, other = rule_mutants()[:2]
    assert one.decider == other.decider
    assert unnoticed_functions([Noticed(one, scenarios="a row"), Noticed(other)]) == []


def test_what_changes_no_finding_need_not_be_noticed_and_an_entry_that_is_noticed_is_needless() -> None:
    marked = [each for each in rule_mutants() if each.decider in EQUIVALENT]
    assert {each.decider for each in marked} == EQUIVALENT.keys()
    assert unnoticed_functions([Noticed(each) for each in marked]) == []
    assert needless_entries([Noticed(marked[0], kept="a stream"), *map(Noticed, marked[1:])]) == [marked[0].decider]


def test_a_part_of_a_condition_of_two_parts_is_left_out() -> None:
    (two,) = [
        each for each in rule_mutants() if each.function == "_is_known" and "ordering.chain` left out" in each.change
    ]
    (noticed,) = judge_each([two], Corpus(kept=[judged("one", parse(HAZARD), shown=True)]))
    assert not noticed.error


def test_each_judge_decides_at_least_sixty_rules_by_functions_that_can_be_changed() -> None:
    cited = deciders()
    for judge in ("syncval", "model"):
        assert len({anchor for anchor, of in cited if of == judge}) >= 60
    assert frozenset().union(*cited.values()) <= {each.decider for each in rule_mutants()}
    assert cited["a-transition-is-a-write", "syncval"] == {"vkharness.syncval.layout_transition:_hazard"}


def test_a_function_is_changed_until_somebody_notices() -> None:
    hazard = judged("hazard", parse(HAZARD), shown=True)
    mutants = [each for each in rule_mutants() if each.decider == "vkharness.syncval.access:_read_conflicts"]
    ((_, tried),) = judge_deciders([mutants], Corpus(kept=[hazard]), 1)
    assert 1 <= len(tried) < len(mutants)
    assert [each.kept for each in tried] == [""] * (len(tried) - 1) + ["hazard"]


def test_a_rule_of_which_a_mutant_only_raises_is_not_noticed() -> None:
    one, other = rule_mutants()[:2]
    cited = {("a-rule", "syncval"): {one.decider}}
    raised, seen = [Noticed(one, error="KeyError")], [Noticed(one, error="KeyError"), Noticed(other, kept="a stream")]
    assert [each.ways for each in noticed_rules(cited, {one.decider: raised})] == [frozenset()]
    assert [each.ways for each in noticed_rules(cited, {one.decider: seen})] == [frozenset({"kept"})]
