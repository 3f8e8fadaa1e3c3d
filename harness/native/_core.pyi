from typing import Any

SOURCES: int
"""`checksum()` of the sources that it was built of."""
SpanMap: Any
"""As `harness.spans.PythonSpanMap`."""
