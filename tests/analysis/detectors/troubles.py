"""Random logs of groups with many incidents, to test the short cuts of detectors."""

from __future__ import annotations

import random

from .story import Story

_GROUPS, _TOPICS = ("g", "h"), (("t", 4), ("u", 3))
_MEMBERS = ("a@h1/c-1#i", "b@h2/c-2", "c@h3/d-1", "d@h1/c-1#i", "e@h2/e")
_KEYS = [(topic, number) for topic, count in _TOPICS for number in range(count)]


def troubles(seed: int, events: int = 220) -> Story:
    """Return the log of this seed."""
    rng = random.Random(seed)
    lines: list[str] = []
    values: dict[tuple[str, str, int], int] = {}
    generations = dict.fromkeys(_GROUPS, 0)
    offset, now_s = 0, 3600
    # Some groups are stable for a time, so that lasting incidents occur too.
    pace, unrest = rng.choice([(2, 0.3), (30, 0.1), (120, 0.2)]), rng.random()
    for _ in range(events):
        now_s += rng.randint(0, 2 * pace[0]) if rng.random() > 0.02 else rng.randint(-300, 3600)
        now_s = max(now_s, 0)
        offset += rng.random() < 0.02
        group = rng.choice(_GROUPS)
        if rng.random() < pace[1]:
            generations[group] += rng.choice([1, 1, 1, 0, 3])
            records = [
                f"GM {group} gen={generations[group]} proto={rng.choice(['range', 'range', 'sticky', 'own'])}{_members(rng, unrest)}"
            ]
            records = [f"GM {group} = X"] if rng.random() < 0.02 else records
        else:
            chosen = rng.sample(_KEYS, rng.randint(1, 4))
            records = [f"OC {group} {topic}-{number} = {_next(rng, values, (group, topic, number))}" for topic, number in chosen]
        day, rest = divmod(now_s, 86_400)
        lines.append(f"{offset} d{day} {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02} {' | '.join(records)}")
        offset += len(records)
    return Story("\n".join(lines))


def _members(rng: random.Random, unrest: float) -> str:
    members = rng.sample(_MEMBERS, rng.choice([0, 1, 2, 3, 4]) if rng.random() < unrest else 2)
    given: list[list[tuple[str, int]]] = [[] for _ in members]
    for key in _KEYS if members else ():
        for _ in range(rng.choice([0, 1, 2]) if rng.random() < unrest / 4 else 1):
            given[rng.randrange(len(members)) if rng.random() < unrest else key[1] % len(members)].append(key)
    told = []
    for member, keys in zip(members, given, strict=True):
        subscribed = rng.choice(["t", "u", "t,u", "w"]) if rng.random() < unrest / 2 else "t,u"
        claimed = rng.sample(_KEYS, 2) if rng.random() < unrest / 2 else []
        told.append(f"{member}:{subscribed}({_listed(claimed)})→{_listed(keys)}")
    return f" {{{'; '.join(told)}}}" if told else ""


def _listed(keys: list[tuple[str, int]]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in keys)


def _next(rng: random.Random, values: dict[tuple[str, str, int], int], key: tuple[str, str, int]) -> str:
    before = values.get(key, 1000)
    kind = rng.random()
    if kind < 0.01:
        return "X"
    if kind < 0.1:
        now = max(before - rng.randint(1, 200), 0)
    elif kind < 0.12:
        now = before + rng.choice([50_000, 900_000])
    elif kind < 0.13:
        now = rng.randint(0, 900)
    else:
        now = before + rng.choice([0, 10, 20, 300])
    values[key] = now
    epoch = rng.choice(["", " {le=3}", " {le=3}", " {le=5}"])
    return f"{now}{epoch}"
