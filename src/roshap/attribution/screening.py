"""Choose the predictors that a replicate fits on, from its in-bag rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from roshap.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pandas as pd

    from roshap.models import Task

Screening = Literal["none", "variance", "univariate"]


def screen(
    X: np.ndarray | pd.DataFrame, y: np.ndarray, task: Task, method: Screening, keep: int
) -> np.ndarray:
    """Return the columns that pass, ascending.

    Parameters
    ----------
    X
        (n, p) in-bag rows. Missing values do not count in the variance and stand at the column's
        median in the univariate score.
    y
        (n,) target of the same rows.
    task
        Univariate scores are F values of an analysis of variance for classes and of a straight
        line for regression.
    method
        ``"none"`` keeps all columns, ``"variance"`` those that vary most, ``"univariate"`` those
        with the highest F. Of equal columns the first is kept.
    keep
        Number of columns to keep.

    Raises
    ------
    ConfigError
        Where the method is unknown or ``keep`` is no positive number.
    DataError
        Where a column holds categories.
    """
    if method not in get_args(Screening):
        raise ConfigError(
            f"unknown bootstrap.screening {method!r} (valid: {', '.join(get_args(Screening))})"
        )
    p = X.shape[1]
    if method == "none":
        return np.arange(p)
    if keep < 1:
        raise ConfigError(f"bootstrap.keep={keep}: must be 1 or more")
    if keep >= p:
        return np.arange(p)
    if not isinstance(X, np.ndarray):
        raise DataError(
            f"bootstrap.screening={method} compares numbers, and the table has columns of "
            "categories: use screening=none"
        )
    scores = _variance(X) if method == "variance" else _univariate(X, y, task)
    best = np.argsort(-np.nan_to_num(scores, nan=-1.0), kind="stable")[:keep]
    return np.sort(best)


def _variance(X: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        present = ~np.isnan(X)
        count = present.sum(axis=0)
        mean = np.where(present, X, 0.0).sum(axis=0) / count
        return np.where(present, (X - mean) ** 2, 0.0).sum(axis=0) / count


def _univariate(X: np.ndarray, y: np.ndarray, task: Task) -> np.ndarray:
    from sklearn.feature_selection import f_classif, f_regression

    X = _at_median(X)
    varies = np.ptp(X, axis=0) > 0
    scores = np.full(X.shape[1], -1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        test = f_regression if task == "regression" else f_classif
        scores[varies] = test(X[:, varies], y)[0]
    return scores


def _at_median(X: np.ndarray) -> np.ndarray:
    """Put missing values at their column's median; at 0 where a column has none."""
    missing = np.isnan(X)
    if not missing.any():
        return X
    filled = X.copy()
    for column in np.flatnonzero(missing.any(axis=0)):
        values = X[~missing[:, column], column]
        filled[missing[:, column], column] = np.median(values) if values.size else 0.0
    return filled
