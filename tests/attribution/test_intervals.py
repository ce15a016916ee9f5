"""Intervals and probabilities: formulas by hand, edges, and independence of the columns' order."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from roshap.attribution.influence import influence
from roshap.attribution.intervals import (
    certainty,
    correction,
    rank_intervals,
    resample,
    score_intervals,
    simultaneous_factor,
    swap_probabilities,
)
from roshap.attribution.randomness import shares, with_second_seed
from roshap.attribution.ranking import rank
from roshap.attribution.score import score
from roshap.errors import DataError

RNG = np.random.default_rng(0)
S = RNG.gamma(4.0, size=(40, 8)) * np.geomspace(20, 1, 8)
S[RNG.random(S.shape) < np.linspace(0, 0.6, 8)] = 0
NAMES = list("abcdefgh")


def test_a_resample_is_scored_as_a_study_of_its_runs():
    awkward = np.column_stack([S, 1e-200 * S[:, 0], 1e200 * S[:, 1], np.zeros(40), np.ones(40)])
    found = resample(awkward, seed=4, count=50).scores
    rng = np.random.default_rng(np.random.SeedSequence(4, spawn_key=(0x5CE, 40)))
    times = rng.multinomial(40, np.full(40, 1 / 40), size=50)
    for row, count in zip(found, times, strict=True):
        direct = score(np.repeat(awkward, count, axis=0)).roshap
        np.testing.assert_allclose(row, direct, rtol=1e-9)


def test_score_intervals_by_hand():
    low, high = score_intervals(S, seed=1)
    logs = np.log(resample(S, seed=1).scores)
    half = stats.t.ppf(0.975, 39) * logs.std(axis=0, ddof=1)
    np.testing.assert_allclose(low, score(S).roshap * np.exp(-half))
    np.testing.assert_allclose(high, score(S).roshap * np.exp(half))


def test_no_interval_where_nothing_is_known():
    rare = np.where(np.arange(40) < 4, 1.0 + np.arange(40), 0.0)
    low, high = score_intervals(np.column_stack([S[:, 0], rare, np.ones(40), np.zeros(40)]))
    assert np.isfinite(low[0])
    assert np.isnan([*low[1:], *high[1:]]).all()


def test_hedges_correction_by_hand():
    expected = special.gamma(4.5) / (math.sqrt(4.5) * special.gamma(4.0))
    assert correction(10) == pytest.approx(expected)
    assert math.isnan(correction(2))
    assert correction(5000) == pytest.approx(1.0, abs=1e-3)


def test_rank_intervals_by_hand_and_wider_all_at_once():
    found = influence(S)
    t = stats.t.ppf(0.975, 39)
    [each] = rank_intervals(found)
    for i in range(8):
        gaps = {j: found.log_score[i] - found.log_score[j] for j in range(8) if j != i}
        sure = {j: abs(gap) > t * found.pair_error(i, j) for j, gap in gaps.items()}
        assert each[i, 0] == 1 + sum(sure[j] and gaps[j] < 0 for j in gaps)
        assert each[i, 1] == 8 - sum(sure[j] and gaps[j] > 0 for j in gaps)
    factor = simultaneous_factor(found, np.arange(8))
    assert factor > t
    [every] = rank_intervals(found, [factor])
    assert (every[:, 0] <= each[:, 0]).all()
    assert (every[:, 1] >= each[:, 1]).all()


def test_top_k_probabilities_add_up_to_k_and_ties_share():
    tied = np.column_stack([S[:, 0], S[:, 3], S[:, 3], S[:, 7]])
    chance = resample(tied).in_top([1, 2, 3, 4])
    np.testing.assert_allclose(chance.sum(axis=1), [1, 2, 3, 4])
    np.testing.assert_array_equal(chance[:, 1], chance[:, 2])
    assert chance[1, 1] == pytest.approx(0.5, abs=0.05)


def test_swap_probability_by_hand():
    found = influence(S)
    order = found.order(NAMES)
    chances = swap_probabilities(found, order)
    i, j = order[:2]
    gap = found.log_score[i] - found.log_score[j]
    assert chances[i] == pytest.approx(stats.t.cdf(-gap / found.pair_error(i, j), 39))
    assert np.isnan(chances[order[-1]])
    copies = influence(np.column_stack([S[:, 0], S[:, 0]]))
    assert swap_probabilities(copies, np.array([0, 1]))[0] == 0.5


def test_copies_under_rounding_are_not_told_apart():
    noise = 1 + 1e-15 * np.arange(40)
    found = influence(np.column_stack([S[:, 0], S[:, 0] * noise, S[:, 5]]))
    assert rank_intervals(found)[0].tolist() == [[1, 2], [1, 2], [3, 3]]
    assert swap_probabilities(found, np.array([0, 1, 2]))[0] == 0.5


def test_below_twenty_runs_nothing_is_said_about_ranks():
    few, enough = certainty(S[:19], NAMES), certainty(S[:20], NAMES)
    ranks = ["rank_low", "rank_high", "rank_low_all", "rank_high_all", "p_top_k", "p_swap_next"]
    assert few[ranks].isna().all(axis=None)
    assert few["roshap_low"].notna().any()
    assert enough[ranks[:5]].notna().all(axis=None)


def test_simultaneous_ranks_are_given_for_fifty_leading_features():
    wide = RNG.gamma(4.0, size=(20, 70)) * np.geomspace(100, 1, 70)
    table = rank(wide, [f"f{j:02d}" for j in range(70)])
    assert table["rank_low_all"].notna().tolist() == [True] * 50 + [False] * 20


def test_the_table_is_the_same_for_every_order_of_columns():
    tied = np.column_stack([S, S[:, 2], np.zeros(40), np.ones(40)])
    names = np.array([*NAMES, "copy", "zero", "fixed"])
    order = RNG.permutation(len(names))
    first, again = rank(tied, names), rank(tied[:, order], names[order])
    pd.testing.assert_frame_equal(first, again, check_exact=True)


def test_shares_by_hand():
    first, second = S[:10, :2], S[10:20, :2]
    found = shares(first, second)
    scale = np.vstack([first, second]).mean(axis=0)
    a, b = first / scale, second / scale
    w = ((a - b) ** 2).mean(axis=0) / 2
    data = np.maximum(((a + b) / 2).var(axis=0, ddof=1) - w / 2, 0)
    np.testing.assert_allclose(found.share, data / (data + w))
    mean, error = found.pooled([0, 1])
    assert mean == pytest.approx(found.share.mean())
    assert 0 < error < 0.5


def test_a_model_without_spread_over_seeds_is_all_data():
    found = shares(S[:10], S[:10])
    np.testing.assert_array_equal(found.share, 1.0)
    assert np.isnan(shares(np.zeros((5, 1)), np.zeros((5, 1))).share).all()
    with pytest.raises(DataError, match="need at least 5"):
        shares(S[:4], S[:4])
    with pytest.raises(DataError, match="shapes"):
        shares(S[:6], S[:7])


def test_every_seed_of_a_model_changes():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline

    again = with_second_seed(make_pipeline(RandomForestClassifier(random_state=5)))
    assert again.get_params()["randomforestclassifier__random_state"] == 6
    assert with_second_seed(LinearRegression()) is None
    assert with_second_seed(RandomForestClassifier(random_state=None)) is None
