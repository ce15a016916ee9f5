"""Trees of LightGBM, from the text form of a booster.

The text holds each tree as plain arrays, with 17 digits; the JSON dump nests the nodes and takes
about ten times as long to make and read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roshap.attribution.explainers.tree_layout.layout import TreeTable
from roshap.models import Task

# bits of a node's decision type
_CATEGORICAL = 1
_DEFAULT_LEFT = 2
_MISSING_SHIFT = 2
_MISSING_NONE, _MISSING_ZERO = 0, 1

_FIELDS = frozenset(
    {
        "num_leaves",
        "num_cat",
        "is_linear",
        "split_feature",
        "threshold",
        "decision_type",
        "left_child",
        "right_child",
        "leaf_value",
        "internal_count",
        "leaf_count",
    }
)


def lightgbm_table(model: Any, task: Task) -> TreeTable | None:
    """Read a fitted ``LGBMModel`` of numerical splits; ``None`` for any other.

    Not read: categorical splits, zero as missing, linear leaves, averaged trees (``boosting="rf"``,
    whose own contributions LightGBM does not average). Trees after the best round of early
    stopping are left out, as in LightGBM's predictions.
    """
    if model.booster_.pandas_categorical:
        return None
    header, trees = _parse(model.booster_.model_to_string())
    n_outputs = int(header["num_tree_per_iteration"])
    if "average_output" in header or (n_outputs > 1) != (task == "multiclass"):
        return None
    if not all(_is_plain(tree) for tree in trees):
        return None
    kinds = np.concatenate([tree["decision_type"] for tree in trees]).astype(np.int64)
    missing = kinds >> _MISSING_SHIFT
    if np.any(kinds & _CATEGORICAL) or np.any(missing == _MISSING_ZERO):
        return None
    leaves = np.array([int(tree["num_leaves"][0]) for tree in trees])
    # a tree's nodes: the splits in LightGBM's order, then the leaves
    is_leaf = np.concatenate([np.arange(2 * n - 1) >= n - 1 for n in leaves])

    def at_splits(name: str) -> np.ndarray:
        out = np.zeros(is_leaf.size)
        out[~is_leaf] = np.concatenate([tree[name] for tree in trees])
        return out

    nan_left = np.zeros(is_leaf.size, bool)
    # without missing values in training, NaN counts as 0
    zero_left = np.concatenate([tree["threshold"] for tree in trees]) >= 0.0
    nan_left[~is_leaf] = np.where(missing == _MISSING_NONE, zero_left, kinds & _DEFAULT_LEFT)
    value = np.zeros(is_leaf.size)
    value[is_leaf] = np.concatenate([tree["leaf_value"] for tree in trees])
    cover = at_splits("internal_count")
    cover[is_leaf] = np.concatenate([_leaf_counts(tree) for tree in trees])
    return TreeTable(
        tree_start=np.cumsum([0, *(2 * leaves - 1)]),
        left=_children(trees, "left_child", is_leaf),
        right=_children(trees, "right_child", is_leaf),
        feature=at_splits("split_feature").astype(np.int64),
        threshold=at_splits("threshold"),
        nan_left=nan_left,
        cover=cover,
        value=value[:, None],
        output=np.arange(len(trees)) % n_outputs,
        n_features=int(header["max_feature_idx"]) + 1,
        n_outputs=n_outputs,
        complement=False,
        single_precision=False,
    )


def _parse(text: str) -> tuple[dict[str, str], list[dict[str, np.ndarray]]]:
    """Split the text form into its header and, per tree, the arrays that are needed."""
    head, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    header = dict(_pairs(head))
    trees = [
        {
            key: np.fromstring(numbers, dtype=np.float64, sep=" ")
            for key, numbers in _pairs(block)
            if key in _FIELDS
        }
        for block in blocks
    ]
    return header, trees


def _pairs(text: str) -> list[tuple[str, str]]:
    lines = (line.partition("=") for line in text.splitlines())
    return [(key, value) for key, _, value in lines]


def _is_plain(tree: dict[str, np.ndarray]) -> bool:
    linear = tree.get("is_linear")
    return tree["num_cat"][0] == 0 and (linear is None or linear[0] == 0)


def _leaf_counts(tree: dict[str, np.ndarray]) -> np.ndarray:
    """Rows per leaf; a tree without a split may have none written."""
    counts = tree["leaf_count"]
    return counts if counts.size else np.ones(int(tree["num_leaves"][0]))


def _children(trees: list[dict[str, np.ndarray]], name: str, is_leaf: np.ndarray) -> np.ndarray:
    """Children as positions in the tree: LightGBM writes leaf i as ``~i``."""
    out = np.full(is_leaf.size, -1, np.int64)
    children = [tree[name].astype(np.int64) for tree in trees]
    out[~is_leaf] = np.concatenate([np.where(c < 0, c.size + ~c, c) for c in children])
    return out
