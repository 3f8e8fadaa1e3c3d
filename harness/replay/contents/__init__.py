"""Contents of buffers and images on the device of the replay: read back, put back, observed and compared."""
