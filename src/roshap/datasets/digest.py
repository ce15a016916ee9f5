"""The digest of a canonical table: of its content, not of the file that holds it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pandas as pd

GROUP, WEIGHT, HELD_OUT = "__group__", "__weight__", "__held_out__"
RESERVED = (GROUP, WEIGHT, HELD_OUT)
"""Columns of the canonical table that are neither features nor target."""


def table_digest(
    X: pd.DataFrame,
    y: np.ndarray,
    *,
    target: str,
    classes: tuple[str, ...] = (),
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    held_out: np.ndarray | None = None,
) -> str:
    """Sha256 over the names, types and raw little-endian values of all columns, in order.

    The same table has the same digest whatever parquet or pandas version wrote or read it. NaNs
    of different bits count as one; categories count with their labels.

    Parameters
    ----------
    X
        (n, p) of float64 and category columns.
    y
        (n,) codes of ``classes``, or float64.
    target
        Name of the target column.
    classes, groups, weights, held_out
        As in :class:`roshap.datasets.Dataset`.
    """
    sha = hashlib.sha256(b"roshap table 1\n")
    for name, column in X.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            labels = [str(label) for label in column.cat.categories]
            _add(sha, str(name), "category", column.cat.codes.to_numpy(dtype="<i8"), labels)
        else:
            _add(sha, str(name), "float64", column.to_numpy(dtype="<f8"))
    if classes:
        _add(sha, target, "category", y.astype("<i8"), list(classes))
    else:
        _add(sha, target, "float64", y.astype("<f8"))
    if groups is not None:
        if groups.dtype.kind == "i":
            _add(sha, GROUP, "int64", groups.astype("<i8"))
        else:
            names, found = np.unique(groups, return_inverse=True)
            _add(sha, GROUP, "category", found.astype("<i8"), names.tolist())
    if weights is not None:
        _add(sha, WEIGHT, "float64", weights.astype("<f8"))
    if held_out is not None:
        _add(sha, HELD_OUT, "bool", held_out.astype("u1"))
    return sha.hexdigest()


def _add(
    sha: Any, name: str, kind: str, values: np.ndarray, labels: list[str] | None = None
) -> None:
    sha.update(json.dumps([name, kind, len(values), labels]).encode() + b"\n")
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        if missing.any():
            values = np.where(missing, np.nan, values).astype("<f8")
    sha.update(np.ascontiguousarray(values).data)
