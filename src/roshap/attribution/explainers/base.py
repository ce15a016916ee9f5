"""What every explainer is, and the row-chunked sums that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from roshap.errors import ModelError

if TYPE_CHECKING:
    import pandas as pd

    #: n x p features: a float64 array, or a DataFrame when some columns are categories.
    Table: TypeAlias = "np.ndarray | pd.DataFrame"


class Explainer(Protocol):
    """Attributions of one fitted model.

    K outputs: 1 for a binary target (the class of code 1) and for regression, the number of
    classes for a multi-class target.
    """

    @property
    def name(self) -> str:
        """The routine that runs, e.g. ``"xgboost native"``; it is named in the results."""

    @property
    def space(self) -> str:
        """The units of an attribution, e.g. ``"log-odds (margin)"``."""

    def values(self, X: Table) -> np.ndarray:
        """Return the attributions, (n, p, K) float64."""

    def abs_sum(self, X: Table, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """Return the (weighted) sum over rows of their absolute values, (p, K) float64.

        No array of n x p x K is allocated above the cap that the explainer was made with.
        """


class ChunkedExplainer(ABC):
    """An explainer that works through the rows in chunks of at most `chunk_mb` of attributions.

    The chunks depend on p, K and `chunk_mb` only, so that sums are the same to the last bit on
    every machine and for every number of workers.

    Parameters
    ----------
    n_features, n_outputs : int
        p and K.
    space : str
        Units of the attributions.
    chunk_mb : float
        Largest size of one chunk's (rows, p, K) float64 array, in MiB; at least one row is taken.
    """

    name: str

    def __init__(self, n_features: int, n_outputs: int, space: str, chunk_mb: float) -> None:
        self.n_features = n_features
        self.n_outputs = n_outputs
        self.space = space
        self.chunk_rows = max(1, int(chunk_mb * 2**20 / (8 * n_features * n_outputs)))

    @abstractmethod
    def _explain(self, X: Table) -> np.ndarray:
        """Return the attributions of one chunk of rows, (m, p, K) float64."""

    def values(self, X: Table) -> np.ndarray:
        """Return the attributions, (n, p, K) float64."""
        phi = np.empty((len(X), self.n_features, self.n_outputs))
        for rows in self._chunks(X):
            phi[rows] = self._explain(_take(X, rows))
        return phi

    def abs_sum(self, X: Table, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """Return ``sum_i w_i |phi_ijk|``, (p, K) float64; weights are 1 by default."""
        if sample_weight is not None and np.shape(sample_weight) != (len(X),):
            raise ModelError(
                f"sample_weight has shape {np.shape(sample_weight)}; expected ({len(X)},)"
            )
        total = np.zeros((self.n_features, self.n_outputs))
        for rows in self._chunks(X):
            phi = self._explain(_take(X, rows))
            np.abs(phi, out=phi)
            if sample_weight is None:
                total += phi.sum(axis=0)
            else:
                total += np.einsum("i,ijk->jk", sample_weight[rows], phi)
        return total

    def _chunks(self, X: Table) -> Iterator[slice]:
        if X.shape[1] != self.n_features:
            raise ModelError(
                f"X has {X.shape[1]} features; the model was fitted to {self.n_features}"
            )
        for start in range(0, len(X), self.chunk_rows):
            yield slice(start, min(start + self.chunk_rows, len(X)))


class TransformedExplainer:
    """Explains the last step of a pipeline whose other steps map the features one by one.

    Parameters
    ----------
    inner : Explainer
        Explains the last step.
    transform : sklearn.pipeline.Pipeline
        The fitted steps before it.
    """

    def __init__(self, inner: Explainer, transform: object) -> None:
        self._inner = inner
        self._transform = transform
        self.name = inner.name
        self.space = inner.space

    def values(self, X: Table) -> np.ndarray:
        """Return the attributions, (n, p, K) float64."""
        return self._inner.values(transformed(self._transform, X))

    def abs_sum(self, X: Table, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """Return the (weighted) sum over rows of their absolute values, (p, K) float64."""
        return self._inner.abs_sum(transformed(self._transform, X), sample_weight)


def transformed(transform: object, X: Table) -> np.ndarray:
    """Apply a fitted transformer; a C-ordered float64 array whatever it returns."""
    return np.ascontiguousarray(transform.transform(X), dtype=np.float64)  # type: ignore[attr-defined] # a scikit-learn transformer


def split_contributions(raw: np.ndarray, n_features: int, n_outputs: int) -> np.ndarray:
    """Bring a boosting library's contributions to (n, p, K) float64, without the base values.

    Parameters
    ----------
    raw : array
        (n, p + 1), (n, K, p + 1) or (n, K (p + 1)): features, then the base value, per output.
    """
    per_output = np.asarray(raw, dtype=np.float64).reshape(-1, n_outputs, n_features + 1)
    return np.ascontiguousarray(per_output[:, :, :n_features].transpose(0, 2, 1))


def _take(X: Table, rows: slice) -> Table:
    return X[rows] if isinstance(X, np.ndarray) else X.iloc[rows]
