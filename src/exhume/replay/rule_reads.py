"""The rules of a release that a load reads: a release that agrees in all of them gives the same load.

A load is a function of its logs, its inputs and the rules that it reads. The loaders read a rule where it matters: a log without a
transaction leads to no rule of transactions. So `RuleReads` gives a load a profile that notes each read with its result. A read of a set
or of a mapping is noted by its element.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Generic, TypeVar, cast

from exhume.replay.profiles import BrokerProfile

_ResultT = TypeVar("_ResultT")

#: What a load may do with a rule, by the name of the read.
_READS: Mapping[str, Callable[[Any, Any], Any]] = {
    "is": lambda rule, _: rule,
    "is none": lambda rule, element: rule[element] is None,
    "is empty": lambda rule, _: not rule,
    "has": lambda rule, element: element in rule,
    "item": lambda rule, element: rule.get(element),
    "item has": lambda rule, element: element[1] in rule[element[0]],
}
#: A read: the name of the rule, that of the read, and the element.
_Read = tuple[str, str, Any]

#: The names of a release are not rules.
_NO_RULES = frozenset({"name", "release", "first", "last", "defects", "coordinator"})
#: Rules of the values of groups and offsets. They do not decide which groups and offsets exist, or whether a load ends.
VALUE_RULES = frozenset(
    {
        *("missing_expire_timestamp", "default_retention_minutes", "keeps_leader_epoch_below_minus_one", "state_timestamp_versions"),
        *("keeps_memberless_protocol_type", "memberless_state", "rebalances_oversized_groups", "lists_fetched_offsets", "require_stable"),
        "fetch_error_while_loading",
    }
)


class RuleReads:
    """The rules of one release that a load reads.

    Attributes:
        profile: the rules, for the load.
    """

    def __init__(self, profile: BrokerProfile, besides: Collection[str] = ()) -> None:
        self._besides = _NO_RULES.union(besides)
        self._original = profile
        self._noted: dict[_Read, Any] = {}
        self._checks: list[Callable[[BrokerProfile], bool]] = []
        self.profile = _noting(profile, self)

    def agrees(self, profile: BrokerProfile) -> bool:
        """Return True if this release gives the same load."""
        if type(profile) is not type(self._original):
            return False
        return all(_READS[read](getattr(profile, name), element) == noted for (name, read, element), noted in self._noted.items()) and all(
            check(profile) for check in self._checks
        )

    def read(self, name: str) -> Any:
        """Return a rule, and note it; sets and mappings note what is read of them."""
        rule = getattr(self._original, name)
        if name in self._besides:
            return rule
        if isinstance(rule, frozenset):
            return _NotingSet(self, name, rule)
        if isinstance(rule, Mapping):
            return _NotingMapping(self, name, rule)
        return self.note(name, "is")

    def note(self, name: str, read: str, element: Any = None) -> Any:
        """Note this read of a rule; return its result."""
        found = self._noted[name, read, element] = _READS[read](getattr(self._original, name), element)
        return found

    @property
    def original(self) -> BrokerProfile:
        """The rules, without notes."""
        return self._original

    def add_check(self, is_same: Callable[[BrokerProfile], bool]) -> None:
        """Add a condition that a release must meet to give the same load."""
        self._checks.append(is_same)


def reads_of(profile: BrokerProfile) -> RuleReads | None:
    """Return the notes of this profile; None for one without."""
    return vars(profile)["_reads"] if isinstance(profile, _Noting) else None


class LoadsByRules(Generic[_ResultT]):
    """Loads of the same logs by several releases: those that agree in all rules that a load reads share it."""

    def __init__(self, load: Callable[[BrokerProfile], _ResultT], besides: Collection[str] = ()) -> None:
        self._load = load
        self._besides = besides
        self._known: list[tuple[RuleReads, _ResultT]] = []

    def of(self, profile: BrokerProfile) -> _ResultT:
        """Return the load by the rules of this release, or by one that gives the same."""
        for reads, result in reversed(self._known):
            if reads.agrees(profile):
                return result
        reads = RuleReads(profile, self._besides)
        result = self._load(reads.profile)
        self._known.append((reads, result))
        return result


class _NotingSet(Container[Any]):
    """A set of a profile that notes each test."""

    def __init__(self, reads: RuleReads, name: str, rule: frozenset[Any]) -> None:
        self._reads, self._name, self._rule = reads, name, rule

    def __contains__(self, element: object) -> bool:
        return bool(self._reads.note(self._name, "has", element))

    def __bool__(self) -> bool:
        return not self._reads.note(self._name, "is empty")


class _NotingVersions(Container[int]):
    """The versions of a record type that a release accepts."""

    def __init__(self, reads: RuleReads, name: str, record_type: int) -> None:
        self._reads, self._name, self._record_type = reads, name, record_type

    def __contains__(self, version: object) -> bool:
        return bool(self._reads.note(self._name, "item has", (self._record_type, version)))


class _NotingMapping(Mapping[int, Any]):
    """A mapping of a profile, from record types, that notes each item."""

    def __init__(self, reads: RuleReads, name: str, rule: Mapping[int, Any]) -> None:
        self._reads, self._name, self._rule = reads, name, rule

    def __getitem__(self, record_type: int) -> Any:
        if not isinstance(self._rule[record_type], range):
            return self._reads.note(self._name, "item", record_type)
        self._reads.note(self._name, "is none", record_type)
        return _NotingVersions(self._reads, self._name, record_type)

    def __contains__(self, record_type: object) -> bool:
        return bool(self._reads.note(self._name, "has", record_type))

    def __iter__(self) -> Iterator[int]:
        return iter(self._reads.note(self._name, "is"))

    def __len__(self) -> int:
        return len(self._reads.note(self._name, "is"))


class _Noting:
    """A profile without values of its own: each attribute comes from its notes."""


def _noting(profile: BrokerProfile, reads: RuleReads) -> BrokerProfile:
    noting = object.__new__(_noting_class(cast("Any", type(profile))))
    object.__setattr__(noting, "_reads", reads)
    return noting


@cache
def _noting_class(kind: Any) -> type[BrokerProfile]:
    properties = {name for each in kind.__mro__ for name, value in vars(each).items() if isinstance(value, property)}
    rules = properties.union(each.name for each in fields(kind))

    def read(noting: object, name: str) -> Any:
        return object.__getattribute__(noting, "_reads").read(name) if name in rules else object.__getattribute__(noting, name)

    return cast("type[BrokerProfile]", type(f"Noting{kind.__name__}", (_Noting, kind), {"__getattribute__": read}))
