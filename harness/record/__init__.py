"""Room: record. Mirrors the calls that this process makes through the `vulkan` package into a stream of blocks.

proxy      puts itself between the package and C, and takes itself away again
forward    one function a command: decode, forward, decode what came back, record
decode     C memory to normal form, by the generated tables
layout     how the C compiler lays out what the tables name
objects    handles to ids that are never reused
mapped     bytes that changed in mapped memory
writes     what executing a command buffer may write
work       submissions that the host does not know to be done
host       these three together: host writes, in their place in the stream
sites      the Python line that made a call
lifetime   keeps alive what the package lets die too early
session    the stream, its order, and what the mirror found
program    runs a program as `__main__` under a session
"""
