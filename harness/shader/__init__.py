"""Room: shader."""
