"""Findings: facts about the evidence that deserve attention, as values and as one Arrow table.

Damage never stops a command. The code that meets damage adds a `Finding` to the `Findings` of the run and continues.
A command ends with the table of findings, and its exit code shows if the answer is partial.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Literal, get_args

import pyarrow as pa

from exhume.arrow_rows import table_of
from exhume.notebook import html_table

Severity = Literal["info", "warn", "incident"]
#: The worst one comes last.
_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
Confidence = Literal["proof", "likely", "possible", "undecidable"]
#: The most certain one comes first.
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)

SCHEMA = pa.schema(
    [
        pa.field("code", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("confidence", pa.string(), nullable=False),
        pa.field("replica", pa.string()),
        pa.field("offsets_partition", pa.int32()),
        pa.field("path", pa.string()),
        pa.field("byte_position", pa.int64()),
        pa.field("size_bytes", pa.int64()),
        pa.field("group", pa.string()),
        pa.field("member_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("first_record_offset", pa.int64()),
        pa.field("last_record_offset", pa.int64()),
        pa.field("first_timestamp_ms", pa.int64()),
        pa.field("last_timestamp_ms", pa.int64()),
        pa.field("sentence", pa.string(), nullable=False),
        pa.field("not_excluded", pa.string()),
        pa.field("remedy", pa.string()),
        pa.field("remedy_commands", pa.list_(pa.string())),
        pa.field("evidence", pa.json_()),
    ]
)


@dataclass(frozen=True, slots=True)
class Remedy:
    """The purpose of a next step, and its commands to paste. As text it has both."""

    purpose: str
    commands: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ": ".join([self.purpose, *self.commands])


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fact that deserves attention. The fields are those of `SCHEMA`; `evidence` is any JSON-ready value.

    `remedy` is a sentence without its full stop, and ends with `remedy_commands`, if it has any; see `Remedy`. `is_damage` marks a finding
    that makes the answer partial.
    """

    code: str
    sentence: str
    severity: Severity = "warn"
    confidence: Confidence = "proof"
    replica: str | None = None
    offsets_partition: int | None = None
    path: str | None = None
    byte_position: int | None = None
    size_bytes: int | None = None
    group: str | None = None
    member_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    first_record_offset: int | None = None
    last_record_offset: int | None = None
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None
    not_excluded: str | None = None
    remedy: str | None = None
    remedy_commands: tuple[str, ...] = ()
    evidence: object = None
    is_damage: bool = False


def worst_first(severity: Severity) -> int:
    """Return the rank of a severity: 0 for the worst one."""
    return len(_SEVERITIES) - 1 - _SEVERITIES.index(severity)


_all_but_evidence: attrgetter[tuple[object, ...]] = attrgetter(*(each.name for each in fields(Finding) if each.name != "evidence"))


class Findings:
    """The findings of one run, in the order in which they were added, without duplicates."""

    def __init__(self, initial: Iterable[Finding] = ()) -> None:
        self._seen: dict[tuple[object, ...], Finding] = {}
        self.extend(initial)

    def add(self, finding: Finding) -> None:
        """Add this finding, unless an equal one was added before. `evidence` is not compared."""
        self._seen.setdefault(_all_but_evidence(finding), finding)

    def extend(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.add(finding)

    def __iter__(self) -> Iterator[Finding]:
        return iter(list(self._seen.values()))

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def has_damage(self) -> bool:
        """True if a finding makes the answer partial."""
        return any(finding.is_damage for finding in self)

    def at_least(self, severity: Severity, *, undecidable: bool = False) -> Findings:
        """Those of this severity or a worse one; those with confidence `undecidable`, which have none, all or not at all."""
        wanted, found = _SEVERITIES[_SEVERITIES.index(severity) :], Findings()
        # They are different already.
        found._seen = {
            identity: each
            for identity, each in self._seen.items()
            if (undecidable if each.confidence == "undecidable" else each.severity in wanted)
        }
        return found

    def __repr__(self) -> str:
        counts = Counter(finding.severity for finding in self)
        listed = ", ".join(f"{counts[severity]} {severity}" for severity in reversed(_SEVERITIES) if counts[severity])
        return f"<Findings: {listed or 'none'}>"

    def _repr_html_(self) -> str:
        rows = [(each.severity, each.code, each.group, each.sentence) for each in self]
        return html_table(repr(self)[1:-1], ("severity", "code", "group", "sentence"), rows)

    def to_table(self) -> pa.Table:
        """Return the findings as a table of `SCHEMA`, one row each, in order."""
        return table_of(SCHEMA, [_row(finding) for finding in self])


def _row(finding: Finding) -> dict[str, object]:
    row = {name: getattr(finding, name) for name in SCHEMA.names}
    row["remedy_commands"] = [*finding.remedy_commands] or None
    if finding.evidence is not None:
        row["evidence"] = json.dumps(finding.evidence, sort_keys=True)
    return row
