"""Find groups that rebalance for hours, less often than in a storm and too often for their work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.name_patterns import by_pattern
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import NAMED, counted, finding, span, undecidable
from exhume.analysis.detectors.steps import log_extents
from exhume.analysis.member_changes import client_of
from exhume.analysis.memberships import Member, Membership
from exhume.analysis.rebalance_rows import storms
from exhume.analysis.rebalances import rebalances
from exhume.durations import HOUR_MS, MINUTE_MS
from exhume.findings import Finding

#: The least length, the least number of generations, and the longest time between two of them.
_LEAST_MS, _LEAST_GENERATIONS, _LONGEST_GAP_MS = HOUR_MS, 8, 30 * MINUTE_MS
#: Members that join and leave in that time. In a rolling restart there are none.
_LEAST_SHORT_LIVED = 6
#: One client joins so often, or all members are replaced so often, or some members stay all the time.
_LEAST_JOINS, _REPLACEMENTS = 4, 2
#: A time between two departures is about the rebalance timeout if it differs by at most this share.
_ABOUT = 0.25
#: A job leaves its group empty for at least this share of the time.
_LEAST_EMPTY = 0.1
#: A program is started with back-off if the time before its start grows by this factor, so many times in a row.
_GROWTH, _LEAST_GROWING = 1.5, 3


@dataclass(frozen=True, slots=True)
class _Period:
    """Generations that follow one another for a long time: their steps, the number of generations, and the time from first to last."""

    steps: Sequence[Membership]
    generations: int
    length_ms: int
    is_hidden: bool


@dataclass(slots=True)
class _Tally:
    """The members that joined and left in a period."""

    joins: Counter[str] = field(default_factory=Counter)
    joined: dict[str, Member] = field(default_factory=dict)
    short_lived: list[Member] = field(default_factory=list)
    departures_ms: list[int] = field(default_factory=list)
    stayed: set[str] = field(default_factory=set)
    fewest: int = 0
    most: int = 0
    emptied: int = 0

    def take(self, before: Membership, step: Membership) -> None:
        # In the order of the members: that of a set differs from run to run.
        had, has = {*before.members}, {*step.members}
        for member_id in (each for each in step.members if each not in had):
            member = step.members[member_id]
            self.joined[member_id] = member
            self.joins[client_of(member)] += 1
        gone = [each for each in before.members if each not in has]
        self.stayed.difference_update(gone)
        self.short_lived += [self.joined.pop(member_id) for member_id in gone if member_id in self.joined]
        if gone and step.timestamp_ms is not None:
            self.departures_ms.append(step.timestamp_ms)
        self.emptied += step.is_empty
        if step.members:
            self.fewest, self.most = min(self.fewest or len(step.members), len(step.members)), max(self.most, len(step.members))


def find_frequent_rebalances(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """A group rebalances eight times or more in an hour or longer, with at most half an hour in between, and its members come and go.

    Six members or more join and leave again in that time: a rolling restart has none, since each new member stays. Besides, one client
    joins four times, or the members are replaced twice, or some members stay all the time. Causes are an exceeded max.poll.interval.ms, a
    program that ends and starts again, also with another address each time, or an autoscaler. It is `info` if the group is empty in
    between, for a tenth of the time or longer, and its offsets rise: a job that runs again and again, unless the time before each start
    grows as in a back-off. Storms (IC-04) do not count. If compaction removed the members, it is undecidable.
    """
    for period in _periods(group):
        if period.is_hidden:
            reason = f"{_rate(period)}, and compaction removed the records that show which members joined and left"
            yield undecidable("IC-40", reason, group, evidence=[period.steps[0], period.steps[-1]])
            continue
        tally = _tally(period)
        if len(tally.short_lived) < _LEAST_SHORT_LIVED or not _is_repeated(tally):
            continue
        rows = rebalances(period.steps, log_extents(group)).to_pylist()
        if next(storms(rows), None) is None:
            yield _frequent(group, period, tally, sum(row["no_assignment_ms"] or 0 for row in rows[1:]))


def _periods(group: GroupCase) -> Iterator[_Period]:
    """Yield the periods in which the generation, or group epoch, rises often enough."""
    counted_records = [(record.epoch, record.timestamp_ms) for record in group.records if record.epoch is not None]
    if not any(_spans([(epoch, time) for epoch, time in counted_records if time is not None])):
        return
    steps = [step for step in group.memberships if step.epoch is not None and step.timestamp_ms is not None and not step.is_placeholder]
    for first, last in _spans([(step.epoch or 0, step.timestamp_ms or 0) for step in steps]):
        inside = steps[first : last + 1]
        generations = (inside[-1].epoch or 0) - (inside[0].epoch or 0)
        length_ms = (inside[-1].timestamp_ms or 0) - (inside[0].timestamp_ms or 0)
        is_hidden = not group.log_context.is_complete_at(inside[0].record_offset) and 2 * len(inside) <= generations
        yield _Period(inside, generations, length_ms, is_hidden)


def _spans(rising: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of each period among these numbers of generations and their times."""
    first = 0
    for place in range(1, len(rising) + 1):
        is_end = place == len(rising)
        if not is_end:
            rise, passed_ms = rising[place][0] - rising[place - 1][0], rising[place][1] - rising[place - 1][1]
            is_end = rise < 0 or passed_ms > _LONGEST_GAP_MS * max(rise, 1)
        if is_end:
            begin, end = rising[first], rising[place - 1]
            if end[0] - begin[0] >= _LEAST_GENERATIONS and end[1] - begin[1] >= _LEAST_MS:
                yield first, place - 1
            first = place


