"""The logs that benchmarks run on hold what their generator says, and the fixed points of a run are what they claim."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, sleep

import pyarrow.compute as pc
import pytest

import exhume
from benchmarks import floor
from benchmarks.generate import VARIANTS, Content, generate
from benchmarks.measuring import Measured, Results
from benchmarks.report import BEGIN, END, report, write_into
from benchmarks.stages import REST, STAGES, Clock, timed, timed_items
from exhume.codecs.compression import CODECS
from exhume.replay import local


def _files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(("codec", "release"), [pytest.param("none", "2.8.2", marks=pytest.mark.slow), ("lz4", "4.3.0")])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_load_comes_to_what_the_generator_says(tmp_path: Path, variant: str, codec: str, release: str) -> None:
    said = generate(tmp_path, variant=variant, megabytes=1, codec=codec)

    with exhume.open(tmp_path) as topic:
        state = topic.state(release=release)
        history = topic.history(said.a_group, topic=said.a_topic, partition=said.a_partition, release=release)
        records = sum(batch.num_rows for batch in topic.records())
        batches = topic.batches().read_all()
    assert state.loads["outcome"].to_pylist() == ["loaded"]
    assert (state.offsets.num_rows, pc.sum(state.offsets["committed_offset"]).as_py()) == (said.live_offsets, said.committed_offset_sum)
    assert (records, batches.num_rows, history.num_rows) == (said.records, said.batches, said.a_key_records)
    assert state.only([said.a_group]).offsets.num_rows == said.a_group_offsets
    # Format 0 stays uncompressed.
    assert codec in batches["codec"].to_pylist() or codec == "none"
    assert said.plain_bytes <= 1 << 20
    assert 0.9 < said.group_records / said.records * 100 < 1.1


def test_the_same_options_make_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate(tmp_path / name, megabytes=1, seed=seed)

    assert _files(tmp_path / "a") == _files(tmp_path / "b") != _files(tmp_path / "c")


def test_a_codec_changes_no_record(tmp_path: Path) -> None:
    contents = [generate(tmp_path / codec, megabytes=1, codec=codec) for codec in (each.name for each in CODECS.values())]

    assert len({_held(content) for content in contents}) == 1
    assert len({content.size_bytes for content in contents}) == len(contents)


def _held(content: Content) -> tuple[int, int, int, int]:
    return content.plain_bytes, content.batches, content.records, content.committed_offset_sum


@pytest.mark.one_of(2)
@pytest.mark.parametrize("variant", ["few-keys", "old-formats"])
def test_further_segments_repeat_the_first(tmp_path: Path, variant: str) -> None:
    said = generate(tmp_path, variant=variant, megabytes=2, segment_bytes=1 << 20)

    with exhume.open(tmp_path) as topic:
        state = topic.state(release="4.3.0")
        batches = topic.batches().read_all()
        inspection = topic.inspect()
    assert said.segments == len(inspection.segments) == 2
    assert (state.offsets.num_rows, pc.sum(state.offsets["committed_offset"]).as_py()) == (said.live_offsets, said.committed_offset_sum)
    assert set(batches["crc_status"].to_pylist()) == {"ok"}
    assert batches["last_offset"].to_pylist()[-1] == said.records - 1
    assert not [finding for finding in topic.findings if finding.severity in {"warn", "error"}]


def test_the_floor_meets_every_batch_and_every_damage(tmp_path: Path) -> None:
    said = generate(tmp_path, megabytes=1)
    partition = tmp_path / "__consumer_offsets-0"
    assert floor.walk_segments(partition) == (said.batches, said.records, 0)
    assert floor.in_one_call_per_megabyte(partition) == said.size_bytes

    [segment] = partition.glob("*.log")
    content = bytearray(segment.read_bytes())
    content[500_000] ^= 1
    segment.write_bytes(content)
    assert floor.walk_segments(partition) == (said.batches, said.records, 1)


def test_ratios_are_of_medians_and_what_was_not_run_is_said(tmp_path: Path) -> None:
    results = Results()
    results.contents["few-keys 100 MB"] = generate(tmp_path, megabytes=1)
    results.measured["few-keys 100 MB", "floor", 1] = Measured([0.1, 0.2, 9.0])
    results.measured["few-keys 100 MB", "scan", 1] = Measured([0.3])
    results.measured["few-keys 100 MB", "offsets", 1] = Measured([1.0])
    results.missing.append("few-keys 100 MB, broker 3.9.1, two cores: no jars")

    text = report(results)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_into(page, text)

    assert "| scan with CRC: time against the floor | few-keys 100 MB | one | 1.50 × | ≤ 1.30 × | **no** |" in text
    assert "| offsets, few keys: time against the floor | few-keys 100 MB | one | 5.00 × | ≤ 6.00 × | yes |" in text
    assert "| offsets, many keys: time against the floor | many-keys 100 MB | one | not run | ≤ 15.0 × |  |" in text
    assert "- few-keys 100 MB, broker 3.9.1, two cores: no jars" in text
    assert page.read_text() == f"before\n{BEGIN}\n\n{text}\n{END}\nafter\n"


def test_a_report_of_nothing_is_a_report() -> None:
    assert "not run" in report(Results())


def test_stages_share_the_time_of_a_run_and_leave_nothing_behind(tmp_path: Path) -> None:
    generate(tmp_path, megabytes=1)
    whole = local.state_of_loads

    start = perf_counter()
    with timed("state") as clock, exhume.open(tmp_path) as topic:
        topic.state()
        seconds = clock.stop()
    took = perf_counter() - start

    assert seconds["tables"] > 0
    assert seconds[REST] > 0
    assert set(seconds) <= {*STAGES["state"], REST}
    assert sum(seconds.values()) <= took
    assert local.state_of_loads is whole


@pytest.mark.parametrize("subject", STAGES)
def test_the_functions_of_every_stage_are_there(subject: str) -> None:
    with timed(subject) as clock:
        assert clock.stop()[REST] > 0


def test_what_a_stage_gives_one_by_one_is_of_that_stage() -> None:
    clock = Clock()

    def numbers() -> Iterator[int]:
        sleep(0.01)
        yield 1

    items = timed_items(numbers(), "given", clock)
    assert clock.stop().get("given", 0) == 0

    assert list(items) == [1]
    assert clock.stop()["given"] >= 0.01
