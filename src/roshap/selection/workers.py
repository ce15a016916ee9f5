"""What worker processes do: fit one model of a split, rank with it, refit on selected features.

Workers import this module and nothing that is not needed for a fit.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from roshap.attribution.explainers import Method
from roshap.baselines import Ranked, Ranker, RankingData
from roshap.compute.seeds import replicate_seed
from roshap.errors import RoshapError
from roshap.models import Task, fit
from roshap.selection.metrics import measure

if TYPE_CHECKING:
    from roshap.attribution.explainers.base import Table

Result = TypeVar("Result")


@dataclass(frozen=True)
class TrainingSet:
    """The training rows of one split, with its own split into rows to fit on and rows set aside.

    Attributes
    ----------
    name
        Of the split.
    rows
        Row numbers in the whole table.
    fit_rows, aside
        Positions in ``rows``.
    """

    name: str
    rows: np.ndarray
    fit_rows: np.ndarray
    aside: np.ndarray


@dataclass(frozen=True)
class RankInputs:
    """What all rankings share. ``fitted`` has a model for each training set, once they are made."""

    X: Table
    y: np.ndarray
    weights: np.ndarray | None
    features: tuple[str, ...]
    task: Task
    model: Any
    sets: tuple[TrainingSet, ...]
    rankers: tuple[Ranker, ...]
    seed: int
    explainer: Method
    k: int
    fitted: tuple[Any, ...] = ()

    def ranking_data(self, number: int) -> RankingData:
        """Return what rankers see of a training set: its rows, nothing of the test rows."""
        one = self.sets[number]
        return RankingData(
            X=take(self.X, one.rows),
            y=self.y[one.rows],
            features=self.features,
            task=self.task,
            weights=None if self.weights is None else self.weights[one.rows],
            fitted=self.fitted[number],
            fit_rows=one.fit_rows,
            aside=one.aside,
            explainer=self.explainer,
            k=self.k,
        )


@dataclass(frozen=True)
class Answer:
    """One ranker's answer for one training set.

    ``unfit`` says why there is none; ``seconds`` were needed on one core.
    """

    ranked: Ranked | None
    unfit: str | None
    seconds: float
    warnings: tuple[str, ...]


def fit_single(inputs: RankInputs, number: int) -> Any:
    """Fit the one model of a training set that the single-run rankers look at."""
    one = inputs.sets[number]
    rows = one.rows[one.fit_rows]
    weights = None if inputs.weights is None else inputs.weights[rows]
    fitted, _ = quietly(lambda: fit(inputs.model, take(inputs.X, rows), inputs.y[rows], weights))
    return fitted


def rank_single(inputs: RankInputs, task: int) -> Answer:
    """Rank with one ranker on one training set; task = training set x rankers + ranker."""
    number, which = divmod(task, len(inputs.rankers))
    ranker = inputs.rankers[which]
    data = inputs.ranking_data(number)
    started = time.monotonic()
    reason = ranker.unfit(data)
    if reason is not None:
        return Answer(None, reason, 0.0, ())
    # one stream per ranker and training set, whatever other rankers there are
    stream = int.from_bytes(ranker.name.encode()[:6], "big")
    seed = np.random.SeedSequence(inputs.seed, spawn_key=(2**21, number, stream))
    try:
        ranked, lines = quietly(lambda: ranker.rank(data, np.random.default_rng(seed)))
    except RoshapError as error:
        name = inputs.sets[number].name
        raise type(error)(f"ranker {ranker.name}, {name}: {error}") from error
    return Answer(ranked, None, time.monotonic() - started, lines)


@dataclass(frozen=True)
class Refit:
    """One model to fit: the training rows of a split, and the columns it may use, ascending."""

    split: int
    columns: tuple[int, ...]


@dataclass(frozen=True)
class RefitInputs:
    """What all refits share."""

    X: Table
    y: np.ndarray
    weights: np.ndarray | None
    task: Task
    model: Any
    splits: tuple[tuple[np.ndarray, np.ndarray], ...]
    refits: tuple[Refit, ...]


def refit(inputs: RefitInputs, number: int) -> Mapping[str, np.ndarray]:
    """Fit the model on the columns of a refit and measure it on the split's test rows."""
    one = inputs.refits[number]
    train, test = inputs.splits[one.split]
    columns = np.asarray(one.columns)
    weights = None if inputs.weights is None else inputs.weights[train]
    fitted, _ = quietly(
        lambda: fit(inputs.model, take(inputs.X, train, columns), inputs.y[train], weights)
    )
    found, _ = quietly(
        lambda: measure(fitted, take(inputs.X, test, columns), inputs.y[test], inputs.task)
    )
    return {name: np.asarray(value) for name, value in found.items()}


def take(X: Table, rows: np.ndarray, columns: np.ndarray | None = None) -> Table:
    """Return some rows, and some columns, of a table; arrays in C order."""
    if isinstance(X, np.ndarray):
        return X[rows] if columns is None else np.ascontiguousarray(X[np.ix_(rows, columns)])
    part = X.iloc[rows] if columns is None else X.iloc[rows, columns]
    return part.reset_index(drop=True)


def quietly(call: Callable[[], Result]) -> tuple[Result, tuple[str, ...]]:
    """Return the call's result and the first line of each warning that it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", kind)
        result = call()
    lines = {f"{item.category.__name__}: {str(item.message).splitlines()[0]}" for item in caught}
    return result, tuple(sorted(lines))


def stream_seed(seed: int, number: int) -> int:
    """Return the seed of the bootstrap of training set ``number``; that of the first is ``seed``.

    So the held-out split of published test rows repeats the runs that were attributed already.
    """
    if number == 0:
        return seed
    return int(replicate_seed(seed, 2**22 + number).generate_state(1)[0])
