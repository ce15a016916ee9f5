"""The one type that all of roshap takes as data, and its making from pandas objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from roshap.datasets.checks import check_dataset
from roshap.datasets.columns import codes, infer_task, numbers
from roshap.datasets.digest import table_digest
from roshap.datasets.spec import Task
from roshap.errors import DataError


@dataclass(frozen=True, eq=False)
class Dataset:
    """A checked table: n rows, p features, one target.

    Attributes
    ----------
    name
        Of the data set.
    X
        (n, p) float64 columns, or category for declared categoricals; names are text, the index
        is 0..n-1.
    y
        (n,) int64 codes 0..C-1 for classification, float64 for regression.
    task
        ``binary``, ``multiclass`` or ``regression``.
    target
        Name of the target column.
    classes
        Label of each code; empty for regression. Of two classes the second is the positive one.
    groups
        (n,) int64 or text, the rows that belong together, or ``None``.
    weights
        (n,) float64, at least 0, or ``None``.
    held_out
        (n,) bool, the rows that were published as a test set, or ``None``.
    digest
        sha256 of the content (:func:`roshap.datasets.digest.table_digest`).
    source
        Where it came from: reader, options, files with their sha256; ``task_inferred`` says why
        the task is what it is if nobody gave it.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray
    task: Task
    target: str
    classes: tuple[str, ...]
    groups: np.ndarray | None
    weights: np.ndarray | None
    held_out: np.ndarray | None
    digest: str
    source: Mapping[str, Any] = field(default_factory=dict)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return tuple(self.X.columns)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def p(self) -> int:
        """Number of features."""
        return self.X.shape[1]

    def take(self, rows: np.ndarray) -> Dataset:
        """Return the data set with only ``rows``, a boolean mask or indices of shape (n,) or fewer.

        The digest stays that of the whole table: it says where the rows are from.
        """

        def part(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[rows]

        return replace(
            self,
            X=self.X.iloc[np.arange(self.n)[rows]].reset_index(drop=True),
            y=self.y[rows],
            groups=part(self.groups),
            weights=part(self.weights),
            held_out=part(self.held_out),
        )

    def training(self) -> Dataset:
        """Return the rows that were not published as a test set: all of them where none was."""
        return self if self.held_out is None else self.take(~self.held_out)


def from_frame(
    X: Any,
    y: Any,
    *,
    task: Task | None = None,
    name: str = "data",
    target: str | None = None,
    classes: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    groups: Any = None,
    weights: Any = None,
    held_out: Any = None,
    source: Mapping[str, Any] | None = None,
) -> Dataset:
    """Make a checked data set of a table and a target.

    Rows are paired by position, as in scikit-learn. If X and y both carry an index of their own
    with the same labels in another order, that would pair the wrong rows, and is refused.

    Parameters
    ----------
    X
        (n, p) DataFrame or 2-d array. Numeric, boolean and nullable columns become float64;
        pandas categories stay categories; text and dates are refused.
    y
        (n,) numbers or labels.
    task
        Inferred from y if ``None``; ``source["task_inferred"]`` then says why.
    name
        Of the data set, for messages and results.
    target
        Name of the target; by default that of the Series y, else ``"y"``.
    classes
        Order of the class labels; sorted by default.
    categorical
        Columns to take as categories.
    groups, weights, held_out
        (n,) each, see :class:`Dataset`.
    source
        Where the data came from.

    Raises
    ------
    DataError
        See :func:`roshap.datasets.check_dataset`; missing values and categories are allowed here,
        whether a model takes them is known later.
    """
    table = _table(X, name)
    outcome = _series(y, len(table), f"{name}: y")
    _refuse_reordered(X, y)
    if target is None:
        target = "y" if outcome.name is None else str(outcome.name)
    what = f"{name}: target {target!r}"
    features = _features(table, name, [str(c) for c in categorical])
    values, task, labels, inferred = _target(outcome.reset_index(drop=True), what, task, classes)
    parts: dict[str, Any] = {
        "target": target,
        "classes": labels,
        "groups": _groups(groups, len(table), name),
        "weights": None
        if weights is None
        else numbers(_series(weights, len(table), f"{name}: weights"), f"{name}: weights"),
        "held_out": None
        if held_out is None
        else _series(held_out, len(table), f"{name}: held_out").to_numpy(dtype=bool),
    }
    data = Dataset(
        name=name,
        X=features,
        y=values,
        task=task,
        digest=table_digest(features, values, **parts),
        source={**(source or {}), **({"task_inferred": inferred} if inferred else {})},
        **parts,
    )
    check_dataset(data, allow_nan=True, allow_categorical=True)
    return data


def _table(X: Any, name: str) -> pd.DataFrame:
    if not isinstance(X, pd.DataFrame):
        if np.ndim(X) != 2:
            raise DataError(f"{name}: X must be a DataFrame or a 2-d array, got {type(X).__name__}")
        X = pd.DataFrame(X)
    names = pd.Index([str(column) for column in X.columns])
    if not names.is_unique:
        repeated = names[names.duplicated()].unique()
        raise DataError(f"{name}: duplicate column names: {', '.join(map(repr, repeated[:5]))}")
    return X.set_axis(names, axis=1)


def _series(values: Any, n: int, what: str) -> pd.Series:
    if isinstance(values, pd.DataFrame) and values.shape[1] == 1:
        values = values.iloc[:, 0]
    if not isinstance(values, pd.Series):
        if np.ndim(values) == 2 and np.shape(values)[1] == 1:
            values = np.ravel(values)
        if np.ndim(values) != 1:
            raise DataError(f"{what} must be one column, got shape {np.shape(values)}")
        values = pd.Series(values)
    if len(values) != n:
        raise DataError(f"{what} has {len(values)} values for {n} rows")
    return values


def _refuse_reordered(X: Any, y: Any) -> None:
    if not isinstance(X, pd.DataFrame) or not isinstance(y, (pd.Series, pd.DataFrame)):
        return
    plain = pd.RangeIndex(len(X))
    if X.index.equals(y.index) or X.index.equals(plain) or y.index.equals(plain):
        return
    if X.index.is_unique and len(X.index.symmetric_difference(y.index)) == 0:
        raise DataError(
            "X and y have the same index labels in a different order: give y.loc[X.index] to pair "
            "rows by label, or y.to_numpy() to pair them by position"
        )


def _features(table: pd.DataFrame, name: str, categorical: Sequence[str]) -> pd.DataFrame:
    """Float64 columns in one block, categories beside it, in the order of ``table``."""
    unknown = [c for c in categorical if c not in table.columns]
    if unknown:
        raise DataError(f"{name}: categorical names no column: {', '.join(map(repr, unknown[:5]))}")
    declared = set(categorical)
    kept = {
        column: _category(table[column], f"{name}: column {column!r}")
        for column, dtype in table.dtypes.items()
        if column in declared or isinstance(dtype, pd.CategoricalDtype)
    }
    numeric = [column for column in table.columns if column not in kept]
    # Columns are written into rows of one array: contiguous each, and no n x p copy at the end.
    block = np.empty((len(numeric), len(table)))
    for row, column in zip(block, numeric, strict=True):
        row[:] = numbers(table[column], f"{name}: column {column!r}")
    features = pd.DataFrame(block.T, columns=pd.Index(numeric, dtype=object), copy=False)
    if kept:
        features = pd.concat([features, pd.DataFrame(kept)], axis=1)[list(table.columns)]
    return features


def _category(column: pd.Series, what: str) -> pd.Categorical:
    found, labels = codes(column, what)
    return pd.Categorical.from_codes(found, categories=pd.Index(labels, dtype=object))


def _target(
    outcome: pd.Series, what: str, task: Task | None, classes: Sequence[str] | None
) -> tuple[np.ndarray, Task, tuple[str, ...], str | None]:
    missing = int(outcome.isna().sum())
    if missing:
        raise DataError(f"{what} has {missing} missing values; leave those rows out")
    inferred = None
    if task is None:
        task, inferred = infer_task(outcome)
        if classes is not None and task == "regression":
            task = "binary" if len(classes) == 2 else "multiclass"
            inferred = "dataset.classes is given"
    if task == "regression":
        if isinstance(outcome.dtype, pd.CategoricalDtype):
            outcome = outcome.astype(outcome.cat.categories.dtype)
        if not _numeric(outcome):
            raise DataError(
                f"{what} has the wrong type for regression: {outcome.iloc[0]!r} is not a number; "
                "use dataset.task=binary or multiclass"
            )
        return numbers(outcome, what), task, (), inferred
    if types.is_float_dtype(outcome.dtype):
        fraction = outcome[outcome != outcome.round()]
        if len(fraction):
            raise DataError(
                f"{what} has the wrong type for {task}: {fraction.iloc[0]} is not a class; use "
                "dataset.task=regression"
            )
    found, labels = codes(outcome, what, classes)
    if task == "binary" and len(labels) > 2:
        raise DataError(
            f"{what} has {len(labels)} classes; binary needs 2, use dataset.task=multiclass"
        )
    return found, task, labels, inferred


def _numeric(outcome: pd.Series) -> bool:
    if types.is_object_dtype(outcome.dtype):
        return not any(isinstance(value, str) for value in outcome)
    return not isinstance(outcome.dtype, pd.StringDtype)


def _groups(groups: Any, n: int, name: str) -> np.ndarray | None:
    if groups is None:
        return None
    column = _series(groups, n, f"{name}: groups")
    missing = int(column.isna().sum())
    if missing:
        raise DataError(f"{name}: groups has {missing} missing values")
    if types.is_integer_dtype(column.dtype):
        return column.to_numpy(dtype=np.int64)
    found, labels = codes(column, f"{name}: groups")
    return np.asarray(labels, dtype=np.str_)[found]
