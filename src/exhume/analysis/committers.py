"""The member that may have committed an offset. No record names it: a commit has no member, no generation and no host.

The coordinator accepts a plain commit from any member of the present generation, for any partition, and a commit without a member while the
group is empty. So the only member of a group is the committer; with more members, the owner of the partition is the likeliest one; in an
empty group, a client outside the group committed: an administrator, or a consumer that assigns partitions to itself. A transactional
producer may leave out its membership.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exhume.analysis.member_changes import was_recreated
from exhume.analysis.memberships import Member, Membership, TopicPartition

_Row = dict[str, Any]


@dataclass(slots=True)
class Committers:
    """Derive the committer of each commit from the memberships of one group.

    `committer` of a row is only_member; owner (the member that owned the partition); one_of_several (two members owned it); member (no
    member owned it, or its topic has no known name, and the group had members); outside (the group had no member); or unknown.
    `committer_confidence` is proof, likely, possible (before the next record a generation left none, or the group was created again, so
    owners had changed), or undecidable.

    Call `finish` after the last step.
    """

    step: Membership | None = None
    _first: Membership | None = None
    _owners: Mapping[TopicPartition, list[Member]] = field(default_factory=dict)
    #: Rows of commits since the last record of the group.
    _rows: list[_Row] = field(default_factory=list)
    _before_any: list[_Row] = field(default_factory=list)

    def take(self, step: Membership) -> None:
        """Advance to the next step. Its generation settles the confidence of the commits between the two steps."""
        if self.step is None:
            self._first = step
        elif self.step.generation is not None and step.generation is not None:
            follows = step.generation - self.step.generation
            is_hidden = follows > 1 or was_recreated(self.step, step)
            for row in self._rows:
                if is_hidden and row["committer"] != "unknown":
                    row["committer_confidence"] = "possible"
                elif follows == 1 and row["committer"] == "only_member" and row.get("producer_id") is None:
                    row["committer_confidence"] = "proof"
        self._rows.clear()
        self.step, self._owners = step, step.owners()

    def finish(self, is_whole: Callable[[], bool]) -> None:
        """Settle the confidence of the commits before the first step.

        `is_whole` returns True if the log has every record ever written to it. The answer may need a pass over the log: it is called only
        if the group may have had earlier records.
        """
        first = self._first
        if first is None or first.is_beginning or not self._before_any:
            return
        if not is_whole():
            columns = {"committer": "unknown", "committer_confidence": "undecidable"}
        else:
            columns = {"committer_confidence": "possible"} if (first.generation or 0) > 1 else {}
        for row in self._before_any:
            row |= columns

    def note(self, row: _Row) -> _Row:
        """Return the owner and the committer of a commit as columns. `row` is kept until its confidence is settled."""
        step = self.step
        if step is None:
            self._before_any.append(row)
            # The first record of the group settles this. Without one, or if the group begins with it, no member had joined before.
            return {"committer": "outside", "committer_confidence": "likely"}
        self._rows.append(row)
        owners = self._owners.get((row["topic"], row["partition"]), [])
        committer, confidence = _committer(step, owners)
        columns: _Row = {"committer": committer, "committer_confidence": confidence}
        if owners:
            columns |= {
                "owner_member_id": owners[0].member_id,
                "owner_member_epoch": owners[0].member_epoch,
                "owner_group_instance_id": owners[0].group_instance_id,
                "owner_client_id": owners[0].client_id,
                "owner_client_host": owners[0].client_host,
            }
        return columns


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
