"""The shape of a bootstrap distribution, its label, and what is said of a whole data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from roshap.attribution import score as score_module
from roshap.attribution.distribution import density, describe, verdict, wilson
from roshap.attribution.ranking import rank
from roshap.errors import DataError

NORMAL = 50 + 5 * stats.norm.ppf((np.arange(200) + 0.5) / 200)
EXPONENTIAL = stats.expon.ppf((np.arange(200) + 0.5) / 200)


@dataclass(frozen=True)
class Rows:
    rows: np.ndarray
    n_rows_total: int
    var_sum: np.ndarray
    abs3_sum: np.ndarray
    var_max: np.ndarray


def row_sums(x: np.ndarray, n_rows_total: int | None = None) -> Rows:
    """Sums over rows of ``x``, shape (runs, rows, features), as one output."""
    variance = x.var(axis=0)
    third = (np.abs(x - x.mean(axis=0)) ** 3).mean(axis=0)
    return Rows(
        rows=np.arange(x.shape[1]),
        n_rows_total=n_rows_total or x.shape[1],
        var_sum=variance.sum(axis=0)[:, None],
        abs3_sum=third.sum(axis=0)[:, None],
        var_max=variance.max(axis=0)[:, None],
    )


def test_labels_follow_the_l_moments_of_the_nonzero_runs():
    half = np.where(np.arange(200) % 2 == 0, NORMAL, 0)
    few = np.r_[NORMAL[:19], np.zeros(181)]
    enough = np.r_[NORMAL[90:110], np.zeros(180)]
    S = np.column_stack([NORMAL, EXPONENTIAL, half, few, np.zeros(200), np.full(200, 3.0), enough])
    found = describe(S)
    assert found.label[:6].tolist() == [
        "gaussian-like",
        "skewed/heavy",
        "gaussian-like",
        "shape unknown",
        "all zero",
        "constant",
    ]
    assert found.label[6] in ("gaussian-like", "skewed/heavy")
    # A Gaussian summary is offered only where there is no mass at zero to hide.
    assert found.summary[:6].tolist() == [
        "gaussian",
        "kde",
        "kde",
        "mean and sd",
        "zero",
        "constant",
    ]


def test_l_moment_ratios_of_known_distributions():
    found = describe(np.column_stack([NORMAL, EXPONENTIAL]))
    np.testing.assert_allclose(found.tau3, [0, 1 / 3], atol=0.01)
    np.testing.assert_allclose(found.tau4, [0.1226, 1 / 6], atol=0.015)
    assert found.skewness[0] == pytest.approx(0, abs=1e-9)
    assert found.skewness[1] > 1.5


def test_shape_statistics_equal_scipy_on_the_nonzero_part():
    rng = np.random.default_rng(0)
    S = rng.gamma(2.0, size=(40, 30)) * (rng.random((40, 30)) < rng.random(30))
    S[:, 0] = rng.random(40)
    found = describe(S)
    compared = 0
    for j, x in enumerate(S.T):
        x = x[x > 0]
        if len(x) >= 4:
            compared += 1
            moments = [found.tau3[j], found.tau4[j]]
            np.testing.assert_allclose(moments, stats.lmoment(x)[2:], rtol=1e-9)
            np.testing.assert_allclose(found.skewness[j], stats.skew(x, bias=False), rtol=1e-9)
    assert compared > 15


@pytest.mark.parametrize(("used", "known"), [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2)])
def test_too_few_runs_leave_statistics_empty_without_a_warning(used, known, recwarn):
    x = np.zeros(6)
    x[:used] = np.arange(1, used + 1) ** 2
    found = describe(x[:, None])
    assert np.isfinite([found.tau3[0], found.tau4[0]]).sum() == known
    assert np.isfinite(found.skewness[0]) == (used >= 3)
    assert not recwarn.list


def test_blocks_and_column_order_change_no_bit(monkeypatch):
    rng = np.random.default_rng(5)
    S = rng.gamma(2.0, size=(25, 40)) * (rng.random((25, 40)) < 0.9)
    whole = describe(S).to_frame()
    order = rng.permutation(40)
    monkeypatch.setattr(score_module, "_BLOCK_VALUES", 25 * 6)
    shuffled = describe(S[:, order]).to_frame()
    assert shuffled.equals(whole.iloc[order].reset_index(drop=True))


def test_wilson_interval():
    low, high = wilson([0, 5, 10, 5], 10)
    # Wilson 1927, for 0 and 5 of 10: z^2 / (n + z^2) and the symmetric interval
    np.testing.assert_allclose(high[0], 1.959964**2 / (10 + 1.959964**2), rtol=1e-6)
    np.testing.assert_allclose([low[1], high[1]], [0.2366, 0.7634], atol=1e-4)
    assert low[0] == 0
    assert high[2] == 1
    assert low[1] == low[3]


def test_lyapunov_ratio_and_largest_row():
    rng = np.random.default_rng(1)
    x = np.abs(rng.normal(size=(50, 30, 2)))
    x[:, 0, 1] *= 100  # one row dominates the second feature
    found = describe(x.sum(axis=1), row_sums(x))
    sums = row_sums(x)
    expected = sums.abs3_sum[:, 0] / sums.var_sum[:, 0] ** 1.5
    np.testing.assert_allclose(found.lyapunov, expected)
    assert found.lyapunov[0] < 0.4 < 1 < found.lyapunov[1]
    assert found.max_row_share[0] < 0.1
    assert found.max_row_share[1] > 0.99
    assert found.row_share_used == 1


def test_lyapunov_ratio_falls_with_the_square_root_of_the_rows():
    row = np.abs(np.random.default_rng(2).normal(size=(50, 1, 1)))
    ratios = [
        describe(np.arange(50.0)[:, None], row_sums(np.repeat(row, n, axis=1))).lyapunov[0]
        for n in (25, 100)
    ]
    assert ratios[0] == pytest.approx(2 * ratios[1])


def test_a_sample_of_equal_rows_estimates_all_of_them():
    row = np.abs(np.random.default_rng(3).normal(size=(50, 1, 1)))
    S = np.arange(50.0)[:, None]
    whole = describe(S, row_sums(np.repeat(row, 100, axis=1)))
    sample = describe(S, row_sums(np.repeat(row, 20, axis=1), n_rows_total=100))
    assert sample.lyapunov[0] == pytest.approx(whole.lyapunov[0])
    assert sample.max_row_share[0] == pytest.approx(whole.max_row_share[0])
    assert sample.row_share_used == 0.2


def test_rows_without_variance_have_no_ratio():
    found = describe(np.zeros((5, 1)), row_sums(np.zeros((5, 4, 1))))
    assert np.isnan(found.lyapunov[0])
    assert np.isnan(found.max_row_share[0])


def test_row_sums_of_something_else_are_refused():
    sums = row_sums(np.ones((5, 4, 3)))
    with pytest.raises(DataError, match=r"shape \(3, 1\) do not belong .* of 2 features"):
        describe(np.ones((5, 2)), sums)
    with pytest.raises(DataError, match="outputs 0 to 0, not 1"):
        describe(np.ones((5, 3)), sums, output=1)


def test_density_keeps_the_zeros_apart():
    found = density(np.r_[np.zeros(50), EXPONENTIAL])
    assert found.p0 == pytest.approx(0.2)
    assert found.kde is not None
    assert np.trapezoid(found.kde, found.grid) == pytest.approx(1, abs=0.01)
    assert found.grid[0] == 0
    assert found.mean == pytest.approx(EXPONENTIAL.mean())


def test_density_of_a_normal_sample_is_near_the_normal():
    found = density(NORMAL)
    assert found.kde is not None
    assert found.gaussian is not None
    assert np.abs(found.kde - found.gaussian).max() < 0.15 * found.gaussian.max()


def test_density_scales():
    small, large = density(EXPONENTIAL), density(EXPONENTIAL * 1e8)
    np.testing.assert_allclose(small.grid * 1e8, large.grid, rtol=1e-9)
    np.testing.assert_allclose(small.kde, large.kde * 1e8, rtol=1e-9)


def test_density_with_most_runs_tied():
    found = density(np.r_[np.full(60, 1.0), 2.0, 3.0])
    assert found.kde is not None
    assert np.isfinite(found.kde).all()


@pytest.mark.parametrize(
    "x", [np.zeros(30), np.r_[np.zeros(30), NORMAL[:19]], np.full(30, 2.0), [0.0, 4.0]]
)
def test_no_shape_is_drawn_where_none_is_known(x):
    found = density(x)
    assert found.kde is None
    assert found.gaussian is None
    assert len(found.grid) == 0
    assert len(found.values) == np.count_nonzero(x)


def names(p: int) -> list[str]:
    return [f"x{j}" for j in range(p)]


def test_verdict_on_gaussian_attributions_of_many_rows():
    x = np.abs(np.random.default_rng(4).normal(size=(60, 300, 6)))
    S = np.column_stack([NORMAL * (j + 1) for j in range(6)])
    found = verdict(rank(S, names(6), row_sums(x)))
    assert found.shape == "gaussian"
    assert found.sentence.startswith("Gaussian: 6 of the 6 leading features")
    assert "many rows share the sum" in found.sentence


def test_verdict_where_few_rows_carry_skewed_sums():
    x = np.zeros((60, 8, 6))
    rng = np.random.default_rng(6)
    x[:, :3] = rng.exponential(size=(60, 3, 6)) * (rng.random((60, 3, 6)) < 0.3)
    found = verdict(rank(x.sum(axis=1), names(6), row_sums(x)))
    assert found.shape == "not gaussian"
    assert found.sentence.startswith("Not Gaussian: 0 of the 6 leading features")
    assert "with zero runs, P0 up to" in found.sentence
    assert "few rows carry the sum" in found.sentence
    assert "with P0 beside it" in found.sentence


def test_verdict_between_the_two():
    S = np.column_stack([NORMAL, NORMAL * 2, EXPONENTIAL, EXPONENTIAL * 2])
    found = verdict(rank(S, names(4)))
    assert found.shape == "mixed"
    assert "2 of the 4" in found.sentence
    assert "Lyapunov" not in found.sentence


def test_verdict_judges_the_leading_features_only():
    S = np.column_stack([NORMAL, *[EXPONENTIAL * 1e-3] * 9])
    assert verdict(rank(S, names(10)), top=1).shape == "gaussian"
    assert verdict(rank(S, names(10)), top=10).shape == "not gaussian"


def test_verdict_says_where_rows_were_sampled():
    x = np.abs(np.random.default_rng(7).normal(size=(60, 300, 1)))
    table = rank(NORMAL[:, None], names(1), row_sums(x, n_rows_total=900))
    assert "estimated from a sample of the rows" in verdict(table).sentence


@pytest.mark.parametrize(
    ("S", "words"),
    [
        (NORMAL[:10, None], "Shape unknown: no leading feature has 20 non-zero runs"),
        (np.zeros((30, 2)), "every attribution of every run is zero"),
        (np.ones((30, 2)), "the same in every run"),
    ],
)
def test_verdict_is_unknown_where_there_is_no_shape(S, words):
    found = verdict(rank(S, names(S.shape[1])))
    assert found.shape == "unknown"
    assert words in found.sentence
