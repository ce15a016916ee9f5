"""The extended, standardised design that linear solvers iterate on, and the way back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

Array = NDArray[np.float64]

#: Columns nearer than this to the span of the others (both of length 1) count as dependent.
DEPENDENT = 1e-9


@dataclass(frozen=True)
class Design:
    """How rows become rows of the extended design, and weights become coefficients.

    Attributes
    ----------
    mean, scale : (p,) arrays
        Of the features; 0 and 1 where nothing is standardised.
    kept : (r,) int array
        Features that are neither constant nor a combination of others.
    intercept : bool
        Whether the design has a first column of ones.
    y_mean, y_scale : (k,) arrays
        Of the outputs; 0 and 1 where they are taken as they are.
    """

    mean: Array
    scale: Array
    kept: NDArray[np.intp]
    intercept: bool
    y_mean: Array
    y_scale: Array

    @classmethod
    def of(
        cls,
        X: Array,
        Y: Array,
        weights: Array,
        *,
        intercept: bool,
        standardise: bool,
        standardise_target: bool,
    ) -> Design:
        """Learn the design of ``X`` (n x p) and ``Y`` (n x k) with row weights (n,)."""
        p, k = X.shape[1], Y.shape[1]
        mean, scale = np.zeros(p), np.ones(p)
        if standardise:
            if intercept:
                mean = np.average(X, axis=0, weights=weights)
            spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
            # what is left of a constant column after centring is rounding
            constant = spread <= 1e-13 * np.maximum(1.0, np.abs(mean))
            scale = np.where(constant, 1.0, spread)
        y_mean, y_scale = np.zeros(k), np.ones(k)
        if standardise_target:
            if intercept:
                y_mean = np.average(Y, axis=0, weights=weights)
            spread = np.sqrt(np.average((Y - y_mean) ** 2, axis=0, weights=weights))
            y_scale = np.where(spread > 0, spread, 1.0)
        whole = cls(mean, scale, np.arange(p), intercept, y_mean, y_scale)
        kept = _independent(whole.matrix(X) * np.sqrt(weights)[:, None], intercept)
        return cls(mean, scale, kept, intercept, y_mean, y_scale)

    @property
    def q(self) -> int:
        """Number of weights, the intercept's included."""
        return len(self.kept) + int(self.intercept)

    def matrix(self, X: Array) -> Array:
        """Return the extended rows (n x q) of ``X`` (n x p)."""
        Z = (X[:, self.kept] - self.mean[self.kept]) / self.scale[self.kept]
        return np.hstack([np.ones((len(Z), 1)), Z]) if self.intercept else Z

    def targets(self, Y: Array) -> Array:
        """Return the outputs in the units of the iteration."""
        return (Y - self.y_mean) / self.y_scale

    def coefficients(self, w: Array) -> tuple[Array, Array]:
        """Return coefficients (k x p) and intercepts (k,) in the data's units of ``w`` (q x k)."""
        coef = np.zeros((w.shape[1], len(self.mean)))
        slopes = w[1:] if self.intercept else w
        coef[:, self.kept] = (slopes * self.y_scale / self.scale[self.kept, None]).T
        intercept = self.y_mean - coef @ self.mean
        if self.intercept:
            intercept = intercept + w[0] * self.y_scale
        return coef, intercept

    def weights(self, coef: Array, intercept: Array) -> Array:
        """Return the weights (q x k) of coefficients in the data's units: the way back."""
        slopes = (coef[:, self.kept] * self.scale[self.kept]).T / self.y_scale
        if not self.intercept:
            return slopes
        first = (intercept + coef @ self.mean - self.y_mean) / self.y_scale
        return np.vstack([first, slopes])


def _independent(A: Array, intercept: bool) -> NDArray[np.intp]:
    """Return the features (without the column of ones) that are independent of those before.

    The column of ones comes first: a constant feature depends on it.
    """
    first = int(intercept)
    norms = np.linalg.norm(A, axis=0)
    nonzero = np.flatnonzero(norms > 0)
    if len(nonzero) == 0:
        return np.empty(0, dtype=np.intp)
    if len(A) < len(nonzero):
        # too few rows to tell: the caller refuses them
        return nonzero[nonzero >= first] - first
    unit = A[:, nonzero] / norms[nonzero]
    R = np.abs(np.diag(qr(unit, mode="r")[0]))
    if R.min() > 1e-6:
        return nonzero[nonzero >= first] - first
    chosen = _greedy(unit)
    columns = nonzero[chosen]
    return columns[columns >= first] - first


def _greedy(unit: Array) -> list[int]:
    """Go through unit columns from the left; keep those away from the span of the kept ones."""
    basis = np.empty((len(unit), 0))
    chosen = []
    for j, column in enumerate(unit.T):
        left = column - basis @ (basis.T @ column)
        left = left - basis @ (basis.T @ left)  # once more: the first pass leaves rounding
        distance = np.linalg.norm(left)
        if distance > DEPENDENT:
            basis = np.column_stack([basis, left / distance])
            chosen.append(j)
    return chosen


def column_distances(A: Array) -> Array:
    """Return each column's distance to the span of the others, as a share of its length.

    It is ``1 / sqrt(VIF)``: 1 for an orthogonal column, 0 for one that the others make up.
    """
    norms = np.linalg.norm(A, axis=0)
    R = np.linalg.qr(A / norms, mode="r")
    return np.asarray(1.0 / np.linalg.norm(np.linalg.inv(R), axis=1))
