"""A hunt for what a failing driver does to a run: rows, cells and replays on a driver in which one call fails.

leaks.py        what a run must not leave: processes, files, descriptors, threads
subjects.py     what is run, and the states of its rows
fault_hunt.py   random faults, one after the other, and what each must come to
"""
