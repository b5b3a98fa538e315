"""Our state of a log against what a real broker said after loading it.

Our side is given as tables by name, each a list of rows with the columns of the state tables. Everything the broker said is held against
it, and everything we hold must have been said: a group, member, offset or assignment too many is a difference as much as one too few.
What a broker cannot show is listed in `Comparison.not_shown`, with the reason, and only that. The reasons are

    a request failed            what it would have shown (`GroupAnswer.silences` has the error)
    a session ended             between ListGroups and DescribeGroups, as the two answers show
    stray group                 the Java coordinator lists it, and looks for it elsewhere when it is asked for
    offsets without a group     the Java coordinator keeps them, and OffsetFetch begins with the group
    topic is gone               assignments of topic ids that the broker does not have are left out
    only pending                an offset that is only pending appears only if a request names it
    assignor                    a tie, or no member names one: the order of the broker's hash map, or its settings
    more than the log           `before` only: rebalances in progress, Empty groups without a record, pending commits forgotten
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from exhume.codecs.offsets_topic import offsets_partition_of

from .broker_answers import Expectation, release_numbers
from .group_answers import REBALANCING, Assigned, GroupAnswer

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]


@dataclass(slots=True)
class Comparison:
    """What came of it.

    `counts` says how many rows were compared, by table and group type ("any" for tables that have none). Three of them count what is part
    of such rows: `generations` that a probe found, `failed_loads` (aborted, and refused by a broker that did not start), `late_errors`.
    `reasons` counts what is in `not_shown`, by reason.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Comparison, where: str) -> None:
        """Take in another comparison; its differences say where they are."""
        self.counts.update(other.counts)
        self.reasons.update(other.reasons)
        self.not_shown += other.not_shown
        self.differences += [f"{where}: {difference}" for difference in other.differences]


def compare_state(expectation: Expectation, state_tables: Tables, *, release: str) -> Comparison:
    """Hold our state, loaded by the rules of this release, against the answers of that broker.

    The state of an answer with `appended` records, or of kind expired, is that after an expiry pass: give ours after it, too.
    """
    judge = _Judge(expectation, state_tables, release_numbers(release))
    if judge.compare_loads():
        for group, answer in expectation.groups.items():
            judge.compare_group(group, answer)
        judge.compare_groups_too_many()
        judge.compare_transactions()
    return judge.comparison


