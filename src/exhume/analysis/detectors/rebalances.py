"""Find groups whose rebalances do not end: storms, a rebalance that left no record, a member that does not reach its target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from exhume.analysis.detectors.cases import SILENT_RATIO, GroupCase, Silence
from exhume.analysis.detectors.commit_loops.columns import KeyColumn
from exhume.analysis.detectors.growing_lag import find_growing_lag
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.lags import lag_of
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import NAMED, counted, finding, some, span, undecidable
from exhume.analysis.detectors.steps import EAGER, judged, log_extents, who
from exhume.analysis.member_changes import client_of
from exhume.analysis.memberships import Member, Membership, TopicPartition
from exhume.analysis.number_columns import NONE
from exhume.analysis.rebalance_rows import may_be_storm, storms
from exhume.analysis.rebalances import rebalances
from exhume.findings import Finding

#: The members of a group waited for their leader for this time, and a rebalance without another sign for this time.
_LEADER_MS, _STILL_MS = 10 * 60_000, 30 * 60_000
#: A group has stopped after this many usual intervals without a commit, and after the rebalance timeout of its members.
DEFAULT_REBALANCE_TIMEOUT_MS = 5 * 60_000


def find_storms(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """The generation, or the group epoch, rises once a minute or faster for ten minutes or more. Besides, one client joins or leaves three
    times, or most generations of a classic group change nothing: its members join again and again.

    Compaction does not change these numbers, so the rate is known even if records were removed. The clients are known only if no record was
    removed. A client is identified by its instance id, otherwise by client id and host, since each join makes a new member id. A number
    that is missing in a complete log is a rebalance that did not finish.
    """
    if not may_be_storm([(step.epoch, step.timestamp_ms) for step in group.memberships]):
        return
    rows = rebalances(group.memberships, log_extents(group)).to_pylist()
    steps = {step.record_offset: step for step in group.memberships}
    for storm in storms(rows):
        not_excluded = []
        if not storm.flappers:
            is_unchanged = storm.without_change * 2 > storm.generations
            not_excluded.append(
                "partitions that were added again and again: members join again for them"
                if is_unchanged
                else "a rolling restart: the log does not show the clients that joined and left"
            )
        if any("topics_changed" in (row["causes"] or ()) for row in storm.rows):
            not_excluded.append("topics or partitions that were added: they also raise the epoch")
        yield finding(
            "IC-04",
            storm.sentence,
            group,
            confidence="proof" if storm.flappers else "likely",
            evidence=[steps[row["record_offset"]] for row in storm.rows],
            not_excluded=not_excluded,
            remedy="Search the logs of these clients for an exceeded max.poll.interval.ms and for session timeouts",
        )


STORMS = (
    Detector(
        code="IC-04",
        title="Rebalance storm",
        section="Membership and assignment",
        in_group=find_storms,
        by_time=True,
        traps=(
            "In a rolling deployment each client leaves and joins once",
            "A new group rebalances often in its first minutes",
            "The replacement of a static member does not raise the generation",
            "New topics or partitions also raise the epoch of a consumer group",
        ),
    ),
)


def find_stopped(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """A group has members and commits nothing for five times its usual interval, and for longer than their rebalance timeout, while other
    groups in the same offsets partition continue.

    If the next record of the group skips generations, or contains none of these members, a rebalance was stuck or the members were removed:
    likely. So is a silence of half an hour if the next record is the next generation, and the clients also commit unchanged offsets, or
    another group shows that records came to its partitions in that time; with such a group, also if the same members went on.

    If the log ends in the silence, the group may still be stuck: possible; likely, if `--end-offsets` or later commits of other groups show
    records after its offsets. Without them it is undecidable for clients that commit changed offsets only, since they do not commit on idle
    topics. Besides, the record of a generation came ten minutes or more after its leader was chosen: the members waited for the assignment
    of the leader.

    Also a group whose lag grows until the end of the log, as `--end-offsets` or commits of other groups show: it worked for an hour, and
    has had no members for fifteen minutes, and for twice its longest earlier pause; or it still commits, reads at most half as fast as
    before and as records come, and its lag is the records of an hour.
    """
    yield from find_growing_lag(group, inputs)
    if not group.memberships:
        return
    yield from _waited_for_leader(group)
    for silence in _silences(group):
        before = group.membership_before(silence.from_record_offset + 1)
        if before is None or not before.members or silence.length_ms <= SILENT_RATIO * silence.usual_interval_ms:
            continue
        if not _others_go_on(group, silence):
            continue
        timeouts = [member.rebalance_timeout_ms for member in before.members.values() if member.rebalance_timeout_ms is not None]
        if silence.length_ms <= max(timeouts, default=0):
            continue
        after = group.membership_after(silence.from_record_offset)
        if after is not None and after.record_offset < silence.to_record_offset:
            yield from _ended(group, silence, before, after)
        elif after is None and silence.to_record_offset >= group.log_context.next_offset:
            yield from _open(group, silence, before, inputs)
        else:
            yield from _went_on(group, silence, before)


def _silences(group: GroupCase) -> Iterator[Silence]:
    """Yield the long intervals between commits, and the one after the last commit."""
    yield from group.silences
    last = max(group.keys.last_record_offsets, default=NONE)
    end_ms, usual_ms = group.log_context.last_timestamp_ms, group.usual_interval_ms
    if last != NONE and group.last_commit_ms is not None and end_ms is not None and usual_ms is not None:
        yield Silence(last, group.last_commit_ms, group.log_context.next_offset, end_ms, usual_ms)


def _others_go_on(group: GroupCase, silence: Silence) -> bool:
    """Return True if other groups wrote records in that time. A missing offset was a record, too."""
    own = sum(silence.from_record_offset < record.record_offset < silence.to_record_offset for record in group.records)
    return silence.to_record_offset - silence.from_record_offset - 1 > own


def _ended(group: GroupCase, silence: Silence, before: Membership, after: Membership) -> Iterator[Finding]:
    gap = 0
    if before.generation is not None and after.generation is not None and not after.is_tombstone:
        gap = after.generation - before.generation - 1
    clients_before = {client_of(member) for member in before.members.values()}
    came_back = {client_of(member) for member in after.members.values()} & clients_before
    is_disjoint = bool(after.members) and not {*before.members} & {*after.members}
    is_next = after.generation is not None and before.generation is not None and after.generation == before.generation + 1
    rose = _rose_meanwhile(group, silence)
    is_still = is_next and bool(after.members) and silence.length_ms >= _STILL_MS and (_repeats(group) or bool(rose))
    if gap <= 0 and not is_disjoint and not is_still:
        return
    signs = [f"the log has generation {before.generation} and then {after.generation}"] if gap > 0 else []
    if is_disjoint:
        back = f"{len(came_back)} of its {counted(len(clients_before), 'client')} came back under other member ids"
        signs.append(back if came_back else "none of its members came back")
    if not signs:
        signs.append(f"then generation {after.generation} began, as after a rebalance that stood still")
    signs += _others_read(rose)
    until_ms = after.timestamp_ms if after.timestamp_ms is not None else silence.to_timestamp_ms
    not_excluded = ["idle topics, and clients that commit changed offsets only"] if not _repeats(group) and not rose else []
    not_excluded.append("an application that stores its offsets elsewhere")
    if not group.log_context.is_complete_at(silence.from_record_offset):
        not_excluded.append(f"commits and group records before record {group.log_context.complete_from_offset} that compaction removed")
    yield finding(
        "IC-18",
        f"the group had {counted(len(before.members), 'member')} and committed nothing for {span(until_ms - silence.from_timestamp_ms)}"
        f" (usual interval {span(silence.usual_interval_ms)}): {', and '.join(signs)}",
        group,
        severity="incident" if gap > 0 else "warn",
        confidence="likely",
        evidence=[before, after],
        not_excluded=not_excluded,
        remedy="Check the broker log of the coordinator and the clients at that time: a rebalance that does not finish leaves no record",
    )


def _rose_meanwhile(group: GroupCase, silence: Silence) -> list[str]:
    """Return the partitions of this group to which records came during the silence, as the commits of another group show."""
    sightings, first, last = group.log_context.sightings, silence.from_timestamp_ms, silence.to_timestamp_ms
    return [f"{topic}-{partition}" for topic, partition in group.keys.names if sightings.rose_during(topic, partition, first, last)]


def _others_read(rose: Sequence[str]) -> list[str]:
    return [f"another group read new records of {some(sorted(rose))} in that time"] if rose else []


def _went_on(group: GroupCase, silence: Silence, before: Membership) -> Iterator[Finding]:
    """Find a silence of half an hour after which the same members went on."""
    rose = _rose_meanwhile(group, silence)
    if not rose or silence.length_ms < _STILL_MS or not group.log_context.is_complete_at(silence.from_record_offset):
        return
    yield finding(
        "IC-18",
        f"the group had {counted(len(before.members), 'member')} and committed nothing for {span(silence.length_ms)} (usual interval"
        f" {span(silence.usual_interval_ms)}), and then went on: {_others_read(rose)[0]}",
        group,
        severity="warn",
        confidence="likely",
        evidence=[before],
        not_excluded=("an application that stores its offsets elsewhere", "a consumer that paused its partitions on purpose"),
        remedy="Search the logs of the clients at that time: a long pause, or a call that did not return",
    )


def _waited_for_leader(group: GroupCase) -> Iterator[Finding]:
    for before, step in pairwise(group.memberships):
        chosen_ms, stored_ms = step.state_timestamp_ms, step.timestamp_ms
        if step.kind != "classic" or step.is_empty or step.converted_from is not None or chosen_ms is None or stored_ms is None:
            continue
        # A record of the same generation has the time of the generation, not of the record.
        if stored_ms - chosen_ms < _LEADER_MS or before.is_tombstone or before.generation == step.generation:
            continue
        if not group.log_context.is_complete_at(before.record_offset):
            continue
        leader = step.members.get(step.leader or "")
        by = "the leader" if leader is None else f"the leader, {who(leader)}"
        idle = ", and owned no partition in that time" if step.protocol in EAGER else ""
        yield finding(
            "IC-18",
            f"generation {step.generation} stood still for {span(stored_ms - chosen_ms)}: its {counted(len(step.members), 'member')} waited"
            f" for the assignment of {by}{idle}",
            group,
            severity="warn",
            confidence="likely",
            evidence=[before, step],
            member_id=step.leader,
            not_excluded=("clocks of two brokers that differ",),
            remedy="Search the log of that client at that time: a slow assignor, a long pause, or a lost connection",
        )


def _open(group: GroupCase, silence: Silence, before: Membership, inputs: Inputs) -> Iterator[Finding]:
    length = span(silence.length_ms)
    lags = {f"{key.topic}-{key.partition}": lag for key in group.keys if (lag := lag_of(group, key, inputs, silence.from_timestamp_ms))}
    if lags:
        named = some([f"{name} {lag}" for name, lag in sorted(lags.items())])
        yield finding(
            "IC-18",
            f"the group has {counted(len(before.members), 'member')} and has committed nothing for {length} (usual interval"
            f" {span(silence.usual_interval_ms)}), while {counted(len(lags), 'partition')} got records after its offsets: {named}",
            group,
            severity="warn",
            confidence="likely",
            evidence=[before],
            not_excluded=("an application that stores its offsets elsewhere",),
            remedy="Check whether these clients still run, and what they wait for",
        )
        return
    if not _repeats(group):
        reason = f"the group committed nothing for {length}, and its clients may commit changed offsets only"
        yield undecidable("IC-18", reason, group, evidence=[before])
        return
    yield finding(
        "IC-18",
        f"the group may be stuck since record {silence.from_record_offset}: it has {counted(len(before.members), 'member')} and committed"
        f" nothing for {length} (usual interval {span(silence.usual_interval_ms)}), though its clients also commit unchanged offsets",
        group,
        confidence="possible",
        evidence=[before],
        not_excluded=("an application that stores its offsets elsewhere", "clients that stopped, and whose session has not timed out yet"),
    )


def _repeats(group: GroupCase) -> bool:
    """Return True for clients that also commit unchanged offsets, as the Java consumer does."""
    return group.keys.total(KeyColumn.REPEATS) > 0


@dataclass(slots=True)
class _Waiting:
    """A member that has not reached its target, and stays at one member epoch: the first and the latest step of that."""

    member_epoch: int | None
    since: Membership
    latest: Membership


def find_unreconciled(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A member of a consumer, share or streams group does not reach its target assignment for longer than its rebalance timeout.

    It waits while its own epoch stays the same, even if the target epoch rises. Either it must revoke partitions itself; or it waits for
    members that still own its partitions, and the sentence lists them. This is judged after each whole batch, and only if compaction
    removed no record there.
    """
    waiting: dict[str, _Waiting] = {}
    for step in judged(group):
        unreconciled = {} if step.kind == "classic" or step.is_tombstone else {member.member_id: member for member in _unreconciled(step)}
        for member_id in [*waiting]:
            if member_id not in unreconciled or unreconciled[member_id].member_epoch != waiting[member_id].member_epoch:
                yield from _stuck(group, member_id, waiting.pop(member_id), step.timestamp_ms, step)
        for member_id, member in unreconciled.items():
            waiting.setdefault(member_id, _Waiting(member.member_epoch, step, step)).latest = step
    for member_id, wait in waiting.items():
        yield from _stuck(group, member_id, wait, group.log_context.last_timestamp_ms, None)


