"""The members of the group at the moment, their partitions, and partitions without an owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from exhume.analysis.detectors.report import counted, span
from exhume.analysis.explanation.facts import GroupFacts
from exhume.analysis.explanation.sentences import Sentence, listed, named, numbers, partitions, records_of
from exhume.analysis.memberships import AWAY_EPOCH
from exhume.moments import at
from exhume.replay.state_tables import AssignmentRow, MemberRow

#: The number of members that get a sentence of their own.
_MOST_MEMBERS = 8
#: Clauses for the states of members of modern groups.
_STATES: Mapping[str | None, str] = {
    "STABLE": ", settled",
    "UNREVOKED_PARTITIONS": ", with partitions to give up first",
    "UNREVOKED_TASKS": ", with tasks to give up first",
    "UNRELEASED_PARTITIONS": ", waiting for partitions",
    "UNRELEASED_TASKS": ", waiting for tasks",
}


def members(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield the number of members, their topics, and the partitions of each; then partitions without an owner, and with two."""
    rows = facts.held["members"]
    if not rows:
        yield from _last_members(facts)
        return
    moment = facts.commands.moment
    purpose = "Check whether an assignor explains the assignment"
    # That command cannot take a clock.
    compare = None if "--clock" in moment else facts.commands.of("assignments", *moment, purpose=purpose)
    yield Sentence(f"{counted(len(rows), 'member')}{_leader(facts)}{_subscriptions(rows)}", records_of(rows), next_command=compare)
    for row in rows[:_MOST_MEMBERS]:
        yield _member(facts, row)
    if len(rows) > _MOST_MEMBERS:
        left = rows[_MOST_MEMBERS:]
        command = facts.commands.by_release("state", *facts.commands.moment, "--table", "members", purpose="See all members")
        yield Sentence(f"{len(left)} more members are not listed here", records_of(left), next_command=command)
    yield from _waiting(facts)
    if facts.kind != "share":
        yield from _owned_twice(facts)
        yield from _without_owner(facts)


