"""The lives of groups: who was a member, who owned what, who should have.

What takes long to import is imported by the question that needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from exhume.analysis.group_timeline import GROUP_RECORD_TYPES, group_timeline
from exhume.analysis.memberships import Membership, is_in_front, up_to
from exhume.analysis.ownership import owners
from exhume.analysis.rebalances import rebalances, storm_findings
from exhume.arrow_rows import Origin
from exhume.errors import RequestError, near_by
from exhume.findings import Finding
from exhume.replay.append_order import append_orders
from exhume.replay.local import load_state
from exhume.replay.moment import Moment, moment, moment_findings
from exhume.replay.partition_load import LoadOptions
from exhume.replay.releases import is_release, profile_for
from exhume.replay.topic_names import TopicNames, read_topics_file
from exhume.topic.states import TopicStates
from exhume.topic.tables import Place

if TYPE_CHECKING:
    from exhume.analysis.assignment.verdicts import Assignments


class TopicGroups(TopicStates):
    """Groups over time."""

    def memberships(self, groups: Collection[str] | None = None) -> Iterator[Membership]:
        """The steps in the lives of these groups (default: all), in the order of the log, one at a time.

        Topics that records name by id have their names where these logs know them anywhere, commits included.
        """
        return group_timeline(self.records(types=GROUP_RECORD_TYPES, groups=groups), self._learned_names(None))

    def assignments(
        self,
        *,
        groups: Collection[str] | None = None,
        at_offset: int | Mapping[int, int] | None = None,
        at_time_ms: int | None = None,
        expected: str = "auto",
        release: str | None = None,
        topics_file: Place | None = None,
        every: bool = False,
    ) -> Assignments:
        """Who was assigned what, who should have been, and which assignor explains it, for these groups (default: all that somebody is in).

        `expected` is the name of an assignor, or `auto` for every one; `release` that of the Java client that leads a classic group, or of
        the coordinator of another. `topics_file` says how many partitions topics have, and their racks. `every` judges every assignment
        that the log holds, not only the last one. Moments are as for `state`, of the append clock.

        `findings` gets what makes the moment doubtful, and that it comes too early for an answer.

        Raises:
            RequestError: no such assignor, release or group, or a moment that this log cannot have.
        """
        from exhume.analysis.assignment.history import TOPIC_RECORD_TYPES, FactsOverTime, check_every, check_latest
        from exhume.analysis.assignment.runs import Expectation
        from exhume.analysis.assignment.verdicts import tables_of
        from exhume.analysis.assignors import VARIANTS

        known = sorted({variant.assignor for variant in VARIANTS})
        if expected != "auto" and expected not in known:
            raise RequestError(f"no assignor {expected!r} is known", remedy=f"Choose auto, or one of {', '.join(known)}")
        if release is not None and not is_release(release):
            raise RequestError(f"no release {release!r}", remedy="Write a release such as 2.8.2 or 4.3")
        at = moment(self._evidence.offsets_partitions, at_offset=at_offset, at_time_ms=at_time_ms)
        names = self._learned_names(topics_file)
        topics = read_topics_file(Path(topics_file)) if topics_file is not None else []
        rows = [row for name in TOPIC_RECORD_TYPES for row in self.decoded(name, groups=groups).read_all().to_pylist()]
        facts = FactsOverTime(topics, rows, names)
        ends = self._ends_at(at)
        steps = up_to(self._noting_late(self._lives_of(groups, names), ends, groups), ends)
        wanted = Expectation(expected, release)
        checks = check_every(steps, facts, wanted) if every else check_latest(steps, facts, wanted, with_empty=groups is not None)
        return tables_of(checks)

    def rebalances(self, groups: Collection[str] | None = None) -> pa.Table:
        """The generations and epochs of these groups (default: all): when, why, who came and went, what moved, as `rebalances.REBALANCES`.

        Storms are added to `findings`.

        Raises:
            RequestError: no group record of one of these groups; lists what is near by.
        """
        answer = rebalances(self._lives_of(groups), self._spans())
        self.findings.extend(storm_findings(answer))
        return answer

    def owners(
        self,
        *,
        groups: Collection[str] | None = None,
        topic: str | None = None,
        partition: int | None = None,
        at_offset: int | Mapping[int, int] | None = None,
        at_time_ms: int | None = None,
    ) -> pa.Table:
        """Who owned which partition when, as `ownership.OWNERS`; with a moment only what held then.

        `at_offset` is the last record offset that counts, by offsets partition or bare; `at_time_ms` a time of appends. `findings` gets
        what makes the moment doubtful, and that it comes too early for an answer.

        Raises:
            RequestError: no group record of one of these groups, or nobody ever owned a partition of this topic, which lists what is near
                by; or a moment that this log cannot have.
        """
        at = moment(self._evidence.offsets_partitions, at_offset=at_offset, at_time_ms=at_time_ms)
        known: set[tuple[str, int]] = set()

        def is_wanted(name: str, number: int) -> bool:
            known.add((name, number))
            return topic in (None, name) and partition in (None, number)

        ends = self._ends_at(at)
        steps = self._noting_late(self._lives_of(groups), ends, groups)
        answer = owners(steps, self._spans(), wanted=is_wanted, ends=None if at is None else ends)
        is_named = topic is not None or partition is not None
        if is_named and not any(is_wanted(*topic_partition) for topic_partition in [*known]):
            place = " ".join(str(part) for part in (topic, partition) if part is not None)
            topics = {name for name, _ in known}
            near = sorted(f"{name} {number}" for name, number in known if name == topic) or get_close_matches(topic or "", topics, n=5)
            remedy = f"Near by: {', '.join((near or sorted(topics))[:10])}" if topics else "No group here says who owns what"
            raise RequestError(f"nobody ever owned {place} here", remedy=remedy)
        return answer

    def _ends_at(self, at: Moment | None) -> dict[Origin, int]:
        """The first record offset behind this moment, by replica and offsets partition, of logs that it does not take to their end.

        What makes the moment doubtful is added to `findings`.
        """
        if at is None:
            return {}
        orders = {} if at.time_ms is None else append_orders(self._reader(), at.time_ms)
        ends: dict[Origin, int] = {}
        for directory in self._evidence.partitions:
            if not directory.read_segments:
                continue
            origin = directory.replica, directory.offsets_partition
            order, last_offset = orders.get(origin), at.last_offsets.get(directory.offsets_partition)
            if order is not None and order.first_later is not None:
                ends[origin] = order.first_later[0]
            elif last_offset is not None:
                ends[origin] = last_offset + 1
            if order is not None or at.time_ms is None:
                self.findings.extend(moment_findings(directory, at, order))
        return ends

    def _noting_late(self, steps: Iterable[Membership], ends: Mapping[Origin, int], groups: Collection[str] | None) -> Iterator[Membership]:
        """The same steps, of these groups. Where all of them lie behind these ends, `findings` gets that the moment comes too early for an
        answer.
        """
        first: Membership | None = None
        is_late = True
        for step in steps:
            first = step if first is None else first
            is_late = is_late and not is_in_front(step, ends)
            yield step
        if first is not None and is_late:
            finding = Finding(
                code="moment_too_early",
                sentence=f"{'no group' if groups is None else 'no group that is asked for'} has a record in front of this moment",
                replica=first.replica,
                offsets_partition=first.offsets_partition,
                group=first.group if groups is not None and len(groups) == 1 else None,
                path=first.path,
                byte_position=first.byte_position,
                first_record_offset=first.record_offset,
                first_timestamp_ms=first.timestamp_ms,
            )
            self.findings.add(finding)

    def _learned_names(self, topics_file: Place | None) -> TopicNames:
        """Names of topic ids, those that the commits of these logs tell included: they are learned by loading."""
        names = self._topic_names(topics_file)
        # Classic groups have names and no ids: their logs need no load.
        with_ids = [name for name in GROUP_RECORD_TYPES if name != "group_metadata"]
        if any(batch.num_rows for batch in self.records(types=with_ids)):
            load_state(self._evidence.log_directories, LoadOptions(profile_for(None), "lenient", fast=self._fast_load()), names)
        return names

    def _lives_of(self, groups: Collection[str] | None, names: TopicNames | None = None) -> Iterator[Membership]:
        """The steps of these groups; default for `names`: all that the logs tell.

        Raises:
            RequestError: one of them has none.
        """
        missing = set(groups or ())
        names = self._learned_names(None) if names is None else names
        for step in group_timeline(self.records(types=GROUP_RECORD_TYPES, groups=groups), names):
            missing.discard(step.group)
            yield step
        if missing:
            known = {step.group for step in group_timeline(self.records(types=GROUP_RECORD_TYPES))}
            group = min(missing)
            raise RequestError(f"no group record of {group!r} is here", remedy=near_by(group, known))
