import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import cross_val_score

from roshap.attribution.splitter import BootstrapOOB
from roshap.errors import ConfigError, DataError

RARE = np.repeat([0, 1], [60, 4])  # four rows of the minority


def splits(splitter, n, y=None, groups=None):
    return list(splitter.split(np.empty((n, 1)), y, groups))


@pytest.mark.parametrize("strategy", ["plain", "redraw", "stratified"])
def test_bag_has_n_rows_and_the_rest_is_out_of_bag(strategy):
    splitter = BootstrapOOB(30, strategy=strategy, random_state=0)
    for bag, oob in splits(splitter, 64, RARE):
        assert bag.size == 64
        np.testing.assert_array_equal(oob, np.setdiff1d(np.arange(64), bag))


def test_share_out_of_bag_is_that_of_uniform_draws():
    sizes = [oob.size for _, oob in splits(BootstrapOOB(200, random_state=0), 500)]
    # (1 - 1/n)^n = 0.3675; the standard error of the mean of 200 is about 0.001
    assert abs(np.mean(sizes) / 500 - (1 - 1 / 500) ** 500) < 0.005


@pytest.mark.parametrize("strategy", ["plain", "redraw", "stratified"])
def test_draw_depends_on_seed_and_number_only(strategy):
    few = splits(BootstrapOOB(3, strategy=strategy, random_state=5), 64, RARE)
    many = splits(BootstrapOOB(9, strategy=strategy, random_state=5), 64, RARE)
    wide = list(BootstrapOOB(3, strategy=strategy, random_state=5).split(np.empty((64, 50)), RARE))
    for a, b, c in zip(few, many, wide, strict=False):
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_array_equal(a[0], c[0])
    other = splits(BootstrapOOB(3, strategy=strategy, random_state=6), 64, RARE)
    assert any((a[0] != b[0]).any() for a, b in zip(few, other, strict=True))


def test_redraw_gives_each_class_its_rows_and_counts():
    splitter = BootstrapOOB(200, strategy="redraw", min_per_class=3, random_state=0)
    for bag, _ in splits(splitter, 64, RARE):
        assert np.unique(bag[RARE[bag] == 1]).size >= 3
    # of four rows, at least three are drawn in about half the bags
    assert 0.3 < np.mean(splitter.redraws_) < 4
    plain = BootstrapOOB(200, strategy="plain", random_state=0)
    assert any(np.unique(bag[RARE[bag] == 1]).size < 3 for bag, _ in splits(plain, 64, RARE))
    assert set(plain.redraws_) == {0}


def test_accepted_draws_are_the_same_with_and_without_redraws():
    plain = splits(BootstrapOOB(50, strategy="plain", random_state=0), 64, RARE)
    redraw = BootstrapOOB(50, strategy="redraw", random_state=0)
    for a, b, count in zip(plain, splits(redraw, 64, RARE), redraw.redraws_, strict=True):
        assert count > 0 or (a[0] == b[0]).all()


def test_stratified_keeps_the_sizes_of_classes():
    for bag, _ in splits(BootstrapOOB(50, strategy="stratified", random_state=0), 64, RARE):
        assert np.bincount(RARE[bag]).tolist() == [60, 4]


def test_out_of_bag_rows_may_be_of_one_class():
    alone = [set(RARE[oob]) for _, oob in splits(BootstrapOOB(300, random_state=0), 64, RARE)]
    assert {0} in alone


@pytest.mark.parametrize("y", [None, RARE, np.where(RARE == 1, "yes", "no")])
def test_a_drawn_group_is_never_out_of_bag(y):
    groups = np.repeat([f"patient {i}" for i in range(16)], 4)
    groups = groups[np.random.default_rng(0).permutation(64)] if y is None else groups
    for bag, oob in splits(BootstrapOOB(50, strategy="redraw", random_state=0), 64, y, groups):
        assert not set(groups[bag]) & set(groups[oob])
        assert set(groups[bag]) | set(groups[oob]) == set(groups)
        counts = np.bincount(bag, minlength=64)
        for group in set(groups):  # whole groups: each row of a group as often as the others
            assert len(set(counts[groups == group])) == 1


