"""The article's hybrid: one iteration to get near, another to finish."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from roshap.errors import ModelError
from roshap.regression.design import Array
from roshap.regression.divergence import DivergenceError
from roshap.regression.drem.regressor import DREMRegressor
from roshap.regression.gradient import AdamRegressorReference
from roshap.regression.iterative import HISTORY, IterativeRegressor, Pair


class HybridRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Run ``first`` until it stops improving, then ``then`` from where it stopped.

    The switch comes when an epoch improves the loss on held-out rows by less than ``switch``, or
    raises it, and at the latest when ``first`` has no epochs left. ``then`` starts from the best
    epoch of ``first``.

    Parameters
    ----------
    first, then : IterativeRegressor, optional
        By default DREM with the article's adaptive law, and Adam.
    switch : float
        Smallest relative improvement that lets ``first`` go on.
    epochs : int
        Passes in all.
    validation_share : float
        Share of the rows held out for the switch; none where ``first`` needs every row.
    random_state : int, RandomState or None
        Of the split and, where they have none of their own, of both parts.

    Attributes
    ----------
    coef_, intercept_, history_, n_iter_
        As in the parts.
    switched_ : int
        Epochs that ``first`` ran.
    """

    def __init__(
        self,
        first: IterativeRegressor | None = None,
        then: IterativeRegressor | None = None,
        *,
        switch: float = 0.01,
        epochs: int = 20,
        validation_share: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.first = first
        self.then = then
        self.switch = switch
        self.epochs = epochs
        self.validation_share = validation_share
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        validation: Pair | None = None,
    ) -> Self:
        """Fit both parts.

        Parameters
        ----------
        X, y, sample_weight
            Rows, outputs and weights of the rows.
        validation : (X, y), optional
            Rows whose loss is recorded. They are not learned from and do not decide the switch:
            that is left to rows held out of ``X``.
        """
        if self.epochs < 2:
            raise ModelError(f"epochs={self.epochs}: at least 2, one for each part")
        checked = validate_data(self, X, y, dtype=np.float64, y_numeric=True, multi_output=True)
        X, y = (np.asarray(part) for part in checked)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        rng = check_random_state(self.random_state)
        rows, held = self._split(weights, rng)
        inside = (X[held], y[held])
        self.history_: dict[str, list[float]] = {name: [] for name in HISTORY}
        first = self._part(self.first, DREMRegressor("adaptive"), self.epochs - 1, rng)
        start = self._run_first(first, X[rows], y[rows], weights[rows], inside, validation)
        self.switched_ = len(self.history_["epoch"])
        left = self.epochs - self.switched_
        then = self._part(self.then, AdamRegressorReference(), left, rng)
        for entry in then.iterate(X, y, weights, validation=validation, start=start):
            self._append(entry)
        self.coef_, self.intercept_ = then.coef_, then.intercept_
        self.n_iter_ = self.epochs
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return predictions (n,) or (n, k), in the units of y."""
        check_is_fitted(self)
        rows = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return np.asarray(rows @ self.coef_.T + self.intercept_)

    def _split(self, weights: Array, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        used = np.flatnonzero(weights > 0)
        held = int(np.ceil(self.validation_share * len(used)))
        if len(used) - held < self.n_features_in_ + 1:
            # none to spare: the switch then looks at the loss on the rows that are learned from
            return used, used
        rows, out = train_test_split(used, test_size=held, random_state=rng)
        return rows, out

    def _part(
        self,
        given: IterativeRegressor | None,
        default: IterativeRegressor,
        epochs: int,
        rng: np.random.RandomState,
    ) -> IterativeRegressor:
        part: IterativeRegressor = clone(default if given is None else given)
        part.set_params(epochs=epochs)
        if part.random_state is None:
            part.set_params(random_state=rng.randint(2**31 - 1))
        return part

    def _run_first(
        self,
        first: IterativeRegressor,
        X: Array,
        y: Array,
        weights: Array,
        inside: Pair,
        validation: Pair | None,
    ) -> tuple[Array, Array] | None:
        """Return the best epoch's coefficients; None where there is none."""
        best, start = np.inf, None
        try:
            for entry in first.iterate(X, y, weights, validation=inside):
                loss = entry["validation_loss"]
                outside = np.nan if validation is None else _loss(first, validation)
                self._append({**entry, "validation_loss": outside})
                enough = loss > (1.0 - self.switch) * best
                if loss < best:
                    best = loss
                    coef = np.atleast_2d(first.coef_)
                    start = (coef.copy(), np.atleast_1d(np.asarray(first.intercept_, dtype=float)))
                if enough:
                    break
        except DivergenceError:
            # that is a reason to switch; where nothing was good, the second part starts afresh
            self._append(dict.fromkeys(HISTORY, np.nan))
        return start

    def _append(self, entry: Any) -> None:
        for name in HISTORY:
            self.history_[name].append(entry[name])
        self.history_["epoch"][-1] = float(len(self.history_["epoch"]))


def _loss(model: IterativeRegressor, rows: Pair) -> float:
    X, y = (np.asarray(part, dtype=np.float64) for part in rows)
    return float(np.square(y - X @ model.coef_.T - model.intercept_).mean())
