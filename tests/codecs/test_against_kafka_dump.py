"""Every batch and record of real logs against what Kafka's own DumpLogSegments printed for them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import exhume
from tests.compared import Compared
from tests.judges import corpus
from tests.judges.dump_comparison import DumpComparison, compare_dump


@pytest.mark.one_of(3)
@pytest.mark.parametrize("release", sorted({dump.release for dump in corpus.dump_files()}))
def test_every_field_is_what_kafkas_own_tool_printed(release: str, compared: Compared) -> None:
    total = _compare(dump for dump in corpus.dump_files() if dump.release == release)

    assert not total.differences, "\n".join(total.differences[:20])
    assert total.decoded + total.control > 0
    compared.update(
        {("records, to their last field", f"dump of {release}"): total.decoded, ("control records", f"dump of {release}"): total.control}
    )


@pytest.mark.corpus
@pytest.mark.skipif(corpus.WHOLE is None, reason="EXHUME_CORPUS does not name a larger set of logs")
def test_every_field_of_the_whole_corpus_is_what_kafkas_own_tool_printed(compared: Compared) -> None:
    assert corpus.WHOLE is not None
    total = _compare(corpus.dump_files(corpus.WHOLE))

    assert not total.differences, "\n".join(total.differences[:20])
    compared.update({("records, to their last field", "dumps of the whole corpus"): total.decoded})


def _compare(dumps: Iterable[corpus.DumpFile]) -> DumpComparison:
    total = DumpComparison()
    for dump in dumps:
        with exhume.open(dump.segment) as topic:
            total += compare_dump(dump.read(), topic.batches().read_all().to_pylist(), topic.records().read_all().to_pylist())
    return total
