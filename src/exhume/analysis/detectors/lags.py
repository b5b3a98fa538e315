"""The records after a committed offset, as far as end offsets or the commits of other groups show them."""

from __future__ import annotations

from exhume.analysis.detectors.cases import GroupCase
from exhume.analysis.detectors.inputs import Inputs
from exhume.analysis.detectors.keys import KeyHistory

#: Fewer records may have come after the last commit of a group that is at work.
LEAST_LAG, _LEAST_RISES = 2, 3


def lag_of(group: GroupCase, key: KeyHistory, inputs: Inputs, since_ms: int | None) -> int:
    """Return the number of records after the last commit of this key; 0 if few or none are known.

    They show in the end offsets, or in a commit of another group since `since_ms`.
    """
    if key.last is None or since_ms is None:
        return 0
    reached = (inputs.end_offsets or {}).get((key.topic, key.partition))
    if reached is None:
        reached = group.log_context.sightings.reached_since(key.topic, key.partition, since_ms + 1)
    lag = 0 if reached is None else reached - key.last.committed_offset
    return lag if lag >= max(LEAST_LAG, _LEAST_RISES * (key.usual_rise or 0)) else 0
