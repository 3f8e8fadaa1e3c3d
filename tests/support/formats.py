"""Written files, held against the schemas of their formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jsonschema import Draft202012Validator

from vkharness.schemas import schema


def closed(value: Any) -> Any:
    """The schema without room for members that it does not name."""
    if isinstance(value, list):
        return [closed(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {key: closed(each) for key, each in value.items()}
    return {"additionalProperties": False, **made} if isinstance(value.get("properties"), dict) else made


def require_documented(name: str, values: Iterable[Any]) -> None:
    """Each value fits the schema, and has no member that it does not name."""
    validator = Draft202012Validator(closed(schema(name)))
    several = list(values)
    assert several, "nothing was written"
    for value in several:
        validator.validate(value)