def _last_members(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield the last members of a group that has none now."""
    if facts.kind is None or not facts.is_loaded:
        return
    emptied = next((number for number in range(len(facts.steps) - 1, -1, -1) if facts.steps[number].members), None)
    if emptied is None:
        return
    last = facts.steps[emptied]
    went = facts.steps[emptied + 1] if emptied + 1 < len(facts.steps) else None
    who = listed([_client(member.client_id, member.group_instance_id) for member in last.members.values()], most=_MOST_MEMBERS)
    if went is None:
        return
    text = f"The group has no member: the last in the log were {who}, until record {went.record_offset}{at(went.timestamp_ms)}"
    if len(last.members) == 1:
        text = text.replace("the last in the log were ", "the last in the log was ")
    yield Sentence(text, (last.record_offset, went.record_offset))


def _leader(facts: GroupFacts) -> str:
    row = facts.group_row
    leader = None if row is None else row["leader"]
    found = next((member for member in facts.held["members"] if member["member_id"] == leader), None)
    return "" if found is None else f", led by {_name(found)}"


def _subscriptions(rows: Sequence[MemberRow]) -> str:
    """Return the topics that all members read, if they are the same."""
    subscribed = {tuple(sorted(row["subscribed_topics"] or ())) for row in rows}
    patterns = {row["subscribed_regex"] or None for row in rows}
    if patterns == {None} and len(subscribed) == 1 and (topics := next(iter(subscribed))):
        return f"; {'it reads' if len(rows) == 1 else 'all read'} {listed([named(topic) for topic in topics])}"
    if subscribed == {()} and len(patterns) == 1 and (pattern := next(iter(patterns))):
        return f"; subscribed to the topics that match {named(pattern)}"
    return ""


def _member(facts: GroupFacts, row: MemberRow) -> Sentence:
    mine = facts.assigned.get(row["member_id"], {})
    clauses = [f"owns {_holdings(mine.get('assigned', ()))}"]
    if mine.get("pending_revocation"):
        clauses.append(f"has to give up {_holdings(mine['pending_revocation'])}")
    if row["member_epoch"] is not None:
        away = row["member_epoch"] == AWAY_EPOCH
        clauses.append(
            "has left for now and keeps its partitions"
            if away
            else f"is at epoch {row['member_epoch']}{_STATES.get(row['member_state'], '')}"
        )
    where = f" at {row['client_host'].removeprefix('/')}" if row["client_host"] else ""
    assigned = [each for rows in mine.values() for each in rows]
    return Sentence(f"{_name(row)}{where} {listed(clauses)}", records_of([row, *assigned]))


def _holdings(rows: Iterable[AssignmentRow]) -> str:
    """Return partitions of topics, or tasks of subtopologies by role, in words."""
    by_name: dict[str, list[int]] = {}
    for row in rows:
        if row["subtopology_id"] is None:
            name = named(row["topic"] or row["topic_id"])
        else:
            name = f"{row['task_role']} tasks of subtopology {named(row['subtopology_id'])}:"
        by_name.setdefault(name, []).append(row["partition"])
    return listed([f"{name} {numbers(found)}" for name, found in sorted(by_name.items())]) if by_name else "no partition"


def _name(row: MemberRow) -> str:
    """Return the client id of a member, with its instance id if it has one; the member id if it has neither."""
    return _client(row["client_id"], row["group_instance_id"]) if row["client_id"] or row["group_instance_id"] else named(row["member_id"])


def _client(client_id: str | None, group_instance_id: str | None) -> str:
    instance = "" if group_instance_id is None else f" (instance {named(group_instance_id)})"
    return f"{named(client_id)}{instance}" if client_id else f"a member{instance}"


def _waiting(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield partitions in the target of one member that another member still owns."""
    names = {row["member_id"]: _name(row) for row in facts.held["members"]}
    owned: dict[tuple[str, int], list[AssignmentRow]] = {}
    for kinds in facts.assigned.values():
        for row in (*kinds.get("assigned", ()), *kinds.get("pending_revocation", ())):
            owned.setdefault(_key(row), []).append(row)
    for member_id, kinds in facts.assigned.items():
        mine = {_key(row) for kind in ("assigned", "pending_revocation") for row in kinds.get(kind, ())}
        targets = [row for row in kinds.get("target", ()) if _key(row) not in mine]
        blocked = [(row, other) for row in targets for other in owned.get(_key(row), ()) if other["member_id"] != member_id]
        for holder in dict.fromkeys(other["member_id"] for _, other in blocked):
            wanted = [row for row, other in blocked if other["member_id"] == holder]
            held = [other for _, other in blocked if other["member_id"] == holder]
            who, other = (names.get(each, named(each)) for each in (member_id, holder))
            text = f"{who} waits for {_holdings(wanted)}, which {other} still owns{_for_how_long(facts)}"
            yield Sentence(text, records_of([*wanted, *held]))


def _for_how_long(facts: GroupFacts) -> str:
    """Return for how long the group has not changed before the moment."""
    last_ms = None if facts.step is None else facts.step.timestamp_ms
    if last_ms is None or facts.end_ms is None or facts.end_ms <= last_ms or facts.step is None:
        return ""
    return f"; the group has not changed for {span(facts.end_ms - last_ms)}, since record {facts.step.last_record_offset}"


def _key(row: AssignmentRow) -> tuple[str, int]:
    return row["topic_id"] or row["topic"] or row["subtopology_id"] or "", row["partition"]


def _owned_twice(facts: GroupFacts) -> Iterator[Sentence]:
    owners: dict[tuple[str, int], list[AssignmentRow]] = {}
    for kinds in facts.assigned.values():
        for row in kinds.get("assigned", ()):
            if row["topic"] is not None and row["subtopology_id"] is None:
                owners.setdefault((row["topic"], row["partition"]), []).append(row)
    twice = {key: rows for key, rows in owners.items() if len({row["member_id"] for row in rows}) > 1}
    if twice:
        rows = [row for found in twice.values() for row in found]
        yield Sentence(f"More than one member owns {partitions(twice)}", records_of(rows))


def _without_owner(facts: GroupFacts) -> Iterator[Sentence]:
    """Yield partitions with a committed offset and no owner, of topics that members read."""
    if facts.kind not in ("classic", "consumer"):
        return
    read = {topic for row in facts.held["members"] for topic in row["subscribed_topics"] or ()}
    had = {
        (row["topic"], row["partition"])
        for kinds in facts.assigned.values()
        for kind in ("assigned", "pending_revocation")
        for row in kinds.get(kind, ())
    }
    if not had:
        return
    idle = [row for row in facts.held["offsets"] if row["topic"] in read and (row["topic"], row["partition"]) not in had]
    if idle:
        keys = partitions((row["topic"], row["partition"]) for row in idle)
        records = records_of([*idle, *facts.held["members"]])
        yield Sentence(f"No member owns {keys}; members subscribe to the topic, and the group committed there", records)
