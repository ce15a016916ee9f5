"""The numbers of the bars, and what RoSHAP gained or lost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from roshap.selection import ALL_FEATURES, against_roshap, curves, sentences, summarise


def metrics(
    values: dict[str, list[list[float]]], name: str, evaluation: str = "cv"
) -> pd.DataFrame:
    """One metric: ranker -> fold -> k; the task's others are not defined."""
    rows = [
        {"evaluation": evaluation, "split": f"fold {s}", "ranker": ranker, "k": k, name: value}
        for ranker, folds in values.items()
        for s, of_k in enumerate(folds)
        for k, value in enumerate(of_k, start=1)
    ]
    table = pd.DataFrame(rows)
    others = {"accuracy": ["f1_macro", "average_precision", "roc_auc"], "rmse": ["mae", "mape"]}
    return table.assign(**dict.fromkeys(others[name], np.nan))


def test_mean_and_spread_are_over_k_of_the_mean_over_folds() -> None:
    table = metrics({"gain": [[0.5, 0.9], [0.7, 0.9]]}, "accuracy")
    row = summarise(table, "binary").iloc[0]
    assert row["mean"] == pytest.approx(0.75)
    assert row["spread"] == pytest.approx(np.std([0.6, 0.9], ddof=1))
    assert (row["best"], row["best_k"]) == (pytest.approx(0.9), 2)
    assert curves(table, "binary")["accuracy"].tolist() == pytest.approx([0.6, 0.9])


def test_gains_count_for_metrics_where_less_is_better() -> None:
    table = metrics({"roshap": [[2.0, 1.0]] * 3, "ig": [[3.0, 1.0]] * 3}, "rmse")
    (row,) = against_roshap(table, "regression").query("metric == 'rmse'").to_dict("records")
    assert row["gain"] == pytest.approx(0.5)
    assert (row["better"], row["equal"], row["worse"]) == (1, 1, 0)
    assert row["verdict"] == "RoSHAP better in every fold"


@pytest.mark.parametrize(
    ("roshap", "verdict"),
    [
        ([[0.5], [0.5], [0.5]], "RoSHAP worse in every fold"),
        ([[0.9], [0.5], [0.9]], "no clear difference"),
        ([[0.9]], "one split: not judged"),
        ([[0.9], [0.9]], "two splits: not judged"),
    ],
)
def test_verdicts(roshap: list[list[float]], verdict: str) -> None:
    table = metrics({"roshap": roshap, "lime": [[0.8]] * len(roshap)}, "accuracy")
    assert against_roshap(table, "binary")["verdict"].tolist() == [verdict]


def test_a_loss_is_called_a_loss() -> None:
    table = metrics(
        {"roshap": [[0.5]] * 3, "lime": [[0.8]] * 3, ALL_FEATURES: [[0.9]] * 3}, "accuracy"
    )
    (said,) = sentences(table, "binary")
    assert "worse than LIME by 0.3 in Accuracy" in said
    assert "worse in every fold" in said


def test_without_roshap_there_is_nothing_to_say() -> None:
    assert sentences(metrics({"lime": [[0.8]]}, "accuracy"), "binary") == []
