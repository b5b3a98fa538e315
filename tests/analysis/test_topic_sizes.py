"""How many partitions topics have, and who says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import exhume
from exhume.analysis.topic_sizes import TopicSize, TopicSizes
from exhume.errors import RequestError
from exhume.replay.topic_names import Topic, read_topics_file
from tests.judges import corpus


def metadata(topic: str, count: int, *racks: list[str]) -> dict[str, Any]:
    listed = [{"partition": number, "racks": of_partition} for number, of_partition in enumerate(racks)]
    return {"topic": topic, "topic_id": None, "partition_count": count, "partition_metadata": listed}


def test_the_groups_own_record_counts_before_the_file_and_the_file_before_records_of_others() -> None:
    sizes = TopicSizes([Topic("orders", None, 6, None)])
    sizes.learn_record("billing", [metadata("orders", 3, ["a"], ["b"], [])], 17)
    sizes.learn_record("audit", [metadata("clicks", 2)], 18)

    assert sizes.of("orders", "billing") == TopicSize("orders", 3, "record", 0, (frozenset("a"), frozenset("b"), frozenset()), 17)
    assert sizes.of("orders", "audit") == TopicSize("orders", 6, "topics_file")
    assert sizes.of("clicks", "billing") == TopicSize("clicks", 2, "record", 0, None, 18)
    sizes.learn_record("billing", None, 19)
    assert sizes.of("orders", "billing") == TopicSize("orders", 6, "topics_file")
    assert sizes.of("nowhere") is None
    assert list(sizes) == ["clicks", "orders"]


def test_a_plan_without_a_gap_counts_until_somebody_speaks_of_more() -> None:
    sizes = TopicSizes()
    sizes.learn_plans([{("orders", 1), ("orders", 0), ("clicks", 2)}])

    assert sizes.of("orders") == TopicSize("orders", 2, "assignment", 2)
    assert sizes.of("clicks") == TopicSize("clicks", 3, "at_least", 3)
    sizes.saw("orders", 4)
    assert sizes.of("orders") == TopicSize("orders", 5, "at_least", 5)


def test_of_each_topic_its_last_plan_counts() -> None:
    sizes = TopicSizes()
    sizes.learn_plans([{("orders", 0), ("clicks", 0), ("views", 1)}, {("orders", 1)}, {("views", 0), ("views", 1)}, set()])

    assert [(size.topic, size.partition_count, size.basis) for topic in sizes if (size := sizes.of(topic))] == [
        ("clicks", 1, "assignment"),
        ("orders", 2, "at_least"),
        ("views", 2, "assignment"),
    ]


def test_what_was_seen_stands_beside_a_count_that_is_lower() -> None:
    sizes = TopicSizes([Topic("orders", None, 2, None)])
    sizes.saw("orders", 7)

    found = sizes.of("orders")
    assert found == TopicSize("orders", 2, "topics_file", 8)
    assert found.is_exact


def test_records_of_the_coordinator_have_counts_and_racks() -> None:
    sizes = TopicSizes()
    with exhume.open(corpus.BUNDLED / "3.9.1-consumer-groups" / "data") as topic:
        for row in topic.decoded("consumer_group_partition_metadata").read_all().to_pylist():
            sizes.learn_record(row["group"], row["topics"], row["record_offset"])

    assert all((size := sizes.of(name)) is not None and size.basis == "record" and size.partition_count > 0 for name in sizes)
    assert len(list(sizes)) > 1


def test_a_topics_file_has_racks_by_partition_or_one_list_for_all(tmp_path: Path) -> None:
    file = tmp_path / "topics.csv"
    file.write_text("topic,topic_id,partitions,racks\norders,,2,a|b;b|\nclicks,,3,a\nplain,,4,\nnamed,,,\n", encoding="utf-8")

    a, b, ab = frozenset("a"), frozenset("b"), frozenset("ab")
    assert [(row.topic, row.partition_count, row.racks) for row in read_topics_file(file)] == [
        ("orders", 2, (ab, b)),
        ("clicks", 3, (a, a, a)),
        ("plain", 4, None),
        ("named", None, None),
    ]


@pytest.mark.parametrize("row", ["orders,,3,a;b", "orders,,,a;b", "orders,,0,", "orders,,many,"])
def test_a_topics_file_that_cannot_be_right_is_refused_with_its_line(tmp_path: Path, row: str) -> None:
    file = tmp_path / "topics.csv"
    file.write_text(f"topic,topic_id,partitions,racks\n{row}\n", encoding="utf-8")

    with pytest.raises(RequestError, match="line 2"):
        read_topics_file(file)


def test_a_topics_file_that_a_spreadsheet_wrote(tmp_path: Path) -> None:
    file = tmp_path / "topics.csv"
    file.write_bytes(b'\xef\xbb\xbf"topic","topic_id","partitions"\r\n"t","","4"\r\n')

    assert [(row.topic, row.partition_count) for row in read_topics_file(file)] == [("t", 4)]


@pytest.mark.parametrize(
    ("header", "row", "problem"),
    [
        ("topic,topic_id,partitions", ",AAAAAAAAAAAAAAAAAAAAAQ,4", "a topic without a name"),
        ("topic_id,topic,partitions", "AAAAAAAAAAAAAAAAAAAAAQ", "a topic without a name"),
        ("topic,topic_id,partitions", "t,,4,5,6", "more cells than the header has columns"),
        ("topic,topic_id,partitions", "t,,four", "a topic of four partitions"),
    ],
)
def test_a_row_that_names_no_topic_rightly_is_refused(tmp_path: Path, header: str, row: str, problem: str) -> None:
    file = tmp_path / "topics.csv"
    file.write_text(f"{header}\n{row}\n", encoding="utf-8")

    with pytest.raises(RequestError, match=f"line 2: {problem}"):
        read_topics_file(file)


def test_a_partition_that_no_topic_can_have_says_nothing_about_its_size() -> None:
    far = 2**31 - 2
    sizes = TopicSizes()
    sizes.saw("orders", 3)
    sizes.saw("orders", far)
    sizes.learn_record("g", [{"topic": "clicks", "partition_count": far, "partition_metadata": []}], 7)

    size = sizes.of("orders")
    assert size is not None
    assert (size.partition_count, size.basis) == (4, "at_least")
    assert sizes.of("clicks") is None
