"""Barriers, events, semaphores, submits, and secondary command buffers that bring their own."""
