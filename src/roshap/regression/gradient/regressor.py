"""Mini-batch gradient descent and Adam for linear regression, in plain numpy."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from roshap.errors import ModelError
from roshap.regression.design import Array
from roshap.regression.gradient.rules import Adam, Rule, Sgd
from roshap.regression.iterative import IterativeRegressor, gradient


class _GradientRegressor(IterativeRegressor):
    """Batches in their order, one step of a rule for each; the last may be smaller."""

    learning_rate: float
    batch_rows: int | None
    standardise_target: bool

    @abstractmethod
    def _rule(self) -> Rule:
        """Return a fresh rule."""

    def _standardise_target(self) -> bool:
        return self.standardise_target

    def _check(self) -> None:
        super()._check()
        if not self.learning_rate > 0:
            raise ModelError(f"learning_rate={self.learning_rate}: a positive step")
        if self.batch_rows is not None and self.batch_rows < 1:
            raise ModelError(f"batch_rows={self.batch_rows}: at least 1")

    def _reset(self, n: int, rng: np.random.RandomState) -> None:
        self._updates = self._rule()

    def _pass(self, A: Array, T: Array) -> float:
        rows = self.batch_rows or len(self.w_)
        w = self.w_
        with np.errstate(over="ignore", invalid="ignore"):
            for at in range(0, len(A), rows):
                w = self._updates.step(w, gradient(A[at : at + rows], T[at : at + rows], w))
        self.w_ = w
        return 0.0

    def _divergence_hint(self) -> str:
        return f"learning_rate={self.learning_rate} is too large for these rows"


class SGDRegressorReference(_GradientRegressor):
    """Mini-batch stochastic gradient descent: ``w <- w + rate / m X_b' (y_b - X_b w)``.

    Parameters
    ----------
    learning_rate : float
        Step.
    batch_rows : int, optional
        Rows of a batch; by default one per weight, as DREM's square batches.
    epochs : int
        Passes over the shuffled rows.
    standardise_target : bool
        Iterate on y of mean 0 and standard deviation 1; plain gradient descent does not mind.
    fit_intercept, standardise, init, warm_start, random_state
        As in :class:`roshap.regression.drem.DREMRegressor`.
    """

    def __init__(
        self,
        *,
        learning_rate: float = 0.01,
        batch_rows: int | None = None,
        epochs: int = 20,
        fit_intercept: bool = True,
        standardise: bool = True,
        standardise_target: bool = False,
        init: str = "zeros",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.batch_rows = batch_rows
        self.epochs = epochs
        self.fit_intercept = fit_intercept
        self.standardise = standardise
        self.standardise_target = standardise_target
        self.init = init
        self.warm_start = warm_start
        self.random_state = random_state

    def _rule(self) -> Rule:
        return Sgd(self.learning_rate)


class AdamRegressorReference(_GradientRegressor):
    """Adam for linear regression.

    Parameters
    ----------
    learning_rate, beta1, beta2, eps : float
        Of Adam; its steps have the size of ``learning_rate``, whatever the gradient: in standard
        deviations of y where that is standardised, else in units of y.
    standardise_target : bool
        Iterate on y of mean 0 and standard deviation 1: else the distance to go, in steps,
        grows with the units of y.
    batch_rows, epochs, fit_intercept, standardise, init, warm_start, random_state
        As in :class:`SGDRegressorReference`.
    """

    def __init__(
        self,
        *,
        learning_rate: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        batch_rows: int | None = None,
        epochs: int = 20,
        fit_intercept: bool = True,
        standardise: bool = True,
        standardise_target: bool = True,
        init: str = "zeros",
        warm_start: bool = False,
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
        self.standardise_target = standardise_target
        self.init = init
        self.warm_start = warm_start
        self.random_state = random_state

    def _rule(self) -> Rule:
        return Adam(self.learning_rate, self.beta1, self.beta2, self.eps)
