"""Logistic regression by mixing linearised batches."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from roshap.errors import ModelError
from roshap.regression.design import Array
from roshap.regression.drem.mixing import batches, mix_tall
from roshap.regression.logistic import IterativeClassifier, log_loss

#: Smallest p (1 - p): beyond it a row says nothing that floating point could use.
FLAT = 1e-6
HALVINGS = 6


class DREMClassifier(IterativeClassifier):
    """Logistic regression by unit-noise DREM on linearised batches.

    At the weights of the last epoch every row is linearised as in iteratively reweighted least
    squares: ``z = x'w + (y - p) / r`` with weight ``r = p (1 - p)``. Batches of these rows are
    linear regressions and may be mixed; feeding ``det * w`` through the sigmoid, as the authors'
    notebook does, is no mixing, because the sigmoid does not commute with the adjugate.

    Parameters
    ----------
    batch_rows : int, optional
        Rows of a batch, at most all; by default two per weight.
    epochs : int
        Linearisations, each with one pass over the shuffled rows.
    ridge : float
        Penalty ``ridge / 2 * |slopes|^2`` in standardised units, as ``1 / C`` of
        scikit-learn's LogisticRegression: classes that can be separated have no finite optimum
        without it.
    fit_intercept, standardise : bool
        A column of ones in front; features of mean 0 and standard deviation 1.
    random_state : int, RandomState or None
        Of the shuffles.
    """

    def __init__(
        self,
        *,
        batch_rows: int | None = None,
        epochs: int = 20,
        ridge: float = 1.0,
        fit_intercept: bool = True,
        standardise: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.batch_rows = batch_rows
        self.epochs = epochs
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.standardise = standardise
        self.random_state = random_state

    def _reset(self, A: Array) -> None:
        if not self.ridge > 0:
            raise ModelError(f"ridge={self.ridge}: above 0")
        n, q = A.shape
        if self.batch_rows is not None and not 1 <= self.batch_rows <= n:
            raise ModelError(f"batch_rows={self.batch_rows}: 1 to {n}, the number of rows")
        self.batch_rows_ = self.batch_rows or min(2 * q, n)

    def _epoch(self, A: Array, Y: Array, weights: Array, order: np.ndarray) -> None:
        columns = [
            self._column(A[order], Y[order, k], weights[order], self.w_[:, k])
            for k in range(Y.shape[1])
        ]
        self.w_ = self._shorten(np.column_stack(columns), A, Y, weights)

    def _column(self, A: Array, y: Array, weights: Array, w: Array) -> Array:
        """Return the unit-noise mean of the linearised batches for one output."""
        odds = A @ w
        p = expit(odds)
        r = np.maximum(p * (1.0 - p), FLAT)
        root = np.sqrt(weights * r)[:, None]
        X = batches(A * root, self.batch_rows_)
        z = batches((odds + (y - p) / r)[:, None] * root, self.batch_rows_)
        count, _, q = X.shape
        # each batch has its part of the penalty, so that the batches together have all of it
        part = np.sqrt(self.ridge / count) * np.eye(q)
        if self.fit_intercept:
            part[0, 0] *= 1e-3
        X = np.concatenate([X, np.broadcast_to(part, (count, q, q))], axis=1)
        z = np.concatenate([z, np.zeros((count, q, 1))], axis=1)
        mixed = mix_tall(X, z)
        assert mixed.information is not None
        total = mixed.information.sum(axis=0)
        return np.asarray(
            np.einsum("bq,bq->q", mixed.information, mixed.solutions[:, :, 0]) / total
        )

    def _shorten(self, target: Array, A: Array, Y: Array, weights: Array) -> Array:
        """Go towards ``target``, less far until the penalised loss falls; else stay."""
        before = self._objective(self.w_, A, Y, weights)
        step = target - self.w_
        for halving in range(HALVINGS):
            w = self.w_ + step / 2**halving
            if self._objective(w, A, Y, weights) < before:
                return np.asarray(w)
        return self.w_

    def _objective(self, w: Array, A: Array, Y: Array, weights: Array) -> float:
        slopes = w[1:] if self.fit_intercept else w
        penalty = self.ridge / 2 * np.square(slopes).sum() / (weights.sum() * Y.shape[1])
        return log_loss(A @ w, Y, weights) + float(penalty)
