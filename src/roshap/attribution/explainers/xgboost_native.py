"""XGBoost's own SHAP values (``pred_contribs``), computed by its C++ core in float32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roshap.attribution.explainers.base import ChunkedExplainer, split_contributions
from roshap.attribution.explainers.outputs import n_outputs, space
from roshap.models import Task, family

if TYPE_CHECKING:
    import numpy as np

    from roshap.attribution.explainers.base import Table


class XGBoostExplainer(ChunkedExplainer):
    """Path-dependent TreeSHAP by XGBoost; never ``approx_contribs``, which is another quantity."""

    name = "xgboost native"

    def __init__(self, model: Any, n_features: int, task: Task, chunk_mb: float) -> None:
        super().__init__(n_features, n_outputs(model, task), space(model, task), chunk_mb)
        self._booster = model.get_booster()
        self._missing = model.missing
        self._feature_types = model.feature_types
        # A model fitted with early stopping predicts with its best rounds only; so is it explained.
        rounds = getattr(model, "best_iteration", None) if model.early_stopping_rounds else None
        self._rounds = (0, 0) if rounds is None else (0, rounds + 1)

    def _explain(self, X: Table) -> np.ndarray:
        import xgboost

        data = xgboost.DMatrix(
            X,
            missing=self._missing,
            feature_types=self._feature_types,
            enable_categorical=True,
            nthread=1,
        )
        raw = self._booster.predict(
            data, pred_contribs=True, validate_features=False, iteration_range=self._rounds
        )
        return split_contributions(raw, self.n_features, self.n_outputs)


def xgboost_explainer(
    model: Any, background: Table, task: Task, *, chunk_mb: float
) -> XGBoostExplainer | None:
    """Return the explainer of an XGBoost model; ``None`` for any other model."""
    if family(model) != "xgboost":
        return None
    return XGBoostExplainer(model, background.shape[1], task, chunk_mb)
