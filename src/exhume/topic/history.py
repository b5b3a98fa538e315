"""The history of one group, and the reasons why its offsets exist or not."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from exhume.analysis.forecast import forecast
from exhume.analysis.history import HISTORY, group_history
from exhume.analysis.why import explain as answer_why
from exhume.errors import RequestError
from exhume.replay.partition_load import LoadOptions
from exhume.replay.profiles import BrokerProfile
from exhume.topic.diagnosis import condense_for
from exhume.topic.logs import TopicLogs, selectable_groups
from exhume.topic.retention import Retention
from exhume.topic.states import load_with_findings

#: A topic and a partition of it; None: all.
Key = tuple[str | None, int | None]


def history(logs: TopicLogs, group: str, key: Key, profile: BrokerProfile) -> pa.Table:
    """Every record of a group in the order of the log, or every commit of this key, as `history.HISTORY`.

    Raises:
        RequestError: no record of this group, or of this key; lists similar names.
    """
    options = LoadOptions(profile, "lenient", groups=selectable_groups([group]))
    try:
        return _history(logs, group, key, options)
    except RequestError:
        # Only a load of all groups knows similar names.
        return _history(logs, group, key, replace(options, groups=None))


def _history(logs: TopicLogs, group: str, key: Key, options: LoadOptions) -> pa.Table:
    # A lenient load reads to the end: a damaged record does not make the records after it superseded.
    names, fast = logs.topic_names(), replace(logs.fast_load(), relevant_batches={})
    state = logs.load(replace(options, fast=fast), names)
    return group_history(logs.batches_about(group, fast, key), state, names, group, logs.extents, topic=key[0], partition=key[1])


def why(logs: TopicLogs, group: str, key: Key, retention: Retention, now_ms: int) -> pa.Table:
    """Explain why this group and its offsets exist or not, as `why.WHY`.

    Raises:
        RequestError: a partition without its topic.
    """
    if key[1] is not None and key[0] is None:
        raise RequestError(f"partition {key[1]} needs its topic", remedy="Name the topic too")
    profile, inputs = retention.profile, retention.inputs
    state = load_with_findings(logs, LoadOptions(profile, inputs=inputs), logs.topic_names())
    names, fast = logs.topic_names(), logs.fast_load()
    noting = replace(logs.fast_load(), relevant_batches={})
    options = LoadOptions(profile, inputs=inputs, groups=selectable_groups([group]))
    lenient = logs.load(replace(options, mode="lenient", fast=noting), names)
    try:
        records = group_history(logs.batches_about(group, noting), lenient, names, group, logs.extents)
    except RequestError:
        # "No record" is an answer too.
        records = HISTORY.empty_table()
    loads = logs.load_partitions(replace(options, view="in_memory", fast=fast), names)
    expected = forecast(loads, profile, now_ms, retention.retention_ms, groups=[group])
    judgements = {}
    if has_removals(records):
        judgements = condense_for(logs, group, names, retention, with_removals=True).judgements()
    return answer_why(
        group,
        records,
        state,
        profile,
        now=expected,
        judgements=judgements,
        extents=logs.extents(),
        topic=key[0],
        partition=key[1],
    )


def has_removals(records: pa.Table) -> bool:
    """Return True if this `HISTORY` has a tombstone."""
    return bool(pc.any(records["is_tombstone"]).as_py())
