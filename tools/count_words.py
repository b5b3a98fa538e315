"""Count the words that make a sentence hard to read, in sources, docs and help.

    python tools/count_words.py                 a line for each word: how often it stands in src, and in docs
    python tools/count_words.py --places src    every place in src: file, line, word
    python tools/count_words.py --root OTHER    the same for another checkout

Names and comments count as well as sentences. A line that ends in the comment `# plain: REASON` is left out: its reason stands beside it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

#: What to count, and what to write instead.
WORDS: dict[str, str] = {
    r"who(?:m|se)?ever": "name the subject: the broker, the member, the reader",
    r"what(?:so)?ever": "name the thing",
    r"somebody|someone|anybody|anyone": "name the subject",
    r"nobody|no one": "name the subject: no member, no broker",
    r"hang(?:s|ing)? (?:on|together)|hung on": "depends on",
    r"(?:is|are|was|were|be|been|being) told": "the active verb: the option gives, the finding says",
    r"(?:is|are|was|were|be|been|being) asked": "the active verb: the caller asks for",
    r"com(?:es?|ing) to\b(?! (?:the|an?) end)|came to": "is, results in",
    r"odd(?:ly|ity|ities)?": "name it: damaged, unexpected",
    r"behind": "after",
    r"in front of": "before",
    r"ha(?:s|d|ve) (?:\w+ )?lives": "was removed and created again",
    r"lies?|lay|lain": "is, stands",
}
#: How a docstring must not begin.
RIDDLE = re.compile(r'"""(?:What|Whether|Who|Whose|Whom|Which|How|Where|As|Of|The same)\b')
_PATTERN = re.compile("|".join(rf"(?P<w{number}>(?<![A-Za-z])(?:{word})(?![A-Za-z]))" for number, word in enumerate(WORDS)), re.IGNORECASE)
_JUSTIFIED = re.compile(r"#\s*plain:\s*\S")
_PLACES = {
    "src": ("src", (".py",)),
    "docs": (".", (".md",)),
    "tests": ("tests", (".py",)),
    "tools": ("tools", (".py",)),
    "benchmarks": ("benchmarks", (".py",)),
}
_SKIPPED = frozenset({".venv", "build", "dist", ".git", "data", "node_modules"})


def files(root: Path, place: str) -> Iterator[Path]:
    """The files of a place, in order."""
    directory, suffixes = _PLACES[place]
    for path in sorted((root / directory).rglob("*")):
        if path.suffix in suffixes and not _SKIPPED.intersection(path.relative_to(root).parts) and path.name != Path(__file__).name:
            yield path


def found(root: Path, place: str) -> Iterator[tuple[Path, int, str, str]]:
    """File, line number, word of `WORDS`, and the line, of each occurrence."""
    for path in files(root, place):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if _JUSTIFIED.search(line):
                continue
            for match in _PATTERN.finditer(line.replace("_", " ")):
                yield path, number, list(WORDS)[int((match.lastgroup or "w0")[1:])], line.strip()


def riddles(root: Path) -> Iterator[tuple[Path, int, str]]:
    """File, line number and line of each docstring in src that begins with a riddle."""
    for path in files(root, "src"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if RIDDLE.search(line):
                yield path, number, line.strip()


def main() -> int:
    """Print the counts, or the places."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--places", choices=[*_PLACES, "docstrings"])
    parser.add_argument("--under", default="", help="Only files whose path has this in it.")
    arguments = parser.parse_args()
    root: Path = arguments.root
    if arguments.places == "docstrings":
        for path, number, line in riddles(root):
            if arguments.under in str(path.relative_to(root)):
                sys.stdout.write(f"{path.relative_to(root)}:{number}: {line}\n")
        return 0
    if arguments.places:
        for path, number, _, line in found(root, arguments.places):
            if arguments.under in str(path.relative_to(root)):
                sys.stdout.write(f"{path.relative_to(root)}:{number}: {line}\n")
        return 0
    counts = {place: Counter(word for _, _, word, _ in found(root, place)) for place in _PLACES}
    sys.stdout.write(f"{'word':<60}" + "".join(f"{place:>12}" for place in _PLACES) + "\n")
    for word in WORDS:
        sys.stdout.write(f"{word:<60}" + "".join(f"{counts[place][word]:>12}" for place in _PLACES) + "\n")
    sys.stdout.write(f"{'together':<60}" + "".join(f"{counts[place].total():>12}" for place in _PLACES) + "\n")
    sys.stdout.write(f"{'docstrings that begin with What, Whether, Who, How …':<60}{sum(1 for _ in riddles(root)):>12}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
