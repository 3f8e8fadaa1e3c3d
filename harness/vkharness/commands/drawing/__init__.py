"""Draws, the bindings that dispatches share with them, and the state that decides their accesses."""
