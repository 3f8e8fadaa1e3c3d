"""The operation matrix: every pair of operations on one resource, ordered by each primitive, with each thing wrong."""
