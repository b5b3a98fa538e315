"""Filters that Spark pushes down, as conditions of a `RecordFilter` and on partition directories.

A filter is taken if the reader meets it for every row, so that Spark need not look again: equality and membership of group, topic,
partition, record type, offsets partition and replica; comparisons of record offset, time and offsets partition. All others stay with Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from exhume.codecs.partition_directory import PartitionDirectory
from exhume.codecs.record_filter import RecordFilter
from exhume.codecs.record_types import RECORD_TYPES
from exhume.int64 import LARGEST_INT64
from exhume.replay.spark.kinds import filtered_kinds, kinds

#: Columns that are held against a collection, and the condition that they stand for.
_NAMES = {"group": "groups", "topic": "topics", "partition": "partitions", "record_type": "types"}
_RANGES = {"record_offset": ("from_offset", "to_offset"), "timestamp_ms": ("from_time_ms", "to_time_ms")}


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter in plain words: a column, how it is compared (`in`, `<`, `<=`, `>`, `>=`), and with what."""

    column: str
    comparison: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Pushed:
    """The filters that Spark pushed down, beside the options. `is_empty`: no row can pass them."""

    wanted: RecordFilter
    replicas: frozenset[str] | None = None
    is_empty: bool = False

    def accepts(self, partition: PartitionDirectory) -> bool:
        """True for partition directories that may have such rows."""
        numbers = self.wanted.offsets_partitions
        return (
            not self.is_empty
            and (self.replicas is None or partition.replica in self.replicas)
            and (numbers is None or partition.offsets_partition in numbers)
        )


def push(pushed: Pushed, kind: str, condition: Condition) -> Pushed | None:
    """Add one condition; None if the reader cannot apply it to all rows of this kind."""
    # Findings of a search have no partition: for them it would not be the same.
    if kind == "findings" or condition.column not in kinds()[kind].names:
        return None
    match condition:
        case Condition("replica", "in", values) if all(isinstance(value, str) for value in values):
            names = frozenset(values)
            return replace(pushed, replicas=names if pushed.replicas is None else pushed.replicas & names)
        case Condition("offsets_partition", "in", values) if _are_numbers(values):
            return _narrowed(pushed, "offsets_partitions", values)
        case Condition(column, "in", values) if column in _NAMES and kind in filtered_kinds():
            return _push_names(pushed, kind, column, values)
        case Condition(column, comparison, (value,)) if column in _RANGES and kind in filtered_kinds() and _are_numbers((value,)):
            return _push_range(pushed, column, comparison, value)
    return None


def _push_names(pushed: Pushed, kind: str, column: str, values: tuple[Any, ...]) -> Pushed | None:
    if column == "record_type":
        # Typed tables have one or two numbers of their own, and a name and a number may mean the same.
        if kind not in ("records", "dump") or not _are_numbers(values) or pushed.wanted.types is not None:
            return None
        return _narrowed(pushed, "types", map(str, values))
    has_right_type = _are_numbers(values) if column == "partition" else all(isinstance(value, str) for value in values)
    return _narrowed(pushed, _NAMES[column], values) if has_right_type and column in _key_columns(kind) else None


def _key_columns(kind: str) -> frozenset[str]:
    """The columns of this kind that every record has in its key, where a `RecordFilter` looks."""
    if kind == "dump":
        return frozenset({"group", "topic", "partition"})
    keys = [{field.name for field in row.key.fields} for row in RECORD_TYPES.values() if row.name == kind]
    return frozenset(set.intersection(*keys)) if keys else frozenset()


def _narrowed(pushed: Pushed, condition: str, values: Iterable[Any]) -> Pushed:
    before = getattr(pushed.wanted, condition)
    left: tuple[Any, ...] = tuple(value for value in values if before is None or value in before)
    wanted = replace(pushed.wanted, **{condition: left})  # type: ignore[arg-type]
    return replace(pushed, wanted=wanted, is_empty=pushed.is_empty or not left)


def _push_range(pushed: Pushed, column: str, comparison: str, value: int) -> Pushed | None:
    lower, upper = _RANGES[column]
    first, last = getattr(pushed.wanted, lower), getattr(pushed.wanted, upper)
    match comparison:
        case ">" | ">=":
            least = value + (comparison == ">")
            first = least if first is None else max(first, least)
        case "<" | "<=":
            most = value - (comparison == "<")
            last = most if last is None else min(last, most)
        case "in":
            first = value if first is None else max(first, value)
            last = value if last is None else min(last, value)
        case _:
            return None
    if first is not None and last is not None and first > last:
        return replace(pushed, is_empty=True)
    return replace(pushed, wanted=replace(pushed.wanted, **{lower: first, upper: last}))


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_INT64 for value in values)
