"""The formats that the coordinators of the tests can read.

Source: the releases' own RecordBatch, CompressionType, OffsetCommitValue and GroupMetadataValue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The newest formats and versions that a coordinator reads. It reads all older ones too."""

    newest_format: int = 2
    has_zstd: bool = True
    #: Value versions of offset commits and of classic groups.
    offset_version: int
    group_version: int
    #: True if its responses show pending offsets.
    tells_pending: bool = True
    #: True if it answers requests for open transactions.
    tells_transactions: bool = True
    #: True if it reaches the end of a log without its last records. Another one never loads the next partition.
    reads_empty_tail: bool = True
    group_types: frozenset[str] = frozenset({"classic"})

    @property
    def formats(self) -> range:
        """Batch formats."""
        return range(self.newest_format + 1)

    def codecs(self, magic: int) -> range:
        """The codecs of a batch format, by number."""
        return range(5 if magic == 2 and self.has_zstd else 4)


_1_1 = Reach(has_zstd=False, offset_version=1, group_version=1, tells_pending=False, tells_transactions=False, reads_empty_tail=False)
_CLASSIC_AND_CONSUMER = frozenset({"classic", "consumer"})
_4_3 = Reach(offset_version=4, group_version=4, group_types=_CLASSIC_AND_CONSUMER | {"share", "streams"})

#: By the names in `kafka.COORDINATORS`.
REACH = {
    "0.10.2.2": replace(_1_1, newest_format=1, reads_empty_tail=True),
    "1.1.1": _1_1,
    "2.8.2": Reach(offset_version=3, group_version=3),
    "3.9.1": Reach(offset_version=4, group_version=4),
    "3.9.1-new": Reach(offset_version=4, group_version=4, group_types=_CLASSIC_AND_CONSUMER),
    "4.0.0": Reach(offset_version=4, group_version=4, group_types=_CLASSIC_AND_CONSUMER),
    "4.3.0": _4_3,
    "4.4.0": _4_3,
}


def must_be_fetched(reach: Reach) -> set[tuple[str, str]]:
    """Return the counts of OffsetFetch that a comparison with this coordinator must have: see `tests.judges.fetch_comparison`."""
    return {("fetched_offsets", answer) for answer in ("plain", "errors", *(["require_stable"] if reach.tells_pending else []))}
