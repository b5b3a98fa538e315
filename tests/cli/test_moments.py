import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.cli.moments import format_ms
from exhume.errors import RequestError
from exhume.moments import is_moment, parse_moment

MOMENT_MS = 1_795_238_789_123


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T05:26:29.123Z",
        "2026-11-21 05:26:29.123Z",
        "2026-11-21T05:26:29.123",
        "2026-11-21T06:26:29.123+01:00",
        "2026-11-20T23:56:29.123-05:30",
        "20261121T052629.123Z",
        " 2026-11-21T05:26:29.123999Z ",
        "1795238789123",
    ],
)
def test_every_spelling_of_a_moment_is_the_same_moment(text: str) -> None:
    assert parse_moment(text) == MOMENT_MS


def test_a_date_alone_is_its_midnight_in_utc() -> None:
    assert parse_moment("2026-11-21") == 1_795_219_200_000


def test_digits_alone_are_milliseconds_however_few() -> None:
    assert parse_moment("2026") == 2026


@pytest.mark.parametrize("text", ["", "someday", "2026-13-01", "2026-11-21T25:00", "12.5", "٢٠٢٦"])
def test_what_is_no_moment_is_refused_with_the_two_spellings(text: str) -> None:
    with pytest.raises(RequestError, match=r"ISO 8601.*milliseconds since 1970"):
        parse_moment(text)


@pytest.mark.parametrize("text", ["-1", "1969-12-31T23:59:59Z", "1970-01-01T00:00+01:00"])
def test_a_moment_before_1970_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="before 1970"):
        parse_moment(text)


def test_a_number_that_is_no_int64_is_refused() -> None:
    assert parse_moment(str(2**63 - 1)) == 2**63 - 1
    with pytest.raises(RequestError, match="beyond"):
        parse_moment(str(2**63))
    with pytest.raises(RequestError, match="beyond"):
        parse_moment("1" * 30)


def test_a_moment_is_shown_in_utc_with_milliseconds_and_zone() -> None:
    assert format_ms(MOMENT_MS) == "2026-11-21 05:26:29.123Z"
    assert format_ms(0) == "1970-01-01 00:00:00.000Z"
    assert format_ms(253_402_300_799_999) == "9999-12-31 23:59:59.999Z"


@pytest.mark.parametrize("moment_ms", [-1, 253_402_300_800_000, 2**63 - 1, -(2**63)])
def test_what_is_no_moment_is_shown_as_its_number(moment_ms: int) -> None:
    assert format_ms(moment_ms) == str(moment_ms)


@given(st.integers(0, 2**63 - 1) | st.integers(0, 253_402_300_799_999))
def test_what_is_shown_can_be_typed_back(moment_ms: int) -> None:
    assert parse_moment(format_ms(moment_ms)) == moment_ms


def test_a_timeout_is_no_moment() -> None:
    assert [name for name in ("commit_timestamp_ms", "delete_horizon_ms", "session_timeout_ms", "timestamp") if is_moment(name)] == [
        "commit_timestamp_ms",
        "delete_horizon_ms",
    ]
