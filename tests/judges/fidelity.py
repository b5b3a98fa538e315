"""The figures of docs/fidelity.md: how much of what brokers said was compared, release by release, and what differed.

The page has a block for each set of logs, between `<!-- measured: NAME -->` and `<!-- end -->`; `tools/measure_fidelity.py` writes them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from . import corpus, replays
from .broker_answers import Coordinator, release_numbers
from .state_comparison import Comparison

_TYPES = ("classic", "consumer", "share", "streams")
#: Heads of columns, and the counts that each adds up.
_COLUMNS = {
    "loads": ("loads",),
    "that failed": ("failed_loads", "late_errors"),
    "groups": ("groups",),
    "generations": ("generations",),
    "members": ("members",),
    "assignments": ("assignments", "share_partitions", "streams_topologies"),
    "offsets": ("offsets",),
    "pending": ("pending_offsets", "open_transactions"),
    "fetches": ("fetched_offsets",),
}


@dataclass
class Measured:
    """What was compared with one release. `logs` are log directories."""

    release: str
    coordinator: Coordinator
    logs: set[Path] = field(default_factory=set)
    answers: int = 0
    restarted: int = 0
    tombstones: int = 0
    comparison: Comparison = field(default_factory=Comparison)

    def rows(self, *tables: str) -> int:
        """How many rows of these tables were compared, of every group type."""
        return sum(rows for (table, _), rows in self.comparison.counts.items() if table in tables)


def measured_loads(root: Path = corpus.BUNDLED) -> list[Measured]:
    """What was there after a load, compared; oldest release first."""
    return _measured(replays.load_answers(root), after_expiry=False)


def measured_expiry(root: Path = corpus.BUNDLED) -> list[Measured]:
    """What expiry passes left, compared; oldest release first."""
    return _measured(replays.expiry_answers(root), after_expiry=True)


def _measured(answers: Iterable[corpus.AnswerFile], *, after_expiry: bool) -> list[Measured]:
    by_release: dict[tuple[str, Coordinator], Measured] = {}
    for answer in answers:
        release = (answer.release, answer.expectation.coordinator)
        measured = by_release.setdefault(release, Measured(*release))
        measured.logs.add(answer.data)
        measured.answers += 1
        measured.restarted += answer.expectation.kind == "restarted"
        if after_expiry:
            measured.comparison.add(replays.compare_after_expiry(answer), answer.id)
            measured.tombstones += replays.after_passes(answer).tombstone_count
        else:
            measured.comparison.add(replays.compare_load(answer), answer.id)
    return sorted(by_release.values(), key=lambda measured: (release_numbers(measured.release), measured.coordinator))


def block(root: Path = corpus.BUNDLED) -> str:
    """The figures of the logs under this root, as Markdown."""
    loads, expiry = measured_loads(root), measured_expiry(root)
    total: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    for measured in [*loads, *expiry]:
        total.update(measured.comparison.counts)
        reasons.update(measured.comparison.reasons)
    restarted = sum(measured.restarted for measured in loads)
    lines = [
        f"{_answers(loads)} answers right after a load, {restarted} of them of a broker restarted on its whole directory, topics included:",
        "",
        *_table(loads, "restarted", lambda measured: measured.restarted),
        "",
        f"{_answers(expiry)} answers after expiry passes, each with its retention and its clock:",
        "",
        *_table(expiry, "tombstones", lambda measured: measured.tombstones),
        "",
        "Both together, by group type:",
        "",
        *_by_type(total),
        "",
        "What the answers do not show, and how often:",
        "",
        "| reason | times |",
        "| --- | ---: |",
        *(f"| {reason} | {times} |" for reason, times in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    ]
    return "\n".join(lines)


def _answers(measured: Iterable[Measured]) -> int:
    return sum(each.answers for each in measured)


def _table(measured: list[Measured], extra: str, extra_of: Callable[[Measured], int]) -> list[str]:
    columns = {name: tables for name, tables in _COLUMNS.items() if any(each.rows(*tables) for each in measured)}
    head = ["release", "coordinator", "logs", "answers", extra, *columns, "not shown", "differences"]
    names = [(each.release, {"classic": "Scala", "java": "Java"}[each.coordinator]) for each in measured]
    figures = [
        [
            len(each.logs),
            each.answers,
            extra_of(each),
            *(each.rows(*tables) for tables in columns.values()),
            len(each.comparison.not_shown),
            len(each.comparison.differences),
        ]
        for each in measured
    ]
    # A log is loaded by several releases, and counts once.
    logs = len({log for each in measured for log in each.logs})
    figures.append([logs, *(sum(column) for column in list(zip(*figures, strict=True))[1:])])
    rows = [[*name, *map(str, numbers)] for name, numbers in zip([*names, ("together", "")], figures, strict=True)]
    return [
        f"| {' | '.join(head)} |",
        f"| --- | --- |{' ---: |' * (len(head) - 2)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def _by_type(total: Counter[tuple[str, str]]) -> list[str]:
    tables = [table for tables in _COLUMNS.values() for table in tables]
    rows = [(table, [total[table, group_type] for group_type in _TYPES]) for table in tables]
    return [
        f"| rows of | {' | '.join(_TYPES)} |",
        f"| --- |{' ---: |' * len(_TYPES)}",
        *(f"| {table} | {' | '.join(str(count) for count in counts)} |" for table, counts in rows if any(counts)),
    ]


def with_block(page: str, name: str, text: str) -> str:
    """The page with this text as the block of that name.

    Raises:
        ValueError: the page has no such block.
    """
    pattern = re.compile(rf"(<!-- measured: {re.escape(name)} -->\n).*?(\n<!-- end -->)", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"there is no block {name!r}")
    return pattern.sub(lambda match: f"{match[1]}\n{text}\n{match[2]}", page)
