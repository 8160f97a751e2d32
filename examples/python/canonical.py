"""Params as canonical JSON: RFC 8785 with exact integers (proto/PROTOCOL.md §9)."""

import json
import math
import re

MAX_DEPTH = 64
ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def encode(value):
    """The bytes of params. Raises ValueError for what JSON cannot say (M-81)."""
    return _text(value, 0).encode("utf-8")


def decode(text):
    """Reads JSON text as strictly as params are read: no NaN, no byte order mark; raises ValueError."""
    def refuse(word):
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse, parse_float=_double)


def _double(literal):
    value = float(literal)
    if math.isinf(value):
        raise ValueError("a number out of range")
    return value


def _text(value, depth):
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, str):
        return _string(value)
    if depth == MAX_DEPTH:
        raise ValueError("nested too deep")
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_text(element, depth + 1) for element in value) + "]"
    if isinstance(value, dict):
        # by UTF-16 code units, not by code points
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{_string(name)}:{_text(value[name], depth + 1)}" for name in names) + "}"
    raise ValueError(f"{type(value).__name__} is no JSON")


def _string(value):
    value.encode("utf-8")  # half a surrogate pair is a UnicodeEncodeError, which is a ValueError
    escaped = re.sub(r'["\\\x00-\x1f]', lambda found: ESCAPES.get(found[0], f"\\u{ord(found[0]):04x}"), value)
    return f'"{escaped}"'


def _number(value):
    """As ECMAScript prints a double: repr has the same shortest digits, placed differently."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no JSON number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'+' if point > 0 else '-'}{abs(point - 1)}"
