"""Write an answer as a picture: SVG, or a page in HTML that holds it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from exhume.cli.options import PictureOutput


def write_picture(svg: str, title: str, output: PictureOutput, output_file: Path | None, evidence: Iterable[Path | str]) -> None:
    """Write this picture to standard output or to a file."""
    from exhume.cli.destination import open_destination
    from exhume.report.page import picture_page

    text = svg if output is PictureOutput.svg else picture_page(title, svg)
    with open_destination(output_file, evidence=evidence) as sink:
        sink.write(text.encode())
