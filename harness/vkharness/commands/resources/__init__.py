"""Buffers, images, acceleration structures, queries and swapchains: creation, binding and destruction."""
