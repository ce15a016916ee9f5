"""Top-k feature selection: the same model, splits and test rows for every ranker."""

from roshap.selection.comparison import (
    ALL_FEATURES,
    ALL_RANKERS,
    Selection,
    SelectionSettings,
    evaluate,
)
from roshap.selection.metrics import METRICS, Metric, metrics_of
from roshap.selection.splits import Split, make_splits
from roshap.selection.stability import SetStability, set_stability
from roshap.selection.summary import LABELS, against_roshap, curves, sentences, summarise

__all__ = [
    "ALL_FEATURES",
    "ALL_RANKERS",
    "LABELS",
    "METRICS",
    "Metric",
    "Selection",
    "SelectionSettings",
    "SetStability",
    "Split",
    "against_roshap",
    "curves",
    "evaluate",
    "make_splits",
    "metrics_of",
    "sentences",
    "set_stability",
    "summarise",
]
