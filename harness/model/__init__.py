"""The second opinion: the execution and memory dependency order of a trace, written from the specification to be read.

It shares nothing with `syncval` but the trace and the tables of Vulkan. `judge(blocks)` gives an `Opinion`.
"""

from harness.model.judge import judge, judge_occurrences
from harness.model.opinion import Conflict, Opinion, Use

__all__ = ["Conflict", "Opinion", "Use", "judge", "judge_occurrences"]
