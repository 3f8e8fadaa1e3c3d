"""Judge a trace in Python, on a machine without a driver: which pairs of lines race, and how often.

The trace may also be a converted GFXReconstruct capture. `vkharness check` does the same from the shell.

    $ vkharness run --trace two_submits.jsonl examples/two_submits.py  # exits 1
    $ VK_DRIVER_FILES=/none python examples/check_trace.py two_submits.jsonl
    verdict: hazards
      1 x READ_AFTER_WRITE: examples/two_submits.py:77 after examples/two_submits.py:76
      1 x WRITE_AFTER_WRITE: examples/two_submits.py:84 after examples/two_submits.py:83
      ...
"""

import sys
from collections import Counter
from pathlib import Path

from vkharness.check import Analysis
from vkharness.trace.codec import read_trace

judged = Analysis().follow(read_trace(Path(sys.argv[1])))
print("verdict:", judged.verdict)
pairs = Counter((str(found.hazard), found.place.site, found.prior.site) for found in judged.findings)
for (hazard, site, prior_site), count in pairs.items():
    print(f"  {count} x {hazard}: {site} after {prior_site}")
for name in judged.unmodelled:
    print("  not modelled:", name)
