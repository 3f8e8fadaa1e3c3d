"""Mutation score: each named dependency of a scenario with one piece dropped or weakened; who notices?

A mutant that the model calls legal must leave every judge silent, any other must be caught.
"""
