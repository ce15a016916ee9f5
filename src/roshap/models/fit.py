"""Fitting: the one place that knows how weights and categories reach each library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roshap.errors import ModelError, RoshapError
from roshap.models.family import family, final_step, is_pipeline

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def fit(
    estimator: Any,
    X: np.ndarray | pd.DataFrame,
    y: np.ndarray,
    sample_weight: np.ndarray | None = None,
) -> Any:
    """Fit a clone of `estimator`; the one that was passed is left as it is.

    Parameters
    ----------
    estimator : estimator
        Unfitted or fitted; a pipeline's steps get the weights where they take them, so that a
        row of weight 2 counts in the scaling as two rows do.
    X : (n, p) float64 array or DataFrame with category columns
        Features; may be read-only or memory-mapped.
    y : (n,) array
        Class codes or target values.
    sample_weight : (n,) array, optional
        Weights of the rows.

    Returns
    -------
    estimator
        The fitted clone.

    Raises
    ------
    ModelError
        The model takes no weights, or its library refuses the data.
    """
    from sklearn.base import clone

    model = clone(estimator)
    arguments = {} if sample_weight is None else _weight_arguments(model, sample_weight)
    arguments |= _category_arguments(model, X)
    try:
        return model.fit(X, y, **arguments)
    except (MemoryError, RoshapError):
        raise
    except Exception as error:  # each library has errors of its own
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(
            f"{type(final_step(model)).__name__} could not be fitted to {len(y)} rows: {reason}"
        ) from error


def _weight_arguments(model: Any, weight: np.ndarray) -> dict[str, Any]:
    """Return the keyword arguments of ``model.fit`` that carry the sample weights."""
    from sklearn.utils.validation import has_fit_parameter

    if not is_pipeline(model):
        if not has_fit_parameter(model, "sample_weight"):
            raise ModelError(
                f"{type(model).__name__} takes no sample weights: use another model, "
                "or a data set without weights"
            )
        return {"sample_weight": weight}
    arguments = {}
    for name, step in model.steps[:-1]:
        if step not in (None, "passthrough") and has_fit_parameter(step, "sample_weight"):
            arguments[f"{name}__sample_weight"] = weight
    name, last = model.steps[-1]
    return arguments | {f"{name}__{k}": v for k, v in _weight_arguments(last, weight).items()}


def _category_arguments(model: Any, X: np.ndarray | pd.DataFrame) -> dict[str, Any]:
    """Tell the libraries that must be told which columns are categories."""
    import numpy as np

    if isinstance(X, np.ndarray):
        return {}
    names = [name for name, dtype in X.dtypes.items() if str(dtype) == "category"]
    if not names:
        return {}
    kind = family(model)
    if kind == "xgboost" and not is_pipeline(model):
        model.set_params(enable_categorical=True)
    if kind == "catboost" and not is_pipeline(model):
        missing = [name for name in names if X[name].isna().any()]
        if missing:
            raise ModelError(
                f"CatBoost takes no missing values in category columns, and {missing[0]!r} has "
                "some: give them a category of their own, or use lightgbm or xgboost"
            )
        if model.get_param("cat_features") is None:
            return {"cat_features": names}
    return {}
