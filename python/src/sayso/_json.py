"""Canonical JSON (RFC 8785) and the digest to which a person's answer is bound."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import hashlib
import json
import math
import pathlib
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from .errors import InvalidRequest

#: The largest integer that every JSON reader reads exactly.
MAX_EXACT_INTEGER = 2**53 - 1

#: The maximum nesting of an argument. Deeper values cannot be bound.
MAX_DEPTH = 64

JsonValue = None | bool | int | float | str | list[Any] | dict[str, Any]


def to_json_value(value: Any, depth: int = 0) -> Any:
    """Converts a value to plain JSON types without losing information: different values stay different.

    Raises :class:`InvalidRequest` for a value to which no answer can be bound.
    """
    if depth > MAX_DEPTH:
        raise InvalidRequest(f"an argument is nested more than {MAX_DEPTH} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, enum.Enum):
        return to_json_value(value.value, depth + 1)
    if isinstance(value, str):
        if any(0xD800 <= ord(char) <= 0xDFFF for char in value):
            raise InvalidRequest("an argument contains a lone surrogate, which no JSON text can hold")
        return str(value)
    if isinstance(value, int):
        return int(value) if abs(value) <= MAX_EXACT_INTEGER else str(int(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, decimal.Decimal | uuid.UUID | pathlib.PurePath):
        return str(value)
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return f"{value.total_seconds()} s"
    if isinstance(value, bytes | bytearray):
        return "base64:" + base64.b64encode(bytes(value)).decode("ascii")
    if isinstance(value, Mapping):
        members: dict[str, Any] = {}
        for key, member in value.items():
            name = to_json_value(key, depth + 1)
            if not isinstance(name, str):
                raise InvalidRequest(f"the key {key!r} of an argument is not a string")
            if name in members:
                raise InvalidRequest(f"an argument has the key {name!r} twice")
            members[name] = to_json_value(member, depth + 1)
        return members
    if isinstance(value, AbstractSet):
        items = [to_json_value(item, depth + 1) for item in value]
        return sorted(items, key=canonical_json)
    if isinstance(value, Sequence):
        return [to_json_value(item, depth + 1) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return to_json_value(fields, depth + 1)
    dump = getattr(value, "model_dump", None)  # Pydantic models
    if callable(dump) and not isinstance(value, type):
        return to_json_value(dump(mode="python"), depth + 1)
    raise InvalidRequest(
        f"an answer cannot be bound to a value of type {type(value).__name__}; "
        "list the argument in `skip` if it does not affect what is done"
    )


def canonical_json(value: Any) -> str:
    """Returns the canonical form of a value of plain JSON types."""
    out: list[str] = []
    _write(value, out)
    return "".join(out)


def digest(tool: str, arguments: Mapping[str, Any]) -> str:
    """Returns the digest of a call, as it appears in the hub's receipts."""
    text = canonical_json({"arguments": arguments, "tool": tool})
    return "sha256:" + hashlib.sha256(text.encode("utf-8")).hexdigest()


def _write(value: Any, out: list[str]) -> None:
    if value is None:
        out.append("null")
    elif isinstance(value, bool):
        out.append("true" if value else "false")
    elif isinstance(value, str):
        out.append(_quote(value))
    elif isinstance(value, int):
        if abs(value) > MAX_EXACT_INTEGER:
            raise InvalidRequest(f"the number {value} would be rounded; write it as a text")
        out.append(str(value))
    elif isinstance(value, float):
        out.append(format_number(value))
    elif isinstance(value, Mapping):
        out.append("{")
        for index, key in enumerate(sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))):
            if index:
                out.append(",")
            out.append(_quote(key))
            out.append(":")
            _write(value[key], out)
        out.append("}")
    elif isinstance(value, Sequence):
        out.append("[")
        for index, item in enumerate(value):
            if index:
                out.append(",")
            _write(item, out)
        out.append("]")
    else:
        raise InvalidRequest(f"{type(value).__name__} is not a JSON type")


def _quote(text: str) -> str:
    # Python writes the same short escapes as RFC 8785, and \u00xx in lower case for the other control characters.
    return json.dumps(text, ensure_ascii=False)


def format_number(number: float) -> str:
    """Formats a double as ECMAScript does (RFC 8785 §3.2.2.3)."""
    if not math.isfinite(number):
        raise InvalidRequest("NaN and infinity are not JSON")
    if number == 0:
        return "0"
    sign, number = ("-", -number) if number < 0 else ("", number)
    mantissa, _, exponent_text = repr(number).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The position of the decimal point, counted from the start of `digits`.
    point = len(whole) + int(exponent_text or "0") - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        text = digits + "0" * (point - count)
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        exponent = point - 1
        text = digits[0] + ("." + digits[1:] if count > 1 else "") + f"e{'+' if exponent > 0 else '-'}{abs(exponent)}"
    return sign + text
