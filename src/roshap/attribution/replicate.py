"""One replicate: draw rows, screen, fit on the bag, explain the rows out of bag.

Workers import this module and nothing that is not needed for a fit.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from roshap.attribution.attributions import Aggregate
from roshap.attribution.explainers import Explainer, Method, make_explainer
from roshap.attribution.row_summaries import pack_rows
from roshap.attribution.screening import Screening, screen
from roshap.attribution.splitter import BootstrapOOB, Strategy
from roshap.compute.seeds import replicate_seed
from roshap.errors import ConfigError, ModelError, RoshapError
from roshap.models import Task, fit

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table


@dataclass(frozen=True)
class BootstrapSettings:
    """How replicates are drawn, fitted and explained, and what is kept of them.

    Parameters
    ----------
    strategy, min_per_class
        See :class:`~roshap.attribution.splitter.BootstrapOOB`.
    aggregate
        ``"sum"`` over the OOB rows of |attribution| (the paper), or ``"mean"``.
    screening, keep
        See :func:`~roshap.attribution.screening.screen`. A feature that does not pass has an
        attribution of 0 in that run.
    row_level
        Keep attributions of single rows, for their summaries and for the diagnostics.
    row_values
        Largest expected number of attributions of single rows that a run keeps; beyond it an
        evenly spaced subset of the rows is kept.
    explainer
        See :func:`~roshap.attribution.explainers.make_explainer`.
    chunk_mb
        Largest size, in MiB, of an array of rows or attributions while they are summed.

    Raises
    ------
    ConfigError
        Where a value is not valid.
    """

    strategy: Strategy = "redraw"
    min_per_class: int = 2
    aggregate: Aggregate = "sum"
    screening: Screening = "none"
    keep: int = 500
    row_level: bool = True
    row_values: int = 1_000_000
    explainer: Method = "auto"
    chunk_mb: float = 64.0

    def __post_init__(self) -> None:
        for name, choices in (
            ("strategy", Strategy),
            ("aggregate", Aggregate),
            ("screening", Screening),
            ("explainer", Method),
        ):
            value = getattr(self, name)
            if value not in get_args(choices):
                raise ConfigError(
                    f"unknown {name} {value!r} (valid: {', '.join(get_args(choices))})"
                )
        for name in ("min_per_class", "keep", "row_values"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)}: must be 1 or more")
        if not self.chunk_mb > 0:
            raise ConfigError(f"chunk_mb={self.chunk_mb}: must be above 0")


@dataclass(frozen=True)
class ReplicateInputs:
    """What all replicates of a study share.

    Attributes
    ----------
    X
        (n, p) float64 array, or a DataFrame with columns of categories.
    y
        (n,) class codes or target values.
    n_outputs
        K: the number of classes if there are more than two, else 1.
    groups, weights
        (n,) or None.
    model
        The unfitted estimator.
    kept
        (m,) rows whose attributions are kept; empty for none.
    seed
        The study's seed.
    """

    X: Table
    y: np.ndarray
    task: Task
    n_outputs: int
    groups: np.ndarray | None
    weights: np.ndarray | None
    model: Any
    settings: BootstrapSettings
    kept: np.ndarray
    seed: int


def run_replicate(inputs: ReplicateInputs, index: int) -> dict[str, np.ndarray]:
    """Compute one replicate; the result depends on the arguments only.

    Returns
    -------
    dict
        ``S`` (p, K) sum over the OOB rows of weight * |attribution|; ``n_oob``, ``oob_weight``
        and ``redraws``, scalars; ``explainer`` and ``space``; ``warnings``, the first line of each
        warning that a library gave; and the kept rows' attributions as
        :func:`~roshap.attribution.row_summaries.pack_rows` stores them.

    Raises
    ------
    RoshapError
        Where no acceptable sample can be drawn, or the fit or the explanation fails.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", kind)
        try:
            arrays = _replicate(inputs, index)
        except RoshapError as error:
            raise type(error)(f"run {index}: {error}") from error
    lines = {f"{item.category.__name__}: {str(item.message).splitlines()[0]}" for item in caught}
    return {**arrays, "warnings": np.asarray(sorted(lines), dtype=np.str_)}


