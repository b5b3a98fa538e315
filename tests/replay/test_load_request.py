"""Options that functions take as keywords are the fields of their dataclass, each with its type."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from exhume.codecs.record_filter import RecordConditions, RecordFilter
from exhume.replay.load_request import LoadKeywords, LoadRequest
from exhume.spark.options import EvidenceKeywords, EvidenceOptions, StateKeywords, StateOptions


@pytest.mark.parametrize(
    ("keywords", "options"),
    [(LoadKeywords, LoadRequest), (EvidenceKeywords, EvidenceOptions), (StateKeywords, StateOptions), (RecordConditions, RecordFilter)],
    ids=lambda each: each.__name__,
)
def test_keywords_are_the_fields_of_their_options(keywords: type, options: Any) -> None:
    types = get_type_hints(options)
    assert get_type_hints(keywords) == {field.name: types[field.name] for field in fields(options)}


def test_a_keyword_that_no_option_has_is_refused() -> None:
    with pytest.raises(TypeError, match="relase"):
        LoadRequest(relase="4.3")  # type: ignore[call-arg]
