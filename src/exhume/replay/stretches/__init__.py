"""Load a log in stretches: fold each stretch alone, in any process, and join the folds in one process.

    plan        the segments, or bytes of one segment, that make a stretch
    cuts        the cuts of a stretch: the state at a moment is the state before a cut
    folding     the packed folds of one stretch, and its facts
    shipping    a fold as bytes, with the few records that a load may still read
    joining     the stretches of one log: the load at each moment, from one pass over the folds

If a stretch has a batch that the kernels do not take, one process loads the whole log, as `replay.local` does.
"""
