"""Count records that cannot be decoded, or only in part, by type, value version and reason."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from exhume.codecs.record_types import RECORD_TYPES, decode_record

#: Marks of records that a reader decodes whole.
_HARMLESS = frozenset({"early_layout"})
_SAMPLE_BYTES = 64
_COMMIT_COLUMNS = ["record_offset", "timestamp_ms", "record_type", "value_version", "marks", "raw_key", "raw_value"]
_OTHER_COLUMNS = ["record_offset", "timestamp_ms", "record_type", "key", "value"]


@dataclass(frozen=True, slots=True)
class UndecodableRecord:
    """Records of one type and value version with one mark of `record_types.MARKS`. The samples are those of the first, in hexadecimal."""

    record_type: int | None
    value_version: int | None
    mark: str
    count: int
    first_record_offset: int
    first_timestamp_ms: int | None
    key_sample: str | None
    value_sample: str | None


@dataclass(slots=True)
class UndecodableRecords:
    """Undecodable records, counted in one pass. Of group records, the first of each type and version is decoded to its end."""

    _found: dict[tuple[int | None, int | None, str], UndecodableRecord] = field(default_factory=dict)
    _known: dict[tuple[int, int], bool] = field(default_factory=dict)

    def take(self, commits: pa.RecordBatch, others: pa.RecordBatch) -> None:
        """Add commits of `schemas.decoded()["offset_commit"]`, and data records of other types, of `schemas.RECORDS`."""
        is_marked = pc.greater(pc.list_value_length(commits["marks"]), 0)
        if pc.any(is_marked).as_py():
            for row in commits.select(_COMMIT_COLUMNS).filter(is_marked).to_pylist():
                place = (row["record_type"], row["value_version"])
                self._add(place, row["marks"], row["record_offset"], row["timestamp_ms"], row["raw_key"], row["raw_value"])
        others = others.filter(self._may_be_undecodable(others))
        for offset, time_ms, record_type, key, value in zip(*(others[name].to_pylist() for name in _OTHER_COLUMNS), strict=True):
            version = int.from_bytes(value[:2], "big", signed=True) if value is not None and len(value) > 1 else None
            if record_type in RECORD_TYPES and version is not None and self._known.get((record_type, version), False):
                continue
            if record_type in RECORD_TYPES and value is None:
                continue
            marks = decode_record(key, value).marks
            if not marks and version is not None:
                self._known[record_type, version] = True
            self._add((record_type, version), marks, offset, time_ms, key, value)

    def _may_be_undecodable(self, others: pa.RecordBatch) -> pa.Array:
        """Return False for each record whose type and value version was decoded to its end before."""
        known = pa.array([_code(*each) for each, is_known in self._known.items() if is_known], pa.binary())
        codes = pc.binary_join_element_wise(
            pc.cast(pc.cast(others["record_type"], pa.string()), pa.binary()), pc.binary_slice(others["value"], 0, 2), b"/"
        )
        return pc.invert(pc.is_in(codes, value_set=known))

    def _add(
        self, place: tuple[int | None, int | None], marks: list[str], offset: int, time_ms: int | None, *samples: bytes | None
    ) -> None:
        for mark in marks:
            if mark in _HARMLESS:
                continue
            known = self._found.get((*place, mark))
            if known is None:
                key, value = (None if sample is None else sample[:_SAMPLE_BYTES].hex() for sample in samples)
                self._found[*place, mark] = UndecodableRecord(*place, mark, 1, offset, time_ms, key, value)
            else:
                self._found[*place, mark] = replace(known, count=known.count + 1)

    def found(self) -> list[UndecodableRecord]:
        """Return the counts, in the order of the first record of each."""
        return [*self._found.values()]


def _code(record_type: int, version: int) -> bytes:
    """Return a type and a version as bytes: the type in digits, the version as the first bytes of a value."""
    return b"%d/%b" % (record_type, version.to_bytes(2, "big", signed=True))
