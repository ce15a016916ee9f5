from __future__ import annotations

import numpy as np
import pytest

from roshap.attribution.comparison import COMPARISON_GLOSSARY, compare_rankings
from roshap.attribution.ranking import rank
from roshap.errors import DataError

NAMES = tuple(f"x{j}" for j in range(8))


def runs(rng: np.random.Generator, strength: np.ndarray, B: int = 60) -> np.ndarray:
    """Attributions around ``strength`` with a spread of a fifth."""
    return strength * rng.gamma(25, 1 / 25, size=(B, len(strength)))


def test_ranks_are_those_of_the_ranking() -> None:
    rng = np.random.default_rng(0)
    S = runs(rng, np.linspace(1, 3, 8))
    found = compare_rankings(S, NAMES, 2 * S, NAMES, rng=rng, paired=True)
    table = found.table
    assert list(table) == list(COMPARISON_GLOSSARY)
    assert table["feature"].tolist() == rank(S, NAMES)["feature"].tolist()
    assert (table["change"] == 0).all()
    assert (table["beyond_noise"] == 0).all()
    assert found.spearman == pytest.approx(1)
    assert found.overlap(3) == 1


def test_a_feature_that_fell_is_beyond_noise_and_a_swap_of_equals_is_not() -> None:
    rng = np.random.default_rng(1)
    before = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 2.0, 2.0])
    after = before.copy()
    after[0] = 1.0
    table = compare_rankings(
        runs(rng, before), NAMES, runs(rng, after), NAMES, rng=rng
    ).table.set_index("feature")
    assert table.loc["x0", "change"] <= -5
    assert table.loc["x0", "beyond_noise"] > 0.99
    assert table.loc[["x6", "x7"], "beyond_noise"].max() < 0.95


def test_noise_alone_is_seldom_called_a_change() -> None:
    """Two bootstraps of one law: at most about 5 % of the changes are called more than noise."""
    rng = np.random.default_rng(2)
    strength = np.array([3.0, 2.9, 2.8, 2.0, 1.9, 1.0, 0.95, 0.9])
    shares = [
        (
            compare_rankings(
                runs(rng, strength), NAMES, runs(rng, strength), NAMES, rng=rng, resamples=100
            ).table["beyond_noise"]
            >= 0.95
        ).mean()
        for _ in range(60)
    ]
    assert np.mean(shares) < 0.08


def test_few_runs_give_no_probability() -> None:
    rng = np.random.default_rng(3)
    S = runs(rng, np.linspace(1, 3, 8), B=19)
    table = compare_rankings(S, NAMES, S[::-1], NAMES, rng=rng).table
    assert table["beyond_noise"].isna().all()
    assert table["noise"].isna().all()


def test_features_of_one_side_only_are_named_and_left_out() -> None:
    rng = np.random.default_rng(4)
    S = runs(rng, np.linspace(1, 3, 8))
    found = compare_rankings(S, NAMES, S[:, 2:], [*NAMES[2:7], "new"], rng=rng)
    assert found.only_a == ("x0", "x1", "x7")
    assert found.only_b == ("new",)
    assert sorted(found.table["rank_a"]) == [1, 2, 3, 4, 5]


def test_the_same_generator_gives_the_same_table() -> None:
    S = runs(np.random.default_rng(5), np.linspace(1, 3, 8))
    one, two = (
        compare_rankings(S, NAMES, S**2, NAMES, rng=np.random.default_rng(0)).table
        for _ in range(2)
    )
    assert one.equals(two)


def test_what_cannot_be_compared_is_refused() -> None:
    rng = np.random.default_rng(6)
    S = runs(rng, np.ones(8))
    with pytest.raises(DataError, match="no feature in common"):
        compare_rankings(S, NAMES, S, [f"z{j}" for j in range(8)], rng=rng)
    with pytest.raises(DataError, match="60 in A, 59 in B"):
        compare_rankings(S, NAMES, S[1:], NAMES, rng=rng, paired=True)
