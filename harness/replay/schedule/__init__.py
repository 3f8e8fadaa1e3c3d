"""The steps of a recorded stream, and the orders in which they may run. Nothing here needs a device."""
