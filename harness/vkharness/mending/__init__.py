"""Mending: for each group of findings the smallest dependency that orders it, proved on the mended trace.

`candidates` makes changes of the trace, the smallest first; `proof` asks both judges about them; `minimality` takes
away what is not needed. `mend` puts them together.
"""
