"""Draws, dispatches' shared bindings, and the state that decides what they access."""
