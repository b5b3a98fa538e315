"""The views of a topic: each table of docs/tables.md that needs no argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from exhume import findings as findings_table
from exhume.codecs import schemas
from exhume.codecs.decoded_tables import DUMP
from exhume.codecs.record_filter import RecordConditions, RecordFilter
from exhume.replay.state_tables import SCHEMAS
from exhume.topic.logs import TopicLogs
from exhume.topic.sql.pushdown import Pushed
from exhume.topic.sql.scans import Read

if TYPE_CHECKING:
    from exhume.analysis.assignment.verdicts import AssignmentTables
    from exhume.analysis.forecast import Expiry
    from exhume.analysis.growth import Growth
    from exhume.analysis.inspection import Inspection
    from exhume.analysis.transactions import Transactions
    from exhume.replay.state import CoordinatorState
    from exhume.topic.offsets_topic import OffsetsTopic

_PLACED: dict[str, Pushed] = {"offsets_partition": "offsets_partitions", "record_offset": "offset", "timestamp_ms": "time_ms"}
_TYPED: dict[str, Pushed] = {**_PLACED, "group": "groups", "topic": "topics", "partition": "partitions"}
_ANY_TYPE: dict[str, Pushed] = {**_TYPED, "type": "types", "record_type": "types"}


@dataclass(frozen=True, slots=True)
class View:
    """A view: its columns, the function that reads it, and the columns whose conditions that function takes."""

    schema: pa.Schema
    read: Read
    pushed: dict[str, Pushed] = field(default_factory=dict)


class Answers:
    """The answers that several views share: each is made once, on first use."""

    def __init__(self, topic: OffsetsTopic, logs: TopicLogs, release: str | None) -> None:
        self.topic = topic
        self.logs = logs
        self.release = release

    @cached_property
    def state(self) -> CoordinatorState:
        """The state at the end of the logs."""
        return self.topic.state(release=self.release)

    @cached_property
    def inspection(self) -> Inspection:
        """The content of the files."""
        return self.topic.inspect()

    @cached_property
    def files(self) -> pa.Table:
        """The files with their digests."""
        return self.topic.files()

    @cached_property
    def assignments(self) -> AssignmentTables:
        """Expected against actual assignments."""
        return self.topic.assignments()

    @cached_property
    def expiry(self) -> Expiry:
        """What expires next."""
        return self.topic.expiry(release=self.release)

    @cached_property
    def growth(self) -> Growth:
        """The size of the topic by group."""
        return self.topic.growth()

    @cached_property
    def transactions(self) -> Transactions:
        """All transactions, ended ones too."""
        return self.topic.transactions(with_finished=True)

    @cached_property
    def owners(self) -> pa.Table:
        """The owners of each partition over time."""
        return self.topic.owners()

    @cached_property
    def rebalances(self) -> pa.Table:
        """The generations and epochs of all groups."""
        return self.topic.rebalances()

    @cached_property
    def completeness(self) -> pa.Table:
        """The grades of the state at the end."""
        return self.topic.completeness(self.state)

    @cached_property
    def lag(self) -> pa.Table:
        """The lag at the end; end offsets are those of a capture."""
        return self.topic.lag(release=self.release)

    @cached_property
    def findings(self) -> pa.Table:
        """The findings of all detectors, and those of the files."""
        return pa.concat_tables([self.topic.diagnose().to_table(), self.inspection.findings.to_table()])

    @cached_property
    def groups_summary(self) -> pa.Table:
        """One row per group of the state, with counts."""
        from exhume.analysis.summary import summarize_groups

        return summarize_groups(self.state)


def views(answers: Answers) -> dict[str, View]:
    """Return all views by name."""
    return {**_record_views(answers.logs), **_state_views(answers), **_answer_views(answers)}


def _record_views(logs: TopicLogs) -> dict[str, View]:
    """The views that stream: a scan decodes only what its conditions leave."""
    found = {
        "batches": View(schemas.BATCHES, lambda _, __: iter(logs.batches())),
        "records": View(schemas.RECORDS, _records(logs), {**_PLACED, "record_type": "types"}),
        "dump": View(DUMP, _dump(logs), _ANY_TYPE),
        "end_txn_markers": View(schemas.END_TXN_MARKERS, _typed(logs, "end_txn_markers"), _PLACED),
    }
    for name, schema in schemas.decoded().items():
        found[name] = View(schema, _typed(logs, name), {column: pushed for column, pushed in _TYPED.items() if column in schema.names})
    # Kafka people say "offset commits"; the typed table has the name of its record type.
    found["offset_commits"] = found["offset_commit"]
    return found


def _records(logs: TopicLogs) -> Read:
    return lambda conditions, _: iter(logs.records(RecordFilter(**conditions)))


def _dump(logs: TopicLogs) -> Read:
    return lambda conditions, _: iter(logs.dump(RecordFilter(**conditions), raw=False))


def _typed(logs: TopicLogs, name: str) -> Read:
    return lambda conditions, columns: logs.decoded_columns(name, RecordFilter(**conditions), columns)


def _state_views(answers: Answers) -> dict[str, View]:
    def table(name: str) -> Callable[[], pa.Table]:
        return lambda: answers.state.tables[name]

    return {name: View(schema, _whole(table(name))) for name, schema in SCHEMAS.items()}


def _answer_views(answers: Answers) -> dict[str, View]:
    from exhume.analysis.assignment.differences import ASSIGNMENT_PARTITIONS
    from exhume.analysis.assignment.verdicts import ASSIGNMENT_VERDICTS
    from exhume.analysis.completeness import COMPLETENESS
    from exhume.analysis.evidence_files import EVIDENCE_FILES
    from exhume.analysis.forecast import FORECAST, TOMBSTONES
    from exhume.analysis.growth import COMPACTION, GROWTH
    from exhume.analysis.inspection import INSPECTION_TABLES
    from exhume.analysis.lag import LAG
    from exhume.analysis.ownership import OWNERS
    from exhume.analysis.rebalance_rows import REBALANCES
    from exhume.analysis.summary import GROUP_SUMMARY
    from exhume.analysis.transactions import STABLE_OFFSETS, TRANSACTIONS

    def inspected(name: str) -> Callable[[], pa.Table]:
        return lambda: answers.inspection.tables()[name]

    made: Mapping[str, tuple[pa.Schema, Callable[[], pa.Table]]] = {
        **{name: (schema, inspected(name)) for name, schema in INSPECTION_TABLES.items()},
        "files": (EVIDENCE_FILES, lambda: answers.files),
        "findings": (findings_table.SCHEMA, lambda: answers.findings),
        "groups_summary": (GROUP_SUMMARY, lambda: answers.groups_summary),
        "lag": (LAG, lambda: answers.lag),
        "completeness": (COMPLETENESS, lambda: answers.completeness),
        "rebalances": (REBALANCES, lambda: answers.rebalances),
        "owners": (OWNERS, lambda: answers.owners),
        "verdicts": (ASSIGNMENT_VERDICTS, lambda: answers.assignments.verdicts),
        "assigned_partitions": (ASSIGNMENT_PARTITIONS, lambda: answers.assignments.partitions),
        "forecast": (FORECAST, lambda: answers.expiry.forecast),
        "tombstones": (TOMBSTONES, lambda: answers.expiry.tombstones),
        "growth": (GROWTH, lambda: answers.growth.table),
        "compaction": (COMPACTION, lambda: answers.growth.partitions),
        "transactions": (TRANSACTIONS, lambda: answers.transactions.table),
        "stable_offsets": (STABLE_OFFSETS, lambda: answers.transactions.partitions),
    }
    return {name: View(schema, _whole(table)) for name, (schema, table) in made.items()}


def _whole(table: Callable[[], pa.Table]) -> Read:
    def read(_: RecordConditions, __: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from table().to_batches()

    return read
