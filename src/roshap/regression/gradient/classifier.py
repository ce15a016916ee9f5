"""Gradient descent and Adam for logistic regression: the references for ``DREMClassifier``."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy.special import expit

from roshap.errors import ModelError
from roshap.regression.design import Array
from roshap.regression.gradient.rules import Adam, Rule, Sgd
from roshap.regression.logistic import IterativeClassifier


class _GradientClassifier(IterativeClassifier):
    """One step of a rule for each batch of the mean log-loss."""

    learning_rate: float
    batch_rows: int | None

    @abstractmethod
    def _rule(self) -> Rule:
        """Return a fresh rule."""

    def _reset(self, A: Array) -> None:
        if not self.learning_rate > 0:
            raise ModelError(f"learning_rate={self.learning_rate}: a positive step")
        if self.batch_rows is not None and self.batch_rows < 1:
            raise ModelError(f"batch_rows={self.batch_rows}: at least 1")
        self._updates = self._rule()

    def _epoch(self, A: Array, Y: Array, weights: Array, order: np.ndarray) -> None:
        rows = self.batch_rows or 2 * len(self.w_)
        w, mean = self.w_, weights.mean()
        for at in range(0, len(A), rows):
            part = order[at : at + rows]
            x = A[part]
            error = (expit(x @ w) - Y[part]) * (weights[part, None] / mean)
            w = self._updates.step(w, x.T @ error / len(part))
        self.w_ = w


class SGDClassifierReference(_GradientClassifier):
    """Mini-batch gradient descent on the log-loss.

    Parameters
    ----------
    learning_rate : float
        Step.
    batch_rows : int, optional
        Rows of a batch; by default two per weight, as in ``DREMClassifier``.
    epochs : int
        Passes over the shuffled rows.
    fit_intercept, standardise : bool
        A column of ones in front; features of mean 0 and standard deviation 1.
    random_state : int, RandomState or None
        Of the shuffles.
    """

    def __init__(
        self,
        *,
        learning_rate: float = 0.1,
        batch_rows: int | None = None,
        epochs: int = 20,
        fit_intercept: bool = True,
        standardise: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.batch_rows = batch_rows
        self.epochs = epochs
        self.fit_intercept = fit_intercept
        self.standardise = standardise
        self.random_state = random_state

    def _rule(self) -> Rule:
        return Sgd(self.learning_rate)


class AdamClassifierReference(_GradientClassifier):
    """Adam on the log-loss.

    Parameters
    ----------
    learning_rate, beta1, beta2, eps : float
        Of Adam.
    batch_rows, epochs, fit_intercept, standardise, random_state
        As in :class:`SGDClassifierReference`.
    """

    def __init__(
        self,
        *,
        learning_rate: float = 0.1,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        batch_rows: int | None = None,
        epochs: int = 20,
        fit_intercept: bool = True,
        standardise: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.beta1 = beta1
        self.beta2 = beta2
        self.eps = eps
        self.batch_rows = batch_rows
        self.epochs = epochs
        self.fit_intercept = fit_intercept
        self.standardise = standardise
        self.random_state = random_state

    def _rule(self) -> Rule:
        return Adam(self.learning_rate, self.beta1, self.beta2, self.eps)
