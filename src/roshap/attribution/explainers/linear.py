"""Exact SHAP values of linear models: coefficient times the distance to the mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from roshap.attribution.explainers.base import ChunkedExplainer
from roshap.attribution.explainers.outputs import n_outputs, space
from roshap.models import Task, family

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table


class LinearExplainer(ChunkedExplainer):
    """``phi_ijk = coef_kj (x_ij - mean_j)`` with the means of the background rows.

    The SHAP value of a linear function when features are masked by the background one by one
    (the interventional game); it is exact, no sampling is involved.

    Parameters
    ----------
    coefficients : (K, p) array
        One row per output.
    means : (p,) array
        Background means, in the units that the coefficients apply to.
    """

    name = "exact linear"

    def __init__(
        self, coefficients: np.ndarray, means: np.ndarray, unit: str, chunk_mb: float
    ) -> None:
        super().__init__(coefficients.shape[1], coefficients.shape[0], unit, chunk_mb)
        self._coefficients = coefficients
        self._means = means

    def _explain(self, X: Table) -> np.ndarray:
        deviation = np.asarray(X, dtype=np.float64) - self._means
        return deviation[:, :, None] * self._coefficients.T[None, :, :]


def linear_explainer(
    model: Any, background: Table, task: Task, *, chunk_mb: float
) -> LinearExplainer | None:
    """Return the explainer of a model with one coefficient per feature and output, else ``None``.

    Linear models of scikit-learn count, on numeric features; a classifier is explained in its
    decision function (log-odds for logistic regression).
    """
    if family(model) != "linear" or not isinstance(background, np.ndarray):
        return None
    coefficients = getattr(model, "coef_", None)
    if coefficients is None:
        return None
    coefficients = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    if coefficients.shape != (n_outputs(model, task), background.shape[1]):
        return None
    return LinearExplainer(coefficients, background.mean(axis=0), space(model, task), chunk_mb)
