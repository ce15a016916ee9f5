"""The robust score: its formula, its edge cases, and what must not change it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from roshap.attribution import score as score_module
from roshap.attribution.score import score
from roshap.errors import DataError

# Hundredths: zeros and ties are common, and no spread is near the rounding of a float.
attributions = hnp.arrays(
    np.int64,
    st.tuples(st.integers(2, 12), st.integers(1, 6)),
    elements=st.integers(0, 400),
).map(lambda a: np.maximum(a - 100, 0) / 100)

FIELDS = ("n_nonzero", "p0", "activity", "strength", "stability", "roshap", "mean", "sd")


def by_the_book(x: np.ndarray) -> float:
    """Section 2 of attribution.md, word for word, for one feature with a spread."""
    used = x[x != 0]
    return len(used) / len(x) * np.median(used) * np.mean(x) / np.std(x, ddof=1)


def test_is_the_product_of_the_published_factors():
    S = np.random.default_rng(0).gamma(2.0, size=(40, 5))
    S[np.random.default_rng(1).random(S.shape) < 0.3] = 0
    found = score(S)
    np.testing.assert_allclose(found.roshap, [by_the_book(x) for x in S.T], rtol=1e-12)
    np.testing.assert_allclose(found.p0, (S == 0).mean(axis=0))
    np.testing.assert_allclose(found.mean, S.mean(axis=0))
    np.testing.assert_allclose(found.sd, S.std(axis=0, ddof=1))
    assert found.n_runs == 40
    assert not found.deterministic.any()


def test_a_worked_example():
    found = score([[0.0], [2.0], [4.0], [6.0]])
    assert found.activity[0] == 0.75
    assert found.strength[0] == 4.0
    assert found.stability[0] == pytest.approx(3 / np.sqrt(20 / 3))
    assert found.roshap[0] == pytest.approx(0.75 * 4 * 3 / np.sqrt(20 / 3))


@pytest.mark.parametrize("used", [1, 2, 3, 4, 5])
def test_median_is_over_the_nonzero_runs_only(used):
    x = np.r_[np.zeros(5), np.arange(1.0, used + 1) ** 2]
    assert score(x[:, None]).strength[0] == np.median(x[x > 0])


def test_all_runs_zero_scores_zero():
    found = score(np.zeros((5, 2)))
    for name in ("roshap", "strength", "stability", "activity", "mean", "sd"):
        assert (getattr(found, name) == 0).all()
    assert (found.p0 == 1).all()
    assert not found.deterministic.any()


def test_one_nonzero_run():
    found = score(np.array([[0.0], [0.0], [0.0], [8.0]]))
    assert found.strength[0] == 8
    assert found.activity[0] == 0.25
    # mean 2 and sd 4: the stability of a single non-zero run is 1 / sqrt(B), whatever its size
    assert found.stability[0] == pytest.approx(0.5)
    assert found.roshap[0] == pytest.approx(1.0)


def test_no_spread_ranks_above_every_finite_score_and_is_flagged():
    S = np.column_stack([np.full(6, 0.1), np.linspace(1e6, 1e6 + 1, 6), np.zeros(6)])
    found = score(S)
    assert found.deterministic.tolist() == [True, False, False]
    assert found.sd[0] == 0
    assert found.mean[0] == pytest.approx(0.1)
    assert found.roshap.argmax() == 0
    assert np.isinf(found.roshap[0])
    assert np.isfinite(found.roshap[1:]).all()


def test_a_spread_of_rounding_errors_is_no_spread():
    S = np.array([[0.1 + 0.2], [0.3], [0.3], [0.3]])
    assert S.std() > 0
    assert score(S).deterministic[0]


def test_a_spread_seen_in_float32_is_a_spread():
    S = np.array([[1.0], [1.0 + 2**-22]])
    assert not score(S).deterministic[0]


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_extreme_units_neither_overflow_nor_underflow(size):
    S = np.array([[1.0, 2.0], [3.0, 2.5], [2.0, 0.0]])
    np.testing.assert_allclose(score(S * size).stability, score(S).stability, rtol=1e-12)


def test_two_runs_are_enough():
    found = score([[1.0, 0.0], [3.0, 2.0]])
    np.testing.assert_allclose(found.roshap, [2 * 2 / np.sqrt(2), 0.5 * 2 * 1 / np.sqrt(2)])


@pytest.mark.parametrize(
    ("S", "words"),
    [
        (np.ones((1, 3)), "at least 2 bootstrap runs, not 1"),
        (np.ones((0, 3)), "at least 2 bootstrap runs, not 0"),
        (np.ones((4, 0)), "no feature"),
        (np.ones(4), r"2 dimensions .* not shape \(4,\)"),
        (np.array([[1, np.nan], [1, 1]]), "run 0, feature 1 is nan"),
        (np.array([[1, 1], [np.inf, 1]]), "run 1, feature 0 is inf"),
        (np.array([[1, 1], [1, -2.0]]), r"run 1, feature 1 is -2.0 \(1 values are negative"),
        (np.array([["a"], ["b"]]), "must be numbers"),
    ],
)
def test_unfit_attributions_are_refused(S, words):
    with pytest.raises(DataError, match=words):
        score(S)


def test_reads_what_it_must_not_write():
    S = np.random.default_rng(2).random((6, 4), dtype=np.float32)
    before = S.copy()
    S.flags.writeable = False
    found = score(S)
    np.testing.assert_array_equal(S, before)
    assert found.roshap.dtype == np.float64
    np.testing.assert_array_equal(found.roshap, score(S.astype(np.float64)).roshap)


def test_blocks_of_features_change_nothing(monkeypatch):
    S = np.random.default_rng(3).gamma(1.0, size=(9, 50))
    whole = score(S)
    monkeypatch.setattr(score_module, "_BLOCK_VALUES", 9 * 7)
    assert len(list(score_module.sorted_blocks(S))) == 8
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(score(S), name), getattr(whole, name))


@given(attributions, st.floats(1e-6, 1e6))
def test_scales_with_the_units_of_the_attribution(S, factor):
    found, scaled = score(S), score(S * factor)
    np.testing.assert_array_equal(scaled.deterministic, found.deterministic)
    np.testing.assert_allclose(scaled.roshap, found.roshap * factor, rtol=1e-9)
    np.testing.assert_allclose(scaled.stability, found.stability, rtol=1e-9)
    np.testing.assert_array_equal(scaled.p0, found.p0)


@given(attributions, st.randoms(use_true_random=False))
def test_order_of_runs_changes_no_bit(S, random):
    order = list(range(len(S)))
    random.shuffle(order)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(score(S[order]), name), getattr(score(S), name))


@given(attributions, st.randoms(use_true_random=False))
def test_order_of_features_changes_no_bit(S, random):
    order = list(range(S.shape[1]))
    random.shuffle(order)
    for name in FIELDS:
        found = getattr(score(np.asfortranarray(S[:, order])), name)
        np.testing.assert_array_equal(found, getattr(score(S), name)[order])


@given(attributions)
def test_factors_stay_in_their_ranges(S):
    found = score(S)
    assert ((found.activity >= 0) & (found.activity <= 1)).all()
    assert (found.strength <= S.max(axis=0)).all()
    assert ((found.roshap == 0) == (found.n_nonzero == 0)).all()
    assert (np.isinf(found.roshap) == found.deterministic).all()
    # mean / sd of B non-negative numbers is smallest with a single non-zero run: 1 / sqrt(B)
    used = found.n_nonzero > 0
    assert (found.stability[used] >= (1 - 1e-9) / np.sqrt(len(S))).all()
