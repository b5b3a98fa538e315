"""The request for a report."""

from __future__ import annotations

from dataclasses import dataclass, field

from exhume.analysis.detectors import Inputs
from exhume.codecs.uris import PathOrUri
from exhume.errors import RequestError

#: The number of groups that a report draws if the request names none.
MOST_GROUPS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """The groups and the time range of a report.

    Without `groups`, those with findings come first, then those with the most commits, at most `MOST_GROUPS`. The range includes both
    ends; the state is that of its end. `inputs`, `retention_ms`, `release` and `topics_file` are as for `OffsetsTopic.diagnose` and
    `OffsetsTopic.explain`.
    """

    groups: tuple[str, ...] = ()
    from_time_ms: int | None = None
    to_time_ms: int | None = None
    inputs: Inputs = field(default_factory=Inputs)
    release: str | None = None
    topics_file: PathOrUri | None = None

    def __post_init__(self) -> None:
        if self.from_time_ms is not None and self.to_time_ms is not None and self.from_time_ms > self.to_time_ms:
            raise RequestError("the time range ends before it begins", remedy="Swap its ends")

    def holds(self, first_ms: int | None, last_ms: int | None) -> bool:
        """True if an interval of time has a part in the range; an end without a time is open."""
        if self.from_time_ms is not None and last_ms is not None and last_ms < self.from_time_ms:
            return False
        return self.to_time_ms is None or first_ms is None or first_ms <= self.to_time_ms
