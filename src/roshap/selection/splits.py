"""The train / test splits that all rankers share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from roshap.compute.seeds import replicate_seed
from roshap.datasets import Dataset
from roshap.errors import ConfigError, DataError

Evaluation = Literal["held-out", "cv"]


@dataclass(frozen=True)
class Split:
    """One split of a data set's rows.

    Attributes
    ----------
    name
        ``held-out`` or ``fold 1`` ...
    evaluation
        Which evaluation it belongs to.
    train, test
        Row numbers, ascending; rankings and refits see ``train`` only.
    published
        Whether ``test`` are the rows that were published as a test set.
    """

    name: str
    evaluation: Evaluation
    train: np.ndarray
    test: np.ndarray
    published: bool = False


def make_splits(data: Dataset, *, test_size: float, folds: int, seed: int) -> list[Split]:
    """Return the held-out split, then the folds of a cross-validation.

    The held-out split takes the published test rows where there are some, else a random share of
    the rows. Folds are made of the rows that were not published as a test set. Classes are
    stratified and groups stay together; the splits depend on y, the groups and the seed only.

    Parameters
    ----------
    test_size
        Share of the rows held out; not used where test rows were published.
    folds
        0 for none, else at least 2.
    seed
        Of the study.

    Raises
    ------
    ConfigError
        For a share outside (0, 1) or a single fold.
    DataError
        Where a class or the groups are too few for it.
    """
    if not 0 < test_size < 1:
        raise ConfigError(f"selection.test_size={test_size}: must be between 0 and 1")
    if folds < 0 or folds == 1:
        raise ConfigError(f"selection.folds={folds}: must be 0 (no cross-validation) or 2 and more")
    splits = [_held_out(data, test_size, _state(seed, 0))]
    if folds:
        splits += _folds(data, folds, _state(seed, 1))
    return splits


def fit_and_aside(data: Dataset, share: float, seed: int, index: int) -> tuple[np.ndarray, ...]:
    """Split the rows of a training set into rows to fit a single model on and rows set aside."""
    return _random_split(data, np.arange(data.n), share, _state(seed, 2 + index))


def _held_out(data: Dataset, test_size: float, state: np.random.RandomState) -> Split:
    if data.held_out is not None and data.held_out.any():
        train, test = np.flatnonzero(~data.held_out), np.flatnonzero(data.held_out)
        return Split("held-out", "held-out", train, test, published=True)
    return Split("held-out", "held-out", *_random_split(data, np.arange(data.n), test_size, state))


def _random_split(
    data: Dataset, rows: np.ndarray, share: float, state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

    y, groups = data.y[rows], None if data.groups is None else data.groups[rows]
    if groups is not None:
        splitter = GroupShuffleSplit(1, test_size=share, random_state=state)
    elif data.task == "regression":
        splitter = ShuffleSplit(1, test_size=share, random_state=state)
    else:
        splitter = StratifiedShuffleSplit(1, test_size=share, random_state=state)
    with _said(data):
        train, test = next(iter(splitter.split(np.zeros((len(rows), 1)), y, groups)))
    return np.sort(rows[train]), np.sort(rows[test])


def _folds(data: Dataset, folds: int, state: np.random.RandomState) -> list[Split]:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    rows = np.arange(data.n) if data.held_out is None else np.flatnonzero(~data.held_out)
    y, groups = data.y[rows], None if data.groups is None else data.groups[rows]
    options = {"n_splits": folds, "shuffle": True, "random_state": state}
    if data.task == "regression":
        splitter = KFold(**options) if groups is None else GroupKFold(**options)
    else:
        splitter = StratifiedKFold(**options) if groups is None else StratifiedGroupKFold(**options)
    with _said(data):
        pairs = list(splitter.split(np.zeros((len(rows), 1)), y, groups))
    return [
        Split(f"fold {number}", "cv", rows[train], rows[test])
        for number, (train, test) in enumerate(pairs, start=1)
    ]


@contextlib.contextmanager
def _said(data: Dataset) -> Iterator[None]:
    """Turn the splitters' complaints about the data into one of ours."""
    try:
        yield
    except ValueError as error:
        raise DataError(f"{data.name} cannot be split for selection: {error}") from error


def _state(seed: int, index: int) -> np.random.RandomState:
    """Return the generator of one split; scikit-learn's splitters take a RandomState."""
    return np.random.RandomState(np.random.MT19937(replicate_seed(seed, 2**20 + index)))
