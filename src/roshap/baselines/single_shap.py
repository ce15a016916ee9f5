"""Single-run SHAP: one split, one model, mean |SHAP| over the rows set aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roshap.attribution.explainers import make_explainer
from roshap.baselines.base import Ranked, RankingData


@dataclass(frozen=True)
class SingleShap:
    """What RoSHAP repeats, done once: mean over the rows set aside of |SHAP|.

    With more than two classes the mean over the classes, as in the bootstrap.
    """

    name: str = "shap"

    def unfit(self, data: RankingData) -> str | None:
        """Every model is explained."""
        return None

    def rank(self, data: RankingData, rng: np.random.Generator) -> Ranked:
        """Score features by mean |SHAP|, in the units of the model's raw output."""
        explainer = make_explainer(
            data.fitted, data.rows(data.fit_rows), data.task, method=data.explainer, rng=rng
        )
        weights = None if data.weights is None else data.weights[data.aside]
        total = explainer.abs_sum(data.rows(data.aside), weights).mean(axis=1)
        scores = total / (len(data.aside) if weights is None else weights.sum())
        return Ranked(scores, (f"{explainer.name}, {len(data.aside)} rows",))
