"""The algebra of folds: the folds of neighbours merge to the fold of both, wherever a log is cut, whatever release loads it.

load(merge(fold(A), fold(B))) == load(fold(A + B))
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.log_directory import PartitionDirectory, discover
from exhume.replay.broker_log import StrictLog
from exhume.replay.broker_start import open_strictly
from exhume.replay.fold.log import FoldSettings, folded_at
from exhume.replay.fold.merge import merge
from exhume.replay.fold.part import fold_part
from exhume.replay.fold.plan import SegmentRange
from exhume.replay.fold.result import FoldResult
from exhume.replay.local import state_of_loads
from exhume.replay.partition_load import LoadOptions, load_fold_result
from exhume.replay.profiles import BrokerProfile
from exhume.replay.reading import CompiledLoad
from exhume.replay.releases import all_spans, profile_for
from tests import strategies
from tests.written_batches import Written, encode_log

FOLDABLE = [profile for profile in all_spans() if not profile.depends_on_chunks]
#: The rules by which commits win: by their order, and with tombstones that take pending ones along. Where markers decide, no part is
#: folded that has one.
RACE_PROFILES = [profile_for("2.8.2"), profile_for("4.3.0")]

SEED = 7


class Folds:
    """The folds of a log, and of its parts, for one release."""

    def __init__(self, partition: PartitionDirectory, profile: BrokerProfile) -> None:
        self.log: StrictLog = open_strictly(partition, "clean")
        self.settings = FoldSettings(LoadOptions(profile), self.log.start_offset, SEED)
        self.positions = [batch.batch.byte_position for batch in self.log.batches()]

    def fold(self, start: int = 0, stop: int | None = None, *, is_part: bool = True) -> FoldResult:
        """The fold of some batches."""
        [segment] = self.log.segments
        first, last = ([*self.positions, segment.end][place] for place in (start, len(self.positions) if stop is None else stop))
        ranges = [SegmentRange(0, first, last)] if first < last else []
        rules = self.settings.rules(0, is_part=is_part)
        fast = CompiledLoad()
        [result] = fold_part(self.log, ranges, rules, fast, careful_reader=self.settings.careful_reader(self.log, fast)).folds
        return result

    def parts(self, cuts: Collection[int]) -> list[FoldResult] | None:
        """The folds between these cuts; None if a part cannot be folded by itself."""
        cuts = [min(cut, len(self.positions)) for cut in cuts]
        parts = [self.fold(start or 0, stop) for start, stop in pairwise([0, *sorted(cuts), None])]
        return parts if all(part.is_done for part in parts) else None

    def load(self, result: FoldResult | None) -> dict[str, Any] | None:
        """All that a load says: every state table, and findings; None if the log must be loaded record by record."""
        folded = None if result is None else folded_at(self.log, result, self.settings, None, None, is_cut=False)
        loaded = None if folded is None else load_fold_result(folded, self.settings.options)
        if loaded is None:
            return None
        load, names = loaded
        state = state_of_loads([load], self.settings.options, names)
        tables = {name: table.to_pylist() for name, table in state.tables.items()}
        return tables | {"findings": list(map(repr, state.findings)), "names": sorted(names.learned())}


def shipped(result: FoldResult) -> FoldResult:
    """The result in another process."""
    arrived: FoldResult = pickle.loads(pickle.dumps(result))
    return arrived


def merged(parts: Sequence[FoldResult]) -> FoldResult | None:
    both: FoldResult | None = shipped(parts[0])
    for part in parts[1:]:
        both = None if both is None else merge(both, shipped(part))
    return both


def write(directory: Path, batches: Sequence[Written]) -> PartitionDirectory:
    place = directory / "__consumer_offsets-0"
    place.mkdir(parents=True)
    (place / f"{0:020d}.log").write_bytes(encode_log(batches)[0])
    [partition] = discover([directory]).partitions
    return partition


def assert_same_loads(folds: Folds, cuts: Collection[int]) -> bool:
    """Raises where the folds of the parts load to another state; False if a part cannot be folded by itself."""
    parts = folds.parts(cuts)
    if parts is None:
        return False
    assert folds.load(merged(parts)) == folds.load(folds.fold(is_part=False)), cuts
    return True


CUTS = st.lists(st.integers(0, 20), min_size=1, max_size=3)


@strategies.examples(100)
@given(batches=strategies.any_logs(), cuts=CUTS, profile=st.sampled_from(FOLDABLE))
def test_a_cut_anywhere_changes_no_load(
    batches: list[Written], cuts: list[int], profile: BrokerProfile, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert_same_loads(Folds(write(tmp_path_factory.mktemp("log"), batches), profile), cuts)


@strategies.examples(5)
@given(batches=strategies.logs(strategies.healthy_batches()), cuts=CUTS)
def test_a_cut_changes_no_load_of_any_release(batches: list[Written], cuts: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    partition = write(tmp_path_factory.mktemp("log"), batches)

    for profile in FOLDABLE:
        assert_same_loads(Folds(partition, profile), cuts)


@strategies.examples(100)
@given(batches=strategies.transaction_logs(), cuts=CUTS)
def test_a_cut_between_racing_transactions_changes_no_load(
    batches: list[Written], cuts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    partition = write(tmp_path_factory.mktemp("log"), batches)

    for profile in RACE_PROFILES:
        assert_same_loads(Folds(partition, profile), cuts)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("turn", range(4))
def test_no_race_of_four_steps_for_one_key_ends_otherwise(turn: int, tmp_path: Path) -> None:
    races = [
        steps for steps in product(("s7", "s8", "c7", "c8", "v", "t"), repeat=4) if steps[0] in ("s7", "v") and {"c7", "c8"} & {*steps}
    ]

    compared = 0
    for number, steps in [*enumerate(races)][turn::4]:
        partition = write(tmp_path / str(number), strategies.race(steps))
        for profile in RACE_PROFILES:
            compared += assert_same_loads(Folds(partition, profile), [2, 3] if number // 4 % 2 else [4])

    assert compared > len(races) // 4


@strategies.examples(100)
@given(
    batches=st.one_of(strategies.logs(strategies.healthy_batches()), strategies.transaction_logs()),
    cuts=st.lists(st.integers(0, 20), min_size=2, max_size=2),
    profile=st.sampled_from(RACE_PROFILES),
)
def test_merge_is_associative(
    batches: list[Written], cuts: list[int], profile: BrokerProfile, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folds = Folds(write(tmp_path_factory.mktemp("log"), batches), profile)
    parts = folds.parts(cuts)
    if parts is None:
        return
    first, second, third = parts

    from_the_left = folds.load(merged([first, second, third]))
    later = merge(shipped(second), shipped(third))
    assert later is not None
    both = merge(shipped(first), shipped(later))
    assert folds.load(both) == from_the_left


@strategies.examples(50)
@given(batches=strategies.any_logs(), profile=st.sampled_from(FOLDABLE))
def test_a_result_loads_the_same_in_another_process(
    batches: list[Written], profile: BrokerProfile, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folds = Folds(write(tmp_path_factory.mktemp("log"), batches), profile)
    result = folds.fold(is_part=False)
    if not result.is_done:
        return

    there, again = shipped(result), shipped(shipped(result))
    assert folds.load(there) == folds.load(result)
    assert folds.load(again) == folds.load(result)
