"""What iterative logistic classifiers share: labels, the design, probabilities, the loss."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from roshap.errors import ModelError
from roshap.regression.design import Array, Design
from roshap.regression.iterative import Pair


class IterativeClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Logistic regression in epochs; several classes are told one from the rest.

    Attributes
    ----------
    classes_ : (C,) array
    coef_, intercept_ : (K, p) and (K,) arrays
        In the units of the data; K is 1 for two classes, else C.
    history_ : dict
        Lists with an entry per epoch: ``epoch``, ``loss`` (mean log-loss of the one-vs-rest
        problems), ``validation_loss``, ``validation_error`` (share of wrong labels), ``seconds``.
    n_iter_ : int
        Epochs run.
    """

    epochs: int
    fit_intercept: bool
    standardise: bool
    random_state: int | np.random.RandomState | None

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        validation: Pair | None = None,
    ) -> Self:
        """Fit by ``epochs`` passes over the rows; ``validation`` rows are only looked at."""
        if self.epochs < 1:
            raise ModelError(f"epochs={self.epochs}: at least 1")
        rows, labels = map(np.asarray, validate_data(self, X, y, dtype=np.float64))
        check_classification_targets(labels)
        weights = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        used = weights > 0
        rows, labels, weights = rows[used], labels[used], weights[used]
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only ({self.classes_[0]!r}): at least two")
        Y = self._one_hot(labels)
        rng = check_random_state(self.random_state)
        self.design_ = Design.of(
            rows,
            Y,
            weights,
            intercept=self.fit_intercept,
            standardise=self.standardise,
            standardise_target=False,
        )
        self.w_ = np.zeros((self.design_.q, Y.shape[1]))
        self.history_: dict[str, list[float]] = {
            name: [] for name in ("epoch", "loss", "validation_loss", "validation_error", "seconds")
        }
        A = self.design_.matrix(rows)
        self._reset(A)
        for epoch in range(self.epochs):
            began = time.perf_counter()
            self._epoch(A, Y, weights, rng.permutation(len(A)))
            seconds = time.perf_counter() - began
            self._publish()
            self._record(epoch + 1, A, Y, weights, validation, seconds)
        self.n_iter_ = self.epochs
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """Return log-odds: (n,) of the second of two classes, else (n, C) one against the rest."""
        check_is_fitted(self)
        rows = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        odds = np.asarray(rows @ self.coef_.T + self.intercept_)
        return odds[:, 0] if len(self.classes_) == 2 else odds

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return probabilities (n, C); those of the one-vs-rest problems, scaled to sum 1."""
        chance = expit(self.decision_function(X))
        if chance.ndim == 1:
            return np.column_stack([1.0 - chance, chance])
        total = chance.sum(axis=1, keepdims=True)
        even = np.full_like(chance, 1.0 / chance.shape[1])
        return np.divide(chance, total, out=even, where=total > 0)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the label of the largest log-odds, (n,)."""
        odds = self.decision_function(X)
        best = (odds > 0).astype(int) if odds.ndim == 1 else odds.argmax(axis=1)
        return np.asarray(self.classes_[best])

    @abstractmethod
    def _reset(self, A: Array) -> None:
        """Set the state of a fresh iteration."""

    @abstractmethod
    def _epoch(self, A: Array, Y: Array, weights: Array, order: np.ndarray) -> None:
        """Update ``w_`` by one pass."""

    def _one_hot(self, y: np.ndarray) -> Array:
        one_hot = (y[:, None] == self.classes_).astype(np.float64)
        return one_hot[:, 1:] if len(self.classes_) == 2 else one_hot

    def _publish(self) -> None:
        self.coef_, self.intercept_ = self.design_.coefficients(self.w_)

    def _record(
        self,
        epoch: int,
        A: Array,
        Y: Array,
        weights: Array,
        validation: Pair | None,
        seconds: float,
    ) -> None:
        entry = {
            "epoch": float(epoch),
            "loss": log_loss(A @ self.w_, Y, weights),
            "validation_loss": np.nan,
            "validation_error": np.nan,
            "seconds": seconds,
        }
        if validation is not None:
            held, labels = np.asarray(validation[0], dtype=np.float64), np.asarray(validation[1])
            odds = held @ self.coef_.T + self.intercept_
            entry["validation_loss"] = log_loss(odds, self._one_hot(labels), None)
            entry["validation_error"] = float(np.mean(self.predict(validation[0]) != labels))
        for name, value in entry.items():
            self.history_[name].append(value)


def log_loss(odds: Array, Y: Array, weights: Array | None) -> float:
    """Return the mean log-loss of log-odds (n, K) for 0/1 outputs (n, K)."""
    return float(np.average((np.logaddexp(0.0, odds) - Y * odds).mean(axis=1), weights=weights))
