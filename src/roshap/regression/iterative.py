"""What iterative linear solvers share: checked input, the design, epochs with their history."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from roshap.errors import ModelError
from roshap.regression.design import Array, Design
from roshap.regression.divergence import DivergenceError

Pair = tuple[ArrayLike, ArrayLike]
HISTORY = ("epoch", "loss", "validation_loss", "seconds", "skipped")


class IterativeRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator, ABC):
    """A linear model that is fitted in epochs over shuffled batches.

    Subclasses store their parameters, set up their state in :meth:`_reset` and change ``w_`` in
    :meth:`_pass`.

    Attributes
    ----------
    coef_, intercept_
        In the units of the data: (p,) and a number for one output, (k, p) and (k,) for several.
    history_ : dict
        Lists with an entry per epoch: ``epoch``, ``loss`` (mean squared error on the training
        rows), ``validation_loss`` (nan without validation rows), ``seconds`` (of the updates
        alone), ``skipped`` (share of the epoch's batches that were not used).
    n_iter_ : int
        Epochs run, those of earlier calls included where ``warm_start`` is set.
    """

    epochs: int
    fit_intercept: bool
    standardise: bool
    init: str
    warm_start: bool
    random_state: int | np.random.RandomState | None

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        validation: Pair | None = None,
    ) -> Self:
        """Fit by ``epochs`` passes over the rows.

        Parameters
        ----------
        X : (n, p) array-like
        y : (n,) or (n, k) array-like
        sample_weight : (n,) array-like, optional
            Rows of weight 0 are left out.
        validation : (X, y), optional
            Rows whose loss is recorded after each epoch and never learned from.

        Raises
        ------
        ValueError
            For input that cannot be used, or fewer rows than weights.
        DivergenceError
            Where the iteration runs away.
        """
        for _ in self.iterate(X, y, sample_weight, validation=validation):
            pass
        return self

    def iterate(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        validation: Pair | None = None,
        start: tuple[Array, Array] | None = None,
    ) -> Iterator[Mapping[str, float]]:
        """Fit, yielding the history's newest entry after each epoch; stop whenever you like.

        Parameters
        ----------
        X, y, sample_weight, validation
            As in :meth:`fit`.
        start : (coef, intercept), optional
            Coefficients (k, p) and intercepts (k,) to start from.
        """
        self._check()
        fitted = self.warm_start and hasattr(self, "design_")
        X, Y, weights = self._rows(X, y, sample_weight, reset=not fitted)
        rng = check_random_state(self.random_state)
        if not fitted:
            self._prepare(X, Y, weights, rng)
        if start is not None:
            self._start_at(self.design_.weights(*start))
        A, T = self._weighted(X, Y, weights)
        for _ in range(self.epochs):
            began = time.perf_counter()
            order = rng.permutation(len(A))
            skipped = self._pass(A[order], T[order])
            seconds = time.perf_counter() - began
            self._finish(A, T)
            yield self._record(X, Y, weights, validation, seconds, skipped)
        self._done(A, T)

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on with more rows, in their order, one pass.

        The first call settles the scale of the features and which of them are independent, and
        needs as many rows as one batch has.
        """
        self._check()
        first = not hasattr(self, "design_")
        X, Y, weights = self._rows(X, y, sample_weight, reset=first)
        if first:
            self._prepare(X, Y, weights, check_random_state(self.random_state))
        A, T = self._weighted(X, Y, weights)
        began = time.perf_counter()
        skipped = self._stream(A, T)
        seconds = time.perf_counter() - began
        self._finish(A, T)
        self._record(X, Y, weights, None, seconds, skipped)
        self._done(A, T)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Return predictions (n,) or (n, k), in the units of y."""
        check_is_fitted(self)
        rows = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        return np.asarray(rows @ self.coef_.T + self.intercept_)

    @abstractmethod
    def _reset(self, n: int, rng: np.random.RandomState) -> None:
        """Set the state of a fresh iteration; ``w_`` and ``design_`` exist."""

    @abstractmethod
    def _pass(self, A: Array, T: Array) -> float:
        """Update ``w_`` by the rows in their order; return the share of skipped batches."""

    def _stream(self, A: Array, T: Array) -> float:
        return self._pass(A, T)

    def _start_at(self, w: Array) -> None:
        self.w_ = w

    def _current(self) -> Array:
        """Return the weights to publish."""
        return self.w_

    def _done(self, A: Array, T: Array) -> None:
        """Set what is known only after the last epoch."""

    def _check(self) -> None:
        """Refuse impossible parameters."""
        if self.epochs < 1:
            raise ModelError(f"epochs={self.epochs}: at least 1")
        if self.init not in ("zeros", "random"):
            raise ModelError(f"init={self.init!r}: 'zeros' or 'random'")

    def _standardise_target(self) -> bool:
        return False

    def _rows(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, *, reset: bool
    ) -> tuple[Array, Array, Array]:
        X, y = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, multi_output=True, reset=reset
        )
        y = np.asarray(y, dtype=np.float64)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if reset:
            self._one_output = y.ndim == 1
        Y = y.reshape(len(y), -1)
        if not reset and Y.shape[1] != self.w_.shape[1]:
            raise ValueError(f"y has {Y.shape[1]} outputs, the model {self.w_.shape[1]}")
        used = weights > 0
        return (X, Y, weights) if used.all() else (X[used], Y[used], weights[used])

    def _prepare(self, X: Array, Y: Array, weights: Array, rng: np.random.RandomState) -> None:
        self.design_ = Design.of(
            X,
            Y,
            weights,
            intercept=self.fit_intercept,
            standardise=self.standardise,
            standardise_target=self._standardise_target(),
        )
        shape = (self.design_.q, Y.shape[1])
        self.w_ = rng.normal(size=shape) if self.init == "random" else np.zeros(shape)
        self.history_: dict[str, list[float]] = {name: [] for name in HISTORY}
        self.n_iter_ = 0
        self._reset(len(X), rng)

    def _weighted(self, X: Array, Y: Array, weights: Array) -> tuple[Array, Array]:
        root = np.sqrt(weights)[:, None]
        return self.design_.matrix(X) * root, self.design_.targets(Y) * root

    def _finish(self, A: Array, T: Array) -> None:
        w = self._current()
        with np.errstate(over="ignore", invalid="ignore"):
            sane = bool(np.isfinite(w).all() and np.isfinite(np.square(A @ w).sum()))
        if not sane:
            raise DivergenceError(
                f"{type(self).__name__} has diverged in epoch {self.n_iter_ + 1}: "
                + self._divergence_hint(),
                self.history_,
            )
        self.n_iter_ += 1
        coef, intercept = self.design_.coefficients(w)
        self.coef_ = coef[0] if self._one_output else coef
        self.intercept_ = float(intercept[0]) if self._one_output else intercept

    def _divergence_hint(self) -> str:
        return "a smaller step may help"

    def _record(
        self,
        X: Array,
        Y: Array,
        weights: Array,
        validation: Pair | None,
        seconds: float,
        skipped: float,
    ) -> Mapping[str, float]:
        entry = {
            "epoch": float(self.n_iter_),
            "loss": self._loss(X, Y, weights),
            "validation_loss": np.nan,
            "seconds": seconds,
            "skipped": skipped,
        }
        if validation is not None:
            held, target = (np.asarray(part, dtype=np.float64) for part in validation)
            entry["validation_loss"] = self._loss(held, target.reshape(len(target), -1), None)
        for name, value in entry.items():
            self.history_[name].append(value)
        return entry

    def _loss(self, X: Array, Y: Array, weights: Array | None) -> float:
        coef = np.atleast_2d(self.coef_)
        errors = np.square(Y - X @ coef.T - self.intercept_).mean(axis=1)
        return float(np.average(errors, weights=weights))


def unknown(name: str, value: object, valid: tuple[str, ...]) -> ModelError:
    """Return the error for a parameter that is none of the valid words."""
    return ModelError(f"{name}={value!r}: valid are {', '.join(map(repr, valid))}")


def gradient(A: Array, T: Array, w: Array) -> NDArray[np.float64]:
    """Return the gradient of half the mean squared error of a batch, (q, k)."""
    return np.asarray(A.T @ (A @ w - T) / len(A))
