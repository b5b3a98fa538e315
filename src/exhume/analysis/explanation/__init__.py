"""A group in plain sentences: what it is, how it stands, who is in it, what it did, what is odd, what is missing, where to look next.

    facts       what the log tells about the group up to a moment, gathered for one offsets partition
    identity    what it is, and since when
    standing    its state, and how sure that is
    members     who is in it, and who has what
    rebalances  how it came to that
    commits     what it has committed, and what is pending
    oddities    what stands out
    missing     what is gone, and what is about to go
    page        all of these in order, as a table

Each section is a function from facts to sentences. A sentence says what records say, with their offsets beside it; what does not follow
from them has a confidence below proof, and what could also be so in `not_excluded`. A section with nothing to say says nothing.
"""
