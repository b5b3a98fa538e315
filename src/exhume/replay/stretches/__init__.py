"""Loading a log in stretches, each by itself and anywhere, and what they come to at one place.

    plan        which segments, or bytes of one, make a stretch
    cuts        where a stretch is cut so that a state at a moment is what lies in front of a cut
    folding     one stretch: the folds of its pieces, and what is to be said of all of it
    shipping    a fold as bytes, with the few records that a load may still ask for
    joining     the stretches of one log: the load at each moment, in one pass

Everything here knows the logs that a load in columns takes (`replay.survivors`); the others are reduced, or loaded whole.
"""
