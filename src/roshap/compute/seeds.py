"""Seeds of replicates: child ``b`` of a study's seed does not depend on the number of runs."""

from __future__ import annotations

import numpy as np


def replicate_seed(seed: int, index: int) -> np.random.SeedSequence:
    """Return the seed of one replicate.

    Parameters
    ----------
    seed
        The study's seed, a non-negative integer.
    index
        Number of the replicate, from 0.

    Returns
    -------
    numpy.random.SeedSequence
        The same as ``SeedSequence(seed).spawn(n)[index]`` for every ``n > index``.
    """
    return np.random.SeedSequence(seed, spawn_key=(index,))


def spawn(seed: int, n: int) -> list[np.random.SeedSequence]:
    """Return the seeds of the replicates ``0 .. n - 1`` of a study."""
    return [replicate_seed(seed, index) for index in range(n)]
