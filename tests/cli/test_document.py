"""The head of JSON documents: what made them, by which rules, from which bytes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import exhume
from exhume.cli.demo import DEMO_LOG
from exhume.replay.state_tables import SCHEMAS
from tests.cli.conftest import Ask


def test_a_document_says_what_made_it_and_from_which_bytes(ask: Ask) -> None:
    _, shown, _ = ask("state", DEMO_LOG, "--release", "4.3.0", "--at-offset", "2:100", "-o", "json")
    document = json.loads(shown)
    head = document.pop("exhume")

    assert {*SCHEMAS} <= {*document}
    assert (head["schema_version"], head["version"], head["release"]) == (1, exhume.__version__, "4.3.0")
    assert head["moment"] == {"at_offset": {"2": 100}, "at_time_ms": None, "clock": None}
    assert [Path(each["path"]) for each in head["evidence"]] == sorted(DEMO_LOG.rglob("*.log"))
    assert all(each["sha256"] == hashlib.sha256(Path(each["path"]).read_bytes()).hexdigest() for each in head["evidence"])


def test_the_end_of_a_log_is_no_moment(ask: Ask) -> None:
    head = json.loads(ask("inspect", DEMO_LOG, "-o", "json")[1])["exhume"]

    assert (head["moment"], head["release"]) == (None, None)


def test_one_table_is_an_array(ask: Ask) -> None:
    assert isinstance(json.loads(ask("state", DEMO_LOG, "--table", "groups", "-o", "json")[1]), list)


def test_the_digests_have_progress_to_their_last_byte() -> None:
    reached: list[tuple[int, int]] = []
    with exhume.open(DEMO_LOG, progress=lambda done, total: reached.append((done, total))) as topic:
        files = topic.files()

    size_bytes = sum(files["size_bytes"].to_pylist())
    assert reached[-1] == (size_bytes, size_bytes)
    assert reached == sorted(reached)
