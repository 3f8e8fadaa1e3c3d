"""Streams of effects as short text: what it says (`stream_text`), and how a trace becomes one (`trace_text`)."""
