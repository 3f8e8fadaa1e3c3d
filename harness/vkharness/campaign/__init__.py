"""Campaigns: a hunt over so many seeds that one process, one machine or one night is not enough.

The work is a range of seeds, cut into **chunks**. A chunk is a function of the plan and of its own number alone. So any
chunk can be done anywhere, lost, and done again with the same result. Workers of a Dask cluster do the chunks; a worker
that dies is replaced, and its chunk is given to another. What a chunk found is one line of an append-only file, synced
before the chunk counts as done. A campaign that was stopped reads that file and does the rest.

    plan.py      what a campaign is: kind of work, seed, count, size of a chunk; its chunks
    kinds.py     each kind of work: what one chunk does on a worker
    record.py    the file of results: written chunk by chunk, read again, grouped by cause
    cluster.py   chunks on a Dask cluster: a local one, or the one behind a scheduler's address

The chunks of a plan cover its seeds, each once:

>>> from vkharness.campaign.plan import Plan
>>> [(chunk.first, chunk.count) for chunk in Plan("agreement", seed=1, count=500, size=200).chunks()]
[(0, 200), (200, 200), (400, 100)]
"""
