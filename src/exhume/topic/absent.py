"""The answer about a group that has records, and is not in the state."""

from __future__ import annotations

from collections.abc import Collection

from exhume.codecs.record_filter import RecordFilter
from exhume.errors import RequestError
from exhume.moments import show_time
from exhume.topic.logs import TopicLogs


def refuse_removed(logs: TopicLogs, groups: Collection[str]) -> None:
    """Refuse a group that has records and is not in the state: its last tombstone may have removed it.

    Raises:
        RequestError: one of these groups has a record; names its last tombstone, or else its last record.
    """
    if not groups:
        return
    last: dict[str, dict[bool, tuple[int, int | None, int | None]]] = {}
    columns = ("group", "is_tombstone", "offsets_partition", "record_offset", "timestamp_ms")
    for batch in logs.dump(RecordFilter(groups=groups), raw=False):
        rows = zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
        for group, is_tombstone, partition, record_offset, timestamp_ms in rows:
            last.setdefault(group, {})[is_tombstone] = (record_offset, timestamp_ms, partition)
    for group in groups:
        found = last.get(group)
        if found:
            is_removed = True in found
            record_offset, timestamp_ms, partition = found[True] if is_removed else found[False]
            time = "" if timestamp_ms is None or timestamp_ms < 0 else f" of {show_time(timestamp_ms)}"
            sentence = (
                f"record {record_offset}{time} in offsets partition {partition} {'is its last tombstone' if is_removed else 'is its last'}"
            )
            raise RequestError(f"group {group!r} is not in this state: {sentence}", remedy=f"See why: exhume why PATH --group {group}")
