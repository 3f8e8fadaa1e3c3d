"""Barriers, events, semaphores, submits, and secondary command buffers."""
