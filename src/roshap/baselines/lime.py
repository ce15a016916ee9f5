"""LIME: local linear models around rows, averaged over rows (the ``lime`` package)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from roshap.baselines.base import (
    Ranked,
    RankingData,
    predict_outputs,
    random_state,
    sample_rows,
    without_probabilities,
)
from roshap.baselines.gain import model_importance, used_features

#: Rows that the model predicts at a time, so that 5000 samples x 7129 features need no 285 MB.
_CHUNK = 1000


@dataclass(frozen=True)
class Lime:
    """Mean absolute weight of LIME's linear models over explained rows (Ribeiro et al. 2016).

    Continuous mode (no discretisation), ``feature_selection="highest_weights"``, weights per
    standard deviation of the feature. LIME perturbs the features that the model uses, at most
    ``features`` of them, those of the largest model importance first; all others keep the row's
    values and get a score of 0 (ours: its ridge regression over all of 7129 features would need
    more than that many samples for each row). Each row is explained by
    ``max(samples, 5 x perturbed features)`` samples.

    Every row is explained ``repeats`` times with other seeds. The score is the mean; how much the
    leading ``k`` differ between the repeats is what the details report.

    Parameters
    ----------
    rows
        Rows explained, drawn from the rows set aside.
    repeats
        Explanations of each row, with seeds of their own.
    samples
        Fewest samples around a row.
    features
        Most features that are perturbed.
    """

    rows: int = 10
    repeats: int = 2
    samples: int = 2000
    features: int = 500
    name: str = "lime"

    def unfit(self, data: RankingData) -> str | None:
        """Say which tables and models LIME does not take."""
        if not data.numeric:
            return "the table has columns of categories"
        if data.has_nan:
            return "the table has missing values"
        return without_probabilities(data)

    def rank(self, data: RankingData, rng: np.random.Generator) -> Ranked:
        """Score features by mean |weight|; with several classes the mean over classes."""
        columns = self._perturbed(data)
        samples = max(self.samples, 5 * len(columns))
        rows = sample_rows(data.aside, self.rows, rng)
        seeds = [random_state(rng) for _ in range(self.repeats)]
        found = np.zeros((self.repeats, len(data.features)))
        for repeat, seed in enumerate(seeds):
            found[repeat, columns] = _mean_weights(data, columns, rows, samples, seed)
        notes = [f"{len(rows)} rows x {self.repeats}, {samples} samples each"]
        used = len(used_features(data.fitted, len(data.features)))
        if len(columns) < used:
            notes.append(f"{len(columns)} of the {used} features that the model uses")
        return Ranked(found.mean(axis=0), tuple(notes), _instability(found, data.k))

    def _perturbed(self, data: RankingData) -> np.ndarray:
        p = len(data.features)
        used = used_features(data.fitted, p)
        if len(used) <= self.features:
            return used
        importance = model_importance(data.fitted, p)
        if importance is None:  # nothing says which matter: those that vary with the target most
            from roshap.attribution.screening import screen

            part = data.rows(data.fit_rows)
            return screen(part, data.y[data.fit_rows], data.task, "univariate", self.features)
        return np.sort(used[np.argsort(-importance[used], kind="stable")[: self.features]])


def _mean_weights(
    data: RankingData, columns: np.ndarray, rows: np.ndarray, samples: int, seed: int
) -> np.ndarray:
    """Return the (d,) mean over rows and outputs of LIME's |weight|."""
    from lime.lime_tabular import LimeTabularExplainer

    X = np.asarray(data.X)
    explainer = LimeTabularExplainer(
        X[np.ix_(data.fit_rows, columns)],
        mode="regression" if data.task == "regression" else "classification",
        discretize_continuous=False,
        feature_selection="highest_weights",
        random_state=np.random.RandomState(seed),
    )
    # a binary model's two classes have the same weights with opposite signs; LIME keeps the weights
    # of a regression under 1
    labels = range(len(np.unique(data.y))) if data.task == "multiclass" else (1,)
    total = np.zeros(len(columns))
    for row in rows:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ridge systems that are close to singular
            explanation = explainer.explain_instance(
                X[row, columns],
                _around(data, X[row], columns),
                labels=labels,
                num_features=len(columns),
                num_samples=samples,
            )
        for label in labels:
            for place, weight in explanation.local_exp[label]:
                total[place] += abs(weight) / len(labels)
    return total / len(rows)


def _around(data: RankingData, row: np.ndarray, columns: np.ndarray) -> Any:
    """Return the model as a function of some features, the others at the row's values."""

    def predict(perturbed: np.ndarray) -> np.ndarray:
        answers = []
        for start in range(0, len(perturbed), _CHUNK):
            part = perturbed[start : start + _CHUNK]
            whole = np.tile(row, (len(part), 1))
            whole[:, columns] = part
            answers.append(predict_outputs(data.fitted, whole, data.task))
        return np.concatenate(answers)

    return predict


def _instability(found: np.ndarray, k: int) -> dict[str, float]:
    """Return how far the repeats differ: share of the top k that is not shared, 1 - Spearman."""
    from scipy.stats import spearmanr

    if len(found) < 2:
        return {}
    top = [set(np.argsort(-scores, kind="stable")[:k].tolist()) for scores in found]
    pairs = [(a, b) for a in range(len(found)) for b in range(a)]
    jaccard = [len(top[a] & top[b]) / len(top[a] | top[b]) for a, b in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant scores have no correlation
        scored = found[:, found.any(axis=0)]
        rho = [float(spearmanr(scored[a], scored[b])[0]) for a, b in pairs]
    return {
        f"instability_top_{k}": 1.0 - float(np.mean(jaccard)),
        "instability_spearman": 1.0 - float(np.mean(rho)),
    }
