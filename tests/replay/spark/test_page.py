"""The examples of docs/spark.md run as they stand, from the first to the last, and show what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import exhume.cli
from tests.s3_server import S3Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAGE = (Path(__file__).resolve().parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")
_LOG = Path(exhume.cli.__file__).parent / "demo_log"
_PLACES = re.compile(r'"s3://backups/[^"]+"(, "s3://backups/[^"]+")*')
#: An example, and what the page shows of its output.
_EXAMPLES = re.findall(r"```python\n(.*?)```\n(?:\n<!-- shown -->\n```\n(.*?)```\n)?", _PAGE, re.DOTALL)
_COMMAND = re.search(r"```\n(exhume export .*?)```\n", _PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def notebook(spark: SparkSession) -> Iterator[dict[str, Any]]:
    """The names that examples share."""
    yield {"spark": spark}
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.parametrize(("example", "shown"), _EXAMPLES, ids=lambda text: next(iter(re.findall(r"(\w+)\(", text)), ""))
def test_an_example_shows_what_the_page_says(
    notebook: dict[str, Any], s3: S3Server, capsys: pytest.CaptureFixture[str], example: str, shown: str
) -> None:
    place = s3.upload(_LOG, "page") + s3.query
    exec(_PLACES.sub(repr(place), example), notebook)
    assert capsys.readouterr().out.strip() == shown.strip()


def test_no_example_is_left_out() -> None:
    assert len(_EXAMPLES) == _PAGE.count("```python") > 5
    assert sum(bool(shown) for _, shown in _EXAMPLES) == sum(".show(" in example for example, _ in _EXAMPLES)


def test_the_command_writes_what_the_page_says(java17: None, tmp_path: Path) -> None:
    assert _COMMAND is not None
    command = _COMMAND[1].replace("s3://backups/kafka/broker-1", str(_LOG)).replace("/data/state", str(tmp_path / "state"))
    program, *arguments = command.split()
    assert program == "exhume"
    variables = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, "-m", "exhume", *arguments], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    names = arguments[arguments.index("--tables") + 1].split(",")
    assert json.loads((tmp_path / "state" / "manifest.json").read_text())["tables"] == names
    assert {path.parent.name for path in tmp_path.glob("state/*/*/*.parquet")} >= {"offsets_partition=3"}
    assert all(pq.read_table(tmp_path / "state" / name).num_rows for name in names)
