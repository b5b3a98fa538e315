"""Every error that exhume raises on purpose, on one page.

There are three kinds: the bytes are wrong (`EvidenceError`), a value does not fit its format (`EncodeError`), or the
request is wrong (`RequestError`). Each error has its facts as attributes, and its message names place and remedy.

    ExhumeError
    ├── EvidenceError            the bytes or files at hand cannot be read
    │   ├── DecodeError          a structure does not have its format
    │   │   ├── Underflow        a fixed-width field (a number, a length, a count) is cut
    │   │   ├── LengthOverrun    a length or count promises more bytes than are left
    │   │   ├── UnexpectedNull   null where the format forbids it
    │   │   └── UnknownVersion   a record type or value version that the reader has no layout for
    │   ├── CrcMismatch          a checksum does not match its bytes
    │   └── DecompressionError   a compressed stream is damaged, unsupported, or unfolds beyond the cap
    ├── EncodeError              a value that its wire type cannot hold
    └── RequestError             the request cannot be answered; the evidence is not at fault
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

#: The number of names to list if none is similar.
_FEW_NAMES = 5


class ExhumeError(Exception):
    """Base of every error that exhume raises on purpose. `remedy` is the next step for the user."""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        if not self.remedy:
            return self.message
        return f"{self.message}{'' if self.message.endswith('?') else '.'} {self.remedy}"


class EvidenceError(ExhumeError):
    """The evidence cannot be read. Has the place if it is known."""

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        byte_position: int | None = None,
        record_offset: int | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.path = path
        self.byte_position = byte_position
        self.record_offset = record_offset

    def __str__(self) -> str:
        place = [
            text
            for text, value in (
                (f"{self.path}", self.path),
                (f"byte {self.byte_position}", self.byte_position),
                (f"record offset {self.record_offset}", self.record_offset),
            )
            if value is not None
        ]
        sentence = super().__str__()
        return f"{', '.join(place)}: {sentence}" if place else sentence


class DecodeError(EvidenceError):
    """A structure does not have its format."""


class Underflow(DecodeError):
    """A fixed-width field ends after the end of its buffer (Java: BufferUnderflowException)."""


class LengthOverrun(DecodeError):
    """A length or a count promises more bytes than are left."""


class UnexpectedNull(DecodeError):
    """Null in a field that must not be null."""


class UnknownVersion(DecodeError):
    """A record type or a value version that the reader has no layout for."""


class CrcMismatch(EvidenceError):
    """A checksum over stored bytes differs from the stored checksum."""

    def __init__(self, message: str, *, expected: int, found: int, path: str | None = None, byte_position: int | None = None) -> None:
        super().__init__(message, path=path, byte_position=byte_position)
        self.expected = expected
        self.found = found


class DecompressionError(EvidenceError):
    """A compressed stream is damaged, uses a feature Kafka refuses, or unfolds beyond the cap."""


class EncodeError(ExhumeError):
    """A value that its wire type cannot hold."""


class RequestError(ExhumeError):
    """The request cannot be answered; the message lists possible requests."""


def near_by(name: str, known: Iterable[str]) -> str | None:
    """Return the remedy for an unknown name of the evidence: similar names, or how many there are; None if no name is known."""
    names = sorted(known)
    near = similar(name, names)
    if near:
        return f"Did you mean {_either(near)}?"
    return f"The {len(names)} names are: {', '.join(names)}" if 0 < len(names) <= _FEW_NAMES else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the remedy for an unknown word of exhume: a similar one if there is one, and all of them."""
    names = [*known]
    near = similar(name, names)
    return f"{f'Did you mean {_either(near)}? ' if near else ''}Choose one of {', '.join(names)}"


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Return at most five known names that resemble this name, the most similar one first."""
    names = [*known]
    folded = {other.casefold(): other for other in names}
    near = [folded[other] for other in get_close_matches(name.casefold(), folded, n=5)]
    return near or [other for other in names if name and name.casefold() in other.casefold()][:5]


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
