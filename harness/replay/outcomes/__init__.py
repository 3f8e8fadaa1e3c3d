"""Outcomes of a stream: each module turns the steps of a trace into the plan of one run, and runs it."""
