"""Trees of every library in one flat layout: one adapter per library."""

from __future__ import annotations

from typing import Any

from roshap.attribution.explainers.tree_layout.layout import (
    Forest,
    TreeLayout,
    TreeTable,
    build_layout,
)
from roshap.attribution.explainers.tree_layout.lightgbm_trees import lightgbm_table
from roshap.attribution.explainers.tree_layout.sklearn_trees import sklearn_table
from roshap.attribution.explainers.tree_layout.xgboost_trees import xgboost_table
from roshap.models import Task, family

__all__ = ["Forest", "TreeLayout", "TreeTable", "build_layout", "read_trees"]

_ADAPTERS = {"tree": sklearn_table, "xgboost": xgboost_table, "lightgbm": lightgbm_table}


def read_trees(model: Any, task: Task) -> TreeTable | None:
    """Read the trees of a fitted estimator (no pipeline).

    Returns
    -------
    TreeTable or None
        ``None`` where the model is no ensemble of plain numerical splits: another family, a
        categorical split, dart, linear leaves, several targets.
    """
    adapter = _ADAPTERS.get(family(model))
    return None if adapter is None else adapter(model, task)
