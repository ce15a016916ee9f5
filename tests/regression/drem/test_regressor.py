"""``DREMRegressor``: accuracy, options, and what it does with rows that cannot be used."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression

from roshap.errors import ModelError
from roshap.regression.divergence import DivergenceError
from roshap.regression.drem import DREMRegressor


def problem(q: int, seed: int, n: int = 1000) -> tuple[np.ndarray, ...]:
    X, y = make_regression(n + 1000, q - 1, n_informative=q - 1, noise=10, random_state=seed)
    return X[:n], y[:n], X[n:], y[n:]


def ratios(seed: int, **options: object) -> np.ndarray:
    X, y, X_test, y_test = problem(60, seed)
    model = DREMRegressor(random_state=seed, **options).fit(X, y, validation=(X_test, y_test))
    ols = LinearRegression().fit(X, y).predict(X_test)
    return np.array(model.history_["validation_loss"]) / np.mean((ols - y_test) ** 2)


def test_tall_batches_are_near_least_squares_after_one_epoch() -> None:
    assert max(ratios(seed, epochs=1)[0] for seed in range(10)) <= 1.1


def test_square_batches_get_there_within_30_epochs() -> None:
    reached = [ratios(seed, epochs=30, batch_rows=60).min() for seed in range(10)]
    assert np.median(reached) <= 1.1


@pytest.mark.parametrize("options", [{}, {"batch_rows": 300}, {"law": "exact"}, {"memory": 1.0}])
def test_no_overflow_at_300_weights(options: dict[str, object]) -> None:
    X, y, *_ = problem(300, 0)
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        model = DREMRegressor(epochs=2, random_state=0, **options).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.history_["loss"]).all()


def test_memory_of_everything_is_least_squares() -> None:
    X, y, *_ = problem(7, 0, n=140)
    model = DREMRegressor(memory=1.0, epochs=1, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-9)


def test_all_rows_in_one_batch_is_least_squares_for_several_weighted_outputs() -> None:
    rng = np.random.default_rng(0)
    X, Y, weights = rng.normal(size=(30, 4)) * 7 + 3, rng.normal(size=(30, 2)), rng.random(30)
    weights[:3] = 0
    model = DREMRegressor(batch_rows=27, epochs=1).fit(X, Y, weights)
    ols = LinearRegression().fit(X, Y, weights)
    np.testing.assert_allclose(model.coef_, ols.coef_, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, ols.intercept_, atol=1e-12)
    np.testing.assert_allclose(model.predict(X), ols.predict(X), atol=1e-12)


def test_finite_time_is_exact_after_the_first_good_batch_without_noise() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    w = rng.normal(size=5)
    options = {"law": "adaptive", "alpha": 1e-6, "epochs": 1, "init": "random", "random_state": 0}
    slow = DREMRegressor(**options).fit(X, X @ w)
    exact = DREMRegressor(finite_time=True, **options).fit(X, X @ w)
    assert np.abs(slow.coef_ - w).max() > 1e-2
    np.testing.assert_allclose(exact.coef_, w, atol=1e-9)


def test_robust_median_beats_least_squares_with_outlying_rows() -> None:
    X, y, X_test, y_test = problem(11, 0)
    rng = np.random.default_rng(0)
    y = y + np.where(rng.random(len(y)) < 0.05, 500.0, 0.0) * rng.choice([-1, 1], len(y))

    def error(model: object) -> float:
        return float(np.mean((model.predict(X_test) - y_test) ** 2))  # type: ignore[attr-defined]

    robust = DREMRegressor(robust=True, random_state=0).fit(X, y)
    assert error(robust) < 1.25 * 100
    assert error(robust) < 0.75 * error(LinearRegression().fit(X, y))


def test_forgetting_follows_coefficients_that_jump() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    first, second = rng.normal(size=5) * 10, rng.normal(size=5) * 10
    y = np.where(np.arange(4000) < 2000, X @ first, X @ second) + rng.normal(size=4000)
    model = DREMRegressor(forget=0.95, batch_rows=12)
    for chunk in np.array_split(np.arange(4000), 10):
        model.partial_fit(X[chunk], y[chunk])
    assert np.sqrt(np.mean((model.coef_ - second) ** 2)) < 0.2
    assert np.sqrt(np.mean((LinearRegression().fit(X, y).coef_ - second) ** 2)) > 2


def test_a_stream_in_chunks_equals_one_pass_over_the_same_rows() -> None:
    X, y, *_ = problem(5, 0, n=200)
    whole = DREMRegressor(standardise=False).partial_fit(X, y)
    parts = DREMRegressor(standardise=False, batch_rows=10)
    for chunk in np.array_split(np.arange(200), 7):
        parts.partial_fit(X[chunk], y[chunk])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9)


def test_a_prior_pulls_to_the_start_and_warm_start_goes_on() -> None:
    X, y, *_ = problem(5, 0, n=100)
    free, held = (DREMRegressor(prior=p, epochs=1, random_state=0).fit(X, y) for p in (0, 1e3))
    assert np.linalg.norm(held.coef_) < 0.5 * np.linalg.norm(free.coef_)
    model = DREMRegressor("adaptive", alpha=1e-6, epochs=3, warm_start=True, random_state=0)
    once = model.fit(X, y).coef_.copy()
    again = model.fit(X, y)
    assert again.n_iter_ == 6
    assert np.abs(again.coef_ - once).max() > 0


def test_variance_is_the_spread_over_data() -> None:
    found, said = [], []
    rng = np.random.default_rng(0)
    for seed in range(200):
        X = rng.normal(size=(200, 3))
        y = X @ [1.0, 2, 3] + rng.normal(size=200)
        model = DREMRegressor(epochs=1, standardise=False, random_state=seed).fit(X, y)
        found.append(model.w_[:, 0])
        said.append(model.variance_[:, 0])
    np.testing.assert_allclose(np.mean(said, axis=0), np.var(found, axis=0), rtol=0.3)


def test_the_standard_law_says_that_it_diverges() -> None:
    X, y, *_ = problem(13, 0)
    with pytest.raises(DivergenceError, match=r"alpha D\^2 reaches .* below 2") as caught:
        DREMRegressor("standard", epochs=20, random_state=0).fit(X, y)
    assert np.isfinite(caught.value.history["loss"]).all()


def test_collinear_and_constant_columns() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X @ [1.0, 2, 3] + 5
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(flat=4.0, sum=X[:, 0] + 2 * X[:, 1])
    with pytest.warns(UserWarning, match="2 features are constant or a combination .* flat, sum"):
        model = DREMRegressor(random_state=0).fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), y, atol=1e-9)
    assert model.dropped_.tolist() == [3, 4]
    assert model.diagnostics_["smallest_distance"] > 0.5
    with pytest.raises(ModelError, match="flat, sum"):
        DREMRegressor(collinear="error").fit(frame, y)


def test_near_collinear_columns_are_told_by_the_diagnostic() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:, 2] = X[:, 0] + 1e-3 * X[:, 2]
    model = DREMRegressor(random_state=0).fit(X, X.sum(axis=1))
    assert model.diagnostics_["smallest_distance"] == pytest.approx(1e-3, rel=0.2)
    np.testing.assert_allclose(model.predict(X), X.sum(axis=1), atol=1e-8)


def test_integer_codes_have_singular_square_batches_that_are_skipped() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 400), rng.integers(0, 3, 400)])
    y = X @ [2.0, 3] + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for law in ("adaptive", "unit_noise"):
            model = DREMRegressor(law, batch_rows=3, random_state=0, alpha=1.0).fit(X, y)
            assert 0.2 < model.diagnostics_["skipped"] < 0.9
            np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


def test_only_singular_batches_is_an_error() -> None:
    X = np.zeros((40, 2))
    X[0, 0] = X[1, 1] = 1
    with pytest.raises(ModelError, match="every batch of 3 rows is singular: give batch_rows"):
        DREMRegressor(batch_rows=3, random_state=0, epochs=1).fit(X, np.arange(40.0))


@pytest.mark.parametrize(
    ("options", "n", "match"),
    [
        ({}, 4, "n_samples=4 rows cannot determine 6 weights"),
        ({"batch_rows": 5}, 50, "batch_rows=5: at least 6"),
        ({"batch_rows": 51}, 50, "at most 50"),
        ({"law": "best"}, 50, "law='best': valid are 'standard'"),
        ({"alpha": 0}, 50, "alpha=0"),
        ({"forget": 1.5}, 50, "forget=1.5"),
        ({"epochs": 0}, 50, "epochs=0"),
        ({"init": "ones"}, 50, "init='ones'"),
        ({"robust": True, "law": "standard"}, 50, "robust=True"),
        ({"collinear": "keep"}, 50, "collinear='keep'"),
    ],
)
def test_what_cannot_be_done_is_one_clear_error(
    options: dict[str, object], n: int, match: str
) -> None:
    X = np.random.default_rng(0).normal(size=(n, 5))
    with pytest.raises((ModelError, ValueError), match=match):
        DREMRegressor(**options).fit(X, X[:, 0])


def test_a_seed_decides_everything() -> None:
    X, y, *_ = problem(8, 0, n=300)
    a, b, c = (DREMRegressor(random_state=s, batch_rows=8).fit(X, y).coef_ for s in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_effective_share_tells_that_one_batch_decides() -> None:
    X, y, *_ = problem(9, 0)
    ours = DREMRegressor(random_state=0).fit(X, y).diagnostics_["effective_share"]
    theirs = DREMRegressor("adaptive", random_state=0).fit(X, y).diagnostics_["effective_share"]
    assert ours > 0.9
    assert theirs < 0.1
