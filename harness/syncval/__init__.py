"""Room: syncval."""
