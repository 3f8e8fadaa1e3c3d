"""The rules, a family a file. Each function is one rule, stated above it; importing a family registers its rules."""

from harness.model.rules import action, barrier, event, host, presentation, recording, semaphore, submit, subpass  # noqa: F401
