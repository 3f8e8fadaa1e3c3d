"""Room: spec."""
