"""What a broker makes of a subscription: topics, "topics unknown", or the end of its load."""

from __future__ import annotations

import pytest

from exhume.codecs.embedded import broker_subscription_topics
from exhume.errors import DecodeError, LengthOverrun, Underflow, UnexpectedNull

TWO_TOPICS = bytes.fromhex("0000 00000002 00066f7264657273 000163 ffffffff")


def test_topics_are_returned_as_written() -> None:
    assert broker_subscription_topics(TWO_TOPICS) == ["orders", "c"]


def test_the_body_is_read_as_version_0_whatever_the_version_says() -> None:
    for version in ("0000", "0003", "7fff", "ffff"):
        assert broker_subscription_topics(bytes.fromhex(version) + TWO_TOPICS[2:]) == ["orders", "c"]


def test_bytes_behind_the_user_data_are_never_touched() -> None:
    assert broker_subscription_topics(TWO_TOPICS + b"\xff\xff\xff") == ["orders", "c"]


def test_any_negative_length_of_the_user_data_means_null() -> None:
    for length in ("ffffffff", "fffffffe", "80000000"):
        assert broker_subscription_topics(TWO_TOPICS[:-4] + bytes.fromhex(length)) == ["orders", "c"]


def test_topics_may_be_none_at_all() -> None:
    assert broker_subscription_topics(bytes.fromhex("0001 00000000 00000000")) == []


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param("", Underflow, id="no bytes"),
        pytest.param("00", Underflow, id="cut in the version"),
        pytest.param("00000000", Underflow, id="cut in the count"),
        pytest.param("0000 00000001 00", Underflow, id="cut in the length of a name"),
        pytest.param("0000 00000001 0001 74 ffff", Underflow, id="cut in the length of the user data"),
        pytest.param("0000 00000001 0001 74", Underflow, id="cut in front of the user data"),
        pytest.param("0000 00000002 0006 6f7264657273 0006 63", LengthOverrun, id="name longer than the rest"),
        pytest.param("0000 000003e8 0006 6f7264657273", LengthOverrun, id="count larger than the rest"),
        pytest.param("0000 00000001 0001 74 00000001", LengthOverrun, id="user data longer than the rest"),
        pytest.param("0000 ffffffff ffffffff", UnexpectedNull, id="count of -1"),
        pytest.param("0000 80000000 ffffffff", UnexpectedNull, id="count below -1"),
        pytest.param("0000 00000001 fffe ffffffff", UnexpectedNull, id="name of length -2"),
    ],
)
def test_the_error_tells_unknown_topics_from_an_aborted_load(data: str, error: type[DecodeError]) -> None:
    with pytest.raises(DecodeError) as caught:
        broker_subscription_topics(bytes.fromhex(data))
    assert type(caught.value) is error


def test_every_cut_is_an_underflow_or_an_overrun() -> None:
    for size in range(len(TWO_TOPICS)):
        with pytest.raises((Underflow, LengthOverrun)):
            broker_subscription_topics(TWO_TOPICS[:size])
