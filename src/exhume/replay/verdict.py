"""What a load can end in, and the exception that ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: loaded            everything was read and installed
#: loaded_with_error everything was installed, and the broker logged an error after it
#: aborted           the load stopped at a record; what it held then is gone or half
#: not_shown         loaded, but requests are answered from an older snapshot until the next write (Java coordinator)
#: stalled           the load never ends: the partition stays loading
#: refused           the broker does not start on this log directory
Outcome = Literal["loaded", "loaded_with_error", "aborted", "not_shown", "stalled", "refused"]


class LoadAborted(Exception):
    """The load of this release stops here. `reason` says why; `record_offset` and `byte_position` say where, as far as known.

    `is_damage` tells a batch that cannot be read from a record that the release refuses: only the first means that evidence is damaged.
    """

    def __init__(
        self,
        reason: str,
        *,
        record_offset: int | None = None,
        path: str | None = None,
        byte_position: int | None = None,
        is_damage: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.record_offset = record_offset
        self.path = path
        self.byte_position = byte_position
        self.is_damage = is_damage


class LoadStalled(LoadAborted):
    """The load of this release goes on for ever here; the partition answers nothing."""


@dataclass(frozen=True, slots=True)
class Tolerated:
    """What lenient mode went on over: a record that the release's own load would have stopped at, or would have applied otherwise."""

    reason: str
    record_offset: int | None
    path: str | None = None
    byte_position: int | None = None
    group: str | None = None
