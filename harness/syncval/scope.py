"""Dependencies as the rules need them: masks expanded for the queue that executes them.

rules.md#scopes-stages-and-accesses.
"""

from __future__ import annotations

import functools

from harness.spec.scopes import access_scope, execution_scope_dst, execution_scope_src
from harness.syncval.barrier import Scope
from harness.trace.effects import Dependency


@functools.lru_cache(maxsize=1 << 14)
def expand(dependency: Dependency, queue_flags: int) -> Scope:
    """Execution scopes reach to logically earlier and later stages; access scopes stay with the stages given."""
    src, dst = dependency.src_stages, dependency.dst_stages
    return Scope(
        execution_scope_src(src, queue_flags),
        access_scope(src, dependency.src_accesses, queue_flags),
        execution_scope_dst(dst, queue_flags),
        access_scope(dst, dependency.dst_accesses, queue_flags),
    )
