"""Permutation importance on the rows set aside (ours; not one of the paper's rankers)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roshap.baselines.base import (
    Ranked,
    RankingData,
    predict_outputs,
    sample_rows,
    without_probabilities,
)
from roshap.baselines.gain import used_features

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table

_SMALLEST = 1e-15  # a probability of zero would make the loss infinite


@dataclass(frozen=True)
class Permutation:
    """How much the loss rises when one column of the rows set aside is shuffled.

    The loss is the log loss for classes and the squared error for regression. Features that the
    model does not use have an importance of exactly 0 and are not shuffled, which is what makes
    7129 features affordable.

    Parameters
    ----------
    repeats
        Shuffles per feature.
    rows
        Most rows used.
    """

    repeats: int = 5
    rows: int = 2000
    name: str = "permutation"

    def unfit(self, data: RankingData) -> str | None:
        """Say that a loss needs probabilities."""
        return without_probabilities(data)

    def rank(self, data: RankingData, rng: np.random.Generator) -> Ranked:
        """Score features by the mean rise of the loss over the shuffles."""
        rows = sample_rows(data.aside, self.rows, rng)
        X, y = data.rows(rows), data.y[rows]
        weights = None if data.weights is None else data.weights[rows]
        base = self._loss(data, X, y, weights)
        shuffles = np.stack([rng.permutation(len(rows)) for _ in range(self.repeats)])
        scores = np.zeros(len(data.features))
        shuffled = X.copy()
        for j in used_features(data.fitted, len(data.features)):
            rises = []
            for places in shuffles:
                _write(shuffled, j, X, places)
                rises.append(self._loss(data, shuffled, y, weights) - base)
            _write(shuffled, j, X, np.arange(len(rows)))
            scores[j] = np.mean(rises)
        return Ranked(scores, (f"{self.repeats} shuffles of {len(rows)} rows set aside",))

    @staticmethod
    def _loss(data: RankingData, X: Table, y: np.ndarray, weights: np.ndarray | None) -> float:
        found = predict_outputs(data.fitted, X, data.task)
        if data.task == "regression":
            losses = (found - y) ** 2
        else:
            losses = -np.log(np.maximum(found[np.arange(len(y)), y], _SMALLEST))
        return float(np.average(losses, weights=weights))


def _write(target: Table, column: int, source: Table, places: np.ndarray) -> None:
    """Put one column of ``source``, in another order of rows, into ``target``."""
    if isinstance(source, np.ndarray) and isinstance(target, np.ndarray):
        target[:, column] = source[places, column]
    elif not isinstance(source, np.ndarray) and not isinstance(target, np.ndarray):
        target.isetitem(column, source.iloc[places, column].array)
