"""Captures of programs that make their Vulkan calls elsewhere than through the `vulkan` package.

The capture layer of GFXReconstruct writes the calls of each process into a file (`layer`). A program runs under it with
its own standard streams (`launch`), on a display that is made for it if there is none (`display`). `vkharness.trace`
reads the files.
"""
