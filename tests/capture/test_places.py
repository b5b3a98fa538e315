"""Clusters as places."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.capture.places import parse_cluster
from exhume.errors import RequestError


def test_servers_and_options() -> None:
    assert parse_cluster("kafka://a:9093,b") == (("a:9093", "b:9092"), None)
    assert parse_cluster("kafka://[::1]:9092/") == (("[::1]:9092",), None)
    assert parse_cluster("KAFKA://a?command_config=/etc/my%20client.properties") == (("a:9092",), Path("/etc/my client.properties"))


@pytest.mark.parametrize("place", ["kafka://", "kafka:///x", "kafka://a:b:c", "kafka://user:pw@a:9092", "kafka://a?x=1", "kafka://a b"])
def test_other_forms_are_refused(place: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_cluster(place)
    assert caught.value.remedy
    assert "pw" not in str(caught.value)
