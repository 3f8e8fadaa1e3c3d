"""What the reader of traces needs of msgspec, which no browser has: one value of JSON, read and written."""

from __future__ import annotations

import json as _json
from typing import Any


class MsgspecError(Exception):
    """Never raised here: bad JSON is a ValueError."""


class json:
    """As the module of that name."""

    class Decoder:
        """Reads a value."""

        def decode(self, data: bytes) -> Any:
            """The value of some bytes."""
            return _json.loads(data)

    class Encoder:
        """Writes a value."""

        def encode(self, value: Any) -> bytes:
            """The bytes of a value, with nothing between."""
            return _json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
