"""Splits: what they keep together, apart, and the same."""

from __future__ import annotations

import numpy as np
import pytest

from roshap.datasets import from_frame
from roshap.errors import ConfigError, DataError
from roshap.selection import make_splits

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
LABELS = np.repeat([0, 1, 2], [36, 18, 6])


def test_held_out_and_folds_cover_the_rows_once() -> None:
    splits = make_splits(from_frame(X, LABELS), test_size=0.3, folds=3, seed=0)
    assert [split.name for split in splits] == ["held-out", "fold 1", "fold 2", "fold 3"]
    for split in splits:
        assert not np.intersect1d(split.train, split.test).size
        assert len(split.train) + len(split.test) == 60
        assert set(LABELS[split.test]) == {0, 1, 2}
    folds = np.concatenate([split.test for split in splits[1:]])
    assert np.sort(folds).tolist() == list(range(60))


def test_published_rows_are_the_test_rows_and_in_no_fold() -> None:
    held_out = np.arange(60) >= 50
    data = from_frame(X, np.tile([0, 1], 30), held_out=held_out)
    first, *folds = make_splits(data, test_size=0.3, folds=2, seed=0)
    assert first.published
    assert first.test.tolist() == list(range(50, 60))
    for split in folds:
        assert max(split.train.max(), split.test.max()) < 50


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_groups_stay_together(task: str) -> None:
    groups = np.repeat(np.arange(20), 3)
    y = np.tile([0, 1], 30) if task == "binary" else RNG.normal(size=60)
    data = from_frame(X, y, groups=groups, task=task)
    for split in make_splits(data, test_size=0.3, folds=4, seed=0):
        assert not np.intersect1d(groups[split.train], groups[split.test]).size


def test_splits_depend_on_the_seed_and_not_on_the_features_or_the_global_generator() -> None:
    a = make_splits(from_frame(X, LABELS), test_size=0.3, folds=2, seed=1)
    np.random.seed(3)  # noqa: NPY002 - that it does not matter is the point
    b = make_splits(from_frame(2 * X, LABELS), test_size=0.3, folds=2, seed=1)
    c = make_splits(from_frame(X, LABELS), test_size=0.3, folds=2, seed=2)
    assert all(np.array_equal(one.test, two.test) for one, two in zip(a, b, strict=True))
    assert not np.array_equal(a[0].test, c[0].test)


def test_what_cannot_be_split_is_said() -> None:
    data = from_frame(X, LABELS)
    with pytest.raises(ConfigError, match=r"test_size=1\.5"):
        make_splits(data, test_size=1.5, folds=0, seed=0)
    with pytest.raises(ConfigError, match="folds=1"):
        make_splits(data, test_size=0.3, folds=1, seed=0)
    with pytest.raises(DataError, match="cannot be split"):
        make_splits(data, test_size=0.3, folds=61, seed=0)
