"""The files around the package: the API page, the image, the workflows and the citation agree with the code."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import yaml

import exhume

ROOT = Path(__file__).resolve().parent.parent


def test_the_page_of_the_api_has_every_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^::: [\w.]+\.(\w+)$", page, re.MULTILINE))

    assert {"open" if name == "open_topic" else name for name in documented} == {*exhume.__all__} - {"__version__"}
    for path in re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE):
        module, _, name = path.rpartition(".")
        assert getattr(__import__(module, fromlist=[name]), name).__doc__, path


def test_the_site_has_every_page() -> None:
    navigation = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.SafeLoader)["nav"]
    listed = [page for chapter in navigation for pages in chapter.values() for page in ([pages] if isinstance(pages, str) else pages)]

    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_the_citation_has_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))

    assert citation["version"] == exhume.__version__
    assert citation["license"] == "Apache-2.0"


def test_workflows_and_templates_are_whole() -> None:
    for file in (ROOT / ".github").rglob("*.yml"):
        assert yaml.safe_load(file.read_text(encoding="utf-8")), file
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    assert release["jobs"]["publish"]["permissions"]["id-token"] == "write"
    # Only the job that publishes may write.
    assert release["permissions"] == {"contents": "read"}


def test_the_image_has_all_files_that_the_build_reads() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")}

    assert kept == {"src", "kernel_build", "pyproject.toml", "setup.py", "constraints.txt", "README.md", "LICENSE", "docs/exhume.1"}
    assert all((ROOT / name).exists() for name in kept)
    assert "USER exhume" in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def _imported_packages() -> set[str]:
    """The top names of all packages that exhume imports and Python does not bring."""
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - {"exhume"}


def test_each_imported_package_is_a_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    declared = {re.split(r"[<>=\[; ]", requirement)[0].replace("-", "_") for requirement in [*project["dependencies"], *extras]}
    # kafka-python installs `kafka`; Jinja2 installs and reexports MarkupSafe; PySpark installs Py4J and raises its errors.
    assert _imported_packages() == (declared - {"kafka_python"}) | {"kafka", "markupsafe", "py4j"}
