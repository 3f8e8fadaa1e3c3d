"""vkharness: mirrors Vulkan calls into a synchronization validator and shows the hazards it finds.

`vkharness.attach()` is the way in. Nothing here needs a Vulkan loader, driver or layer to be imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vkharness.findings import Finding
    from vkharness.record.session import Session
    from vkharness.record.session_stream import StreamJudge
    from vkharness.trace.calls import Block

__all__ = ["Finding", "Session", "__version__", "attach", "host_read"]

__version__ = "0.1.0"
"""The version of the distribution, which the build reads here."""


def attach(
    *,
    mirror: StreamJudge | None = None,
    keep_trace: bool = False,
    sink: Callable[[Block], None] | None = None,
    on_finding: Callable[[Finding], None] | None = None,
    keep_alive: bool = True,
    bounds: bool = False,
    eager: bool | None = None,
    strict: bool = False,
) -> Session:
    """Mirrors every Vulkan call that this process makes through the `vulkan` package, until `Session.detach()`.

    Works before and after the program imports `vulkan`, and as a context manager. `mirror` judges the calls (by default
    a new `vkharness.check.Analysis`); `keep_trace` keeps all blocks in `Session.blocks`; `sink` gets each block and
    `on_finding` each finding as it comes up; `keep_alive` mends the package's lifetime bug (realitix/vulkan 94).
    `bounds` judges the most that draws could reach, too, where contents of memory are unknown. With `strict`
    each hazard counts, also those that only the letter of the specification calls so (docs/hazards.md).
    Findings in a command buffer come up when it is ended; without `on_finding` when somebody asks for findings. With
    `eager`, or with VKHARNESS_EAGER=1 in the environment, each comes up with the call that records the second access,
    where a debugger can stop; that takes longer.
    `UserError` when a session is attached already.
    """
    from vkharness.record.session import Session

    if mirror is None:
        if bounds or on_finding is not None:
            from vkharness.check import Analysis

            mirror = Analysis(keep_events=keep_trace, bounds=bounds, eager=eager, strict=strict)
        else:
            from vkharness.late_analysis import LateAnalysis

            mirror = LateAnalysis(keep_events=keep_trace, eager=eager, strict=strict)
    session = Session(mirror, keep_trace=keep_trace, sink=sink, on_finding=on_finding, keep_alive=keep_alive)
    try:
        return session.start()
    except BaseException:  # also what is raised here when it has returned: nobody gets the session then
        session.detach()
        raise


def host_read(target: Any, offset: int = 0, size: int | None = None) -> None:
    """Tells the session, if one is attached, that the program reads mapped memory here: see `Session.host_read`."""
    from vkharness.record.proxy import current
    from vkharness.record.session import Session

    session = current()
    if isinstance(session, Session):
        session.host_read(target, offset, size)


def __getattr__(name: str) -> Any:
    if name == "Finding":
        from vkharness.findings import Finding

        return Finding
    if name == "Session":
        from vkharness.record.session import Session

        return Session
    raise AttributeError(f"module 'vkharness' has no attribute {name!r}")
