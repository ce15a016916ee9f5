"""What every ranker is, what it sees, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from roshap.attribution.explainers import Method
from roshap.attribution.explainers.outputs import n_outputs
from roshap.errors import ModelError
from roshap.models import Task

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table


@dataclass(frozen=True)
class RankingData:
    """What a ranker sees: training rows only, and one model that was fitted to a part of them.

    Attributes
    ----------
    X, y
        (n, p) features and (n,) target of the training rows.
    features
        Names of the p features.
    task
        What is predicted.
    weights
        (n,) weights of the rows, or None.
    fitted
        The model, fitted to the rows ``fit_rows``.
    fit_rows, aside
        One split of the training rows, as row numbers: the model has never seen ``aside``.
    explainer
        Which routine computes SHAP values.
    k
        The number of leading features that statements about a ranker's stability are about.
    """

    X: Table
    y: np.ndarray
    features: tuple[str, ...]
    task: Task
    weights: np.ndarray | None
    fitted: Any
    fit_rows: np.ndarray
    aside: np.ndarray
    explainer: Method = "auto"
    k: int = 10

    def rows(self, rows: np.ndarray) -> Table:
        """Return some rows of X."""
        X = self.X
        return X[rows] if isinstance(X, np.ndarray) else X.iloc[rows].reset_index(drop=True)

    @property
    def numeric(self) -> bool:
        """Whether no column holds categories."""
        return isinstance(self.X, np.ndarray)

    @property
    def has_nan(self) -> bool:
        """Whether a number is missing."""
        return self.numeric and bool(np.isnan(self.X).any())


@dataclass(frozen=True)
class Ranked:
    """A ranker's answer.

    Attributes
    ----------
    scores
        (p,) one number per feature, larger is better.
    notes
        What a reader must know of how it was made (screening, samples).
    details
        Measured properties of the ranking, e.g. how much it changes with the ranker's own seed.
    """

    scores: np.ndarray
    notes: tuple[str, ...] = ()
    details: Mapping[str, float] = field(default_factory=dict)


class Ranker(Protocol):
    """Anything that scores features from training rows."""

    @property
    def name(self) -> str:
        """Key of the ranker in configs and tables."""

    def unfit(self, data: RankingData) -> str | None:
        """Say why this ranker cannot rank this data with this model; None where it can."""

    def rank(self, data: RankingData, rng: np.random.Generator) -> Ranked:
        """Score the features; the answer depends on the arguments only."""


def order(scores: np.ndarray, features: tuple[str, ...]) -> np.ndarray:
    """Return the columns, best first; ties go by name, never by the order of the columns."""
    by_name = np.argsort(np.asarray(features, dtype=object), kind="stable")
    return by_name[np.argsort(-scores[by_name], kind="stable")]


def random_state(rng: np.random.Generator) -> int:
    """Draw a seed for a library that takes an integer."""
    return int(rng.integers(2**31 - 1))


def sample_rows(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``rows``, or an ascending random subset of them where they are more than ``most``."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, size=most, replace=False))


def predict_outputs(model: Any, X: Table, task: Task) -> np.ndarray:
    """Return predictions of regression, (n,), or probabilities of classes, (n, C).

    Raises
    ------
    ModelError
        A classifier without ``predict_proba``.
    """
    if task == "regression":
        return np.ravel(np.asarray(model.predict(X), dtype=np.float64))
    if not hasattr(model, "predict_proba"):
        raise ModelError(f"{type(model).__name__} gives no probabilities")
    n_outputs(model, task)  # says so where the model lacks a class
    return np.asarray(model.predict_proba(X), dtype=np.float64)


def without_probabilities(data: RankingData) -> str | None:
    """Return why a ranker that asks for probabilities cannot rank, or None."""
    if data.task != "regression" and not hasattr(data.fitted, "predict_proba"):
        return "the model gives no probabilities"
    return None