def _tally(period: _Period) -> _Tally:
    tally = _Tally(stayed={*period.steps[0].members})
    for before, step in zip(period.steps, period.steps[1:], strict=False):
        tally.take(before, step)
    return tally


def _is_repeated(tally: _Tally) -> bool:
    """Return True if the same clients come and go, not each of many once."""
    most_joins = max(tally.joins.values(), default=0)
    return most_joins >= _LEAST_JOINS or len(tally.short_lived) >= _REPLACEMENTS * tally.most or bool(tally.stayed)


def _rate(period: _Period) -> str:
    hourly = period.generations * HOUR_MS / period.length_ms
    return f"{period.generations} generations in {span(period.length_ms)}, {hourly:.1f} an hour"


def _frequent(group: GroupCase, period: _Period, tally: _Tally, without_ms: int) -> Finding:
    members = f"{tally.most}" if tally.fewest == tally.most else f"{tally.fewest} to {tally.most}"
    sentence = f"{_rate(period)}, with {members} members: {counted(len(tally.short_lived), 'member')} joined and left again"
    sentence += f" ({_clients(tally)})"
    if without_ms:
        sentence += f"; no partition was assigned for at least {span(without_ms)}, {without_ms / period.length_ms:.0%} of the time"
    cause = _cause(tally)
    is_backing_off = _backs_off(period)
    is_empty_between = 3 * tally.emptied >= len(period.steps) and _empty_ms(period) >= _LEAST_EMPTY * period.length_ms
    is_job = is_empty_between and not is_backing_off and _makes_progress(group, period, len(tally.short_lived))
    if is_backing_off:
        sentence += "; the time before each start grew: a program that ends is started again with back-off"
    elif is_job:
        sentence += "; the group was empty in between, and its offsets rise: a job that runs again and again"
    elif cause:
        sentence += f"; {cause}"
    return finding(
        "IC-40",
        sentence,
        group,
        severity="info" if is_job else "warn",
        confidence="possible" if is_job else "likely",
        evidence=period.steps,
        not_excluded=["several deployments one after the other"] if not tally.stayed else [],
        remedy="Search the logs of these clients for an exceeded max.poll.interval.ms, session timeouts, and restarts; use static members,"
        " or scale less often",
    )


def _clients(tally: _Tally) -> str:
    """Return the pattern of the clients that joined and left, their hosts, and the most frequent ones."""
    members = tally.short_lived
    patterns = by_pattern(members, [member.client_id or "" for member in members])
    hosts = {member.client_host for member in members}
    kind = "static" if any(member.group_instance_id is not None for member in members) else "not static"
    named = ", ".join([*patterns][:NAMED])
    often = [f"{client} joined {count} times" for client, count in tally.joins.most_common(2) if count >= _LEAST_JOINS]
    return "; ".join([f"client id {named}, {counted(len(hosts), 'host')}, {kind}", *often])


def _cause(tally: _Tally) -> str:
    """Return the cause that the times and numbers of members suggest; empty if none."""
    timeouts = {member.rebalance_timeout_ms for member in tally.short_lived if member.rebalance_timeout_ms}
    between = [later - earlier for earlier, later in zip(tally.departures_ms, tally.departures_ms[1:], strict=False)]
    for timeout_ms in sorted(timeouts):
        near = sum(abs(each - timeout_ms) <= _ABOUT * timeout_ms for each in between)
        if between and 2 * near >= len(between):
            return f"a member left about every {span(timeout_ms)}, their rebalance timeout, as after an exceeded max.poll.interval.ms"
    at_once = len(tally.short_lived) / max(len(tally.departures_ms), 1)
    if tally.most - tally.fewest >= 2 and at_once >= 1 and tally.stayed:
        return f"the number of members changes between {tally.fewest} and {tally.most} again and again, as by an autoscaler"
    sessions = sorted({member.session_timeout_ms for member in tally.short_lived if member.session_timeout_ms})
    return f"their session timeout is {', '.join(map(span, sessions[:2]))}" if sessions else ""


def _empty_ms(period: _Period) -> int:
    """Return the time without members."""
    return sum(
        (step.timestamp_ms or 0) - (empty.timestamp_ms or 0)
        for empty, step in pairwise(period.steps)
        if empty.is_empty and not step.is_empty
    )


def _backs_off(period: _Period) -> bool:
    """Return True if the times without members grew several times in a row, as those before each new start of a program that fails."""
    growing, before_ms = 0, 0
    for empty, step in pairwise(period.steps):
        if not empty.is_empty or step.is_empty:
            continue
        waited_ms = (step.timestamp_ms or 0) - (empty.timestamp_ms or 0)
        growing = growing + 1 if before_ms and waited_ms >= _GROWTH * before_ms else 0
        before_ms = waited_ms
        if growing >= _LEAST_GROWING:
            return True
    return False


def _makes_progress(group: GroupCase, period: _Period, runs: int) -> bool:
    """Return True if a key was committed in this period, and changed about as often as the job ran."""
    begin_ms = period.steps[0].timestamp_ms or 0
    return any(
        key.last is not None and (key.last.timestamp_ms or 0) >= begin_ms and 2 * (key.commits - 1 - key.repeats) >= runs
        for key in group.keys
    )


DETECTORS = (
    Detector(
        code="IC-40",
        title="Rebalances too often for the work",
        section="Membership and assignment",
        in_group=find_frequent_rebalances,
        by_time=True,
        traps=(
            "In a rolling restart each new member stays",
            "A job that runs every few minutes joins and leaves on purpose",
            "The log does not show the time of the joins: the time without an assignment is longer than the sentence states",
        ),
    ),
)
