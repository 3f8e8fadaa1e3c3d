"""What pytest loads wherever vkharness is installed: `harness.pytest_plugin`, unless the project has a `harness` too.

A project may have a folder `harness` of its own. Then `import harness` has to give its own, also in its tests. So the
options of this plugin are missing there, and one line says why.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path

OURS = Path(__file__).resolve().with_name("harness")


def _hidden_by() -> str | None:
    """The file of a package or module `harness` in the current folder that is not ours; None when there is none.

    A folder without `__init__.py` hides nothing: an installed package comes before it.
    """
    if "harness" in sys.modules:  # `vkharness suite` runs pytest in its own process
        origin = sys.modules["harness"].__file__
    else:
        found = PathFinder.find_spec("harness", [str(Path.cwd())])
        origin = None if found is None else found.origin
    return origin if origin is not None and Path(origin).resolve().parent != OURS else None


_HIDDEN_BY = _hidden_by()
pytest_plugins = ["harness.pytest_plugin"] if _HIDDEN_BY is None else []


def pytest_report_header() -> str | None:
    """The one line."""
    if _HIDDEN_BY is None:
        return None
    return f"vkharness: no option --vk-... here, because {_HIDDEN_BY} hides the package of that name"
