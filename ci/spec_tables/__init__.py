"""Builders of the tables of `vkharness.spec._generated`, one module a subject. Used by `ci/gen_spec.py` only."""
