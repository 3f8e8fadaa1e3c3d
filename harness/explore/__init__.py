"""Room: explore."""
