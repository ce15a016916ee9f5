"""Columns of any pandas type -> float64 values, or codes with their labels.

This is where booleans, nullable integers, ``str`` columns, categoricals and huge integers become
what the rest of the package works with, or a clear error.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from roshap.datasets.spec import Task
from roshap.errors import DataError

MAX_INFERRED_CLASSES = 20
MIN_ROWS_PER_INFERRED_CLASS = 5
_EXACT_LIMIT = 2**53  # above it, neighbouring integers share a float64


def numbers(column: pd.Series, name: str) -> np.ndarray:
    """Values of a column as float64, missing ones as NaN.

    Parameters
    ----------
    column
        (n,) of a numeric, boolean, nullable or object type.
    name
        What an error calls it, e.g. ``"column 'age'"``.

    Returns
    -------
    ndarray
        (n,) float64; booleans as 0 and 1.

    Raises
    ------
    DataError
        It holds text, dates, complex numbers, or integers that a float64 cannot hold.
    """
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        return _exact(column, name)
    if isinstance(column.dtype, pd.SparseDtype):
        column = pd.Series(np.asarray(column.array))
    _refuse_dates(column, name)
    if types.is_object_dtype(column.dtype):
        column = _numbers_of_objects(column, name)
    if types.is_complex_dtype(column.dtype):
        raise DataError(f"{name} holds complex numbers; give the real and the imaginary part")
    if not types.is_bool_dtype(column.dtype) and not types.is_numeric_dtype(column.dtype):
        raise DataError(_text_message(column, name))
    return _exact(column, name)


def _exact(column: pd.Series, name: str) -> np.ndarray:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if types.is_integer_dtype(column.dtype):
        large = np.abs(values) >= _EXACT_LIMIT
        if large.any():
            _refuse_inexact(column[large], name)
    return values


def _numbers_of_objects(column: pd.Series, name: str) -> pd.Series:
    present = column[column.notna()]
    if not all(isinstance(value, (Real, Decimal, np.bool_)) for value in present):
        _refuse_dates(column.infer_objects(), name)
        if any(isinstance(value, complex) for value in present):
            raise DataError(f"{name} holds complex numbers; give the real and the imaginary part")
        raise DataError(_text_message(column, name))
    _refuse_inexact((v for v in present if isinstance(v, int)), name)
    values = np.full(len(column), np.nan)
    values[column.notna().to_numpy()] = [float(value) for value in present]
    return pd.Series(values)


def _refuse_dates(column: pd.Series, name: str) -> None:
    dtype = column.dtype
    dated = types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype)
    if dated or isinstance(dtype, (pd.PeriodDtype, pd.IntervalDtype)):
        raise DataError(
            f"{name} holds dates or times ({dtype}); leave it out (dataset.drop) or turn it into a "
            "number, e.g. days since a fixed date"
        )


def _refuse_inexact(integers: Iterable[int], name: str) -> None:
    for value in integers:
        if abs(value) > sys.float_info.max or int(float(value)) != int(value):
            raise DataError(
                f"{name} holds integers that a 64-bit float cannot hold exactly (e.g. {value}); "
                "an identifier? leave it out (dataset.drop), or rescale it"
            )


def _text_message(column: pd.Series, name: str) -> str:
    present = column.dropna().astype(str)
    parsed = pd.to_numeric(present, errors="coerce")
    texts = present[parsed.isna()]
    example = texts.iloc[0] if len(texts) else present.iloc[0]
    message = (
        f"{name} holds text (e.g. {example!r}): leave it out (dataset.drop) or declare it a "
        "category (dataset.categorical; in a notebook also a pandas category)"
    )
    if parsed.notna().mean() > 0.5:
        message += f"; if {example!r} means missing: dataset.reader_options.missing=[{example!r}]"
    return message


def codes(
    column: pd.Series, name: str, order: Sequence[str] | None = None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes of a column's distinct values, and the label of each code.

    Labels are sorted: numbers by value (whole ones are written as integers), anything else as
    text. An ordered categorical keeps its order; ``order`` overrides both.

    Returns
    -------
    codes : ndarray
        (n,) int64, -1 where the value is missing.
    labels : tuple of str
        Values that do not occur have no label.

    Raises
    ------
    DataError
        Two distinct values are written alike, or ``order`` is not the set of labels.
    """
    _refuse_dates(column, name)
    ranked = column.cat.categories if getattr(column.dtype, "ordered", False) else None
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    found, uniques = pd.factorize(column)
    values = list(uniques)
    labels = [_label(value) for value in values]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise DataError(f"{name} has different values that are all written {twice!r}")
    if ranked is not None:
        rank = {value: i for i, value in enumerate(ranked)}
        by = sorted(range(len(values)), key=lambda i: rank[values[i]])
    elif all(isinstance(value, (Real, np.bool_)) for value in values):
        by = sorted(range(len(values)), key=lambda i: values[i])
    else:
        by = sorted(range(len(values)), key=lambda i: labels[i])
    if order is not None:
        if sorted(order) != sorted(labels):
            raise DataError(
                f"dataset.classes is {list(order)} but {name} has {[labels[i] for i in by]}"
            )
        by = [labels.index(label) for label in order]
    new_code = np.full(len(values) + 1, -1, dtype=np.int64)  # the last slot serves code -1
    new_code[by] = np.arange(len(by))
    return new_code[found], tuple(labels[i] for i in by)


def _label(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return (
            str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))
        )
    return str(value)


def infer_task(column: pd.Series) -> tuple[Task, str]:
    """Task that a target column suggests, and the reason in words.

    Text, booleans and categories are classes. Whole numbers are classes if there are two of them,
    or (of an integer type) at most 20 with at least 5 rows each on average. All else is regression.
    """
    distinct = int(column.nunique())
    by_count: Task = "binary" if distinct <= 2 else "multiclass"
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return by_count, f"a categorical target with {distinct} classes"
    if types.is_bool_dtype(dtype):
        return "binary", "a boolean target"
    present = column.dropna()
    if not types.is_numeric_dtype(dtype) and not all(
        isinstance(value, (Real, Decimal)) for value in present
    ):
        return by_count, f"a text target with {distinct} classes"
    integers = types.is_integer_dtype(dtype)
    whole = integers or all(float(value).is_integer() for value in present.unique())
    if whole and distinct <= 2:
        return "binary", f"a numeric target with {distinct} distinct whole values"
    enough = len(column) >= MIN_ROWS_PER_INFERRED_CLASS * distinct
    if integers and distinct <= MAX_INFERRED_CLASSES and enough:
        return "multiclass", f"an integer target with only {distinct} distinct values"
    return "regression", f"a numeric target with {distinct} distinct values"
