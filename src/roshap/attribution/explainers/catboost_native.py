"""CatBoost's own SHAP values (``ShapValues``, calculation type "Regular"), in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roshap.attribution.explainers.base import ChunkedExplainer, split_contributions
from roshap.attribution.explainers.outputs import n_outputs, space
from roshap.models import Task, family

if TYPE_CHECKING:
    import numpy as np

    from roshap.attribution.explainers.base import Table


class CatBoostExplainer(ChunkedExplainer):
    """Path-dependent TreeSHAP by CatBoost.

    Always "Regular": its "Approximate" and "Exact" values are other quantities.
    """

    name = "catboost native"

    def __init__(self, model: Any, n_features: int, task: Task, chunk_mb: float) -> None:
        super().__init__(n_features, n_outputs(model, task), space(model, task), chunk_mb)
        self._model = model
        self._categorical = model.get_cat_feature_indices()

    def _explain(self, X: Table) -> np.ndarray:
        import catboost

        raw = self._model.get_feature_importance(
            catboost.Pool(X, cat_features=self._categorical, thread_count=1),
            type="ShapValues",
            shap_calc_type="Regular",
            thread_count=1,
        )
        return split_contributions(raw, self.n_features, self.n_outputs)


def catboost_explainer(
    model: Any, background: Table, task: Task, *, chunk_mb: float
) -> CatBoostExplainer | None:
    """Return the explainer of a CatBoost model; ``None`` for any other model."""
    if family(model) != "catboost":
        return None
    return CatBoostExplainer(model, background.shape[1], task, chunk_mb)
