"""Mutation score: each named dependency of a scenario with one piece dropped or weakened, and which judges notice.

A mutant that the model calls legal must leave every judge silent. Any other mutant must be caught.
"""
