"""A driver of our own that hands every call on to another driver and lets one call fail, hang, crash or lose its
device: it shows what becomes of a run when a driver does that.

`driver.c` is the driver, `fault_driver.py` builds it, and `fault_plan.py` says which call is to fail.
"""
