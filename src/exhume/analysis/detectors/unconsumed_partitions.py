"""Find partitions that no member consumes: without an owner, or with an owner that does not commit them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

from exhume.analysis.detectors.absences import absences
from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commits import PAUSE_MS, PAUSE_RATIO, CommitRow
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.paused import LEAST_OTHERS, find_paused
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import MORE_NAMED, counted, finding, some, span, undecidable
from exhume.analysis.detectors.steps import EAGER, StepRun, judged, who
from exhume.analysis.member_columns import all_owned, all_subscribed, assigned_of, is_known, member_at
from exhume.analysis.memberships import Membership, TopicPartition
from exhume.analysis.topic_sizes import TopicSize, TopicSizes
from exhume.findings import Finding
from exhume.moments import show_time

#: The time in which members find new partitions: twice the default of metadata.max.age.ms.
_NEW_PARTITIONS_MS = 10 * 60_000


def find_unconsumed(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    """No member consumes a partition.

    IC-20a: members subscribe to the topic, but no assignment contains the partition in two successive generations, or for five minutes. The
    partition count is that of `--topics`, otherwise that in the coordinator's own record. Without both, only partitions that occur in the
    log are checked, and it is undecidable if the topic has more. A partition exists from the first commit of any group, assignment or
    record that names it or a higher one. If that is later than the first step of the group, the topic grew, and the members have ten
    minutes to find its new partitions.

    IC-20b: the partition has an owner, but was not committed for ten times the owner's usual interval, while two or more other partitions
    of the same owner were. The cause is in the client: a fetcher that did not restart, or an assignment that it lost. Either this holds at
    the end of the log; or it held for a time, and the client also commits unchanged offsets, or the offset then rose by ten times the usual
    rise in one commit. Such a time is judged only if compaction removed no record there.
    """
    sizes = _sizes(group, inputs)
    yield from _without_owner(group, sizes)
    yield from _silent(group, inputs)
    yield from find_paused(group)


def _sizes(group: GroupCase, inputs: Inputs) -> TopicSizes:
    sizes = TopicSizes(inputs.topics or ())
    for record in group.records_with("partition_metadata"):
        decoded = record.decoded
        sizes.learn_record(group.group, None if decoded.value is None else decoded.value.get("topics"), record.record_offset)
    # Many assignments are equal. Of equal ones the last is enough.
    plans: dict[frozenset[TopicPartition], None] = {}
    others: set[frozenset[TopicPartition]] = set()
    for step in reversed(group.memberships):
        if step.kind == "classic" and step.protocol in EAGER:
            plans.setdefault(all_owned(step))
        else:
            others.add(all_owned(step))
    sizes.learn_plans([*reversed(plans)])
    for topic, partition in frozenset().union(*others):
        sizes.saw(topic, partition)
    for topic, partition in group.keys.names:
        sizes.saw(topic, partition)
    # Partitions that only other groups know count if the topic grew while this group had members.
    began_ms = next((step.timestamp_ms for step in group.memberships if step.members), None)
    for topic in {name for step in group.memberships[-1:] for name in all_subscribed(step)}:
        size = sizes.of(topic, group.group)
        if size is not None and not size.is_exact and began_ms is not None:
            sizes.saw(topic, group.log_context.sightings.count_since(topic, size.partition_count, began_ms) - 1)
    return sizes


@dataclass(frozen=True, slots=True)
class _Absence:
    """Partitions of one topic that no member owned in a run of steps."""

    topic: str
    size: TopicSize
    stretch: StepRun
    partitions: Sequence[int]
    #: The time since which new partitions exist; None if all of them existed before.
    new_since_ms: int | None = None
    #: No assignment and no commit names them: only the topics file or a record does.
    is_never_named: bool = False

    @property
    def length_ms(self) -> int:
        if self.new_since_ms is None or self.stretch.end_ms is None:
            return self.stretch.length_ms
        return max(self.stretch.end_ms - self.new_since_ms, 0)

    @property
    def only_partition(self) -> int | None:
        return self.partitions[0] if len(self.partitions) == 1 else None

    @property
    def keys(self) -> list[TopicPartition]:
        return [(self.topic, partition) for partition in self.partitions]

    @property
    def title(self) -> str:
        if len(self.partitions) == 1:
            return f"{self.topic}-{self.partitions[0]}"
        names = ", ".join(str(partition) for partition in self.partitions[:MORE_NAMED])
        more = " …" if len(self.partitions) > MORE_NAMED else ""
        return f"{counted(len(self.partitions), 'partition')} of {self.topic} ({names}{more})"


def _without_owner(group: GroupCase, sizes: TopicSizes) -> Iterator[Finding]:
    steps = [step for step in judged(group) if step.members and is_known(step)]
    subscribed = [all_subscribed(step) for step in steps]
    nameless = _nameless(group, steps, subscribed)
    if nameless:
        subscribed = [topics - nameless for topics in subscribed]
        reason = f"assignments contain topic ids whose names are not known, and {some(sorted(nameless))} may be among them"
        yield undecidable("IC-20a", reason, group, remedy="Add --topics FILE, with topic ids", evidence=steps[-1:])
    known = {topic: sizes.of(topic, group.group) for topic in sorted(frozenset().union(*subscribed))}
    for absence in sorted(_lasting_absences(group, steps, subscribed, known), key=lambda each: each.stretch.first.record_offset):
        yield _missing(group, absence)
    unsure = [topic for topic, size in known.items() if size is None or not size.is_exact]
    if unsure:
        sizes_known = ", ".join(
            known_size.sentence() if (known_size := known[topic]) else f"the size of {topic} is not known" for topic in unsure[:MORE_NAMED]
        )
        reason = f"these topics may have more partitions than the log shows, and no member may own those: {sizes_known}"
        yield undecidable("IC-20a", reason, group, remedy="Add --topics FILE", evidence=steps[-1:])


def _lasting_absences(
    group: GroupCase, steps: Sequence[Membership], subscribed: Sequence[frozenset[str]], known: Mapping[str, TopicSize | None]
) -> Iterator[_Absence]:
    """Yield the absences that last longer than a rebalance in progress, of topics with a known size."""
    sizes = {topic: size for topic, size in known.items() if size is not None}
    counts = {topic: size.partition_count for topic, size in sizes.items()}
    existence = _Existence(group, steps)
    for first, end, missed in absences(steps, subscribed, counts):
        ended = steps[end] if end < len(steps) else None
        stretch = StepRun(steps[first:end], ended, group.log_context.last_timestamp_ms if ended is None else ended.timestamp_ms)
        if stretch.lasts:
            for topic, partitions in missed().items():
                yield from _existing(_Absence(topic, sizes[topic], stretch, partitions), existence, first)


def _existing(absence: _Absence, existence: _Existence, first: int) -> Iterator[_Absence]:
    """Split the partitions of an absence by the time since which they exist, and yield those that lasted."""
    topic, began_ms = absence.topic, absence.stretch.first.timestamp_ms
    # A partition exists as soon as a higher one does.
    if existence.is_before(topic, absence.partitions[-1], began_ms, first):
        yield absence
        return
    existed: list[int] = []
    new: dict[int, list[int]] = {}
    never_named: list[int] = []
    for partition in absence.partitions:
        since_ms = existence.since_ms(topic, partition)
        if existence.is_before(topic, partition, began_ms, first):
            existed.append(partition)
        elif since_ms is not None:
            new.setdefault(since_ms, []).append(partition)
        elif existence.first_step(topic, partition) is None:
            never_named.append(partition)
    if existed:
        yield replace(absence, partitions=existed)
    for since_ms, partitions in new.items():
        grown = replace(absence, partitions=partitions, new_since_ms=since_ms)
        if grown.length_ms >= _NEW_PARTITIONS_MS:
            yield grown
    if never_named:
        yield replace(absence, partitions=never_named, is_never_named=True)


class _Existence:
    """The steps and times since which the partitions of topics exist, as this group and the commits of all groups show."""

    def __init__(self, group: GroupCase, steps: Sequence[Membership]) -> None:
        self._sightings = group.log_context.sightings
        self._group, self._steps = group, steps
        # A group misses the same partitions again and again.
        self._known: dict[TopicPartition, int | None] = {}

    def since_ms(self, topic: str, partition: int) -> int | None:
        """Return the time since which this partition exists; None if the log does not show it."""
        place = topic, partition
        if place not in self._known:
            times_ms = [self._sightings.since_ms(topic, partition)]
            times_ms += [time_ms for time_ms, count in self._recorded.get(topic, ()) if count > partition]
            self._known[place] = min((each for each in times_ms if each is not None), default=None)
        return self._known[place]

    def is_before(self, topic: str, partition: int, began_ms: int | None, step: int) -> bool:
        """Return True if this partition exists at this time, or if this step or one before it owns it. Without a time: if it exists."""
        since_ms = self.since_ms(topic, partition)
        if since_ms is not None and (began_ms is None or since_ms <= began_ms):
            return True
        owned_at = self.first_step(topic, partition)
        return owned_at is not None and owned_at <= step

    def first_step(self, topic: str, partition: int) -> int | None:
        """Return the number of the first step that owns this partition or a higher one; None for no step."""
        return next((number for number, count in self._owned.get(topic, ()) if count > partition), None)

    @cached_property
    def _owned(self) -> dict[str, list[tuple[int, int]]]:
        """Return, for each topic, the steps at which the number of named partitions increased, with that number."""
        found: dict[str, list[tuple[int, int]]] = {}
        known: set[frozenset[TopicPartition]] = set()
        for number, step in enumerate(self._steps):
            owned = all_owned(step)
            if owned in known:
                continue
            known.add(owned)
            for topic, partition in owned:
                counts = found.setdefault(topic, [])
                if not counts or partition >= counts[-1][1]:
                    counts.append((number, partition + 1))
        return found

    @cached_property
    def _recorded(self) -> dict[str, list[tuple[int, int]]]:
        """Return, for each topic, the times and partition counts in the records of the coordinator."""
        found: dict[str, list[tuple[int, int]]] = {}
        for record in self._group.records_with("partition_metadata"):
            if record.timestamp_ms is not None:
                for topic in (record.decoded.value or {}).get("topics") or ():
                    found.setdefault(topic["topic"], []).append((record.timestamp_ms, topic["partition_count"]))
        return found


def _nameless(group: GroupCase, steps: Sequence[Membership], subscribed: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return the topics without a known id, if assignments contain unknown ids. Consumer and share groups assign by topic id."""
    named = group.log_context.names.ids().keys()
    by_id = [number for number, step in enumerate(steps) if step.kind in ("consumer", "share")]
    if all(topic in named for number in by_id for topic, _ in all_owned(steps[number])):
        return frozenset()
    return frozenset().union(*(subscribed[number] for number in by_id)) - named


