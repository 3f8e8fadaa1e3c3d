"""What the suite's output says of each case."""

from bench.conformance.suite_log import DIED, NOT_RUN, statuses

PRINTED = """\
Writing test log into /dev/null
a tool (of some version)
Test case 'dEQP-VK.a.passes'..
  Pass (OK)
Test case 'dEQP-VK.a.misses'..
vkharness: a line of somebody else
  NotSupported (feature (in brackets) at file.cpp:12)
Test case 'dEQP-VK.a.fails'..
  Fail (Image mismatch)

DONE!
"""


def test_each_case_has_the_word_behind_its_name() -> None:
    asked = ["dEQP-VK.a.passes", "dEQP-VK.a.misses", "dEQP-VK.a.fails"]
    assert statuses(PRINTED, asked) == dict(zip(asked, ("Pass", "NotSupported", "Fail"), strict=True))


def test_a_case_without_a_result_died_and_those_behind_it_did_not_run() -> None:
    printed = "Test case 'dEQP-VK.a.one'..\n  Pass (OK)\nTest case 'dEQP-VK.a.two'..\n"
    assert statuses(printed, ["dEQP-VK.a.one", "dEQP-VK.a.two", "dEQP-VK.a.three"]) == {
        "dEQP-VK.a.one": "Pass",
        "dEQP-VK.a.two": DIED,
        "dEQP-VK.a.three": NOT_RUN,
    }


def test_results_without_a_case_say_nothing() -> None:
    assert statuses("  Pass (OK)\n", ["dEQP-VK.a.one"]) == {"dEQP-VK.a.one": NOT_RUN}