def _unreconciled(step: Membership) -> list[Member]:
    target = step.target_epoch
    return [
        member
        for member in step.members.values()
        if target is not None and not member.is_away and member.member_epoch is not None
        if member.member_epoch < target or member.member_state in ("unrevoked", "unreleased")
    ]


def _stuck(group: GroupCase, member_id: str, wait: _Waiting, until_ms: int | None, ended: Membership | None) -> Iterator[Finding]:
    member, since_ms = wait.latest.members[member_id], wait.since.timestamp_ms
    timeout_ms = member.rebalance_timeout_ms if (member.rebalance_timeout_ms or 0) > 0 else DEFAULT_REBALANCE_TIMEOUT_MS
    if since_ms is None or until_ms is None or until_ms - since_ms <= (timeout_ms or 0):
        return
    sentence = f"{who(member)} did not reach target epoch {_epochs(wait)} for {span(until_ms - since_ms)}"
    sentence += ", until the end of the log" if ended is None else ""
    sentence += _why_stuck(wait.latest, member)
    yield finding(
        "IC-30",
        sentence,
        group,
        severity="warn",
        confidence="likely",
        evidence=[wait.since, *([wait.latest] if wait.latest is not wait.since else []), *([ended] if ended else [])],
        member_id=member_id,
        not_excluded=("a copy of the log made in a rebalance",) if ended is None and until_ms - since_ms < 2 * (timeout_ms or 0) else (),
        remedy="Restart the client that does not revoke its partitions, or remove it from the group",
    )


