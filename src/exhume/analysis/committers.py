"""Who can have committed an offset. No record says it: a commit has no member, no generation and no host.

A coordinator takes a plain commit from any member of the present generation, whichever partitions it owns, and one without a member while
the group is empty. So of a group with one member there is only one who can have been it; of a group with more its owner is the likeliest;
of an empty one it was somebody outside: an administrator, or a consumer that assigns partitions to itself. In a transaction a producer may
leave out what makes it a member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exhume.analysis.member_changes import began_anew
from exhume.analysis.memberships import Member, Membership, TopicPartition

_Row = dict[str, Any]


@dataclass(slots=True)
class Committers:
    """The membership of one group as its records pass, and what it says of the commits between them.

    `committer` of a row is only_member, owner (the member that had the partition), one_of_several (that had it at once), member (nobody
    had it, or its topic goes by an id without a name, and there were members), outside (nobody was in the group), or unknown.
    `committer_confidence` is proof, likely, possible (a generation that left no record, or another life, came before the next one: owners
    had changed by then), or undecidable.

    `is_whole` says whether the log has every record that was ever written to it. To find that out takes a look at all of it: it is asked
    once at most, where commits lie in front of the first record of a group that may have had others.
    """

    is_whole: Callable[[], bool]
    step: Membership | None = None
    _owners: Mapping[TopicPartition, list[Member]] = field(default_factory=dict)
    #: Rows of commits since the last record of the group.
    _rows: list[_Row] = field(default_factory=list)
    _before_any: list[_Row] = field(default_factory=list)

    def take(self, step: Membership) -> None:
        """Go on to the next step; how its generation follows the one before settles how sure the commits in between are."""
        if self.step is None:
            self._settle_in_front(step)
        elif self.step.generation is not None and step.generation is not None:
            follows = step.generation - self.step.generation
            is_hidden = follows > 1 or began_anew(self.step, step)
            for row in self._rows:
                if is_hidden and row["committer"] != "unknown":
                    row["committer_confidence"] = "possible"
                elif follows == 1 and row["committer"] == "only_member" and row.get("producer_id") is None:
                    row["committer_confidence"] = "proof"
        self._rows.clear()
        self.step, self._owners = step, step.owners()

    def _settle_in_front(self, first: Membership) -> None:
        if first.is_beginning or not self._before_any:
            return
        if not self.is_whole():
            told = {"committer": "unknown", "committer_confidence": "undecidable"}
        else:
            told = {"committer_confidence": "possible"} if (first.generation or 0) > 1 else {}
        for row in self._before_any:
            row |= told

    def note(self, row: _Row) -> _Row:
        """Owner and committer of a commit, as columns; `row` is kept until it is clear how sure that is."""
        step = self.step
        if step is None:
            self._before_any.append(row)
            # Settled by the first record of the group; where none ever comes, or the group begins with it, nobody had joined it.
            return {"committer": "outside", "committer_confidence": "likely"}
        self._rows.append(row)
        owners = self._owners.get((row["topic"], row["partition"]), [])
        committer, confidence = _committer(step, owners)
        told: _Row = {"committer": committer, "committer_confidence": confidence}
        if owners:
            told |= {
                "owner_member_id": owners[0].member_id,
                "owner_member_epoch": owners[0].member_epoch,
                "owner_group_instance_id": owners[0].group_instance_id,
                "owner_client_id": owners[0].client_id,
                "owner_client_host": owners[0].client_host,
            }
        return told


def _committer(step: Membership, owners: list[Member]) -> tuple[str, str]:
    if step.is_empty:
        return "outside", "likely"
    if len(step.members) == 1:
        return "only_member", "likely"
    if step.is_opaque:
        return "unknown", "undecidable"
    if len(owners) > 1:
        return "one_of_several", "likely"
    return ("owner", "likely") if owners else ("member", "likely")