def _missing(group: GroupCase, absence: _Absence) -> Finding:
    stretch, size = absence.stretch, absence.size
    last = group.keys.newest(absence.keys)
    if last is not None and stretch.next is not None and last.record_offset > stretch.next.record_offset:
        # A later owner committed this. It says nothing about the time without an owner.
        last = None
    not_excluded = []
    if size.basis == "topics_file":
        not_excluded.append("partitions that were added to the topic later: the topics file has its present size")
    if not size.is_exact:
        not_excluded.append("a topic that was created again with fewer partitions")
    if last is None and not group.keys.were_committed_before(stretch.first.record_offset, absence.keys):
        not_excluded.append("a topic that was created later")
    if absence.new_since_ms is not None:
        not_excluded.append("commits of another group for partitions that the topic does not have")
    return finding(
        "IC-20a",
        _missing_sentence(absence, last),
        group,
        severity="incident" if size.basis == "topics_file" and not stretch.is_over and last is not None else "warn",
        confidence="likely" if size.is_exact and not absence.is_never_named else "possible",
        evidence=[*stretch.steps[:2], *([last] if last is not None else []), *([stretch.next] if stretch.next else [])],
        not_excluded=not_excluded,
        topic=absence.topic,
        partition=absence.only_partition,
    )


def _missing_sentence(absence: _Absence, last: CommitRow | None) -> str:
    stretch = absence.stretch
    if absence.is_never_named:
        source = "the topics file has" if absence.size.basis == "topics_file" else "a record has"
        named = f"{source} {absence.size.partition_count} partitions of {absence.topic}, and no assignment or commit in the log names"
        return f"{named} {absence.title}: the members may not know new partitions"
    if absence.new_since_ms is not None:
        until = "" if stretch.is_over else ", until the end of the log"
        them = "it" if len(absence.partitions) == 1 else "them"
        return (
            f"the topic {absence.topic} grew: the log has commits for {absence.title} since {show_time(absence.new_since_ms)}, and no"
            f" member of this group owned {them} for {span(absence.length_ms)}{until}; the members may not know the new partitions"
        )
    first_offset, records = stretch.first.record_offset, counted(len(stretch.steps), "group record")
    sentence = f"no member owned {absence.title} from record {first_offset} on, through {records}"
    sentence += f" and for {span(stretch.length_ms)}" if stretch.length_ms else ""
    sentence += "" if stretch.is_over else ", until the end of the log"
    if last is None:
        return sentence
    if last.record_offset < first_offset:
        return f"{sentence}; commits stopped after record {last.record_offset}"
    return f"{sentence}; the last commit is record {last.record_offset}"


