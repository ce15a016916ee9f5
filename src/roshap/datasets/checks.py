"""The input checks that every entry shares (design.md, "Errors")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from roshap.datasets.digest import RESERVED
from roshap.errors import DataError

if TYPE_CHECKING:
    from roshap.datasets.dataset import Dataset

MIN_ROWS = 10
"""Fewest rows for a bootstrap: about four of ten are out of bag, hardly enough for any score."""

_LISTED = 5


def check_dataset(
    data: Dataset, *, allow_nan: bool, allow_categorical: bool, min_per_class: int = 2
) -> tuple[str, ...]:
    """Check that a data set can be bootstrapped with a model.

    Parameters
    ----------
    data
        The data set.
    allow_nan, allow_categorical
        Whether the model takes missing values, and category columns.
    min_per_class
        Fewest rows of each class.

    Returns
    -------
    tuple of str
        Constant features: allowed (their attribution is 0), but worth a word to the person.

    Raises
    ------
    DataError
        One line: what is wrong, in which columns, and what would be right.
    """
    _check_rows(data)
    _check_names(data)
    _check_types(data, allow_categorical)
    _check_target(data, min_per_class)
    _check_companions(data)
    return _check_values(data, allow_nan)


def listed(names: Sequence[str]) -> str:
    """At most five quoted names, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:_LISTED])
    more = len(names) - _LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def _check_rows(data: Dataset) -> None:
    n, p = data.X.shape
    if p == 0:
        raise DataError(f"{data.name}: no feature column is left besides the target")
    if n < MIN_ROWS:
        raise DataError(
            f"{data.name}: {n} rows are too few for a bootstrap; at least {MIN_ROWS} are needed"
        )
    if data.y.shape != (n,):
        raise DataError(f"{data.name}: {n} rows of features but a target of shape {data.y.shape}")


def _check_names(data: Dataset) -> None:
    names = list(data.X.columns)
    other = [repr(name) for name in names if not isinstance(name, str)]
    if other:
        raise DataError(f"{data.name}: column names must be text, got {', '.join(other[:_LISTED])}")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{data.name}: duplicate column names: {listed(repeated)}")
    taken = [name for name in (data.target, *RESERVED) if name in names]
    if taken:
        raise DataError(
            f"{data.name}: {listed(taken)} cannot be a feature: the name is the target's or "
            f"reserved ({', '.join(RESERVED)})"
        )


def _check_types(data: Dataset, allow_categorical: bool) -> None:
    dtypes = data.X.dtypes
    category = [str(c) for c, t in dtypes.items() if isinstance(t, pd.CategoricalDtype)]
    other = [str(c) for c, t in dtypes.items() if t != np.float64 and str(c) not in category]
    if other:
        raise DataError(
            f"{data.name}: non-numeric columns: {listed(other)}; features must be float64 or "
            "category (from_frame converts them)"
        )
    if category and not allow_categorical:
        raise DataError(
            f"{data.name}: the model takes no categories, but these columns are: "
            f"{listed(category)}; leave them out (dataset.drop), or use a model that takes "
            "them (lightgbm, xgboost, catboost)"
        )


def _check_target(data: Dataset, min_per_class: int) -> None:
    what = f"{data.name}: target {data.target!r}"
    if data.task == "regression":
        if data.y.dtype.kind != "f":
            raise DataError(f"{what} must hold floats for regression, got {data.y.dtype}")
        bad = int((~np.isfinite(data.y)).sum())
        if bad:
            raise DataError(f"{what} has {bad} missing or infinite values; leave those rows out")
        if np.ptp(data.y) == 0:
            raise DataError(f"{what} is always {data.y[0]:g}: there is nothing to explain")
        return
    if data.y.dtype.kind not in "iu":
        raise DataError(f"{what} must hold class codes for {data.task}, got {data.y.dtype}")
    n_classes = len(data.classes)
    if data.y.min() < 0 or data.y.max() >= n_classes:
        raise DataError(f"{what} has codes outside 0..{n_classes - 1}")
    counts = np.bincount(data.y, minlength=n_classes)
    if (counts > 0).sum() < 2:
        only = data.classes[int(counts.argmax())]
        raise DataError(f"{what} has one class only ({only!r}); at least two are needed")
    if data.task == "binary" and n_classes != 2:
        raise DataError(
            f"{what} has {n_classes} classes; binary needs 2, use dataset.task=multiclass"
        )
    few = [i for i in range(n_classes) if counts[i] < min_per_class]
    if few:
        shown = ", ".join(f"{data.classes[i]!r} ({counts[i]})" for i in few[:_LISTED])
        raise DataError(
            f"{what}: too few rows of class {shown}; at least {min_per_class} of each are needed"
            + (" (or is this dataset.task=regression?)" if len(few) > _LISTED else "")
        )


def _check_companions(data: Dataset) -> None:
    """Check groups, weights and the held-out mask, where there are any."""
    n = len(data.X)
    for what, values in (
        ("groups", data.groups),
        ("weights", data.weights),
        ("held_out", data.held_out),
    ):
        if values is not None and values.shape != (n,):
            raise DataError(f"{data.name}: {what} has shape {values.shape}, not ({n},)")
    if data.groups is not None and len(np.unique(data.groups)) < 2:
        raise DataError(f"{data.name}: all rows are in one group, so none can be out of bag")
    if data.weights is not None:
        good = np.isfinite(data.weights) & (data.weights >= 0)
        if not good.all() or not data.weights.any():
            raise DataError(
                f"{data.name}: weights must be finite, not negative and not all 0 "
                f"({int((~good).sum())} are not)"
            )


def _check_values(data: Dataset, allow_nan: bool) -> tuple[str, ...]:
    infinite: list[str] = []
    missing: list[str] = []
    empty: list[str] = []
    constant: list[str] = []
    for name, column in data.X.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            values = column.cat.codes.to_numpy()
            absent = values < 0
        else:
            values = column.to_numpy()
            absent = np.isnan(values)
            count = int(np.isinf(values).sum())
            if count:
                infinite.append(f"{name!r} ({count})")
        gaps = int(absent.sum())
        if gaps == len(values):
            empty.append(str(name))
        elif gaps:
            missing.append(f"{name!r} ({gaps})")
        elif (values == values[0]).all():
            constant.append(str(name))
    if empty:
        raise DataError(
            f"{data.name}: columns without any value: {listed(empty)}; "
            "leave them out (dataset.drop)"
        )
    if infinite:
        raise DataError(
            f"{data.name}: infinite values in {_counted(infinite)}; mark them missing or cap them"
        )
    if missing and not allow_nan:
        raise DataError(
            f"{data.name}: the model takes no missing values, but there are some in "
            f"{_counted(missing)}; fill them, leave the columns out (dataset.drop), or use a model "
            "that takes them (xgboost, lightgbm, catboost)"
        )
    return tuple(constant)


def _counted(entries: Sequence[str]) -> str:
    more = len(entries) - _LISTED
    shown = ", ".join(entries[:_LISTED])
    return f"{shown} and {more} more columns" if more > 0 else shown
