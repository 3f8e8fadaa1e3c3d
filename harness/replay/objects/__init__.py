"""Objects of a recorded stream, made anew on the device of the replay."""
