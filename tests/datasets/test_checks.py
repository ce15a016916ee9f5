"""check_dataset on hand-made data sets: what from_frame lets through, and what it cannot see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from roshap.datasets import MIN_ROWS, Dataset, check_dataset, from_frame
from roshap.errors import DataError


@pytest.fixture
def data(frame: pd.DataFrame) -> Dataset:
    return from_frame(frame[["a", "b", "c"]], frame["y"])


def check(data: Dataset, *, nan: bool = False, categorical: bool = False) -> tuple[str, ...]:
    return check_dataset(data, allow_nan=nan, allow_categorical=categorical)


def test_a_good_data_set_passes(data: Dataset) -> None:
    assert check(data) == ()


def test_constant_columns_are_reported(data: Dataset) -> None:
    X = data.X.assign(b=1.0, c=[1.0, np.nan] * 10)  # a gap is information: c is not constant
    assert check(replace(data, X=X), nan=True) == ("b",)


def test_missing_values_are_counted(data: Dataset) -> None:
    X = data.X.assign(a=[np.nan, 1.0] * 10)
    with pytest.raises(DataError, match=r"takes no missing values.*'a' \(10\)"):
        check(replace(data, X=X))
    assert check(replace(data, X=X), nan=True) == ()


def test_many_bad_columns_are_cut(data: Dataset) -> None:
    X = pd.DataFrame(np.full((20, 9), np.nan), columns=[f"f{j}" for j in range(9)])
    X.iloc[0] = 1.0
    with pytest.raises(DataError, match=r"'f4' \(19\) and 4 more columns"):
        check(replace(data, X=X))


def test_categories_where_the_model_takes_none(data: Dataset) -> None:
    X = data.X.assign(b=pd.Categorical(["u", "v"] * 10))
    with pytest.raises(DataError, match=r"the model takes no categories.*'b'"):
        check(replace(data, X=X))
    assert check(replace(data, X=X), categorical=True) == ()


@pytest.mark.parametrize("rows", [3, MIN_ROWS - 1])
def test_too_few_rows(frame: pd.DataFrame, rows: int) -> None:
    few = frame.head(rows)
    with pytest.raises(DataError, match=f"{rows} rows are too few.*at least {MIN_ROWS}"):
        from_frame(few[["a"]], few["y"])


def test_min_rows_are_enough(frame: pd.DataFrame) -> None:
    assert from_frame(frame[["a"]].head(MIN_ROWS), frame["y"].head(MIN_ROWS)).n == MIN_ROWS


def test_no_feature_left(frame: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="no feature column is left"):
        from_frame(frame[[]], frame["y"])


def test_min_per_class(data: Dataset) -> None:
    with pytest.raises(DataError, match=r"'no' \(10\), 'yes' \(10\); at least 11"):
        check_dataset(data, allow_nan=False, allow_categorical=False, min_per_class=11)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"X": pd.DataFrame(np.zeros((20, 2)), columns=["a", "a"])}, "duplicate column names: 'a'"),
        ({"X": pd.DataFrame(np.zeros((20, 2)))}, "column names must be text, got 0, 1"),
        ({"X": pd.DataFrame({"a": [1] * 20})}, "non-numeric columns: 'a'"),
        ({"X": pd.DataFrame({"a": ["t"] * 20})}, "non-numeric columns: 'a'"),
        ({"y": np.zeros(19, dtype=np.int64)}, r"target of shape \(19,\)"),
        ({"y": np.zeros(20)}, "must hold class codes for binary, got float64"),
        ({"y": np.full(20, 2)}, r"codes outside 0\.\.1"),
        ({"task": "regression"}, "must hold floats for regression, got int64"),
        ({"classes": ("u", "v", "w")}, "3 classes; binary needs 2"),
        ({"groups": np.zeros(3)}, r"groups has shape \(3,\)"),
    ],
)
def test_hand_made_mistakes(data: Dataset, change: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check(replace(data, **change))
