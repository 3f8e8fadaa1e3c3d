"""Buffers, images, acceleration structures, queries and swapchains: made, bound to memory, destroyed."""
