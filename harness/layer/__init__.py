"""Room: layer."""
