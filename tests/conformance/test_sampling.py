"""Which conformance cases are drawn, and which share a process."""

from bench.conformance.sample import batches, halves, sample

CASES = [f"dEQP-VK.group.case_{number}" for number in range(50)]


def test_a_seed_draws_the_same_cases_each_time() -> None:
    assert sample(CASES, 10, 7) == sample(CASES, 10, 7)
    assert sample(CASES, 10, 7) != sample(CASES, 10, 8)


def test_a_longer_run_begins_with_the_cases_of_a_shorter_one() -> None:
    assert sample(CASES, 30, 7)[:10] == sample(CASES, 10, 7)


def test_each_case_is_drawn_once_at_most() -> None:
    assert sorted(sample(CASES, 1000, 7)) == sorted(CASES)


def test_batches_hold_every_case_in_order() -> None:
    made = batches(CASES, 20)
    assert [len(each) for each in made] == [20, 20, 10]
    assert [case for batch in made for case in batch] == CASES


def test_halves_hold_every_case_and_neither_is_empty() -> None:
    assert halves(["a", "b", "c"]) == [["a", "b"], ["c"]]
    assert halves(["a", "b"]) == [["a"], ["b"]]
