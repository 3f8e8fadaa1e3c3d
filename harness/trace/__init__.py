"""Room: trace."""
