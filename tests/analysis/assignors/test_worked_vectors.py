"""Small questions with the answers of Kafka's own classes, each for one rule.

`t:3` is a topic and its partitions, `t:a/b` one with the racks of each; `A{t,u}` a member and its topics, `inst=` and `rk=` its instance id
and rack, `own=t:0,t:1@5` what it claims as of generation 5 (`v1`: the subscription has no generation of its own).
"""

from __future__ import annotations

import re
from itertools import chain

import pytest

from exhume.analysis.assignors import AssignorThrows, GroupSpec, MemberSpec, Side, variant_for

#: (rule, side and assignor, releases, topics, members, answer). An answer that is an exception is its name.
WORKED: list[tuple[str, str, str, str, str, str]] = [
    ("R1", "client range", "2.5.0 4.3.0", "t0:3 t1:3", "C0{t0,t1} C1{t0,t1}", "C0 t0 0,1 t1 0,1; C1 t0 2 t1 2"),
    ("R2", "client range", "2.5.0 4.3.0", "t:2", "A{t} B{t} C{t}", "A t 0; B t 1"),
    ("R3", "client range", "2.5.0 4.3.0", "t:8", "A{t} B{t} C{t}", "A t 0,1,2; B t 3,4,5; C t 6,7"),
    ("R4", "client range", "2.5.0 4.3.0", "t0:3 t1:5", "A{t0} B{t0,t1} C{t1}", "A t0 0,1; B t0 2 t1 0,1,2; C t1 3,4"),
    ("R5", "client range", "2.5.0 4.3.0", "t:5", "m1{t} m2{t}inst=b m3{t}inst=a", "m3 t 0,1; m2 t 2,3; m1 t 4"),
    ("R5 before", "client range", "2.3.1", "t:5", "m1{t} m2{t}inst=b m3{t}inst=a", "m1 t 0,1; m2 t 2,3; m3 t 4"),
    ("R6", "client range", "2.5.0 4.3.0", "t:3", "A{t,gone} B{gone}", "A t 0,1,2"),
    ("R7", "client range", "2.5.0 4.3.0", "t:3", "consumer-2{t} consumer-10{t}", "consumer-10 t 0,1; consumer-2 t 2"),
    ("R8", "client range", "3.5.2 4.3.0", "t:a/b/c", "A{t}rk=c B{t}rk=b C{t}rk=a", "A t 2; B t 1; C t 0"),
    ("R8 before", "client range", "3.4.1", "t:a/b/c", "A{t}rk=c B{t}rk=b C{t}rk=a", "A t 0; B t 1; C t 2"),
    ("R9", "client range", "4.3.0", "t0:a/b/c t1:a/b/c", "A{t0,t1}rk=c B{t0,t1}rk=b C{t0,t1}rk=a", "A t0 2 t1 2; B t0 1 t1 1; C t0 0 t1 0"),
    ("R10", "client range", "4.3.0", "t:abc/abc/abc", "A{t}rk=c B{t}rk=b C{t}rk=a", "A t 0; B t 1; C t 2"),
    ("R11", "client range", "4.3.0", "t:a/a/a/b", "A{t}rk=b B{t}rk=a", "A t 2,3; B t 0,1"),
    ("R12", "client range", "2.5.0 4.3.0", "t:3", "m1{t}inst=a m2{t} m3{t}inst=b", "m1 t 0; m3 t 1; m2 t 2"),
    ("RR1", "client roundrobin", "2.3.1 4.3.0", "t0:3 t1:3", "C0{t0,t1} C1{t0,t1}", "C0 t0 0,2 t1 1; C1 t0 1 t1 0,2"),
    ("RR2", "client roundrobin", "2.3.1 4.3.0", "t0:1 t1:2 t2:3", "C0{t0} C1{t0,t1} C2{t0,t1,t2}", "C0 t0 0; C1 t1 0; C2 t1 1 t2 0,1,2"),
    ("RR3", "client roundrobin", "2.5.0 4.3.0", "t:5", "m1{t} m2{t}inst=b m3{t}inst=a", "m3 t 0,3; m2 t 1,4; m1 t 2"),
    ("RR4", "client roundrobin", "2.3.1 4.3.0", "t2:1 t10:2", "A{t2,t10} B{t2,t10}", "A t10 0 t2 0; B t10 1"),
    ("RR5", "client roundrobin", "2.3.1 4.3.0", "t:2 u:1", "A{t} B{t} C{t,u}", "A t 0; B t 1; C u 0"),
    ("RR6", "client roundrobin", "2.3.1 4.3.0", "t:4", "A{t} B{t}", "A t 0,2; B t 1,3"),
    ("S1", "client sticky", "2.5.0 2.6.0 2.8.2 3.3.2 4.3.0", "t0:2 t1:2 t2:2 t3:2", "C0{t0,t1,t2,t3} C1{t0,t1,t2,t3} C2{t0,t1,t2,t3}",
     "C0 t0 0 t1 1 t3 0; C1 t0 1 t2 0 t3 1; C2 t1 0 t2 1"),
    ("S2", "client sticky", "2.6.0 2.8.2 3.3.2 4.3.0", "t0:2 t1:2 t2:2 t3:2",
     "C0{t0,t1,t2,t3}own=t0:0,t1:1,t3:0@1 C2{t0,t1,t2,t3}own=t1:0,t2:1@1", "C0 t0 0,1 t1 1 t3 0; C2 t1 0 t2 0,1 t3 1"),
    ("S2 before", "client sticky", "2.5.0", "t0:2 t1:2 t2:2 t3:2",
     "C0{t0,t1,t2,t3}own=t0:0,t1:1,t3:0@1 C2{t0,t1,t2,t3}own=t1:0,t2:1@1", "C0 t0 0 t1 1 t2 0 t3 0; C2 t0 1 t1 0 t2 1 t3 1"),
    ("S3", "client sticky", "2.6.0 2.8.2 3.3.2 4.3.0", "t:4", "C0{t}own=t:0,t:1,t:2,t:3@1 C1{t}", "C0 t 0,1; C1 t 2,3"),
    ("S4", "client sticky", "2.5.0 4.3.0", "t0:1 t1:2 t2:3", "C0{t0} C1{t0,t1} C2{t0,t1,t2}", "C0 t0 0; C1 t1 0,1; C2 t2 0,1,2"),
    ("S5", "client sticky", "2.5.0 4.3.0", "t0:1 t1:2 t2:3", "C1{t0,t1}own=t1:0,t1:1@1 C2{t0,t1,t2}own=t2:0,t2:1,t2:2@1",
     "C1 t0 0 t1 0,1; C2 t2 0,1,2"),
    ("S6", "client sticky", "3.4.1 4.3.0", "t:4", "A{t}own=t:0,t:1@5 B{t}own=t:0,t:1,t:2@4", "A t 0,1; B t 2,3"),
    ("S7", "client sticky", "2.8.2 3.3.2 4.3.0", "t:4", "A{t}own=t:0,t:1@5 B{t}own=t:1,t:2@5", "A t 0,1; B t 2,3"),
    ("S7 before", "client sticky", "2.6.0", "t:4", "A{t}own=t:0,t:1@5 B{t}own=t:1,t:2@5", "A t 0,1,3; B t 1,2"),
    ("S8", "client sticky", "4.3.0", "t:5", "A0{t}own=t:0,t:1@3 A1{t}own=t:2,t:3@3 A2{t}own=t:4@3 A3{t}",
     "A1 t 2,3; A0 t 0; A2 t 4; A3 t 1"),
    ("S8 before", "client sticky", "2.6.0 2.8.2", "t:5", "A0{t}own=t:0,t:1@3 A1{t}own=t:2,t:3@3 A2{t}own=t:4@3 A3{t}",
     "A0 t 0,1; A1 t 3; A2 t 4; A3 t 2"),
    ("S9", "client sticky", "2.6.0 2.8.2 3.3.2 4.3.0", "t:6", "A{t}own=t:0,t:1@3 B{t}own=t:2,t:3@3", "A t 0,1,4; B t 2,3,5"),
    ("S9 before", "client sticky", "2.5.0", "t:6", "A{t}own=t:0,t:1@3 B{t}own=t:2,t:3@3", "A t 0,1,5; B t 2,3,4"),
    ("S10", "client sticky", "4.3.0", "t:2 u:2", "A{t,u}own=t:2@3 B{t,u}own=u:0@3", "A t 0,2 u 0; B t 1 u 0,1"),
    ("S10 before", "client sticky", "2.6.0 2.8.2", "t:2 u:2", "A{t,u}own=t:2@3 B{t,u}own=u:0@3", "A t 0,2 u 1; B t 1 u 0"),
    ("S11", "client sticky", "3.5.2 4.3.0", "t:a/a/b/b", "A{t}rk=a,own=t:2,t:3@3 B{t}rk=b,own=t:0,t:1@3", "A t 0,1; B t 2,3"),
    ("S11 before", "client sticky", "3.4.1", "t:a/a/b/b", "A{t}rk=a,own=t:2,t:3@3 B{t}rk=b,own=t:0,t:1@3", "A t 2,3; B t 0,1"),
    ("S12", "client sticky", "3.4.1 4.3.0", "t:4", "A{t}own=t:0,t:1@5v1 B{t}own=t:0,t:1,t:2@4v1", "A t 2,3; B t 0,1"),
    ("S12 before", "client sticky", "3.3.2", "t:4", "A{t}own=t:0,t:1@5v1 B{t}own=t:0,t:1,t:2@4v1", "A t 0,1; B t 2,3"),
    ("S13", "client sticky", "4.3.0", "t:4 u:1", "A{u}own=t:0@4 B{t,u}own=t:0,t:1,t:2,t:3@5 C{t}", "A t 0 u 0; B t 2,3; C t 1"),
    ("S13 before", "client sticky", "2.6.0 2.8.2", "t:4 u:1", "A{u}own=t:0@4 B{t,u}own=t:0,t:1,t:2,t:3@5 C{t}", "A u 0; B t 2,3; C t 0,1"),
    ("S14", "client sticky", "4.3.0", "t:4 u:1 v:1", "A{v}own=t:0@4 B{t,u}own=t:0,t:1,t:2,t:3@5 C{t}", "NullPointerException"),
    ("S14 before", "client sticky", "2.6.0 2.8.2", "t:4 u:1 v:1", "A{v}own=t:0@4 B{t,u}own=t:0,t:1,t:2,t:3@5 C{t}",
     "A v 0; B t 2,3 u 0; C t 0,1"),
    ("K1", "client cooperative-sticky", "2.6.0 2.8.2 3.3.2 4.3.0", "t:4", "C0{t}own=t:0,t:1,t:2,t:3@1 C1{t}", "C0 t 0,1"),
    ("K2", "client cooperative-sticky", "2.6.0 2.8.2 3.3.2 4.3.0", "t:4", "C0{t}own=t:0,t:1@2 C1{t}own=@2", "C0 t 0,1; C1 t 2,3"),
    ("K3", "client cooperative-sticky", "2.5.0 2.6.0 4.3.0", "t:4", "C0{t}own=t:0,t:1@3", "C0 t 0,1,2,3"),
    ("K4", "client cooperative-sticky", "2.8.2 3.3.2 4.3.0", "t:4", "A{t}own=t:0,t:1@5 B{t}own=t:1,t:2@5", "A t 0; B t 2,3"),
    ("K4 in 2.6", "client cooperative-sticky", "2.6.0", "t:4", "A{t}own=t:0,t:1@5 B{t}own=t:1,t:2@5", "A t 0,1,3; B t 1,2"),
    ("K4 in 2.5.0", "client cooperative-sticky", "2.5.0", "t:4", "A{t}own=t:0,t:1@5 B{t}own=t:1,t:2@5", "A t 0,3; B t 1,2"),
    ("K5", "client cooperative-sticky", "4.3.0", "t0:1 t1:4", "A{t0,t1}own=t0:0,t1:0,t1:1,t1:2,t1:3@1 B{t1}", "A t0 0 t1 2,3"),
    ("K6", "client cooperative-sticky", "3.4.1 4.3.0", "t:4", "A{t}own=t:0,t:1@5 B{t}own=t:0,t:1,t:2@4", "A t 0,1; B t 2,3"),
    ("K6 before", "client cooperative-sticky", "2.6.0", "t:4", "A{t}own=t:0,t:1@5 B{t}own=t:0,t:1,t:2@4", "A t 0,1; B t 0,1,3"),
    ("K7", "client cooperative-sticky", "4.3.0", "t:2 u:2", "A{t}own=t:0,u:0@7 B{t,u}own=t:1,u:1@7", "A t 0; B u 1"),
    ("K8", "client cooperative-sticky", "4.3.0", "t:7", "A{t}own=t:0,t:1,t:2,t:3@9 B{t}own=t:4,t:5,t:6@9 C{t}", "A t 0,1,2; B t 4,5"),
    ("K8 in 2.6", "client cooperative-sticky", "2.6.0 2.8.2", "t:7", "A{t}own=t:0,t:1,t:2,t:3@9 B{t}own=t:4,t:5,t:6@9 C{t}",
     "A t 1,2; B t 4,5,6"),
    ("K8 in 2.5.0", "client cooperative-sticky", "2.5.0", "t:7", "A{t}own=t:0,t:1,t:2,t:3@9 B{t}own=t:4,t:5,t:6@9 C{t}",
     "A t 0,1,2; B t 4,6"),
    ("K9", "client cooperative-sticky", "4.3.0", "t:4 u:1", "A{u}own=t:0@4 B{t,u}own=t:0,t:1,t:2,t:3@5 C{t}", "A t 0 u 0; B t 2,3"),
    ("K9 before", "client cooperative-sticky", "2.6.0", "t:4 u:1", "A{u}own=t:0@4 B{t,u}own=t:0,t:1,t:2,t:3@5 C{t}", "A u 0; B t 2,3"),
    ("K10", "client cooperative-sticky", "4.3.0", "t:2 u:2", "A{t,u}own=t:0@2 B{t}own=t:1@2", "A u 0,1; B t 1"),
    ("U1", "consumer uniform", "3.8.1 4.0.0", "t0:3 t1:2", "A{t0,t1} B{t0,t1}", "A t0 0,1,2; B t1 0,1"),
    ("U1 since", "consumer uniform", "4.1.1 4.3.0", "t0:3 t1:2", "A{t0,t1} B{t0,t1}", "A t0 0,1; B t0 2 t1 0,1"),
    ("U1 in 3.7", "consumer uniform", "3.7.2", "t0:3 t1:2", "A{t0,t1} B{t0,t1}", "A t0 0,2 t1 1; B t0 1 t1 0"),
    ("U2", "consumer uniform", "3.8.1 4.3.0", "t0:3 t1:3", "A{t0,t1}own=t0:0,t0:1,t0:2@0 B{t0,t1}own=t1:0,t1:1,t1:2@0 C{t0,t1}",
     "A t0 0,1; B t1 0,1; C t0 2 t1 2"),
    ("U3", "consumer uniform", "3.8.1 4.3.0", "t0:3 t1:3", "A{t0,t1}own=t0:0,t0:1@0 B{t0,t1}own=t1:0,t1:1@0", "A t0 0,1,2; B t1 0,1,2"),
    ("U4", "consumer uniform", "3.8.1 4.0.0", "t:5", "A{t}own=t:0,t:1@0 B{t}own=t:2,t:3,t:4@0", "A t 0,1,4; B t 2,3"),
    ("U4 else", "consumer uniform", "3.7.2 4.1.1 4.3.0", "t:5", "A{t}own=t:0,t:1@0 B{t}own=t:2,t:3,t:4@0", "A t 0,1; B t 2,3,4"),
    ("U5", "consumer uniform", "4.0.0 4.3.0", "t0:1 t1:2 t2:3", "A{t0} B{t0,t1} C{t0,t1,t2}", "A t0 0; B t1 0,1; C t2 0,1,2"),
    ("U6", "consumer uniform", "4.0.0 4.3.0", "t0:4 t1:4", "A{t0}own=t0:0,t0:1,t0:2,t0:3@0 B{t0,t1}own=t1:0,t1:1,t1:2,t1:3@0 C{t1}",
     "A t0 0,1,2; B t0 3 t1 0,1; C t1 2,3"),
    ("U6 before", "consumer uniform", "3.7.2 3.9.1", "t0:4 t1:4", "A{t0}own=t0:0,t0:1,t0:2,t0:3@0 B{t0,t1}own=t1:0,t1:1,t1:2,t1:3@0 C{t1}",
     "A t0 0,1,2,3; B t1 2,3; C t1 0,1"),
    ("SR1", "consumer range", "3.9.1 4.3.0", "t0:3 t1:3", "A{t0,t1} B{t0,t1}", "A t0 0,1 t1 0,1; B t0 2 t1 2"),
    ("SR2", "consumer range", "3.9.1 4.3.0", "t:5", "m1{t} m2{t}inst=b m3{t}inst=a", "m3 t 0,1; m2 t 2,3; m1 t 4"),
    ("SR3", "consumer range", "3.9.1 4.3.0", "t0:3 t1:5", "A{t0} B{t0,t1} C{t1}", "A t0 0,1; B t0 2 t1 0,1,2; C t1 3,4"),
    ("SR4", "consumer range", "3.9.1 4.3.0", "t:4", "A{t} B{t}own=t:0,t:1,t:2,t:3@0", "A t 0,1; B t 2,3"),
    ("SR4 before", "consumer range", "3.7.2 3.8.1", "t:4", "A{t} B{t}own=t:0,t:1,t:2,t:3@0", "A t 2,3; B t 0,1"),
    ("SR5", "consumer range", "3.9.1 4.3.0", "t:2", "A{t} B{t} C{t}", "A t 0; B t 1"),
    ("SH1", "share simple", "4.1.1", "t:2", "A{t} B{t}", "A t 1; B t 0"),
    ("SH1 before", "share simple", "3.9.1 4.0.0", "t:2", "A{t} B{t}", "A t 0,1; B t 0,1"),
]  # fmt: skip


