"""Trees of XGBoost, from the JSON form of a booster."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from roshap.attribution.explainers.tree_layout.layout import TreeTable
from roshap.models import Task


def xgboost_table(model: Any, task: Task) -> TreeTable | None:
    """Read a fitted ``XGBModel`` of numerical splits; ``None`` for dart, linear or other boosters.

    XGBoost compares ``x < threshold`` in float32, which for float32 values is ``x <= t`` with t
    the float32 number just below the threshold.
    """
    missing = model.missing
    if missing is not None and not np.isnan(missing):
        return None
    learner = json.loads(model.get_booster().save_raw(raw_format="json"))["learner"]
    booster = learner["gradient_booster"]
    parameters = learner["learner_model_param"]
    if booster["name"] != "gbtree" or int(parameters.get("num_target", 1)) > 1:
        return None
    n_trees = _used_trees(model, booster["model"])
    trees = booster["model"]["trees"][:n_trees]
    if "c" in learner["feature_types"] or not all(_is_plain(tree) for tree in trees):
        return None
    n_outputs = max(1, int(parameters["num_class"]))
    if (n_outputs > 1) != (task == "multiclass"):
        return None

    def nodes(name: str, dtype: type) -> np.ndarray:
        return np.concatenate([np.array(tree[name], dtype) for tree in trees])

    # at a leaf, the split condition is the leaf's value
    condition = nodes("split_conditions", np.float32)
    return TreeTable(
        tree_start=np.cumsum([0, *(len(tree["left_children"]) for tree in trees)]),
        left=nodes("left_children", np.int64),
        right=nodes("right_children", np.int64),
        feature=nodes("split_indices", np.int64),
        threshold=np.nextafter(condition, np.float32(-np.inf)),
        nan_left=nodes("default_left", np.bool_),
        cover=nodes("sum_hessian", np.float64),
        value=condition[:, None],
        output=np.array(booster["model"]["tree_info"][:n_trees]),
        n_features=int(parameters["num_feature"]),
        n_outputs=n_outputs,
        complement=False,
        single_precision=True,
    )


def _is_plain(tree: dict[str, Any]) -> bool:
    """Whether a tree has scalar leaves and no categorical split."""
    return int(tree["tree_param"]["size_leaf_vector"]) <= 1 and not any(tree["split_type"])


def _used_trees(model: Any, trees: dict[str, Any]) -> int:
    """Trees that predictions use: up to the best round where early stopping was on."""
    if model.early_stopping_rounds is None:
        return len(trees["trees"])
    return int(trees["iteration_indptr"][model.best_iteration + 1])
