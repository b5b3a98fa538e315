"""The examples of docs/spark.md run as they stand, over logs of this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.judges import corpus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "spark.md"
_LOG = corpus.BUNDLED / "2.8.2-lifecycle" / "data"
_PLACES = re.compile(r'\["s3://[^]]+\]|"s3://[^"]+"')
_EXAMPLES = [
    example
    for example in re.findall(r"```python\n(.*?)```", _PAGE.read_text(encoding="utf-8"), re.DOTALL)
    if _PLACES.search(example) and "format(" not in example
]


@pytest.mark.parametrize("example", _EXAMPLES, ids=lambda example: re.findall(r"exhume\.spark\.(\w+)\(", example)[0])
def test_an_example_runs(spark: SparkSession, example: str, capfd: pytest.CaptureFixture[str]) -> None:
    names = {"spark": spark}
    exec(f"import exhume.spark\n{_PLACES.sub(repr(str(_LOG)), example).replace('1h', '1d')}", names)
    if ".show()" in example:
        assert "+--" in capfd.readouterr().out
    assert {"state", "states", "storms", "diagnosis"} & set(names)