def _replicate(inputs: ReplicateInputs, index: int) -> dict[str, np.ndarray]:
    settings, X, y, weights = inputs.settings, inputs.X, inputs.y, inputs.weights
    n, p = X.shape
    splitter = BootstrapOOB(strategy=settings.strategy, min_per_class=settings.min_per_class)
    classes = None if inputs.task == "regression" else y
    draw = splitter.draw(index, n, y=classes, groups=inputs.groups, seed=inputs.seed)
    X_bag, y_bag = _take(X, draw.bag), y[draw.bag]
    columns = screen(X_bag, y_bag, inputs.task, settings.screening, settings.keep)
    X_bag = _columns(X_bag, columns)
    fitted = fit(inputs.model, X_bag, y_bag, None if weights is None else weights[draw.bag])
    explainer = make_explainer(
        fitted,
        X_bag,
        inputs.task,
        method=settings.explainer,
        chunk_mb=settings.chunk_mb,
        rng=np.random.default_rng(replicate_seed(inputs.seed, index).spawn(1)[0]),
    )
    del X_bag, fitted  # as large as the data; an explainer keeps what it needs of them
    explanation = _Explanation(explainer, inputs, columns)
    is_kept = np.zeros(n, dtype=bool)
    is_kept[inputs.kept] = True
    kept, others = draw.oob[is_kept[draw.oob]], draw.oob[~is_kept[draw.oob]]
    S = explanation.sum(others)
    phi = explanation.add_rows(kept, S)
    if not np.isfinite(S).all():
        raise ModelError(
            f"{explainer.name} gives attributions that are no finite numbers for "
            f"{int((~np.isfinite(S)).any(axis=1).sum())} of {p} features"
        )
    return {
        "S": S,
        "n_oob": np.asarray(draw.oob.size),
        "oob_weight": np.asarray(
            float(draw.oob.size) if weights is None else weights[draw.oob].sum()
        ),
        "redraws": np.asarray(draw.redraws),
        "explainer": np.asarray(explainer.name),
        "space": np.asarray(explainer.space),
        **pack_rows(np.searchsorted(inputs.kept, kept), phi, len(inputs.kept)),
    }


class _Explanation:
    """Attributions of a replicate's rows, with zeros for the columns that were screened out."""

    def __init__(self, explainer: Explainer, inputs: ReplicateInputs, columns: np.ndarray) -> None:
        self._explainer = explainer
        self._inputs = inputs
        self._columns = columns
        self._shape = (inputs.X.shape[1], inputs.n_outputs)

    def sum(self, rows: np.ndarray) -> np.ndarray:
        """Return the (p, K) weighted sum of |attribution| over rows, copied chunk by chunk."""
        S = np.zeros(self._shape)
        step = max(1, int(self._inputs.settings.chunk_mb * 2**20 / (8 * len(self._columns))))
        for start in range(0, rows.size, step):
            chunk = rows[start : start + step]
            S[self._columns] += self._explainer.abs_sum(self._rows(chunk), self._weights(chunk))
        return S

    def add_rows(self, rows: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Add rows to the (p, K) sum ``S`` and return their (r, p, K) attributions as float32."""
        phi = np.zeros((rows.size, *self._shape), dtype=np.float32)
        size = 8 * len(self._columns) * self._shape[1]
        step = max(1, int(self._inputs.settings.chunk_mb * 2**20 / size))
        for start in range(0, rows.size, step):
            chunk = rows[start : start + step]
            values = self._explainer.values(self._rows(chunk))
            phi[start : start + step, self._columns] = values
            np.abs(values, out=values)
            weights = self._weights(chunk)
            if weights is not None:
                values *= weights[:, None, None]
            S[self._columns] += values.sum(axis=0)
        return phi

    def _rows(self, rows: np.ndarray) -> Table:
        return _columns(_take(self._inputs.X, rows), self._columns)

    def _weights(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self._inputs.weights is None else self._inputs.weights[rows]


def _take(X: Table, rows: np.ndarray) -> Table:
    return X[rows] if isinstance(X, np.ndarray) else X.iloc[rows].reset_index(drop=True)


def _columns(X: Table, columns: np.ndarray) -> Table:
    if len(columns) == X.shape[1]:
        return X
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X[:, columns])
    return X.iloc[:, columns]
