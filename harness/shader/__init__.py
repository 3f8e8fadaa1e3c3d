"""Room: shader. What a pipeline stage touches, read from its SPIR-V; and the project's own shaders by name."""
