"""Asks for advice on every whole scenario; no dependency without which it has a hazard may be called needless.

python -m bench.advise_scenarios [PATH]...
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from vkharness.suite.advise_scenarios import advise_scenarios
from vkharness.suite.mutation.judge_mutants import claims

ROOT = Path(__file__).resolve().parents[1]


def main(paths: list[str]) -> None:
    """Prints each dependency that is called needless and is not, then the counts."""
    counts: Counter[str] = Counter()
    for each in advise_scenarios(claims([Path(path) for path in paths] or [ROOT / "scenarios"]), "lavapipe", 1):
        counts["not recorded here" if each["problem"] else "scenarios"] += 1
        counts.update(each.get("kinds", {}))
        for name in each.get("needless", ()):
            counts["needed and called needless"] += 1
            print(f"{each['scenario']}: {name!r} is called needless")
    print(", ".join(f"{number} {what}" for what, number in counts.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
