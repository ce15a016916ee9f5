"""What the comparison says in a few numbers, with honest words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from roshap.models import Task
from roshap.selection.comparison import ALL_FEATURES, ALL_RANKERS, ROSHAP
from roshap.selection.metrics import METRICS, metrics_of

#: Differences of metrics below this are none: a metric of n test rows has steps of about 1/n.
EQUAL = 1e-12


def curves(metrics: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Return ``evaluation, ranker, k`` with each metric's mean over the splits."""
    names = [metric.name for metric in metrics_of(task)]
    keys = ["evaluation", "ranker", "k"]
    table = metrics.groupby(keys, sort=False, as_index=False)[names].mean()
    return _in_order(table)


def summarise(metrics: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Return the numbers of the paper's bars: mean and spread over k of the curves.

    Returns
    -------
    DataFrame
        ``evaluation, ranker, metric, mean, spread, best, best_k``: spread is the standard
        deviation over k (ddof = 1), best the best k's value.
    """
    rows = []
    table = curves(metrics, task)
    for (evaluation, ranker), part in table.groupby(["evaluation", "ranker"], sort=False):
        for metric in metrics_of(task):
            values = part[metric.name].to_numpy(dtype=float)
            place = _best(values, metric.higher_is_better)
            rows.append(
                {
                    "evaluation": evaluation,
                    "ranker": ranker,
                    "metric": metric.name,
                    "mean": float(np.mean(values)),
                    "spread": float(np.std(values, ddof=1)) if len(values) > 1 else float("nan"),
                    "best": float(values[place]) if place is not None else float("nan"),
                    "best_k": None if place is None else int(part["k"].iloc[place]),
                }
            )
    return pd.DataFrame(rows)


def _best(values: np.ndarray, higher: bool) -> int | None:
    if np.isnan(values).all():
        return None
    return int(np.nanargmax(values) if higher else np.nanargmin(values))


def against_roshap(metrics: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Return what RoSHAP gained or lost against each other ranker.

    Returns
    -------
    DataFrame
        ``evaluation, ranker, metric, gain, better, equal, worse, splits_better, splits_worse,
        splits, verdict``. ``gain`` is the mean over k and splits of RoSHAP's advantage (positive
        is better for RoSHAP whatever the metric's direction); ``better``, ``equal``, ``worse``
        count the k of the mean curve. A verdict other than "no clear difference" needs all of at
        least three folds to agree on the sign; a single split has no verdict at all.
    """
    rows: list[dict[str, object]] = []
    for evaluation, part in metrics.groupby("evaluation", sort=False):
        wide = {
            metric.name: part.pivot_table(
                index=["split", "k"], columns="ranker", values=metric.name
            )
            for metric in metrics_of(task)
        }
        for metric in metrics_of(task):
            table = wide[metric.name]
            if ROSHAP not in table:
                continue
            for other in _others(table.columns):
                sign = 1.0 if metric.higher_is_better else -1.0
                gains = (sign * (table[ROSHAP] - table[other])).dropna()
                if gains.empty:
                    continue
                rows.append(
                    {
                        "evaluation": evaluation,
                        "ranker": other,
                        "metric": metric.name,
                        **_compare(gains),
                    }
                )
    return pd.DataFrame(rows)


def _others(columns: Iterable[str]) -> list[str]:
    return [name for name in ALL_RANKERS if name in set(columns) and name != ROSHAP]


def _compare(gains: pd.Series) -> dict[str, object]:
    """Compare on differences indexed by split and k."""
    by_k = gains.groupby(level="k").mean()
    by_split = gains.groupby(level="split").mean()
    better, worse = int((by_k > EQUAL).sum()), int((by_k < -EQUAL).sum())
    up, down, splits = int((by_split > EQUAL).sum()), int((by_split < -EQUAL).sum()), len(by_split)
    if splits < 3:
        verdict = "one split: not judged" if splits == 1 else "two splits: not judged"
    elif up == splits:
        verdict = "RoSHAP better in every fold"
    elif down == splits:
        verdict = "RoSHAP worse in every fold"
    else:
        verdict = "no clear difference"
    return {
        "gain": float(gains.mean()),
        "better": better,
        "equal": len(by_k) - better - worse,
        "worse": worse,
        "splits_better": up,
        "splits_worse": down,
        "splits": splits,
        "verdict": verdict,
    }


def sentences(metrics: pd.DataFrame, task: Task) -> list[str]:
    """Return what RoSHAP gained or lost, in words, for the first metric of the task."""
    lead = metrics_of(task)[0]
    found = against_roshap(metrics, task)
    if found.empty:
        return []
    said = []
    for evaluation, part in found[found["metric"] == lead.name].groupby("evaluation", sort=False):
        where = "held-out rows" if evaluation == "held-out" else "cross-validation"
        for row in part.itertuples(index=False):
            said.append(f"{where}: {_sentence(row, lead.title)}")
    return said


def _sentence(row: object, title: str) -> str:
    gain, other = row.gain, LABELS[row.ranker]  # type: ignore[attr-defined]  # a named tuple
    if abs(gain) <= EQUAL:
        said = f"RoSHAP and {other} are equal in {title} on average over k"
    else:
        said = (
            f"RoSHAP is {'better' if gain > 0 else 'worse'} than {other} by {abs(gain):.4g} in "
            f"{title} on average over k"
        )
    counts = f"better at {row.better}, equal at {row.equal}, worse at {row.worse} of the k"  # type: ignore[attr-defined]
    return f"{said} ({counts}; {row.verdict})"  # type: ignore[attr-defined]


#: What readers see instead of the rankers' keys.
LABELS = {
    "shap": "SHAP (one run)",
    "gain": "model gain",
    "lime": "LIME",
    "ig": "information gain",
    ROSHAP: "RoSHAP",
    "permutation": "permutation",
    ALL_FEATURES: "all features",
}


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Sort rankers as the paper does, and k upwards."""
    place = {name: number for number, name in enumerate((*ALL_RANKERS, ALL_FEATURES))}
    keys = table["ranker"].map(place)
    return (
        table.assign(_place=keys)
        .sort_values(["evaluation", "_place", "k"], ascending=[False, True, True])
        .drop(columns="_place")
        .reset_index(drop=True)
    )


__all__ = ["LABELS", "METRICS", "against_roshap", "curves", "sentences", "summarise"]
