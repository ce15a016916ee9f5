"""Trees of scikit-learn: decision trees, forests, gradient boosting, histogram boosting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roshap.attribution.explainers.tree_layout.layout import TreeTable
from roshap.models import Task, type_names

#: Forests whose prediction is the mean of their trees'; an isolation forest's, for one, is not.
_AVERAGED = frozenset(
    {"ForestClassifier", "ForestRegressor", "DecisionTreeClassifier", "DecisionTreeRegressor"}
)


def sklearn_table(model: Any, task: Task) -> TreeTable | None:
    """Read a fitted tree model of scikit-learn; ``None`` for one that is no plain sum of trees.

    Classifiers that average (trees, forests) are read as class probabilities, boosted ones as raw
    margins. Several targets, categorical splits and a boosting that starts from another model are
    not read.
    """
    names = {name for package, name in type_names(model) if package == "sklearn"}
    if "BaseHistGradientBoosting" in names:
        return _histogram_boosting(model)
    if "BaseGradientBoosting" in names:
        return _boosting(model)
    if names & _AVERAGED and model.n_outputs_ == 1:
        return _forest(model, task)
    return None


def _forest(model: Any, task: Task) -> TreeTable:
    trees = [tree.tree_ for tree in getattr(model, "estimators_", [model])]
    value = np.concatenate([tree.value[:, 0, :] for tree in trees])
    if task != "regression":
        total = value.sum(axis=1, keepdims=True)
        value = np.divide(value, total, out=np.zeros_like(value), where=total > 0)
        # the last class is minus the sum of the others; of two, the second is explained
        value = value[:, 1:] if task == "binary" else value[:, :-1]
    return _tree_table(
        trees,
        value / len(trees),
        output=np.zeros(len(trees), np.int64),
        n_features=model.n_features_in_,
        n_outputs=value.shape[1],
        complement=task == "multiclass",
    )


def _boosting(model: Any) -> TreeTable | None:
    names = {name for _, name in type_names(model.init_)}
    constant = isinstance(model.init_, str) or names & {"DummyClassifier", "DummyRegressor"}
    if not constant:
        return None
    trees = [tree.tree_ for tree in model.estimators_.ravel()]
    value = np.concatenate([tree.value[:, 0, :] for tree in trees])
    n_outputs = model.estimators_.shape[1]
    return _tree_table(
        trees,
        value * model.learning_rate,
        output=np.arange(len(trees)) % n_outputs,
        n_features=model.n_features_in_,
        n_outputs=n_outputs,
        complement=False,
    )


def _tree_table(
    trees: Sequence[Any],
    value: np.ndarray,
    *,
    output: np.ndarray,
    n_features: int,
    n_outputs: int,
    complement: bool,
) -> TreeTable:
    def nodes(name: str) -> np.ndarray:
        return np.concatenate([getattr(tree, name) for tree in trees])

    return TreeTable(
        tree_start=np.cumsum([0, *(tree.node_count for tree in trees)]),
        left=nodes("children_left"),
        right=nodes("children_right"),
        feature=nodes("feature"),
        threshold=nodes("threshold"),
        nan_left=nodes("missing_go_to_left"),
        cover=nodes("weighted_n_node_samples"),
        value=value,
        output=output,
        n_features=n_features,
        n_outputs=n_outputs,
        complement=complement,
        single_precision=True,
    )


def _histogram_boosting(model: Any) -> TreeTable | None:
    # scikit-learn has no public access to these trees; without it, another explainer takes over
    rounds = getattr(model, "_predictors", None)
    if rounds is None or np.any(model.is_categorical_):
        return None
    trees = [tree.nodes for trees in rounds for tree in trees]
    nodes = np.concatenate(trees)
    leaf = nodes["is_leaf"].astype(bool)
    n_outputs = model.n_trees_per_iteration_
    return TreeTable(
        tree_start=np.cumsum([0, *(tree.size for tree in trees)]),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        feature=nodes["feature_idx"],
        threshold=nodes["num_threshold"],
        nan_left=nodes["missing_go_to_left"],
        cover=nodes["count"],
        value=nodes["value"][:, None],
        output=np.arange(len(trees)) % n_outputs,
        n_features=model.n_features_in_,
        n_outputs=n_outputs,
        complement=False,
        single_precision=False,
    )
