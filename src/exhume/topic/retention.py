"""The retention of offsets, and the present time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from exhume.durations import MINUTE_MS, Duration, duration_ms
from exhume.errors import RequestError
from exhume.moments import Time, time_ms
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import LoadInputs


@dataclass(frozen=True, slots=True)
class Retention:
    """The expiry rules of a release, and the retention of its brokers.

    `release` and `given_ms` are those of the caller; None: the default.
    """

    profile: BrokerProfile
    retention_ms: int
    release: str | None = None
    given_ms: int | None = None

    @property
    def inputs(self) -> LoadInputs:
        """The inputs of a load with this retention."""
        return LoadInputs(retention_minutes=self.retention_ms // MINUTE_MS)


def retention_of(profile: BrokerProfile, retention: Duration | None, release: str | None = None) -> Retention:
    """This retention, or the default of the release.

    Raises:
        RequestError: it is not a number of minutes.
    """
    if retention is None:
        return Retention(profile, profile.default_retention_minutes * MINUTE_MS, release)
    retention_ms = duration_ms(retention)
    if retention_ms < MINUTE_MS or retention_ms % MINUTE_MS:
        raise RequestError(f"a retention of {retention_ms} ms", remedy="Brokers count the retention in whole minutes, one at least")
    return Retention(profile, retention_ms, release, retention_ms)


def now_or_given_ms(now_ms: Time | None) -> int:
    """Return the given time, or the present."""
    return time.time_ns() // 1_000_000 if now_ms is None else time_ms(now_ms)
