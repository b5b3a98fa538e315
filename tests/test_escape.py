import itertools
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.escape import printable

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize("text", ["", "billing", "été", "消費者", "a b", "back\\slash", "[red]no markup[/red]"])
def test_text_that_shows_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x00\x7f", r"\x00\x7f"),
        ("pay\u202etxt", r"pay\u202etxt"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("\ufeff", r"\ufeff"),
        ("line\u2028paragraph\u2029", r"line\u2028paragraph\u2029"),
        ("\ud800", r"\ud800"),
        ("\ue000", r"\ue000"),
        ("\U000e0041", r"\U000e0041"),
        ("a\u00a0b", r"a\xa0b"),
        ("\u3164", r"\u3164"),
        ("x\ufe0f", r"x\ufe0f"),
    ],
)
def test_what_does_not_show_comes_out_as_an_escape(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_a_written_escape_is_not_mistaken_for_the_character() -> None:
    assert printable(r"\x1b") == r"\\x1b"
    assert printable("\\\x1b") == r"\\\x1b"


@given(ANY_TEXT)
def test_the_result_always_shows(text: str) -> None:
    assert printable(text).isprintable()


@given(ANY_TEXT)
def test_the_text_can_be_read_back_from_the_result(text: str) -> None:
    shown = printable(text)
    if shown != text:
        shown = re.sub(r"\\(\\|n|r|t|x..|u....|U........)", lambda found: _unescaped(found[1]), shown)

    assert shown == text


def test_no_two_short_texts_look_alike() -> None:
    texts = ["".join(letters) for size in range(5) for letters in itertools.product("\\xn1b\n\x1b", repeat=size)]

    assert len({printable(text) for text in texts}) == len(texts)


@pytest.mark.parametrize("module", ["escape", "cli.moments", "cli.options", "cli.progress"])
def test_what_help_needs_imports_neither_pyarrow_nor_rich(module: str) -> None:
    program = f"import sys, exhume.{module}; print([name for name in ('pyarrow', 'rich', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def _unescaped(escape: str) -> str:
    return {"\\": "\\", "n": "\n", "r": "\r", "t": "\t"}.get(escape) or chr(int(escape[1:], 16))
