"""The second opinion: the execution and memory dependency order of a trace, written from the specification to be read.

It shares nothing with `syncval` but the trace and the tables of Vulkan. `judge(blocks)` gives an `Opinion`.
"""

from harness.model.judge import judge, judge_stream_events
from harness.model.opinion import Conflict, ModelAccess, Opinion

__all__ = ["Conflict", "ModelAccess", "Opinion", "judge", "judge_stream_events"]
