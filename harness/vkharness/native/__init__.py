"""The native core: parts of the harness in C++, for the one reason that they are faster. Chosen once a process, here.

Each part exists in Python, too, under the same interface. That one is what the native part is held against in tests. It
runs where no core was built (no compiler), where the core is older than its sources, with `VKHARNESS_PURE=1`, and in
all interpreters of a process but the first one that asks.
`vkharness drivers` says which is in use.
"""

from __future__ import annotations

from types import ModuleType

from vkharness.native.build import checksum, is_refused


def _chosen() -> tuple[ModuleType | None, str]:
    if is_refused():
        return None, "pure Python (VKHARNESS_PURE is set)"
    try:
        from vkharness.native import _core
    except ImportError as error:
        if error.name is None:  # the core itself refuses
            return None, f"pure Python ({error})"
        return None, "pure Python (no native core was built: that needs g++ and Python's headers at installation)"
    if checksum() != _core.SOURCES:
        return None, "pure Python (the native core is older than its sources: ci/setup builds it anew)"
    return _core, "native core"


core, in_use = _chosen()
"""The module of the native parts, None where Python does everything; and that in words."""
