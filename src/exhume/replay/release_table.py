"""The differences between releases as a table: a row for each span of releases that load alike."""

from __future__ import annotations

from dataclasses import fields
from itertools import groupby, pairwise

import pyarrow as pa

from exhume.arrow_rows import table_of
from exhume.codecs.record_types import GROUP_METADATA, OFFSET_COMMIT
from exhume.replay.profiles import BrokerProfile, JavaProfile, ScalaProfile
from exhume.replay.releases import all_spans, java_spans, release_numbers, scala_spans

_PENDING = "pending_commit_behind_tombstone"  # plain: the name of a column
#: One row per span. `largest_versions` are the newest offset and group values it reads. `changes` are the rules that are not those of the
#: span before, by their names in `profiles`; null for the first span of each coordinator.
RELEASES = pa.schema(
    [
        ("first_release", pa.string()),
        ("last_release", pa.string()),
        ("coordinator", pa.string()),
        ("read_bound", pa.string()),
        ("unknown_record_type", pa.string()),
        ("unknown_value_version", pa.string()),
        ("largest_versions", pa.string()),
        ("record_types", pa.string()),
        ("transactional_by", pa.string()),
        (_PENDING, pa.string()),
        ("group_over_max_size", pa.string()),
        ("require_stable", pa.string()),
        ("expiry", pa.string()),
        ("default_retention_minutes", pa.int32()),
        ("placeholder_records", pa.string()),
        ("tail_without_records", pa.string()),
        ("changes", pa.list_(pa.string())),
        ("defects", pa.list_(pa.string())),
    ]
)

#: One row per run of spans that differ in none of these columns, for people.
RELEASE_SPANS = pa.schema(
    [
        ("releases", pa.string()),
        ("coordinator", pa.string()),
        ("largest_versions", pa.string()),
        ("expiry", pa.string()),
        ("read_bound", pa.string()),
        ("unknown_record_type", pa.string()),
        ("transactional_by", pa.string()),
        ("tail_without_records", pa.string()),
        ("defects", pa.list_(pa.string())),
    ]
)

_EXPIRY = {
    "expire_timestamp_any_group": "expire timestamp passed, in any group",
    "expire_timestamp": "expire timestamp passed, in active groups too",
    "since_empty": "retention since the group became empty; simple groups since the commit",
    "unsubscribed": "the same, and topics not subscribed since the commit",
    "unsubscribed_stable": "the same, topics not subscribed in stable groups only",
    "java": "the same, for consumer and streams groups too; a pending commit protects (from 3.8)",
}
_REQUIRE_STABLE = {"unknown": "not known", "ignored": "ignored", "refused": "refused while a commit is pending"}
_BOUND = {"high_watermark": "high watermark, tested for each chunk", "log_end": "log end"}
_NO_RULES = {"name", "first", "last", "defects"}
_TAIL = {"abort": "the load aborts", "stall": "the load never ends", "stop": "fine"}


def release_table() -> pa.Table:
    """The spans of `releases.all_spans`, oldest first, as `RELEASES`."""
    changes = {
        (after.coordinator, after.name): _changes(before, after)
        for spans in (scala_spans(), java_spans())
        for before, after in pairwise(spans)
    }
    return table_of(RELEASES, [_row(span) | {"changes": changes.get((span.coordinator, span.name))} for span in all_spans()])


def release_spans() -> pa.Table:
    """Return the spans of `release_table` as `RELEASE_SPANS`; `defects` are those of any release of the run."""
    alike = RELEASE_SPANS.names[1:-1]
    rows = []
    for _, run in groupby(release_table().to_pylist(), key=lambda row: tuple(row[name] for name in alike)):
        spans = [*run]
        first, last = spans[0]["first_release"], spans[-1]["last_release"]
        releases = first if first == last else f"{first} to {last}"
        defects = [*dict.fromkeys(defect for span in spans for defect in span["defects"])]
        rows.append({name: spans[0][name] for name in alike} | {"releases": releases, "defects": defects})
    return table_of(RELEASE_SPANS, rows)


def _changes(before: BrokerProfile, after: BrokerProfile) -> list[str]:
    rules = (field.name for field in fields(after) if field.name not in _NO_RULES)
    return [rule for rule in rules if getattr(before, rule) != getattr(after, rule)]


def _row(span: BrokerProfile) -> dict[str, object]:
    commits, groups = (span.value_versions[number] for number in (OFFSET_COMMIT, GROUP_METADATA))
    largest_commit = (commits or span.values[OFFSET_COMMIT].versions).stop - 1
    largest_group = (groups or span.values[GROUP_METADATA].versions).stop - 1
    row: dict[str, object] = {
        "first_release": span.first,
        "last_release": span.last,
        "coordinator": span.coordinator,
        "unknown_value_version": "read as the nearest known" if commits is None else "the load aborts",
        "largest_versions": f"offset {largest_commit}, group {largest_group}",
        "record_types": _ranges(sorted(span.values)),
        "group_over_max_size": "rebalances after the load" if span.rebalances_oversized_groups else "stays as it is",
        "require_stable": _REQUIRE_STABLE[span.require_stable],
        "expiry": _EXPIRY[span.expiry],
        "default_retention_minutes": span.default_retention_minutes,
        "defects": list(span.defects),
    }
    if isinstance(span, ScalaProfile):
        return row | {
            "read_bound": _BOUND[span.read_bound],
            "unknown_record_type": "skipped" if span.unknown_record_type == "skip" else "the load aborts",
            "transactional_by": "transactional bit" if span.has_transactions else "no transactions",
            _PENDING: "comes back" if span.has_transactions else None,
            "placeholder_records": "none",
            "tail_without_records": _TAIL[span.empty_read],
        }
    assert isinstance(span, JavaProfile)
    return row | {
        "read_bound": _BOUND["log_end"],
        "unknown_record_type": "skipped",
        "transactional_by": "producer id",
        _PENDING: "dropped" if span.tombstone_drops_pending else "comes back",
        "placeholder_records": "an empty generation 0 when a classic group is first joined; a group tombstone for simple groups",
        "tail_without_records": "loaded, not shown until the next write",
    }


def _ranges(numbers: list[int]) -> str:
    """`[0, 1, 2, 5]` as `0-2, 5`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def newest_of_each_line() -> list[str]:
    """The newest release of every span, as `profile_for` takes it, for a check over all releases."""
    names = []
    for span in all_spans():
        has_both = release_numbers("3.7") <= release_numbers(span.last)[:2] <= release_numbers("3.9")
        names.append(f"{span.last}-new" if has_both and isinstance(span, JavaProfile) else span.last)
    return names
