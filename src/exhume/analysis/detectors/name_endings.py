"""The endings of client ids that identify an instance of an application. The time is linear in the bytes of a name: names are hostile."""

from __future__ import annotations

from exhume.analysis.detectors.name_patterns import DIGITS, HEX

_SEPARATORS = "-_."
_UUID_CHARACTERS, _FIRST_OF_UUID = 36, 8
#: Fewer hexadecimal digits are a version or an abbreviation.
_LEAST_DIGITS = 6
#: Versions in names: their longest form, a date with a time, and the colours of deployments.
_LONGEST_VERSION = 14
_COLOURS = ("blue", "green", "canary")


def without_number(name: str) -> str:
    """Return a name without a number or a UUID at its end: `billing` for `billing-7`."""
    return _cut(name, min(len(name.rstrip(DIGITS)), _uuid_start(name)))


def without_instance(name: str) -> str:
    """Return a name without a number, hexadecimal digits, a UUID, or `consumer` and all that follows, at its end."""
    hex_start = len(name.rstrip(HEX))
    if len(name) - hex_start < _LEAST_DIGITS:
        hex_start = len(name.rstrip(DIGITS))
    consumer_start = name.lower().find("consumer")
    return _cut(name, min(hex_start, _uuid_start(name), len(name) if consumer_start < 0 else consumer_start))


def has_version(name: str) -> bool:
    """Return True if the last part of a name is a version from 2 on, a date, or a colour of a deployment: `-v3`, `-20240108`, `-green`."""
    start = max(map(name.rfind, _SEPARATORS)) + 1
    ending = name[start:].lower()
    if not start or len(ending) > _LONGEST_VERSION:
        return False
    number = ending.removeprefix("v")
    if not number or number.strip(DIGITS):
        return ending in _COLOURS
    return len(number) >= _LEAST_DIGITS or (number != ending and int(number) > 1)


def _cut(name: str, start: int) -> str:
    """Return the name up to the ending that begins at `start`, and without one separator before it."""
    if start == len(name):
        return name
    return name[: start - 1] if start and name[start - 1] in _SEPARATORS else name[:start]


def _uuid_start(name: str) -> int:
    """Return the place of a UUID that ends the name; the length of the name if it ends otherwise."""
    ending = name[-_UUID_CHARACTERS:]
    first, rest = ending[:_FIRST_OF_UUID], ending[_FIRST_OF_UUID:]
    is_uuid = len(ending) == _UUID_CHARACTERS and rest[0] == "-" and not first.strip(HEX) and not rest.strip(HEX + "-")
    return len(name) - _UUID_CHARACTERS if is_uuid else len(name)
