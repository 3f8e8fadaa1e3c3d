"""Commands of vkharness that are killed at chosen points, and what they leave.

tracing.py    a command under `ptrace`, whose operations on files are counted and of which one is the last
commands.py   the commands, and what they leave when nothing happens to them
left.py       what a killed command left, held against that
campaign.py   random points, one after the other, and the file from which it goes on
"""
