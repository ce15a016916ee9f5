"""The simulation study: where do rankers put the ten signals (Table 1 of arXiv 2605.15154)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from roshap.attribution.attributions import Attributions
from roshap.attribution.ranking import rank
from roshap.attribution.splitter import BootstrapOOB
from roshap.baselines import order
from roshap.datasets import Dataset
from roshap.selection.single_runs import Compute, rank_single_runs

SIGNAL = "signal_"
RANKERS = ("shap", "ig", "gain", "lime")


class Place(NamedTuple):
    """A published place: rank (None: the attribution is zero), percent of zero runs, a bound."""

    rank: int | None
    zeros: float = 0.0
    or_worse: bool = False


def _places(*ranks: int | None) -> tuple[Place, ...]:
    return tuple(Place(rank) for rank in ranks)


#: The paper's Table 1: one place per signal, strongest first.
PUBLISHED: dict[str, tuple[Place, ...]] = {
    "RoSHAP, 1000 runs": (
        *_places(1, 2, 3, 4),
        *(
            Place(5, 0.2),
            Place(6, 0.4),
            Place(9, 7.2),
            Place(12, 11),
            Place(53, 27.6),
            Place(85, 37),
        ),
    ),
    "RoSHAP, 10 runs": (*_places(*range(1, 8), 10), Place(95, 30), Place(317, 40)),
    "SHAP (one run)": _places(1, 2, 3, 4, 12, 31, *[None] * 4),
    "information gain": (Place(1), *[Place(48, or_worse=True)] * 9),
    "model gain": _places(5, 6, 10, 13, 26, 41, 74, 131, 159, 707),
    "LIME": _places(*range(1, 8), *[None] * 3),
}
METHODS = {"shap": "SHAP (one run)", "ig": "information gain", "gain": "model gain", "lime": "LIME"}


def signal_ranks(
    data: Dataset,
    attributions: Attributions,
    model: Any,
    *,
    few: int,
    seed: int,
    compute: Compute,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seconds: dict[str, float] | None = None,
) -> pd.DataFrame:
    """Return the place of every signal by RoSHAP at ``few`` and at all runs, and by each ranker.

    The first ``few`` runs are those of the whole study: a run does not depend on how many there
    are.

    Returns
    -------
    DataFrame
        ``method, signal, rank, p0, zero``: ``signal`` counts from 1, strongest first; ``p0`` is
        the share of zero runs (RoSHAP); ``zero`` says that the score is exactly zero, where a
        rank only tells how many features are not.
    """
    rows: list[dict[str, Any]] = []
    for runs in sorted({min(few, attributions.runs), attributions.runs}):
        table = rank(attributions.scores[:runs], attributions.features)
        of_feature = {row["feature"]: row for row in table.to_dict("records")}
        for number, name in enumerate(signals(data.features), start=1):
            row = of_feature[name]
            rows.append(
                {
                    "method": f"RoSHAP, {runs} runs",
                    "signal": number,
                    "rank": int(row["rank"]),
                    "p0": float(row["p0"]),
                    "zero": bool(row["p0"] == 1),
                }
            )
    answers = rank_single_runs(
        data,
        model,
        {data.name: np.arange(data.n)},
        RANKERS,
        compute=compute,
        options=options,
        seed=seed,
    )
    for ranker, (answer,) in answers.items():
        if seconds is not None:
            seconds[ranker] = seconds.get(ranker, 0.0) + answer.seconds
        if answer.ranked is None:
            continue
        scores = answer.ranked.scores
        places = np.empty(data.p, dtype=np.int64)
        places[order(scores, data.features)] = np.arange(1, data.p + 1)
        for number, name in enumerate(signals(data.features), start=1):
            column = data.features.index(name)
            rows.append(
                {
                    "method": METHODS[ranker],
                    "signal": number,
                    "rank": int(places[column]),
                    "p0": np.nan,
                    "zero": bool(scores[column] == 0),
                }
            )
    return pd.DataFrame(rows)


def signals(features: Sequence[str]) -> list[str]:
    """Return the names of the signal features, strongest first."""
    return sorted(name for name in features if name.startswith(SIGNAL))


def table1(ranks: pd.DataFrame) -> pd.DataFrame:
    """Lay out ranks as the paper's Table 1, with the published one beside it.

    Parameters
    ----------
    ranks : DataFrame
        ``seed`` and the columns of :func:`signal_ranks`.

    Returns
    -------
    DataFrame
        ``method, source, signal 1, ...``; a cell is ``rank (percent of zero runs)`` or ``zero``.
    """
    count = int(ranks["signal"].max())
    columns = [f"signal {number}" for number in range(1, count + 1)]
    rows = []
    for method in dict.fromkeys(ranks["method"]):
        if method in PUBLISHED and count == len(PUBLISHED[method]):
            cells = [_published(place) for place in PUBLISHED[method]]
            rows.append([method, "published", *cells])
        for seed, part in ranks[ranks["method"] == method].groupby("seed"):
            rows.append([method, f"seed {seed}", *[_cell(row) for row in part.to_dict("records")]])
    return pd.DataFrame(rows, columns=["method", "source", *columns])


def _published(place: Place) -> str:
    if place.rank is None:
        return "zero"
    if place.or_worse:
        return f">= {place.rank}"
    return f"{place.rank} ({place.zeros:g})" if place.zeros else str(place.rank)


def _cell(row: Mapping[Any, Any]) -> str:
    if row["zero"]:
        return "zero"
    zeros = 100 * row["p0"]
    return f"{row['rank']} ({zeros:.3g})" if zeros > 0 else str(row["rank"])


def recovery(ranks: pd.DataFrame, tops: Sequence[int]) -> pd.DataFrame:
    """Return how many signals are among the leading features.

    Returns
    -------
    DataFrame
        ``method, seed`` and ``in_top_<t>`` for each t; a score of zero is never among them.
    """
    found = ranks[~ranks["zero"]]
    counts = {
        f"in_top_{top}": found[found["rank"] <= top].groupby(["method", "seed"]).size()
        for top in tops
    }
    index = pd.MultiIndex.from_frame(ranks[["method", "seed"]].drop_duplicates())
    table = pd.DataFrame({name: of.reindex(index, fill_value=0) for name, of in counts.items()})
    return table.astype(int).reset_index()


def costs(data: Dataset, runs: Sequence[int], *, seed: int) -> pd.DataFrame:
    """Return what B runs cost and cover (the paper's cost section).

    Returns
    -------
    DataFrame
        ``runs, refits, cost_ratio, coverage, bag_coverage, oob_coverage``: coverage is the
        paper's 1 - (1 - 1/n)^(nB), the chance that a row is drawn at all; the two measured ones are
        the shares of rows that were in some bag, and out of some bag (only those are explained).
        ``cost_ratio`` compares with the largest number of runs.
    """
    most = max(runs)
    splitter = BootstrapOOB(random_state=seed)
    classes = None if data.task == "regression" else data.y
    in_bag, oob = np.zeros(data.n, dtype=bool), np.zeros(data.n, dtype=bool)
    shares = {}
    for index in range(most):
        draw = splitter.draw(index, data.n, y=classes, groups=data.groups)
        in_bag[draw.bag] = True
        oob[draw.oob] = True
        shares[index + 1] = (float(in_bag.mean()), float(oob.mean()))
    return pd.DataFrame(
        [
            {
                "runs": count,
                "refits": count,
                "cost_ratio": count / most,
                "coverage": float(-np.expm1(data.n * count * np.log1p(-1 / data.n))),
                "bag_coverage": shares[count][0],
                "oob_coverage": shares[count][1],
            }
            for count in sorted(set(runs))
        ]
    )


class Stopwatch:
    """Seconds of parts of the work, added up by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = monotonic()

    def lap(self, name: str) -> None:
        """Add the time since the last lap to ``name``."""
        now = monotonic()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._started
        self._started = now
