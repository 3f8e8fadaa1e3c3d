"""Builders of the tables of `harness/spec/_generated.py`, one module a subject. Used by `ci/gen_spec.py` only."""