class _Judge:
    def __init__(self, expectation: Expectation, tables: Tables, version: tuple[int, ...]) -> None:
        self.expectation = expectation
        self.tables = tables
        self.version = version
        self.comparison = Comparison()
        by_group: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        for name in _GROUP_TABLES:
            for row in tables.get(name, ()):
                by_group[name, row["group"]].append(row)
        self.by_group = dict(by_group)

    def rows(self, table: str, group: str) -> list[Row]:
        return self.by_group.get((table, group), [])

    def by_name(self, table: str) -> list[tuple[str, list[Row]]]:
        return [(group, rows) for (name, group), rows in self.by_group.items() if name == table]

    def check(self, place: str, what: str, ours: object, broker: object) -> None:
        if ours != broker:
            self.comparison.differences.append(f"{place}: {what} is {_shown(ours)}, the broker says {_shown(broker)}")

    def silence(self, place: str, reason: str) -> None:
        self.comparison.not_shown.append(f"{place}: {reason}")
        self.comparison.reasons[_NUMBER.sub("", reason)] += 1

    # Loads

    def compare_loads(self) -> bool:
        """Outcomes by offsets partition. False when no broker came up, so that there is no more to compare."""
        outcomes = {row["offsets_partition"]: row for row in self.tables["loads"]}
        expectation = self.expectation
        is_anything_listed = any(answer.listed for answer in expectation.groups.values())
        if expectation.refused_to_start is not None:
            self.comparison.counts["loads", "any"] += len(outcomes)
            self.comparison.counts["failed_loads", "any"] += len(outcomes)
            for partition, row in outcomes.items():
                self.check(f"offsets partition {partition}", "outcome", row["outcome"], "refused")
            return False
        for partition, row in outcomes.items():
            place = f"offsets partition {partition}"
            self.comparison.counts["loads", "any"] += 1
            if partition in expectation.failed_loads:
                self.comparison.counts["failed_loads", "any"] += 1
                self.check(f"{place} ({expectation.failed_loads[partition][:200]})", "outcome", row["outcome"], "aborted")
            elif row["outcome"] == "stalled" and not is_anything_listed:
                self.silence(place, "the load never ends: the broker does not answer")
            elif row["outcome"] == "aborted" and not expectation.is_log_complete and not is_anything_listed:
                self.silence(place, "no group is listed, and the log line with the reason was not kept")
            else:
                self.check(f"{place} ({row['outcome']})", "load came to its end", row["outcome"] in _CAME_TO_ITS_END, True)
            if partition in expectation.late_errors:
                self.comparison.counts["late_errors", "any"] += 1
                self.check(place, "load has a late error", bool(row["reason"]), True)
        for partition in expectation.failed_loads:
            if partition not in outcomes:
                self.comparison.differences.append(f"offsets partition {partition}: the broker could not load it, and we did not try")
        return True

    # Groups

    def compare_group(self, group: str, answer: GroupAnswer) -> None:
        home = offsets_partition_of(group, self.expectation.offsets_partition_count)
        rows = self.rows("groups", group)
        place = f"group {group!r}"
        for reason in answer.silences:
            self.silence(place, reason)
        if not answer.listed:
            self.compare_unlisted(place, group, answer)
            return
        if not rows:
            if not self.is_more_than_the_log(place, answer):
                self.comparison.differences.append(f"{place}: the broker lists it, we do not have it")
            return
        strays = [row for row in rows if row["offsets_partition"] != home]
        if strays and self.expectation.coordinator == "java":
            self.compare_stray(place, strays, answer)
            return
        self.compare_known(place, group, rows[0], answer)

    def compare_unlisted(self, place: str, group: str, answer: GroupAnswer) -> None:
        """Groups too many are found at the end. An id may still have offsets: 0.9 and 0.10.0 list no group that has nothing else."""
        offsets = self.rows("offsets", group)
        home = offsets_partition_of(group, self.expectation.offsets_partition_count)
        # 0.9 and 0.10.0 keep the offsets that an aborted load had read so far.
        if home in self.expectation.failed_loads and self.version >= (0, 10, 1):
            self.check(place, "number of offsets of a partition that was not loaded", len(self.in_partition(offsets, home)), 0)
        elif answer.offsets is not None and (self.expectation.coordinator == "classic" or not offsets):
            self.compare_offsets(place, group, "classic", answer)
        elif offsets:
            self.silence(place, f"{len(offsets)} offsets without a group")

    def compare_stray(self, place: str, strays: Sequence[Row], answer: GroupAnswer) -> None:
        stray = strays[0]
        self.silence(place, f"a stray group in offsets partition {stray['offsets_partition']}: only its listing was compared")
        self.compare_columns(place, stray, {name: answer.columns[name] for name in _LISTED if name in answer.columns})

    def compare_known(self, place: str, group: str, row: Row, answer: GroupAnswer) -> None:
        columns = dict(answer.columns)
        members = answer.members
        if self.expectation.kind == "before" and columns.get("group_state") in REBALANCING:
            columns = {name: value for name, value in columns.items() if name == "group_type"}
        self.compare_columns(place, row, columns)
        group_type = row["group_type"]
        if members is not None:
            self.compare_members(place, group, group_type, members)
            self.compare_assignor(place, group, answer)
            if answer.assigned is not None:
                self.compare_assignments(place, group, group_type, answer)
        if answer.offsets is not None:
            self.compare_offsets(place, group, group_type, answer)
        if answer.share_partitions is not None:
            self.compare_share_partitions(place, group, answer)
        if answer.subtopologies is not None:
            self.compare_topology(place, group, answer.subtopologies)

    def is_more_than_the_log(self, place: str, answer: GroupAnswer) -> bool:
        state = answer.columns.get("group_state")
        if self.expectation.kind != "before" or answer.offsets or state not in {"Empty", *REBALANCING}:
            return False
        self.silence(place, f"more than the log: {state}, without a record")
        return True

    def compare_columns(self, place: str, row: Row, columns: Mapping[str, Any]) -> None:
        self.comparison.counts["groups", row["group_type"]] += 1
        self.comparison.counts["generations", row["group_type"]] += "generation" in columns
        for name, broker in columns.items():
            ours = row[name]
            # The protocol has no null: what is not there is "".
            self.check(place, name, (ours or "") if name in ("protocol_type", "protocol") else ours, broker)

    def compare_groups_too_many(self) -> None:
        for group, rows in self.by_name("groups"):
            answer = self.expectation.groups.get(group)
            if answer is not None and answer.listed:
                continue
            place = f"group {group!r}"
            if not self.expectation.is_list_complete:
                self.silence(place, "ListGroups failed")
            elif self.expectation.version < (0, 10, 1) and not self.rows("members", group) and rows[0]["protocol_type"] is None:
                self.silence(place, "this release lists no group that has only offsets")
            else:
                self.comparison.differences.append(f"{place}: we have it, the broker does not list it")
        for group, rows in self.by_name("offsets"):
            if group not in self.expectation.groups and self.expectation.coordinator == "java" and not self.rows("groups", group):
                self.silence(f"group {group!r}", f"{len(rows)} offsets without a group")
            elif group not in self.expectation.groups and self.expectation.version < (0, 10, 1):
                self.silence(f"group {group!r}", "this release returns only offsets that a request names, and no request named them")
            elif group not in self.expectation.groups:
                self.comparison.differences.append(f"group {group!r}: we have {len(rows)} offsets, the broker was not asked")

    # Members and what they hold

    def compare_members(self, place: str, group: str, group_type: str, members: Mapping[str, Mapping[str, Any]]) -> None:
        rows = {row["member_id"]: row for row in self.rows("members", group)}
        self.check(place, "members", sorted(rows), sorted(members))
        for member_id in rows.keys() & members.keys():
            self.comparison.counts["members", group_type] += 1
            for name, broker in members[member_id].items():
                self.check(f"{place} member {member_id!r}", name, _comparable(name, rows[member_id][name]), broker)

    def compare_assignor(self, place: str, group: str, answer: GroupAnswer) -> None:
        if answer.assignor is None:
            return
        votes = Counter(row["server_assignor"] for row in self.rows("members", group) if row["server_assignor"]).most_common(2)
        if not votes or (len(votes) == 2 and votes[0][1] == votes[1][1]):
            self.silence(place, f"assignor {answer.assignor!r}: {'a tie' if votes else 'no member names one'}")
        else:
            self.check(place, "assignor", votes[0][0], answer.assignor)

    def compare_assignments(self, place: str, group: str, group_type: str, answer: GroupAnswer) -> None:
        assigned: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
        target: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
        # From 4.3 a member of a consumer group is described with all that it still holds.
        held = {"assigned", "pending_revocation"} if group_type == "consumer" and self.version >= (4, 3) else {"assigned"}
        for row in self.rows("assignments", group):
            if row["topic_id"] in answer.topic_names and row["topic"] is not None:
                self.check(place, f"name of topic {row['topic_id']}", row["topic"], answer.topic_names[row["topic_id"]])
            if row["kind"] in held:
                assigned[row["member_id"]].add(_assignment_key(group_type, row))
            if row["kind"] == "target":
                target[row["member_id"]].add(_assignment_key(group_type, row))
        if group_type == "classic":
            # The broker shows bytes, which are compared as such; they have a meaning of Kafka's own for protocol type consumer only.
            assigned = {member: assigned[member] for member in answer.assigned or {}}
        self.compare_partitions(place, group_type, "assigned", assigned, answer.assigned)
        # Only members are described: what a target holds for others does not show.
        members = answer.members or {}
        beyond = {member: partitions for member, partitions in target.items() if member not in members}
        if answer.target is not None:
            self.compare_partitions(place, group_type, "target", {m: p for m, p in target.items() if m in members}, answer.target)
        if beyond:
            self.silence(place, f"{sum(map(len, beyond.values()))} target partitions of ids that are no members")

    def compare_partitions(
        self, place: str, group_type: str, kind: str, ours: Mapping[str, set[tuple[Any, ...]]], broker: Mapping[str, Assigned] | None
    ) -> None:
        for member_id in sorted(ours.keys() | (broker or {}).keys()):
            held, said = ours.get(member_id, set()), (broker or {}).get(member_id, frozenset())
            gone = {key for key in held - said if group_type in ("consumer", "share") and key[0] not in self.expectation.existing_topic_ids}
            if gone:
                self.silence(f"{place} member {member_id!r}", f"topic is gone: {len(gone)} {kind} partitions")
            self.comparison.counts["assignments", group_type] += len(held - gone)
            self.check(f"{place} member {member_id!r}", f"{kind} partitions", sorted(held - gone), sorted(said))

    # Offsets and the rest

    def compare_offsets(self, place: str, group: str, group_type: str, answer: GroupAnswer) -> None:
        assert answer.offsets is not None
        rows = {(row["topic"], row["partition"]): row for row in self.rows("offsets", group)}
        if self.expectation.version < (0, 10, 2):
            for nameless in [key for key in rows if not key[0]]:
                self.silence(f"{place} offset of a topic without a name", "this release returns only offsets that a request names")
                del rows[nameless]
        self.check(place, "offsets", sorted(rows), sorted(answer.offsets))
        for key in rows.keys() & answer.offsets.keys():
            self.comparison.counts["offsets", group_type] += 1
            for name, broker in answer.offsets[key].items():
                self.check(f"{place} offset of {key[0]}-{key[1]}", name, rows[key][name], broker)
        pending = {(row["topic"], row["partition"]) for row in self.rows("pending_offsets", group)}
        self.check(
            place, "unstable offsets", sorted(key for key, row in rows.items() if not row["is_stable"]), sorted(rows.keys() & pending)
        )
        if answer.unstable is None or (self.expectation.coordinator == "java" and self.version < (3, 8)):
            if pending:
                self.silence(place, f"{len(pending)} pending offsets: this release has no error for unstable offsets")
        elif self.expectation.kind == "before" and answer.unstable < pending:
            self.silence(place, f"more than the log: {len(pending - answer.unstable)} pending offsets are forgotten")
        else:
            if not self.expectation.is_pending_complete and pending - rows.keys():
                self.silence(place, f"{len(pending - rows.keys())} offsets that are only pending: no request named them")
                pending &= rows.keys()
            self.comparison.counts["pending_offsets", group_type] += len(pending)
            self.check(place, "pending offsets", sorted(pending), sorted(answer.unstable))

    def compare_share_partitions(self, place: str, group: str, answer: GroupAnswer) -> None:
        ours = {(row["topic_id"], row["partition"]) for row in self.rows("share_partitions", group) if row["status"] == "initialized"}
        gone = {key for key in ours - (answer.share_partitions or set()) if key[0] not in self.expectation.existing_topic_ids}
        if gone:
            self.silence(place, f"topic is gone: {len(gone)} share partitions")
        others = sum(row["status"] != "initialized" for row in self.rows("share_partitions", group))
        if others:
            self.silence(place, f"{others} share partitions that are not initialized")
        self.comparison.counts["share_partitions", "share"] += len(ours - gone)
        self.check(place, "share partitions", sorted(ours - gone), sorted(answer.share_partitions or ()))

    def compare_topology(self, place: str, group: str, subtopologies: Mapping[str, Mapping[str, Any]]) -> None:
        rows = {row["subtopology_id"]: row for row in self.rows("streams_topologies", group)}
        self.check(place, "subtopologies", sorted(rows), sorted(subtopologies))
        for subtopology_id in rows.keys() & subtopologies.keys():
            self.comparison.counts["streams_topologies", "streams"] += 1
            for name, broker in subtopologies[subtopology_id].items():
                self.check(f"{place} subtopology {subtopology_id}", name, list(rows[subtopology_id][name]), broker)

    def compare_transactions(self) -> None:
        if self.expectation.open_transactions is None:
            return
        broker = {found for found in self.expectation.open_transactions if found[0] not in self.expectation.failed_loads}
        ours = {
            (row["offsets_partition"], row["producer_id"], row["producer_epoch"], row["first_record_offset"])
            for row in self.tables["open_transactions"]
        }
        self.comparison.counts["open_transactions", "any"] += len(broker)
        for partition in sorted({found[0] for found in ours ^ broker}):
            held, said = (sorted(found[1:] for found in side if found[0] == partition) for side in (ours, broker))
            self.check(f"offsets partition {partition}", "open transactions (producer id, epoch, first offset)", held, said)

    @staticmethod
    def in_partition(rows: Iterable[Row], partition: int) -> list[Row]:
        return [row for row in rows if row["offsets_partition"] == partition]


#: A number, or an offsets partition, in the middle of a reason.
_NUMBER = re.compile(r"(?:(?<= )|^)\d+ | \d+(?=:)")
_GROUP_TABLES = ("groups", "members", "assignments", "offsets", "pending_offsets", "share_partitions", "streams_topologies")
#: The last: loaded, but requests are answered from an older snapshot. The tables are what requests see, so it needs no rule here.
_CAME_TO_ITS_END = ("loaded", "loaded_with_error", "not_shown")
_LISTED = ("protocol_type", "group_state", "group_type")


def _comparable(name: str, value: Any) -> Any:
    if name == "subscribed_topics":
        return sorted(value or ())
    if name == "subscribed_regex":
        # Both mean none; requests up to version 0 have no null.
        return value or ""
    return value


def _assignment_key(group_type: str, row: Row) -> tuple[Any, ...]:
    if group_type == "streams":
        return row["task_role"], row["subtopology_id"], row["partition"]
    return row["topic"] if group_type == "classic" else row["topic_id"], row["partition"]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
