"""What each rule takes, and what it says when it should not be trusted."""

from __future__ import annotations

import numpy as np
import pytest

from roshap.regression.spectral import (
    FILTERS,
    ParameterWarning,
    Path,
    SpectralError,
    choose,
    decompose,
    problem,
    solve,
)
from roshap.regression.spectral.studies import follow, table_of

LEVELS = np.geomspace(1, 1e-6, 13)


def made(**curves: np.ndarray) -> Path:
    """A path of which only some curves matter."""
    count = len(LEVELS)
    blank = np.full(count, np.nan)
    values = dict.fromkeys(("residual_norm", "solution_norm", "gcv", "change"), blank)
    return Path("lam", LEVELS, dof=np.ones(count), n=20.0, **(values | curves))  # type: ignore[arg-type]  # curves


valley = np.abs(np.arange(13.0) - 5) + 1


def test_discrepancy_takes_the_largest_lam_below() -> None:
    path = made(residual_norm=np.linspace(13, 1, 13))
    choice = choose(path, "discrepancy", delta=5.0, tau=1.1)
    assert (choice.index, choice.value) == (8, LEVELS[8])
    assert choice.warning is None


@pytest.mark.parametrize(("delta", "index"), [(0.5, 12), (20.0, 0)])
def test_discrepancy_warns_at_the_ends(delta: float, index: int) -> None:
    choice = choose(made(residual_norm=np.linspace(13, 1, 13)), "discrepancy", delta=delta)
    assert choice.index == index
    assert choice.warning


def test_discrepancy_needs_the_noise() -> None:
    with pytest.raises(SpectralError, match="needs the level of the noise"):
        choose(made(residual_norm=valley), "discrepancy")


def test_the_smallest_score_and_a_warning_at_an_end() -> None:
    assert choose(made(gcv=valley), "gcv").index == 5
    assert choose(made(gcv=valley), "gcv").warning is None
    choice = choose(made(gcv=np.arange(13.0) + 1), "gcv")
    assert choice.index == 0
    assert "sits at an end of the path, lam=1 " in str(choice.warning)


def test_a_flat_score_takes_the_smoothest() -> None:
    choice = choose(made(gcv=np.ones(13)), "gcv")
    assert choice.index == 0
    assert "the same on the whole path" in str(choice.warning)


def test_quasi_optimality_takes_an_interior_valley() -> None:
    # smaller still at both ends, where the solution does not move at all
    change = np.r_[np.nan, 0.1, 2, 3, 1.5, 1.0, 1.6, 4, 5, 4.5, 6, 0.2, 0.01]
    size = np.full(13, 9.0)
    choice = choose(made(change=change, solution_norm=size), "quasi_optimality")
    assert choice.index == 5
    rising = np.r_[np.nan, np.arange(12.0)]
    assert choose(made(change=rising, solution_norm=size), "quasi_optimality").warning
    # a valley of rounding, where everything is fitted and the solution stands still
    change[11:] = 1e-15, 2e-15
    assert choose(made(change=change, solution_norm=size), "quasi_optimality").index == 5


def test_misses_first_and_squares_second() -> None:
    misses = np.r_[5, 4, 3, 2, 2, 2, 2, 2, 3, 4, 5, 6, 7] / 10
    squares = np.r_[9, 8, 7, 6, 5, 4, 5, 6, 1, 1, 1, 1, 1.0]
    choice = choose(made(loo_error=misses, loo=squares), "loo_error")
    assert (choice.index, choice.warning) == (5, None)
    alone = np.where(np.arange(13) == 4, 0.1, 0.2)
    assert choose(made(loo_error=alone, loo=squares), "loo_error").warning is None


def test_the_l_curve_has_its_corner_where_it_turns_upwards() -> None:
    place = np.arange(13.0)
    # to the left, then upwards; and the same curve mirrored, which has no such corner
    residual = np.exp(-np.minimum(place, 6.0))
    solution = np.exp(np.maximum(place - 6.0, 0.0))
    choice = choose(made(residual_norm=residual, solution_norm=solution), "l_curve")
    assert abs(choice.index - 6) <= 1
    assert choice.curve[choice.index] > 0
    mirrored = made(
        residual_norm=np.exp(-np.maximum(place - 6.0, 0.0)),
        solution_norm=np.exp(np.minimum(place, 6.0)),
    )
    assert "no corner" in str(choose(mirrored, "l_curve").warning)


def test_gcv_of_truncation_stops_at_half_the_rows() -> None:
    heat = problem("heat", 32)
    b, _ = heat.noisy(0.01)
    path = solve(heat.A, b, "tsvd", "gcv").path
    assert path.gcv[-1] < path.gcv[path.levels <= 16].min()  # what it would fall for
    assert choose(path, "gcv").value <= 16


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("rule", ["discrepancy", "gcv", "loo", "quasi_optimality", "l_curve"])
def test_rules_come_near_the_best_choice_on_gravity(filter: str, rule: str) -> None:
    gravity = problem("gravity", 32)
    b, delta = gravity.noisy(0.01)
    found = follow(gravity.A, b, gravity.x, filter, [rule], delta=delta)
    assert table_of([found])["ratio"].item() < 2


def test_k_folds_on_rows_of_an_operator() -> None:
    shaw = problem("shaw", 32)
    b, _ = shaw.noisy(0.01)
    found = solve(shaw.A, b, rule="kfold")
    assert found.path.kfold is not None
    # by hand at one level
    level = found.path.levels[20]
    total = 0.0
    for fold in range(5):
        test = np.arange(32) % 5 == fold
        x = solve(shaw.A[~test], b[~test], lam=level).x
        total += np.sum((b[test] - shaw.A[test] @ x) ** 2)
    assert found.path.kfold[20] == pytest.approx(total / 32, rel=1e-8)


def test_a_warning_reaches_the_caller_and_names_the_rule() -> None:
    shaw = problem("shaw", 32)
    b, delta = shaw.noisy(0.01)
    with pytest.warns(ParameterWarning, match="discrepancy for tikhonov: .* widen `levels`"):
        solve(shaw.A, b, rule="discrepancy", delta=delta, levels=[1e-4, 1e-8])


def test_leave_one_out_of_an_operator_is_refitting() -> None:
    shaw = problem("shaw", 16)
    A = np.vstack([shaw.A, shaw.A[::2] * 0.7])  # more rows than columns
    b = A @ shaw.x + np.random.default_rng(0).normal(size=len(A)) * 0.1
    found = solve(A, b, lam=1e-3)
    errors = [
        b[i] - A[i] @ solve(np.delete(A, i, axis=0), np.delete(b, i), lam=1e-3).x
        for i in range(len(A))
    ]
    assert found.path.loo is not None
    assert found.path.loo[0] == pytest.approx(np.mean(np.square(errors)), rel=1e-10)
    assert decompose(A).shape == (24, 16)


def test_unknown_rule() -> None:
    with pytest.raises(SpectralError, match=r"unknown rule 'aic' \(valid: discrepancy, gcv"):
        solve(np.eye(3), np.ones(3), rule="aic")
