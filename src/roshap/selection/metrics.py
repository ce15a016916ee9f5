"""How well a refitted model predicts rows that neither it nor its ranking has seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from roshap.models import Task

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table


@dataclass(frozen=True)
class Metric:
    """A metric's key, heading and direction."""

    name: str
    title: str
    higher_is_better: bool


CLASSIFICATION = (
    Metric("accuracy", "Accuracy", True),
    Metric("f1_macro", "F1 (macro)", True),
    Metric("average_precision", "Average precision", True),
    Metric("roc_auc", "ROC AUC", True),
)
REGRESSION = (
    Metric("rmse", "RMSE", False),
    Metric("mae", "MAE", False),
    Metric("mape", "MAPE", False),
)
METRICS = {metric.name: metric for metric in (*CLASSIFICATION, *REGRESSION)}


def metrics_of(task: Task) -> tuple[Metric, ...]:
    """Return the metrics of a task, in the order of the figures."""
    return REGRESSION if task == "regression" else CLASSIFICATION


def measure(fitted: Any, X: Table, y: np.ndarray, task: Task) -> dict[str, float]:
    """Return each metric of a fitted model on test rows; NaN where it is not defined.

    Binary: the class of code 1 is the positive one. More classes: F1, average precision and ROC
    AUC are means over the classes, each against the rest. MAPE is not defined where a target is 0.
    """
    # CatBoost predicts classes as (n, 1)
    predicted = np.ravel(np.asarray(fitted.predict(X)))
    if task == "regression":
        return _regression(y, predicted.astype(np.float64))
    return _classification(y, predicted.astype(np.int64), _class_scores(fitted, X, task), task)


def _regression(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    error = np.abs(predicted - y)
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(error.mean()),
        "mape": float(np.mean(error / np.abs(y))) if np.all(y != 0) else float("nan"),
    }


def _class_scores(fitted: Any, X: Table, task: Task) -> np.ndarray | None:
    """Return (n,) scores of the positive class, (n, C) with more classes, or None."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(fitted, method):
            scores = np.asarray(getattr(fitted, method)(X), dtype=np.float64)
            if task == "binary":
                return scores[:, 1] if scores.ndim == 2 else scores
            return scores
    return None


def _classification(
    y: np.ndarray, predicted: np.ndarray, scores: np.ndarray | None, task: Task
) -> dict[str, float]:
    from sklearn.metrics import accuracy_score, f1_score

    found = {
        "accuracy": float(accuracy_score(y, predicted)),
        "f1_macro": float(f1_score(y, predicted, average="macro", zero_division=0.0)),
        "average_precision": float("nan"),
        "roc_auc": float("nan"),
    }
    if scores is None:
        return found
    if task == "binary":
        return found | _curves(y == 1, scores)
    against_rest = [_curves(y == code, scores[:, code]) for code in range(scores.shape[1])]
    return found | {key: float(np.mean([one[key] for one in against_rest])) for key in _CURVES}


_CURVES = ("average_precision", "roc_auc")


def _curves(positive: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import average_precision_score, roc_auc_score

    if positive.all() or not positive.any():
        return dict.fromkeys(_CURVES, float("nan"))
    return {
        "average_precision": float(average_precision_score(positive, scores)),
        "roc_auc": float(roc_auc_score(positive, scores)),
    }
