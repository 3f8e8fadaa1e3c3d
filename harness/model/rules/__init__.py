"""The rules, a family a file. Each function is one rule, stated above it; importing a family registers its rules."""

from harness.model.rules import (  # noqa: F401
    action,
    barrier,
    event,
    host,
    ownership,
    presentation,
    recording,
    semaphore,
    submit,
    subpass,
)
