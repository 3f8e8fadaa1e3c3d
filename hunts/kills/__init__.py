"""Commands of vkharness that are killed at chosen points, and what they leave.

tracing.py           a command under `ptrace`, whose operations on files are counted and of which one is the last
killed_commands.py   the commands, how they are started and how they go on
left.py              what a killed command left, held against what an undisturbed one leaves
kill_campaign.py     random points, one after the other, and the file from which a campaign goes on
"""
