"""A Spark session for the tests of one file: two local cores, no web pages, the interpreter that runs the tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def java17() -> None:
    """Skip where Java 17 or later is missing: Spark 4 needs it."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("Spark needs Java 17 or later, and no java was found")
    version = re.search(r'version "(\d+)', subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr)
    if version is None or int(version[1]) < 17:
        pytest.skip("Spark needs Java 17 or later, and the java here is older")


@pytest.fixture(scope="module")
def spark(java17: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on `local[2]`, ended behind the last test of the file."""
    from pyspark.sql import SparkSession

    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    # Python workers import exhume from where the tests do, and nothing else of this directory.
    patch.setenv("PYTHONPATH", f"{_ROOT / 'src'}:{_ROOT}")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("exhume tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        # Small jobs end before the best machine code is worth its making.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()
    patch.undo()
