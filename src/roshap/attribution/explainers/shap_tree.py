"""shap's TreeExplainer, for tree models that nothing faster explains."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from roshap.attribution.explainers.base import ChunkedExplainer
from roshap.attribution.explainers.outputs import n_outputs, raw_output, space
from roshap.models import Task, family

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table

logger = logging.getLogger(__name__)

# Rows of each chunk on which additivity is checked: enough to see a wrong model, at no cost.
_CHECKED_ROWS = 32


class ShapTreeExplainer(ChunkedExplainer):
    """Path-dependent TreeSHAP by shap.

    Attributes
    ----------
    additivity_error : float
        Largest ``|base + sum_j phi_ij - f(x_i)|`` seen on the checked rows, divided by
        ``max(1, |f(x_i)|)``. shap's own check is off: it ends a run over a difference of 0.05 %
        that comes from float32. The error is recorded, so that the caller can report it.
    """

    name = "shap tree"

    def __init__(
        self, explainer: Any, model: Any, n_features: int, task: Task, chunk_mb: float
    ) -> None:
        super().__init__(n_features, n_outputs(model, task), space(model, task), chunk_mb)
        self._explainer = explainer
        self._model = model
        self._task = task
        self.additivity_error = 0.0

    def _explain(self, X: Table) -> np.ndarray:
        raw = self._explainer.shap_values(X, check_additivity=False)
        phi = np.asarray(raw, dtype=np.float64).reshape(len(X), self.n_features, -1)
        base = np.atleast_1d(np.asarray(self._explainer.expected_value, dtype=np.float64))
        if self.n_outputs == 1 and phi.shape[2] == 2:  # both classes of a binary forest
            phi, base = phi[:, :, 1:], base[1:]
        self._check(X[:_CHECKED_ROWS], phi[:_CHECKED_ROWS], base[-self.n_outputs :])
        return np.ascontiguousarray(phi)

    def _check(self, X: Table, phi: np.ndarray, base: np.ndarray) -> None:
        output = raw_output(self._model, X, self._task)
        error = np.abs(phi.sum(axis=1) + base - output) / np.maximum(1.0, np.abs(output))
        self.additivity_error = max(self.additivity_error, float(error.max(initial=0.0)))


def shap_tree_explainer(
    model: Any, background: Table, task: Task, *, chunk_mb: float
) -> ShapTreeExplainer | None:
    """Return shap's explainer of a tree model; ``None`` where shap does not support it.

    Tables with category columns are not supported: shap turns them to numbers as it sees fit.
    """
    if family(model) not in ("tree", "xgboost", "lightgbm", "catboost"):
        return None
    if not isinstance(background, np.ndarray):
        return None
    import shap

    try:
        explainer = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    except Exception as error:  # shap says "not supported" with many kinds of exception
        logger.info("shap does not explain %s: %s", type(model).__name__, error)
        return None
    return ShapTreeExplainer(explainer, model, background.shape[1], task, chunk_mb)
