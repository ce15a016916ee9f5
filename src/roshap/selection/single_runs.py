"""The rankings that need one model: fitted once per training set, shared by the rankers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from roshap.attribution.bootstrap import design_matrix
from roshap.attribution.explainers import Method
from roshap.baselines import make_rankers
from roshap.datasets import Dataset
from roshap.selection.splits import fit_and_aside
from roshap.selection.workers import Answer, RankInputs, TrainingSet, fit_single, rank_single

#: ``compute(what, function, inputs, count)``: the results of the tasks 0 .. count - 1, in order.
Compute = Callable[[str, Any, Any, int], list[Any]]


def rank_single_runs(
    data: Dataset,
    model: Any,
    training: Mapping[str, np.ndarray],
    rankers: Sequence[str],
    *,
    compute: Compute,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    aside: float = 0.25,
    seed: int = 0,
    explainer: Method = "auto",
    k: int = 10,
) -> dict[str, list[Answer]]:
    """Rank with each ranker on each training set.

    Parameters
    ----------
    training
        Name of each training set and its rows.
    rankers
        Names out of :data:`roshap.baselines.RANKERS`.
    compute
        Runs the tasks.
    options, aside, seed, explainer, k
        See :class:`~roshap.selection.comparison.SelectionSettings` and
        :class:`~roshap.baselines.RankingData`.

    Returns
    -------
    dict
        Ranker -> its answers, one for each training set.
    """
    if not rankers:
        return {}
    sets = []
    for number, (name, rows) in enumerate(training.items()):
        parts = fit_and_aside(data.take(rows), aside, seed, number)
        sets.append(TrainingSet(name, rows, *parts))
    inputs = RankInputs(
        X=design_matrix(data),
        y=np.asarray(data.y),
        weights=data.weights,
        features=data.features,
        task=data.task,
        model=model,
        sets=tuple(sets),
        rankers=tuple(make_rankers(rankers, options)),
        seed=seed,
        explainer=explainer,
        k=k,
    )
    fitted = compute("one model per training set", fit_single, inputs, len(sets))
    inputs = replace(inputs, fitted=tuple(fitted))
    found = compute("rankings", rank_single, inputs, len(sets) * len(rankers))
    return {name: found[place :: len(rankers)] for place, name in enumerate(rankers)}