def _why_stuck(step: Membership, member: Member) -> str:
    """Return the end of a sentence: what this member must revoke or waits for, or the difference from its target."""
    if member.member_state == "unrevoked":
        return f": it must revoke {_some(member.pending_revocation)}, and has not confirmed that"
    if others := _blockers(step, member):
        return ": it waits for " + ", ".join(f"{who(other)} to revoke {_some(owned)}" for other, owned in others[:NAMED])
    target = member.target or ()
    if missing := [owned for owned in target if owned not in member.owned]:
        return f": it does not own {_some(missing)}"
    if extra := [owned for owned in member.owned if owned not in target]:
        return f": it still owns {_some(extra)}"
    return f": it is at epoch {member.member_epoch}"


def _epochs(wait: _Waiting) -> str:
    """Format the target epoch, or the first and the last one while the member waited."""
    first, last = wait.since.target_epoch, wait.latest.target_epoch
    return f"{first}" if first == last else f"{first} to {last}"


def _blockers(step: Membership, member: Member) -> list[tuple[Member, list[TopicPartition]]]:
    wanted = {owned for owned in member.target or () if owned not in member.owned}
    others = [other for other in step.members.values() if other is not member and step.kind != "share"]
    return [(other, taken) for other in others if (taken := [owned for owned in other.owned if owned in wanted])]


def _some(partitions: tuple[TopicPartition, ...] | list[TopicPartition]) -> str:
    more = f" and {len(partitions) - NAMED} more" if len(partitions) > NAMED else ""
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions[:NAMED]) + more


STOPPED = (
    Detector(
        code="IC-18",
        title="Group looks stable and has stopped",
        section="Membership and assignment",
        in_group=find_stopped,
        by_time=True,
        traps=(
            "Clients that commit changed offsets only do not commit on idle topics; the Java consumer also commits unchanged offsets",
            "Some applications store their offsets elsewhere",
        ),
    ),
)
UNRECONCILED = (
    Detector(
        code="IC-30",
        title="Member never reaches its target (KIP-848)",
        section="Membership and assignment",
        in_group=find_unreconciled,
        traps=(
            "Members need some seconds to reach each new target",
            "A tombstone removes a dead member",
            "Inside a batch the log does not show the group as it was",
        ),
    ),
)
