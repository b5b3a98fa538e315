"""Find transactional commits that never took effect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.commits import Dropped
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory
from exhume.analysis.detectors.registry import Detector
from exhume.analysis.detectors.report import counted, finding, partitions_of, some, span
from exhume.analysis.transaction_outcomes import is_late
from exhume.durations import MINUTE_MS
from exhume.findings import Finding, Severity

#: A key without a commit for this time after an abort is a loss: a client repeats an aborted transaction within seconds.
_LOST_MS = 10 * MINUTE_MS
#: A key with an earlier commit is lost after so many aborts, over the same time: the last transaction before a shutdown is often aborted.
_LEAST_ABORTS = 3


def find_uncommitted(group: GroupCase, inputs: Inputs) -> Iterator[Finding]:  # noqa: ARG001
    """An ABORT marker dropped a transactional commit, or its transaction has no marker at the end of the log.

    While the transaction was open, fetches of stable offsets failed with UNSTABLE_OFFSET_COMMIT. If the key has no other commit, the group
    looks as if it had never committed. A client repeats an aborted transaction within seconds. So it is a warning if such a key is without
    a commit for ten minutes after the abort, until the end of the log; or if three transactions or more, over ten minutes or longer, were
    aborted after the last commit of the key.
    """
    by_topic: defaultdict[str, list[tuple[KeyHistory, Dropped]]] = defaultdict(list)
    for key in group.keys.with_dropped():
        for dropped in key.dropped:
            by_topic[key.topic].append((key, dropped))
    for topic, found in sorted(by_topic.items()):
        aborted = [each for each in found if each[1].outcome == "ABORT"]
        if aborted:
            yield _aborted(group, topic, aborted)
        still_open = [each for each in found if each[1].outcome == "open"]
        if still_open:
            yield _open(group, topic, still_open)


def _aborted(group: GroupCase, topic: str, found: Sequence[tuple[KeyHistory, Dropped]]) -> Finding:
    keys = dict.fromkeys(key for key, _ in found)
    without = [key for key in keys if key.last is None]
    commits = [
        f"{topic}-{key.partition}: offset {dropped.commit.committed_offset} of record {dropped.commit.record_offset}, aborted by record"
        f" {dropped.marker_offset}{_unstable(dropped)}; {_left(key)}"
        for key, dropped in found
    ]
    sentence = f"aborted transactions dropped {counted(len(found), 'commit')} for topic {topic}: {some(commits)}"
    if without:
        sentence += f"; {counted(len(without), 'partition')} without any other commit, as if the group had never committed"
    repeated = [key for key in keys if key.last is not None and _is_repeated(_after_last_commit(key, found))]
    if repeated:
        sentence += f"; {counted(len(repeated), 'partition')} with aborted transactions only since the last commit"
    is_lost = any(_is_lost(group, _after_last_commit(key, found)) for key in without)
    return _finding(group, sentence, found, severity="warn" if is_lost or repeated else "info")


def _after_last_commit(key: KeyHistory, found: Sequence[tuple[KeyHistory, Dropped]]) -> list[int]:
    """Return the times of the aborted commits of this key after its last effective commit, in order."""
    from_offset = -1 if key.last is None else key.last.settled_offset
    those = (dropped.commit for other, dropped in found if other == key and dropped.commit.record_offset > from_offset)
    return sorted(commit.timestamp_ms for commit in those if commit.timestamp_ms is not None)


def _is_lost(group: GroupCase, times_ms: Sequence[int]) -> bool:
    end_ms = group.log_context.last_timestamp_ms
    return bool(times_ms) and end_ms is not None and end_ms - times_ms[0] >= _LOST_MS


def _is_repeated(times_ms: Sequence[int]) -> bool:
    return len(times_ms) >= _LEAST_ABORTS and times_ms[-1] - times_ms[0] >= _LOST_MS


def _unstable(dropped: Dropped) -> str:
    if dropped.marker_timestamp_ms is None or dropped.commit.timestamp_ms is None:
        return ""
    return f" after {span(dropped.marker_timestamp_ms - dropped.commit.timestamp_ms)}"


def _left(key: KeyHistory) -> str:
    if key.holds is not None:
        return f"the committed offset is {key.holds.committed_offset}"
    return "no offset is committed"


def _open(group: GroupCase, topic: str, found: Sequence[tuple[KeyHistory, Dropped]]) -> Finding:
    now_ms = group.log_context.last_timestamp_ms
    since = [dropped.commit.timestamp_ms for _, dropped in found if dropped.commit.timestamp_ms is not None]
    age_ms = now_ms - min(since) if now_ms is not None and since else None
    producers = sorted({str(dropped.commit.producer_id) for _, dropped in found})
    offsets = partitions_of(topic, sorted({key.partition for key, _ in found}))
    age = f"{span(age_ms)} before the end of the log" if age_ms is not None else "at an unknown time"
    sentence = f"producer {some(producers)} staged {offsets} {age}, and no marker ended the transaction"
    # The age of the commit decides: its producer may write to other groups in the same transaction.
    is_old = is_late(age_ms)
    not_excluded = [] if is_old else ["a copy of the log made during the transaction"]
    return _finding(group, sentence, found, severity="warn" if is_old else "info", not_excluded=not_excluded)


def _finding(
    group: GroupCase, sentence: str, found: Sequence[tuple[KeyHistory, Dropped]], *, severity: Severity, not_excluded: Sequence[str] = ()
) -> Finding:
    keys = {key.partition: key for key, _ in found}
    return finding(
        "IC-26",
        sentence,
        group,
        severity=severity,
        confidence="proof",
        topic=found[0][0].topic,
        partition=next(iter(keys)) if len(keys) == 1 else None,
        evidence=[proof for key, dropped in found for proof in (dropped, key.holds) if proof is not None],
        not_excluded=not_excluded,
    )


DETECTORS = (
    Detector(
        code="IC-26",
        title="Transactional commit that never took effect",
        section="Offsets disappeared",
        in_group=find_uncommitted,
        traps=(
            "The cleaner removes aborted commits at once, so a compacted log contains none",
            "An empty batch that the cleaner keeps for the state of its producer is no open transaction",
            "A copy of the log may end inside a transaction",
        ),
    ),
)
