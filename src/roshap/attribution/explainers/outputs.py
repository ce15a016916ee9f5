"""The output of a model that attributions add up to: how many numbers, in which units, and it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from roshap.errors import ModelError
from roshap.models import Task, family, final_step, type_names

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table

MARGIN = "log-odds (margin)"
PROBABILITY = "probability"
TARGET = "target units"
DECISION = "decision function"
LOG_ODDS = "decision function (log-odds)"
LINK = "log of the target (margin)"

# Losses of regression models whose raw output is the logarithm of the prediction.
_LOG_LINKS = ("poisson", "gamma", "tweedie", "loglin")
_LOG_ODDS_MODELS = ("LogisticRegression", "LinearDiscriminantAnalysis")


def n_outputs(model: Any, task: Task) -> int:
    """Return K: 1 for a binary target and for regression, else the number of classes.

    Raises
    ------
    ModelError
        A multi-class model was fitted to rows that lack one of the classes.
    """
    if task == "regression":
        return 1
    classes = np.asarray(model.classes_)
    codes = np.issubdtype(classes.dtype, np.integer) and not np.array_equal(
        classes, np.arange(len(classes))
    )
    if len(classes) < 2 or codes or (task == "multiclass") != (len(classes) > 2):
        raise ModelError(
            f"the model was fitted to the classes {classes.tolist()} of a {task} target: the rows "
            "it was fitted to lack a class; draw them stratified or with a minimum per class"
        )
    return 1 if task == "binary" else len(classes)


def space(model: Any, task: Task) -> str:
    """Return the units of the output that attributions add up to."""
    if task == "regression":
        return LINK if _has_log_link(model) else TARGET
    kind, final = family(model), final_step(model)
    if kind in ("xgboost", "lightgbm", "catboost") or _is_boosted(final):
        return MARGIN
    if kind == "linear":
        names = {name for _, name in type_names(final)}
        log_odds = names.intersection(_LOG_ODDS_MODELS) or getattr(final, "loss", "") == "log_loss"
        return LOG_ODDS if log_odds else DECISION
    return PROBABILITY if hasattr(model, "predict_proba") else DECISION


def raw_output(model: Any, X: Table, task: Task) -> np.ndarray:
    """Return the model's output in the units of :func:`space`, (n, K) float64.

    Raises
    ------
    ModelError
        The model gives a different number of outputs than the task has (a one-against-one
        decision function).
    """
    out = np.asarray(_predict(model, X, task), dtype=np.float64)
    if out.ndim == 2 and out.shape[1] == 2 and task == "binary":
        out = out[:, 1]
    out = out.reshape(len(X), -1)
    if out.shape[1] != n_outputs(model, task):
        raise ModelError(
            f"{type(final_step(model)).__name__} gives {out.shape[1]} outputs for "
            f"{n_outputs(model, task)}: use a model with one output per class"
        )
    return out


def _predict(model: Any, X: Table, task: Task) -> Any:
    kind = family(model)
    if kind == "xgboost":
        return model.predict(X, output_margin=True)
    if kind == "lightgbm":
        return model.predict(X, raw_score=True)
    if kind == "catboost":
        return model.predict(X, prediction_type="RawFormulaVal")
    if task == "regression":
        prediction = model.predict(X)
        return np.log(prediction) if _has_log_link(model) else prediction
    return (
        model.predict_proba(X) if space(model, task) == PROBABILITY else model.decision_function(X)
    )


def _is_boosted(model: Any) -> bool:
    """Whether `model` is gradient boosting of scikit-learn, whose trees add up to a margin."""
    names = {name for _, name in type_names(model)}
    return not names.isdisjoint({"BaseGradientBoosting", "BaseHistGradientBoosting"})


def _has_log_link(model: Any) -> bool:
    """Whether a regression model's raw output is the logarithm of its prediction."""
    final = final_step(model)
    kind = family(final)
    if kind == "catboost":
        loss = final.get_param("loss_function") or final.get_param("objective")
    elif kind in ("xgboost", "lightgbm"):
        loss = final.objective
    elif ("sklearn", "_GeneralizedLinearRegressor") in type_names(final):
        # TweedieRegressor is the only one with a choice of link
        return type(final).__name__ != "TweedieRegressor" or _tweedie_link(final) == "log"
    else:
        loss = final.loss if _is_boosted(final) else None
    return any(name in str(loss).lower() for name in _LOG_LINKS)


def _tweedie_link(model: Any) -> str:
    if model.link != "auto":
        return str(model.link)
    return "identity" if model.power <= 0 else "log"
