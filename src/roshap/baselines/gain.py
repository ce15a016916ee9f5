"""What the fitted model itself says: gain, impurity or |coefficient|, by family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from roshap.baselines.base import Ranked, RankingData
from roshap.errors import ModelError
from roshap.models import family, final_step


@dataclass(frozen=True)
class Gain:
    """The model's own importance of each feature.

    ==========  ====================================================================
    family      importance
    ==========  ====================================================================
    xgboost     ``gain``: mean reduction of the loss over the splits on the feature
    lightgbm    ``gain``: summed reduction of the loss
    catboost    ``PredictionValuesChange``
    tree        impurity decrease (scikit-learn's ``feature_importances_``)
    linear      absolute coefficient, mean over outputs; of standardised features where
                the model standardises
    ==========  ====================================================================
    """

    name: str = "gain"

    def unfit(self, data: RankingData) -> str | None:
        """Say which models have no importance of their own."""
        model = final_step(data.fitted)
        if family(model) == "other" or model_importance(data.fitted, len(data.features)) is None:
            return f"{type(model).__name__} has no importance of its own"
        return None

    def rank(self, data: RankingData, rng: np.random.Generator) -> Ranked:
        """Score features by the model's importance; nothing is drawn."""
        found = model_importance(data.fitted, len(data.features))
        if found is None:
            raise ModelError(f"{type(data.fitted).__name__} has no importance of its own")
        return Ranked(found, (IMPORTANCE_NAMES[family(data.fitted)],))


def model_importance(fitted: Any, n_features: int) -> np.ndarray | None:
    """Return the (p,) importance of a fitted model's features, or None where it has none."""
    reader = _READERS.get(family(fitted))
    found = None if reader is None else reader(final_step(fitted))
    if found is None or found.shape != (n_features,):
        return None
    return found


def used_features(fitted: Any, n_features: int) -> np.ndarray:
    """Return the columns that the model's output can depend on; all where that is not known.

    A tree model whose importance of a feature is zero has no split on it that changes anything.
    """
    found = model_importance(fitted, n_features)
    if found is None or not np.any(found):
        return np.arange(n_features)
    return np.flatnonzero(found)


def _xgboost(model: Any) -> np.ndarray:
    booster = model.get_booster()
    gains = booster.get_score(importance_type="gain")
    names = booster.feature_names or [f"f{j}" for j in range(model.n_features_in_)]
    # gblinear has a weight per class
    return np.array([float(np.mean(np.abs(gains.get(name, 0.0)))) for name in names])


def _lightgbm(model: Any) -> np.ndarray:
    gains = model.booster_.feature_importance(importance_type="gain")
    return np.asarray(gains, dtype=np.float64)


def _catboost(model: Any) -> np.ndarray:
    change = model.get_feature_importance(type="PredictionValuesChange", thread_count=1)
    return np.asarray(change, dtype=np.float64)


def _tree(model: Any) -> np.ndarray | None:
    found = getattr(model, "feature_importances_", None)
    return None if found is None else np.asarray(found, dtype=np.float64)


def _linear(model: Any) -> np.ndarray | None:
    coefficients = getattr(model, "coef_", None)
    if coefficients is None:
        return None
    rows = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    return np.asarray(np.abs(rows).mean(axis=0))


_READERS: dict[str, Callable[[Any], np.ndarray | None]] = {
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
    "tree": _tree,
    "linear": _linear,
}

#: What the importance of each family is called.
IMPORTANCE_NAMES = {
    "xgboost": "gain (mean per split)",
    "lightgbm": "gain (sum)",
    "catboost": "PredictionValuesChange",
    "tree": "impurity decrease",
    "linear": "|coefficient|",
}
