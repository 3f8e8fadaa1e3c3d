"""Mends every twin of the scenarios that lacks a dependency, and compares the mends with what the scenarios name.

python -m bench.mend_scenarios [PATH]...
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from vkharness.suite.mend_scenarios import mend_scenarios
from vkharness.suite.observe_scenarios import scenarios

ROOT = Path(__file__).resolve().parents[1]


def main(paths: list[str]) -> None:
    """Prints what is not mended or wider, then the counts."""
    counts: Counter[str] = Counter({"mended": 0, "not mended": 0})
    how: Counter[str] = Counter()
    for twin in mend_scenarios(scenarios([Path(path) for path in paths] or [ROOT / "scenarios"]), "lavapipe", 1):
        title = f"{twin['scenario']} without {twin['dependency']!r}"
        if twin["problem"]:
            counts["cannot be recorded here"] += 1
            continue
        how.update(twin["how"])
        counts["not mended" if twin["open"] else "mended"] += 1
        if twin["open"] or twin["wider"]:
            print(f"{title}: open {twin['open']}, not needed {twin['wider']}")
        if twin["beyond"]:
            print(f"{title}: beyond the named dependency: {', '.join(twin['beyond'])}")
        if twin["beyond"] is not None:
            counts["more than named" if twin["beyond"] else "no more than the named dependency"] += 1
    print(", ".join(f"{number} {what}" for what, number in counts.items()))
    print(", ".join(f"{number} by {what}" for what, number in how.most_common()))


if __name__ == "__main__":
    main(sys.argv[1:])