def test_stratified_groups_need_one_class_each():
    groups = np.repeat(np.arange(16), 4)
    for bag, _ in splits(
        BootstrapOOB(20, strategy="stratified", min_per_class=1, random_state=0),
        64,
        np.repeat([0, 1], 32),
        groups,
    ):
        assert np.bincount(np.repeat([0, 1], 32)[bag]).tolist() == [32, 32]
    with pytest.raises(DataError, match="groups of one class each"):
        splits(BootstrapOOB(2, strategy="stratified", random_state=0), 64, RARE[::-1], groups % 7)


def test_regression_target_is_no_class():
    y = np.random.default_rng(0).normal(size=64)
    assert len(splits(BootstrapOOB(3, random_state=0), 64, y)) == 3


def test_string_labels_and_a_shuffled_index():
    y = pd.Series(np.where(RARE == 1, "yes", "no"), index=np.random.default_rng(0).permutation(64))
    with_codes = splits(BootstrapOOB(5, random_state=0), 64, RARE)
    with_labels = splits(BootstrapOOB(5, random_state=0), 64, y)
    for a, b in zip(with_codes, with_labels, strict=True):
        np.testing.assert_array_equal(a[0], b[0])


def test_is_a_scikit_learn_splitter():
    X = np.random.default_rng(0).normal(size=(64, 3))
    scores = cross_val_score(DummyClassifier(), X, RARE, cv=BootstrapOOB(7, random_state=0))
    assert scores.shape == (7,)
    assert BootstrapOOB(7).get_n_splits() == 7


def test_no_seed_gives_new_draws():
    splitter = BootstrapOOB(1)
    assert (splits(splitter, 64)[0][0] != splits(splitter, 64)[0][0]).any()
    with pytest.raises(ConfigError, match="random_state=None"):
        splitter.draw(0, 64)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 12), seed=st.integers(0, 2**32))
def test_smallest_tables_have_two_rows_in_the_bag_and_one_out(n, seed):
    if n == 2:
        with pytest.raises(DataError, match="1000 bootstrap samples of 2 rows"):
            BootstrapOOB(strategy="plain").draw(0, n, seed=seed)
        return
    draw = BootstrapOOB(strategy="plain").draw(0, n, seed=seed)
    assert draw.oob.size >= 1
    assert np.unique(draw.bag).size >= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "uniform"}, r"'uniform' \(valid: plain, stratified, redraw\)"),
        ({"n_splits": 0}, "n_splits=0"),
        ({"min_per_class": 0}, "min_per_class=0"),
    ],
)
def test_wrong_parameters_name_the_value(arguments, message):
    with pytest.raises(ConfigError, match=message):
        splits(BootstrapOOB(**{"random_state": 0, **arguments}), 64, RARE)


def test_impossible_requests_end_with_one_clear_line():
    with pytest.raises(DataError, match="class number 1 has 4 rows, and each bag must hold 5"):
        splits(BootstrapOOB(1, min_per_class=5, random_state=0), 64, RARE)
    with pytest.raises(DataError, match=r"1000 bootstrap samples of 200 rows .* lower min_per"):
        splits(BootstrapOOB(1, min_per_class=100, random_state=0), 200, np.repeat([0, 1], 100))
    with pytest.raises(DataError, match="one group only"):
        splits(BootstrapOOB(1, random_state=0), 64, RARE, np.zeros(64))
    with pytest.raises(DataError, match="groups have 3 entries for 64 rows"):
        splits(BootstrapOOB(1, random_state=0), 64, RARE, np.zeros(3))
    with pytest.raises(DataError, match="y has shape"):
        splits(BootstrapOOB(1, random_state=0), 64, RARE[:5])
