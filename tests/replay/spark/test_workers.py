"""The Python of the executors: that of the driver with a local master; without exhume, an error that says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.judges import corpus
from tests.patience import PATIENCE_SECONDS

_ROOT = Path(__file__).resolve().parents[3]
_SCRIPT = """
import sys
from pyspark.sql import SparkSession
import exhume.spark
from exhume.errors import RequestError

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF").getOrCreate()
try:
    with exhume.spark.reconstruct(spark, sys.argv[1], tables=["groups"]) as state:
        print("groups:", state["groups"].count())
    exhume.spark.register(spark)
    print("segments:", spark.read.format("offsets-topic").option("kind", "segments").load(sys.argv[1]).count() > 0)
except RequestError as error:
    print("refused:", error, error.remedy)
"""
#: It runs when a Python starts, and hides exhume from it.
_HIDES = """
import sys

class Hides:
    def find_spec(self, name, path=None, target=None):
        if name == "exhume":
            raise ModuleNotFoundError("No module named 'exhume'", name="exhume")

sys.meta_path.insert(0, Hides())
"""


def run(directory: Path, path: Path, **variables: str) -> str:
    """What the script prints, with the programs of `path` before all others."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))} | {
        "PATH": os.pathsep.join([str(path), os.environ["PATH"]]),
        "PYTHONPATH": str(_ROOT / "src"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **variables,
    }
    arguments = [sys.executable, "-c", _SCRIPT, str(corpus.BUNDLED / "4.3.0-transactions" / "data")]
    done = subprocess.run(arguments, cwd=directory, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def program(place: Path, lines: str) -> Path:
    place.write_text("#!/bin/sh\n" + lines)
    place.chmod(0o755)
    return place


def test_a_local_master_takes_the_python_of_the_driver(java17: None, tmp_path: Path) -> None:
    program(tmp_path / "python3", "exit 1\n")

    printed = run(tmp_path, tmp_path)

    assert "groups: " in printed
    assert "segments: True" in printed


def test_a_python_without_exhume_is_an_error_that_names_the_variable(java17: None, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(_HIDES)
    python = program(tmp_path / "other", f'PYTHONPATH="{tmp_path}:$PYTHONPATH" exec {sys.executable} "$@"\n')

    printed = run(tmp_path, tmp_path, PYSPARK_PYTHON=str(python))

    assert "refused: the Python of the executors has no module exhume" in printed
    assert "PYSPARK_PYTHON" in printed
    assert "docs/spark.md" in printed
