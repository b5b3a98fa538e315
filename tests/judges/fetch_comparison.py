"""Compare our `fetched_offsets` with a real broker's answer to OffsetFetch, without and with require_stable, entry by entry.

The requests named all offsets of a group (before 0.10.2: the known ones), and some offsets that are only pending. `Comparison.not_shown`
lists offsets that no request named, or that are not of the shard that we loaded:

    stray group                 the Java coordinator looks for it in the offsets partition of its id
    only pending                no request named it
    no answer has it            in memory, without a group that a request can name
    not requested               up to 0.10.1 a broker returns only offsets that a request names
    more than the log           `before` only: pending commits forgotten
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from exhume.codecs.offsets_topic import offsets_partition_of

from .broker_answers import Expectation
from .group_answers import GroupAnswer
from .state_comparison import Comparison, Tables

_Key = tuple[str, int]
_Rows = Mapping[_Key, Mapping[str, Any]]
_STABLE = {"committed_offset": "stable_offset", "leader_epoch": "stable_leader_epoch", "metadata": "stable_metadata"}


def compare_fetches(expectation: Expectation, tables: Tables, comparison: Comparison) -> None:
    """Add to this comparison what these tables say of every OffsetFetch that the broker answered; counts are of `fetched_offsets`."""
    if expectation.refused_to_start is not None:
        return
    rows: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in tables["fetched_offsets"]:
        rows[row["group"]].append(row)
    errors = {row["offsets_partition"]: row["offset_fetch_error"] for row in tables["loads"]}
    for group, answer in expectation.groups.items():
        home = offsets_partition_of(group, expectation.offsets_partition_count)
        judge = _Judge(f"fetch of group {group!r}", expectation, comparison)
        mine = rows.pop(group, [])
        if any(row["offsets_partition"] != home for row in mine) and expectation.coordinator == "java":
            judge.silence("stray group")
            mine = [row for row in mine if row["offsets_partition"] == home]
        if answer.fetch_error is not None and home in errors:
            comparison.counts["fetched_offsets", "errors"] += 1
            judge.check("error", errors[home], answer.fetch_error)
            judge.check("error with require_stable", errors[home], answer.stable_fetch_error or answer.fetch_error)
        by_key = {(row["topic"], row["partition"]): row for row in mine}
        if answer.offsets is not None:
            judge.compare(by_key, answer)
    if rows:
        _Judge("fetches", expectation, comparison).unasked(rows)


class _Judge:
    def __init__(self, place: str, expectation: Expectation, comparison: Comparison) -> None:
        self.place = place
        self.expectation = expectation
        self.comparison = comparison

    def check(self, what: str, ours: object, broker: object) -> None:
        if ours != broker:
            self.comparison.differences.append(f"{self.place}: {what} is {ours!r}, the broker says {broker!r}")

    def silence(self, reason: str) -> None:
        self.comparison.not_shown.append(f"{self.place}: {reason}")

    def unasked(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        for group, found in rows.items():
            if any(row["committed_offset"] is not None or row["is_stable_listed"] for row in found):
                if self.expectation.version < (0, 10, 2):
                    self.silence("not requested")
                else:
                    self.comparison.differences.append(f"{self.place}: {len(found)} of group {group!r}, and the broker was not asked")

    def compare(self, ours: _Rows, answer: GroupAnswer) -> None:
        assert answer.offsets is not None
        if self.expectation.version < (0, 10, 2):
            self.check("is_listed", {row["is_listed"] for row in ours.values()} - {None}, set())
            listed = {key: row for key, row in ours.items() if row["committed_offset"] is not None and key[0]}
        else:
            listed = {key: row for key, row in ours.items() if row["is_listed"]}
        self.check("partitions", sorted(listed), sorted(answer.offsets))
        for key in listed.keys() & answer.offsets.keys():
            self.comparison.counts["fetched_offsets", "plain"] += 1
            for column, said in answer.offsets[key].items():
                self.check(f"{column} of {key}", listed[key][column], said)
        if answer.stable_offsets is not None:
            self.compare_stable(ours, answer.stable_offsets, asked_for_all=answer.offsets.keys())
        elif self.expectation.version < (2, 5):
            self.check("require_stable", {row["stable_error"] for row in ours.values()} - {None}, set())

    def compare_stable(self, ours: _Rows, said: _Rows, *, asked_for_all: Collection[_Key]) -> None:
        listed = {key for key, row in ours.items() if row["is_stable_listed"]}
        self.check("partitions with require_stable", sorted(listed - said.keys()), [])
        self.check("partitions with require_stable, too few", sorted(said.keys() - ours.keys()), [])
        for key in ours.keys() & said.keys():
            row, columns = ours[key], said[key]
            if self.expectation.kind == "before" and columns["error"] != row["stable_error"] == "UNSTABLE_OFFSET_COMMIT":
                self.silence("more than the log")
                continue
            self.comparison.counts["fetched_offsets", "require_stable"] += 1
            self.check(f"error of {key} with require_stable", row["stable_error"], columns["error"])
            if columns["error"] == "NONE" or key in asked_for_all:
                self.check(f"is_stable_listed of {key}", row["is_stable_listed"], True)
            if columns["error"] == "NONE":
                for column in columns.keys() & _STABLE.keys():
                    self.check(f"{column} of {key} with require_stable", row[_STABLE[column]], columns[column])
            else:
                self.check(f"an offset of {key} that is refused", [row[name] for name in _STABLE.values()], [None] * 3)
        for key in ours.keys() - said.keys() - listed:
            refused = ours[key]["stable_error"] == "UNSTABLE_OFFSET_COMMIT"
            self.silence("only pending" if refused else "no answer has it")
