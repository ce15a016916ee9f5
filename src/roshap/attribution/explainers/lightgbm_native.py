"""LightGBM's own SHAP values (``pred_contrib``), in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roshap.attribution.explainers.base import ChunkedExplainer, split_contributions
from roshap.attribution.explainers.outputs import n_outputs, space
from roshap.models import Task, family

if TYPE_CHECKING:
    import numpy as np

    from roshap.attribution.explainers.base import Table


class LightGBMExplainer(ChunkedExplainer):
    """Path-dependent TreeSHAP by LightGBM."""

    name = "lightgbm native"

    def __init__(self, model: Any, n_features: int, task: Task, chunk_mb: float) -> None:
        super().__init__(n_features, n_outputs(model, task), space(model, task), chunk_mb)
        self._booster = model.booster_

    def _explain(self, X: Table) -> np.ndarray:
        raw = self._booster.predict(X, pred_contrib=True, num_threads=1)
        return split_contributions(raw, self.n_features, self.n_outputs)


def lightgbm_explainer(
    model: Any, background: Table, task: Task, *, chunk_mb: float
) -> LightGBMExplainer | None:
    """Return the explainer of a LightGBM model of constant leaves; ``None`` for any other."""
    if family(model) != "lightgbm" or model.get_params().get("linear_tree"):
        return None
    return LightGBMExplainer(model, background.shape[1], task, chunk_mb)
