import numpy as np
import pytest

from roshap.compute import replicate_seed, spawn


@pytest.mark.parametrize("n", [1, 5, 100])
def test_child_does_not_depend_on_the_number_of_runs(n):
    parent = np.random.SeedSequence(7)
    for ours, theirs in zip(spawn(7, n), parent.spawn(n), strict=True):
        assert ours.generate_state(4).tolist() == theirs.generate_state(4).tolist()


def test_seeds_and_replicates_differ():
    states = {
        tuple(replicate_seed(seed, index).generate_state(2))
        for seed in range(5)
        for index in range(5)
    }
    assert len(states) == 25
