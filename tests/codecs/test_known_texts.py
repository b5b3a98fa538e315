"""Texts of many arrays, each made once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.codecs.columns import known_texts
from exhume.codecs.columns.known_texts import KnownTexts
from exhume.codecs.kernels import text_of
from tests import strategies

_ARRAYS = st.lists(
    st.lists(st.none() | st.text("aé", max_size=9) | st.integers(0, 30).map("member-{:036}".format), max_size=40), max_size=8
)


@strategies.examples(40)
@given(_ARRAYS, st.booleans(), st.sampled_from([0, 500, 1 << 20]))
def test_rows_have_the_place_of_their_text(arrays: list[list[str | None]], is_plain: bool, most_bytes: int) -> None:
    known = KnownTexts()
    made: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_texts, "_MOST_BYTES", most_bytes)
        if is_plain:
            for name in ("number_known_texts", "enter_known_texts"):
                patch.setattr(known_texts, name, text_of(getattr(known_texts, name)))
        for rows in arrays:
            # The rows begin within the memory of the array.
            different, places = known.encode(pa.array(["before", None, *rows], pa.string()).slice(2))

            assert different == [*dict.fromkeys(text for text in rows if text is not None)]
            assert [None if place is None else different[place] for place in places.to_pylist()] == rows
            assert all(made.setdefault(text, text) is text for text in different)
