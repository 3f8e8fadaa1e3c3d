"""Advice: dependencies of a trace that order nothing, are wider than any access needs, or could be one.

`written` finds the dependencies, `smaller_forms` what is less than one of them, `overlap` what one serializes. `advise`
asks both judges about each change.
"""
