"""The Java coordinator, 3.7 to 4.4: every record at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exhume.codecs.batches import Batch
from exhume.codecs.records import Record

from .records import (
    Answer,
    Key,
    Load,
    LoadEnds,
    ReadableBatch,
    Unknown,
    classic_group,
    classic_row,
    commit_of,
    control_type,
    decode,
    fatal_problems,
    problem_of_subscription,
    records_of,
    simple_group,
)

#: Type of a modern record: whose it is, and what it says.
_MODERN = {
    3: ("consumer", "group"), 4: ("consumer", "nothing"), 5: ("consumer", "member"), 6: ("consumer", "target epoch"),
    7: ("consumer", "target"), 8: ("consumer", "current"), 16: ("consumer", "nothing"),
    9: ("share", "nothing"), 10: ("share", "member"), 11: ("share", "group"), 12: ("share", "target epoch"), 13: ("share", "target"),
    14: ("share", "current"), 15: ("share", "nothing"),
    17: ("streams", "group"), 19: ("streams", "member"), 20: ("streams", "target epoch"), 21: ("streams", "target"),
    22: ("streams", "current"), 23: ("streams", "topology"),
}  # fmt: skip
_STATES = {
    "consumer": {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"},
    "share": {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"},
    "streams": {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"},
}
_OFFSETS_BETWEEN_SNAPSHOTS = 16384


def load(run: Load, batches: Sequence[ReadableBatch], end_offset: int) -> Answer:
    """One load, record by record."""
    state = _Java(run)
    shown_offset = -1
    commits_on_the_way = run.is_from(("4.0.2", "4.0.2"), ("4.1.1", None))
    try:
        for item in batches:
            for record in records_of(item):
                state.replay(item.batch, record)
            next_offset = item.batch.last_offset + 1
            if next_offset >= end_offset:
                if next_offset <= shown_offset:
                    run.refuse(next_offset - 1)
                shown_offset = next_offset
            elif commits_on_the_way and next_offset - shown_offset >= _OFFSETS_BETWEEN_SNAPSHOTS:
                shown_offset = next_offset
        state.loaded()
    except LoadEnds as ends:
        return Answer(ended_at=ends.record_offset)
    pending = {(producer_id, key): commit for producer_id, staged in state.waiting.items() for key, commit in staged.items()}
    rows = {name: classic_row(group) if group["type"] == "classic" else _modern_row(run, group) for name, group in state.groups.items()}
    return Answer(None, False, False, shown_offset, run.refusals, rows, state.committed, pending)


class _Java:
    def __init__(self, run: Load) -> None:
        self.run = run
        self.groups: dict[str, dict[str, Any]] = {}
        self.committed: dict[Key, dict[str, Any]] = {}
        self.waiting: dict[int, dict[Key, dict[str, Any]]] = {}
        self.newest, self.layouts = _known(run)

    def replay(self, header: Batch, record: Record) -> None:
        if header.is_control:
            self.end_transaction(header, control_type(self.run, record))
            return
        try:
            decoded = decode(self.run, record, self.newest, self.layouts)
        except Unknown:
            return
        if decoded is None:
            return
        number, fields, version, value = decoded
        if number in (0, 1):
            self.replay_offset(header, record, fields, version, value)
        elif number == 2 and value is None:
            self.groups.pop(fields["group"], None)
        elif number == 2:
            assert value is not None
            self.groups[fields["group"]] = classic_group(self.run, record, version, value, is_java=True)
        elif number == 15 and self.run.release < (4, 1):
            self.run.refuse(record.record_offset)
        else:
            self.replay_modern(number, fields, value, record.record_offset)

    def end_transaction(self, header: Batch, outcome: int | None) -> None:
        staged = self.waiting.pop(header.producer_id, {}) if outcome in (0, 1) else {}
        for key, commit in staged.items() if outcome == 1 else ():
            is_newer = key not in self.committed or self.committed[key]["record_offset"] < commit["record_offset"]
            if is_newer or self.run.release < (3, 8):
                self.committed[key] = commit

    def replay_offset(self, header: Batch, record: Record, fields: dict[str, Any], version: int, value: dict[str, Any] | None) -> None:
        key = (fields["group"], fields["topic"], fields["partition"])
        if value is None:
            for keys in (self.committed, *(self.waiting.values() if self.run.release >= (3, 8) else ())):
                keys.pop(key, None)
            return
        self.groups.setdefault(key[0], simple_group())
        if header.producer_id == -1:
            self.committed[key] = commit_of(self.run, record, version, value, None)
        else:
            self.waiting.setdefault(header.producer_id, {})[key] = commit_of(self.run, record, version, value, header)

    def group_for(self, number: int, name: str, *, is_tombstone: bool, at: int) -> dict[str, Any] | None:
        """The group that a modern record acts on; None where there is nothing to do."""
        group_type, _ = _MODERN[number]
        group = self.groups.get(name)
        if group is not None and group["type"] == group_type:
            return group
        if group is None:
            needs_a_group = self.is_strict_about_missing(number)
            if needs_a_group and (is_tombstone or number not in (3, 5, 10, 11)):
                self.run.refuse(at)
            if is_tombstone:
                return None
        else:
            is_simple = group["type"] == "classic" and group["protocol_type"] is None and not group["members"]
            takes_its_place = {"consumer": (4, 0), "streams": (4, 2, 1)}.get(group_type, (99,)) <= self.run.release
            if not (is_simple and takes_its_place):
                self.run.refuse(at)
                if is_tombstone:
                    return None
        epoch = 0 if self.run.release < (4, 3) else 1
        self.groups[name] = {
            "type": group_type, "epoch": epoch, "target epoch": epoch, "members": {}, "targets": set(), "owners": {},
            "validated": 0 if self.run.release < (4, 4) else -1, "topology": None,
        }  # fmt: skip
        return self.groups[name]

    def is_strict_about_missing(self, number: int) -> bool:
        """A record of this type for a group or member that is not there ends the load."""
        return self.run.release < (4, 0) or (_MODERN[number][0] == "share" and self.run.release < (4, 1))

    def replay_modern(self, number: int, fields: dict[str, Any], value: dict[str, Any] | None, at: int) -> None:
        says = _MODERN[number][1]
        name = fields["group"]
        group = self.group_for(number, name, is_tombstone=value is None, at=at)
        if group is None:
            return
        if says == "group":
            if value is not None:
                group["epoch"], group["validated"] = value["group_epoch"], value.get("validated_topology_epoch", 0)
                return
            if group["members"] or group["target epoch"] != -1 or (group["targets"] and group["type"] != "streams"):
                self.run.refuse(at)
            del self.groups[name]
        elif says == "target epoch":
            if (value is None and group["targets"]) or (
                value is not None and value["assignment_epoch"] < -1 and self.run.release >= (4, 3)
            ):
                self.run.refuse(at)
            group["target epoch"] = -1 if value is None else value["assignment_epoch"]
        elif says == "target":
            (group["targets"].discard if value is None else group["targets"].add)(fields["member_id"])
        elif says == "topology":
            group["topology"] = None if value is None else value["topology_epoch"]
            if value is not None and value["topology_epoch"] < 0:
                self.run.refuse(at)
        elif says in ("member", "current"):
            self.replay_member(group, number, fields["member_id"], value, at)

    def replay_member(self, group: dict[str, Any], number: int, member_id: str, value: dict[str, Any] | None, at: int) -> None:
        members, is_streams = group["members"], group["type"] == "streams"
        is_about_itself = _MODERN[number][1] == "member"
        if member_id not in members:
            if self.is_strict_about_missing(number) and (value is None or not is_about_itself):
                self.run.refuse(at)
            if value is None:
                return
        fresh: dict[str, Any] = {
            "epoch": None if is_streams else 0,
            "state": None if is_streams or self.run.release < (3, 8) else "STABLE",
            "timeout": None if is_streams else -1,
            "process": None, "held": [], "moves to": 0, "is settled": True, "classic": None, "instance": None,
        }  # fmt: skip
        member = members.setdefault(member_id, fresh)
        if is_about_itself and value is None:
            if member["epoch"] != -1 or member_id in group["targets"]:
                self.run.refuse(at)
            del members[member_id]
        self.let_go(group, member, at)
        if value is None:
            if not is_about_itself:
                member["epoch"], member["held"], member["is settled"] = -1, [], True
            return
        if is_about_itself:
            member["timeout"], member["process"] = value.get("rebalance_timeout_ms", -1), value.get("process_id")
            member["classic"], member["instance"] = value.get("classic_member_metadata"), value.get("group_instance_id")
        else:
            member["epoch"], member["held"] = value["member_epoch"], _held(group["type"], value)
            if self.run.release < (3, 8):
                member["moves to"] = value["target_member_epoch"]
                member["is settled"] = not value["pending_revocation"] and not value["pending_assignment"]
            else:
                member["state"] = _STATES[group["type"]].get(value["member_state"], "UNKNOWN")
        self.take(group, member, at)

    def owner_rule(self, group_type: str) -> str | None:
        is_strict = self.run.is_from(("3.8.0", "4.0.1"), ("4.1.0", "4.1.1"))
        if group_type == "streams":
            return "processes" if is_strict else None
        return "strict" if is_strict else "monotonic" if self.run.release >= (3, 8) else None

    def let_go(self, group: dict[str, Any], member: dict[str, Any], at: int) -> None:
        rule = self.owner_rule(group["type"])
        if rule == "processes":
            self.let_go_tasks(group["owners"], member, at)
            return
        for partition in member["held"] if rule is not None else ():
            if group["owners"].get(partition) == member["epoch"]:
                group["owners"].pop(partition, None)
            elif rule == "strict":
                self.run.refuse(at)

    def let_go_tasks(self, owners: dict[Any, Any], member: dict[str, Any], at: int) -> None:
        """Each task must be noted for the process of this member; one subtopology at a time, since an empty one is no longer noted."""
        for role, subtopology, partitions in member["held"]:
            if (role, subtopology) not in owners:
                self.run.refuse(at)
                continue
            noted = owners[role, subtopology]
            for partition in partitions:
                if role == "active_tasks":
                    if noted.pop(partition, None) != member["process"]:
                        self.run.refuse(at)
                elif member["process"] not in noted.get(partition, ()):
                    self.run.refuse(at)
                else:
                    noted[partition].remove(member["process"])
            if not noted:
                del owners[role, subtopology]

    def take_tasks(self, owners: dict[Any, Any], member: dict[str, Any], at: int) -> None:
        for role, subtopology, partitions in member["held"] if member["process"] is not None else ():
            noted = owners.setdefault((role, subtopology), {})
            for partition in partitions:
                if role != "active_tasks":
                    noted.setdefault(partition, set()).add(member["process"])
                    continue
                if partition in noted:
                    self.run.refuse(at)
                noted[partition] = member["process"]

    def take(self, group: dict[str, Any], member: dict[str, Any], at: int) -> None:
        rule, owners = self.owner_rule(group["type"]), group["owners"]
        if rule == "processes":
            self.take_tasks(owners, member, at)
            return
        for partition in member["held"] if rule is not None else ():
            if partition in owners and (rule == "strict" or (rule == "monotonic" and owners[partition] >= member["epoch"])):
                self.run.refuse(at)
            owners[partition] = member["epoch"]

    def loaded(self) -> None:
        """Timers are set: who has something to give up needs a rebalance timeout."""
        for name, group in list(self.groups.items()):
            for member_id, member in list(group["members"].items()) if group["type"] in ("consumer", "streams") else ():
                if member["state"] == "UNREVOKED_TASKS" and member["timeout"] is None:
                    self.run.refuse(-1)
                if member["state"] == "UNREVOKED_PARTITIONS" and member["timeout"] <= 0:
                    others = {other_id: other for other_id, other in group["members"].items() if other_id != member_id}
                    if self.run.release >= (4, 0) and others and all(other["classic"] is not None for other in others.values()):
                        classic = self.downgraded(group, others)
                        if classic is not None:
                            self.groups[name] = classic
                            break
                        continue
                    del group["members"][member_id]
                    group["epoch"] += 1
                    if not group["members"] and self.run.release >= (4, 4):
                        group["target epoch"] = group["epoch"]

    def downgraded(self, group: dict[str, Any], others: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
        """The classic group of these members of a consumer group; None where the coordinator throws on the way to it."""
        if self.run.release < (4, 3) and not others.keys() <= group["targets"]:
            return None
        offered = [{one["name"]: one["metadata"] for one in other["classic"]["supported_protocols"]} for other in others.values()]
        votes: dict[str, int] = {}
        for each in offered:
            known_to_all = [name for name in each if all(name in other for other in offered)]
            if not known_to_all:
                return None
            votes[known_to_all[0]] = votes.get(known_to_all[0], 0) + 1
        protocol = max(votes, key=lambda name: votes[name])
        if any(len(each[protocol]) < 2 or each[protocol][0] > 127 for each in offered):
            return None
        instances = [other["instance"] for other in others.values() if other["instance"] is not None]
        problems = {problem_of_subscription(each[protocol]) for each in offered} & fatal_problems(self.run)
        if problems or len(set(instances)) < len(instances):
            return None
        return {
            "type": "classic", "state": "PreparingRebalance", "protocol_type": "consumer", "protocol": protocol,
            "generation": group["epoch"], "leader": next(iter(others)) if len(others) == 1 else None, "timestamp": -1, "members": others,
        }  # fmt: skip


def _known(run: Load) -> tuple[dict[int, int | None], dict[int, str]]:
    """The newest value version of each type that the release knows, and the types whose layout is not that of today."""
    if run.release < (4, 0):
        early = dict.fromkeys((4, 5, 7, 8), "3.7") if run.release < (3, 8) else {}
        return dict.fromkeys(range(9)), early
    newest: dict[int, int | None] = {0: 4 if run.release < (4, 1) else 0, 1: 4, 2: 4}
    newest |= dict.fromkeys([*range(3, 9), *range(10, 17)], 0)
    if run.release < (4, 1):
        return newest | {9: 0}, {11: "4.0", 15: "4.0"}
    return newest | dict.fromkeys((17, *range(19, 24)), 0), {}


def _held(group_type: str, value: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Partitions of consumer groups, which have one owner; tasks of streams groups, by role and subtopology."""
    if group_type == "consumer":
        return [
            (entry["topic_id"], partition)
            for entry in [*value["assigned"], *value["pending_revocation"]]
            for partition in entry["partitions"]
        ]
    if group_type == "streams":
        roles = ("active_tasks", "standby_tasks", "warmup_tasks")
        names = [(role, role + ending) for ending in ("", "_pending_revocation") for role in roles]
        return [(role, entry["subtopology_id"], entry["partitions"]) for role, name in names for entry in value[name]]
    return []


def _modern_row(run: Load, group: dict[str, Any]) -> dict[str, Any]:
    members = {member_id: (member["epoch"], member["state"]) for member_id, member in group["members"].items()}
    if run.release < (3, 8):
        is_settled = all(member["moves to"] == group["target epoch"] and member["is settled"] for member in group["members"].values())
    else:
        is_settled = all(member == (group["target epoch"], "STABLE") for member in members.values())
    is_ready = group["topology"] is not None and group["topology"] == group["validated"] and run.release >= (4, 2)
    if not members:
        state = "Empty"
    elif group["type"] == "share":
        state = "Stable"
    elif group["type"] == "streams" and not is_ready:
        state = "NotReady"
    elif group["epoch"] > group["target epoch"]:
        state = "Assigning"
    else:
        state = "Stable" if is_settled else "Reconciling"
    return {
        "group_type": group["type"],
        "group_state": state,
        "group_epoch": group["epoch"],
        "assignment_epoch": group["target epoch"],
        "members": members,
    }