def _silent(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:
    steps = group.memberships
    if not steps or steps[-1].kind == "share" or not _may_be_silent(group.keys.last_times(group.keys.names)):
        return
    for place, assigned in enumerate(assigned_of(steps[-1])):
        owned = dict.fromkeys(assigned or ())
        if not _may_be_silent(group.keys.last_times(owned)):
            continue
        histories = [history for each in owned if (history := group.keys.find(*each)) is not None]
        for history in histories:
            others = [other for other in histories if other != history]
            found = _silent_key(group, inputs, place, history, others)
            if found is not None:
                yield found


def _may_be_silent(last_times: Sequence[int]) -> bool:
    """Return True if the last commit of one key may be far enough before those of two others."""
    return len(last_times) > LEAST_OTHERS and max(last_times) - min(last_times) > PAUSE_MS


def _silent_key(group: GroupCase, inputs: Inputs, place: int, history: KeyHistory, others: Sequence[KeyHistory]) -> Finding | None:
    """Judge a key of the member at this place, given its other keys."""
    last = history.holds
    usual = [other.usual_interval_ms for other in others if other.usual_interval_ms is not None]
    if last is None or last.timestamp_ms is None or history.commits < LEAST_OTHERS or not usual:
        return None
    usual_ms = median(usual)
    going_on = _later_commits(others, last.timestamp_ms, max(PAUSE_RATIO * usual_ms, PAUSE_MS))
    if len(going_on) < LEAST_OTHERS:
        return None
    end_offset = (inputs.end_offsets or {}).get((history.topic, history.partition))
    if end_offset is not None and end_offset <= last.committed_offset:
        return None
    member = member_at(group.memberships[-1], place)
    if member.is_away:
        return None
    latest = max(going_on, key=lambda commit: commit.record_offset)
    length_ms = (latest.timestamp_ms or 0) - last.timestamp_ms
    sentence = (
        f"the owner {who(member)} has committed no offset of this partition for {span(length_ms)}"
        f" ({length_ms / usual_ms:.0f} times the usual interval), and offsets of {counted(len(going_on), 'other partition')} in that time"
    )
    not_excluded = []
    if end_offset is not None:
        sentence += f"; its lag is {end_offset - last.committed_offset}"
    elif not history.repeats:
        not_excluded.append("a partition without new records: this client may commit changed offsets only (--end-offsets decides)")
    if not group.log_context.is_complete_at(last.record_offset):
        not_excluded.append("a longer usual interval: compaction removed commits")
    has_new_records = end_offset is not None or bool(history.repeats)
    return finding(
        "IC-20b",
        sentence,
        history,
        log_context=group.log_context,
        severity="warn" if has_new_records else "info",
        confidence="likely" if has_new_records else "possible",
        evidence=[group.memberships[-1], last, latest],
        member_id=member.member_id,
        not_excluded=not_excluded,
        remedy="Check that client, not the coordinator: does it still fetch this partition?",
    )


def _later_commits(keys: Sequence[KeyHistory], time_ms: int, distance_ms: float) -> list[CommitRow]:
    """Return the present commits more than this distance after this time, of those keys whose offset changes."""
    return [
        held
        for key in keys
        if (held := key.holds) is not None and held.timestamp_ms is not None
        if held.timestamp_ms - time_ms > distance_ms and key.highest != key.lowest
    ]


DETECTORS = (
    Detector(
        code="IC-20",
        title="Partition that no member consumes",
        section="Membership and assignment",
        in_group=find_unconsumed,
        traps=(
            "In a cooperative rebalance, moving partitions have no owner for one generation",
            "New partitions have no owner until the clients refresh their metadata",
            "A group with more members than partitions has members without partitions",
            "A client that commits changed offsets only does not commit a partition without new records",
        ),
        better_with=("--topics", "--end-offsets"),
    ),
)
