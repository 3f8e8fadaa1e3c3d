"""What device memory holds, as far as the calls say, and what commands access because of it."""