def member(text: str) -> MemberSpec:
    match = re.fullmatch(r"([\w-]+)\{([\w,]*)\}(?:inst=(\w+))?(?:rk=(\w+),?)?(?:own=(.*)@(\d+)(v1)?)?", text)
    assert match is not None, text
    claims = [claim.split(":") for claim in (match[5] or "").split(",") if claim]
    generation = None if match[6] is None else int(match[6])
    return MemberSpec(
        match[1],
        tuple(match[2].split(",")),
        match[3],
        match[4],
        tuple((topic, int(number)) for topic, number in claims),
        None if match[7] else generation,
        generation,
        generation is not None,
    )


def spec(topics: str, members: str) -> GroupSpec:
    counts, racks, ids = {}, {}, {}
    for number, text in enumerate(topics.split(), start=1):
        topic, size = text.split(":")
        listed = None if size.isdigit() else [frozenset(letters) for letters in size.split("/")]
        counts[topic] = int(size) if listed is None else len(listed)
        if listed is not None:
            racks[topic] = tuple(listed)
        ids[topic] = number.to_bytes(16, "big")
    return GroupSpec([member(text) for text in members.split()], counts, racks, ids)


def answer(text: str) -> dict[str, list[tuple[str, int]]]:
    answers = {}
    for part in text.split("; "):
        name, *words = part.split()
        pairs = zip(words[::2], words[1::2], strict=True)
        answers[name] = sorted(chain.from_iterable([(topic, int(each)) for each in numbers.split(",")] for topic, numbers in pairs))
    return answers


@pytest.mark.parametrize("case", WORKED, ids=[row[0] for row in WORKED])
def test_each_rule_on_a_small_group(case: tuple[str, str, str, str, str, str]) -> None:
    _, who, releases, topics, members, expected = case
    side, assignor = who.split()
    for release in releases.split():
        variant = variant_for(_SIDES[side], assignor, release)
        assert variant is not None
        if expected.isalpha():
            with pytest.raises(AssignorThrows, match=expected):
                variant.run(spec(topics, members))
            continue
        plan = variant.run(spec(topics, members))
        assert {name: sorted(partitions) for name, partitions in plan.assigned.items() if partitions} == answer(expected), release


_SIDES: dict[str, Side] = {"client": "client", "consumer": "consumer", "share": "share"}
