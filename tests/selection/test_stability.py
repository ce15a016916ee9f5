"""Measures of agreement: by hand, against each other, and the interval by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from roshap.errors import DataError
from roshap.selection import set_stability


def test_by_hand() -> None:
    found = set_stability([[0, 1], [1, 2], [0, 1]], p=5)
    assert found.jaccard == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)
    # r = 1, 1, 2: (r p - k^2) / (k (p - k)) = 1/6, 1/6, 1
    assert found.kuncheva == pytest.approx((1 / 6 + 1 / 6 + 1) / 3)


def test_equal_sets_and_chance() -> None:
    same = set_stability([[0, 3]] * 4, p=9)
    assert (same.jaccard, same.kuncheva, same.nogueira) == (1, 1, 1)
    assert same.low == same.high == 1
    rng = np.random.default_rng(0)
    chance = set_stability([rng.permutation(200)[:20] for _ in range(60)], p=200)
    assert abs(chance.nogueira) < 0.02


def test_nogueira_equals_kuncheva_for_sets_of_one_size() -> None:
    rng = np.random.default_rng(1)
    sets = [rng.permutation(12)[:4] for _ in range(7)]
    found = set_stability(sets, p=12)
    assert found.nogueira == pytest.approx(found.kuncheva)


def test_the_interval_is_as_wide_as_the_estimate_varies() -> None:
    rng = np.random.default_rng(2)

    def estimate() -> tuple[float, float]:
        scores = np.linspace(2, 0, 20) + rng.normal(size=(40, 20))
        found = set_stability(np.argsort(-scores, axis=1)[:, :5].tolist(), p=20)
        return found.nogueira, found.high - found.low

    values, widths = np.array([estimate() for _ in range(300)]).T
    assert np.mean(widths) / (2 * 1.96) == pytest.approx(values.std(), rel=0.15)


def test_where_it_is_not_defined() -> None:
    everything = set_stability([[0, 1], [0, 1]], p=2)
    assert np.isnan(everything.nogueira)
    assert np.isnan(everything.kuncheva)
    with pytest.raises(DataError, match="1 selected set"):
        set_stability([[0]], p=3)
    with pytest.raises(DataError, match="outside 0 to 2"):
        set_stability([[0], [3]], p=3)
