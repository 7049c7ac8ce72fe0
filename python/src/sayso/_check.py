"""Checks that what the hub sends has the form that the description of the agent API gives it."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from ._agent_api import NOTIFICATIONS, RESULTS, SCHEMAS
from .errors import MalformedResponse

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def check_result(method: str, result: object) -> dict[str, Any]:
    """Returns the result of a method. Raises :class:`MalformedResponse` if it has another form."""
    return check(RESULTS[method], result, f"the result of {method}")


def check_notification(method: str, params: object) -> dict[str, Any] | None:
    """Returns the parameters of a notification, or None if it is unknown: newer hubs may send other notifications."""
    schema = NOTIFICATIONS.get(method)
    return None if schema is None else check(schema, params, method)


def check(schema: str, value: object, name: str) -> dict[str, Any]:
    """Returns an object of this schema. Members that the schema does not name are permitted."""
    fault = _find_fault(value, SCHEMAS[schema])
    if fault is not None or not isinstance(value, dict):
        raise MalformedResponse(f"{name} is malformed: {fault}")
    return value


def _find_fault(value: object, schema: Mapping[str, Any], path: str = "") -> str | None:
    if "enum" in schema and value not in schema["enum"]:
        return f"{path or 'it'} has an unknown value"
    if "type" in schema and not _has_type(value, schema["type"]):
        return f"{path or 'it'} is not of the type {schema['type']}"
    if isinstance(value, str):
        pattern = schema.get("pattern")
        return None if pattern is None or _compiled(pattern).search(value) else f"{path} does not match {pattern}"
    if isinstance(value, dict):
        return _find_fault_in_object(value, schema, path)
    if isinstance(value, list) and "items" in schema:
        faults = (_find_fault(item, schema["items"], f"{path}/{index}") for index, item in enumerate(value))
        return next((fault for fault in faults if fault is not None), None)
    return None


def _find_fault_in_object(value: Mapping[str, object], schema: Mapping[str, Any], path: str) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{path}/{name} is missing"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name, member in value.items():
        described = properties.get(name, others if isinstance(others, dict) else None)
        fault = None if described is None else _find_fault(member, described, f"{path}/{name}")
        if fault is not None:
            return fault
    return None


def _has_type(value: object, kinds: str | list[str]) -> bool:
    names = [kinds] if isinstance(kinds, str) else kinds
    # For Python a truth value is a number, for JSON it is not.
    return any(isinstance(value, _TYPES[name]) and (name == "boolean" or not isinstance(value, bool)) for name in names)


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # `$` would also match before a line break at the end.
    return re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)
