"""Root of the test configuration: what every test directory shares."""

from __future__ import annotations

pytest_plugins = ["pytester"]
