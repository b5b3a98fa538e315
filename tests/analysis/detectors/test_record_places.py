"""Record offsets in any order."""

from __future__ import annotations

import random
import re
from math import inf
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest

from exhume.analysis.detectors import diagnose
from exhume.analysis.detectors.commits import GROUP_PHASES, GroupPhase
from exhume.analysis.detectors.group_phases import GroupPhases
from exhume.analysis.detectors.inputs import Inputs
from exhume.codecs.batches import BatchWalk
from exhume.codecs.record_types import encode_key

from .story import case_of
from .troubles import troubles

_KEY = encode_key(2, {"group": "g"})
_EXTREMES = (2**63 - 1, -(2**63), 2**62, -(2**62), -1, 0, 1)


@pytest.mark.parametrize("offsets", [range(-5, 5), _EXTREMES])
def test_phases_follow_the_record_offsets_in_any_order(offsets: tuple[int, ...]) -> None:
    rng = random.Random(1)
    phases, known = GroupPhases(), dict.fromkeys(range(3), ("unrecorded", 0))
    for _ in range(20):
        groups, wanted = ([rng.choice(values) for _ in range(30)] for values in (range(3), offsets))
        records = [(rng.randrange(3), rng.choice(offsets), rng.choice([None, b""])) for _ in range(rng.randrange(9))]
        changes = [(group, offset, phases.take(group, offset, _KEY, value)[0]) for group, offset, value in records]

        found = phases.of(np.array(groups, np.int64), np.array(wanted, np.int64), 3)

        assert [*zip([GROUP_PHASES[phase] for phase in found[0].tolist()], found[1].tolist(), strict=True)] == [
            _followed(known[group], changes, group, offset) for group, offset in zip(groups, wanted, strict=True)
        ]
        known = {group: _followed(known[group], changes, group, inf) for group in known}


def _followed(known: tuple[str, int], changes: list[tuple[int, int, GroupPhase]], group: int, offset: float) -> tuple[str, int]:
    """Return phase and number of records of a group before this record offset."""
    own = [phase for other, at, phase in sorted(changes, key=itemgetter(1)) if other == group and at < offset]
    return (own[-1] if own else known[0]), known[1] + len(own)


@pytest.mark.parametrize("seed", range(12))
def test_a_log_with_extreme_record_offsets_is_diagnosed(tmp_path: Path, seed: int) -> None:
    """No checksum covers the base offset of a batch."""
    rng = random.Random(seed)
    troubles(seed, events=80).write(tmp_path)
    for segment in tmp_path.rglob("*.log"):
        content = bytearray(segment.read_bytes())
        for batch in BatchWalk(bytes(content)):
            if rng.random() < 0.05:
                content[batch.byte_position : batch.byte_position + 8] = rng.choice(_EXTREMES).to_bytes(8, "big", signed=True)
        segment.write_bytes(content)

    found = [*diagnose(case_of(tmp_path), Inputs())]

    assert found
    assert not [finding.sentence for finding in found if re.search(r"\(-\d+ bytes", finding.sentence)]
