"""RoSHAPSelector and BootstrapOOB as scikit-learn objects."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from xgboost import XGBClassifier

from roshap import BootstrapOOB, RoSHAPSelector
from roshap.errors import RoshapError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
Y = (X[:, 2] + X[:, 4] + 0.3 * RNG.normal(size=120) > 0).astype(int)
FRAME = pd.DataFrame(X, columns=list("abcdef"))
GROUPS = np.repeat(np.arange(30), 4)
WEIGHTS = RNG.uniform(0.5, 2.0, size=120)


def tree() -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=3, random_state=0)


@parametrize_with_checks(
    [
        RoSHAPSelector(Ridge(), k=2, n_runs=4, random_state=0),
        RoSHAPSelector(tree(), k=2, n_runs=4, random_state=0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_it_selects_the_signals():
    selector = RoSHAPSelector(LogisticRegression(), k=2, n_runs=20, random_state=0)
    selector.fit(FRAME, Y)
    assert selector.get_feature_names_out().tolist() == ["c", "e"]
    assert selector.ranking_["feature"].head(2).sort_values().tolist() == ["c", "e"]
    assert selector.n_runs_ == 20
    assert selector.decision_ is None
    taken = selector.set_output(transform="pandas").transform(FRAME)
    pd.testing.assert_frame_equal(taken, FRAME[["c", "e"]])


def test_it_stops_by_itself_and_says_what_it_found():
    selector = RoSHAPSelector(LogisticRegression(), k=2, n_runs="settled", random_state=0)
    selector.fit(FRAME, Y)
    assert selector.decision_.settled
    assert selector.n_runs_ == selector.decision_.runs == 70
    wide = np.hstack([X[:, [2, 4]] * 3, RNG.normal(size=(120, 6))])
    auto = RoSHAPSelector(LogisticRegression(), k="auto", n_runs="settled", random_state=0)
    auto.fit(wide, Y)
    assert auto.support_.sum() == auto.decision_.k


def test_nothing_is_left_out_so_nothing_has_to_settle():
    selector = RoSHAPSelector(tree(), k=6, n_runs="settled", random_state=0).fit(X, Y)
    assert selector.support_.all()
    assert selector.decision_ is None


def test_a_threshold_counts_in_units_of_the_score():
    every = RoSHAPSelector(LogisticRegression(), k=3, n_runs=20, random_state=0).fit(X, Y)
    third = np.sort(every.scores_)[-3]
    limited = clone(every).set_params(k=None, threshold=third).fit(X, Y)
    np.testing.assert_array_equal(limited.support_, every.support_)
    both = clone(every).set_params(k=2, threshold=third).fit(X, Y)
    assert both.support_.sum() == 2


def test_a_group_is_taken_as_a_whole():
    doubled = FRAME.assign(copy=FRAME["c"], near=FRAME["c"] + 0.01 * FRAME["a"])
    forest = RandomForestClassifier(5, max_depth=3, random_state=0)
    selector = RoSHAPSelector(forest, k=2, n_runs=20, groups=0.9, random_state=0)
    selector.fit(doubled, Y)
    assert set(selector.get_feature_names_out()) == {"c", "copy", "near", "e"}
    scores = dict(zip(doubled.columns, selector.scores_, strict=True))
    assert scores["c"] == scores["copy"] == scores["near"]


def test_in_a_pipeline_inside_a_grid_search_with_groups_and_weights():
    seen: list[int] = []

    class Recorder(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append(0 if sample_weight is None else len(sample_weight))
            return super().fit(X, y, sample_weight)

    with sklearn.config_context(enable_metadata_routing=True):
        inner = Recorder().set_fit_request(sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        pipeline = Pipeline(
            [
                ("select", RoSHAPSelector(inner, n_runs=5, random_state=0)),
                ("model", model),
            ]
        )
        search = GridSearchCV(pipeline, {"select__k": [1, 2]}, cv=GroupKFold(3))
        search.fit(FRAME, Y, sample_weight=WEIGHTS, groups=GROUPS)
    best = search.best_estimator_.named_steps["select"]
    assert search.best_params_ == {"select__k": 2}
    assert best.attributions_.meta["weighted"]
    assert best.attributions_.meta["grouped"]
    assert min(seen) > 0  # each fit of the bootstrap got its weights


def test_weights_and_groups_change_the_result_and_unknown_metadata_is_refused():
    selector = RoSHAPSelector(LogisticRegression(), k=2, n_runs=5, random_state=0)
    plain = clone(selector).fit(X, Y).scores_
    assert (clone(selector).fit(X, Y, sample_weight=WEIGHTS).scores_ != plain).any()
    assert (clone(selector).fit(X, Y, groups=GROUPS).scores_ != plain).any()
    with pytest.raises(ValueError, match="takes sample_weight and groups, not 'weight'"):
        clone(selector).fit(X, Y, weight=WEIGHTS)


def test_the_seed_decides_and_processes_do_not():
    selector = RoSHAPSelector(tree(), k=2, n_runs=6, random_state=3)
    first = clone(selector).fit(X, Y).scores_
    np.testing.assert_array_equal(first, clone(selector).set_params(n_jobs=2).fit(X, Y).scores_)
    assert (first != clone(selector).set_params(random_state=4).fit(X, Y).scores_).any()


def test_it_pickles_with_its_result():
    selector = RoSHAPSelector(tree(), k=2, n_runs=4, random_state=0).fit(FRAME, Y)
    again = pickle.loads(pickle.dumps(selector))
    np.testing.assert_array_equal(again.transform(FRAME), selector.transform(FRAME))


def test_missing_values_and_categories_where_the_model_takes_them():
    gaps = FRAME.mask(FRAME > 2.5).assign(
        city=pd.Categorical(np.where(Y == 1, "x", "y")),
        y=1.0 + FRAME["a"],  # a column may have any name
    )
    model = XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1, random_state=0)
    selector = RoSHAPSelector(model, k=1, n_runs=4, random_state=0).fit(gaps, Y)
    assert selector.get_feature_names_out().tolist() == ["city"]
    with pytest.raises(ValueError, match="NaN"):
        RoSHAPSelector(LogisticRegression(), n_runs=4).fit(FRAME.mask(FRAME > 2.5), Y)


def test_polars_in_and_out():
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(FRAME)
    selector = RoSHAPSelector(tree(), k=2, n_runs=4, random_state=0).fit(frame, Y)
    taken = selector.set_output(transform="polars").transform(frame)
    assert isinstance(taken, polars.DataFrame)
    assert taken.columns == selector.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"k": 0}, "k=0: must be 1 or more, 'auto' or None"),
        ({"k": None}, "k=None needs a threshold"),
        ({"k": "auto"}, "k='auto' needs n_runs='settled'"),
        ({"n_runs": 1}, "n_runs=1: must be 2 or more"),
        ({"groups": 2.0, "n_runs": 3}, "groups_threshold=2.0"),
    ],
)
def test_unfit_parameters_are_value_errors_of_ours(params, words):
    selector = RoSHAPSelector(LogisticRegression()).set_params(**params)
    with pytest.raises(ValueError, match=words) as caught:
        selector.fit(X, Y)
    assert isinstance(caught.value, RoshapError)


def test_the_splitter_is_a_cv_that_asks_for_groups():
    splitter = BootstrapOOB(3, random_state=0)
    assert cross_val_score(tree(), X, Y, cv=splitter).shape == (3,)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(tree(), {"max_depth": [1, 2]}, cv=splitter)
        search.fit(X, Y, groups=GROUPS)
    for bag, oob in splitter.split(X, Y, GROUPS):
        assert not set(GROUPS[bag]) & set(GROUPS[oob])
    assert repr(splitter).startswith("BootstrapOOB(")
