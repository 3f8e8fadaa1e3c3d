"""Bytes that a stream must leave, computed on the host from the trace alone: no driver is asked.

A run on a driver is compared with a serial run of the same driver in most places, which a driver that computes wrongly
passes. What is computed here follows from the specification: host writes, fills, updates, copies, clears and host
reads, render pass instances and the shaders of dispatches and draws, by code of its own. What it does not follow makes
the bytes that it may write *unknown*, and unknown bytes are compared with nothing.

| module | contents |
|---|---|
| `bound_resources` | buffers and images of a trace, and where they lie |
| `known_cells` | bytes with a mask that says which of them are known |
| `clear_values` | the bytes of a texel that a clear value gives |
| `shared_memory` | images that share memory with other resources |
| `sparse_windows` | sparse resources, and the memory that is bound to them |
| `followed_transfers` | one function for each command that is followed |
| `scaled_copies` | blits between images of one format |
| `executed_shaders` | what a dispatch leaves: its shader is executed |
| `many_invocations` | dispatches of many invocations at once |
| `shader_images` | images and texel buffers as shaders read and write them |
| `sampled_images` | samples that are the same with each sampler of the trace |
| `texel_values` | texels in memory as values of shaders, and back |
| `render_pass_instances` | load, store and resolve operations, layout transitions and clears of attachments |
| `attachment_texels` | the texels of an area of an attachment |
| `draw_state` | pipelines, vertex buffers and dynamic state of draws |
| `drawn_vertices` | the vertices of draws, from indices, parameters and attributes |
| `covered_pixels` | the pixels that points and triangles certainly cover |
| `fragment_targets` | depth and stencil tests, and writes of colours |
| `captured_points` | what transform feedback captures of points, and its counters |
| `followed_draws` | what a draw leaves: its shaders are executed |
| `followed_rendering` | commands of render pass instances |
| `fetched_samples` | the samples of multisampled images as they are observed |
| `query_results` | what copies of query results write |
| `expected_bytes` | a whole trace, in submission order; beside what a run left |
"""
