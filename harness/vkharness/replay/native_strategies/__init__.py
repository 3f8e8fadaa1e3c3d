"""Ways to run a stream as recorded in which a missing dependency shows more often: `table.STRATEGIES` has them all.

None of them changes what a correctly synchronized stream leaves, on a driver that keeps its promises.
"""
