"""Room: device."""
