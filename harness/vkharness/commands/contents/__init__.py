"""The contents of device memory as far as the calls tell them, and accesses of commands that depend on them."""
