"""The plan of docs/investigation.md, carried out on real brokers that have loaded its log."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from exhume.fixtures import scenarios
from exhume.fixtures.coordinator import START_MS

from .broker import Broker
from .client import Client, await_loads, create_topics
from .plans import carry_out, fill_topic, positions

pytestmark = pytest.mark.broker

PAGE = Path(__file__).resolve().parents[2] / "docs" / "investigation.md"
GROUP = "checkout"
WENT_ON = {("orders", partition): 895 + partition for partition in range(4)}


def documented_plan() -> str:
    """Return the plan on the page: the outputs of its two reset plans together."""
    shown = re.findall(
        r"\n\$ exhume reset-plan \S+ --group checkout --(?:before-rewind|lost)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(shown) == 2
    return "".join(shown)


# The tools of 4.4.0 are not on Maven Central.
@pytest.mark.parametrize("release", ["2.8.2", "4.3.0"])
def test_a_broker_takes_the_documented_plan_and_has_its_positions(release: str, tmp_path: Path) -> None:
    copied = scenarios.write("night-shift", tmp_path / "night-shift").data_directories[-1]
    plan = tmp_path / "plan.csv"
    plan.write_text(documented_plan(), encoding="utf-8")
    with Broker(release, tmp_path, offsets_partitions=50, settings={"num.partitions": 6}) as broker:
        broker.start()
        create_topics(broker, "orders", "refunds")
        await_loads(broker)
        broker.stop()
        broker.put([*copied.glob("__consumer_offsets-*")])
        for topic in ("orders", "refunds"):
            fill_topic(broker, topic, range(6), 1000, timestamp_ms=START_MS, directory=tmp_path / f"filling-{topic}")
        broker.start()
        await_loads(broker)
        with Client(broker.port) as client:
            before = positions(client, GROUP)
            said = carry_out(broker, [GROUP], plan)
            after = positions(client, GROUP)

    assert before == WENT_ON | {("orders", 4): 62, ("orders", 5): 63}
    restored = {("orders", 4): 764, ("orders", 5): 765, ("refunds", 0): 95, ("refunds", 1): 96}
    assert after == WENT_ON | restored, said
