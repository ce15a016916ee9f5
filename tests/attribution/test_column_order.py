"""Same seed, other column order: which models give the same ranking after un-permuting.

What roshap itself does never depends on the order. A library that samples columns by their place
does, and so does one that breaks ties between equally good splits by it: in small nodes such ties
are common. docs/certainty.md names them.
"""

from __future__ import annotations

import numpy as np
import pytest
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.attribution.ranking import rank
from roshap.compute import Executor
from roshap.datasets import from_frame

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 7))
STRENGTH = np.array([2.0, 1.5, 1.0, 0.7, 0.4, 0.2, 0.0])
Y = (X @ STRENGTH + RNG.normal(size=150) > 0).astype(int)
NAMES = np.array([f"f{j}" for j in range(7)])
ORDER = np.array([4, 0, 6, 2, 5, 1, 3])
RUNS = 25

SMALL = {"n_estimators": 15, "max_depth": 3, "random_state": 0}
QUIET = {"n_jobs": 1, "verbosity": -1, "deterministic": True, "force_col_wise": True}
EXACT = {
    "logistic_regression": LogisticRegression(),
    "ridge": Ridge(),
    "standardised logistic_regression": make_pipeline(StandardScaler(), LogisticRegression()),
}
TIES = {
    "xgboost without column sampling": XGBClassifier(**SMALL, subsample=0.8, n_jobs=1),
    "lightgbm without column sampling": LGBMClassifier(
        **SMALL, **QUIET, subsample=0.8, subsample_freq=1
    ),
    "gradient_boosting": GradientBoostingClassifier(**SMALL),
}
SAMPLED = {
    "xgboost": XGBClassifier(**SMALL, colsample_bytree=0.6, n_jobs=1),
    "lightgbm": LGBMClassifier(**SMALL, **QUIET, colsample_bytree=0.6),
    "random_forest": RandomForestClassifier(**SMALL),
    "catboost": CatBoostClassifier(
        iterations=15,
        depth=3,
        random_seed=0,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    ),
}


def both_orders(model: object) -> list[np.ndarray]:
    """Return S (RUNS, 7) as given and with the columns permuted, both in the order as given."""
    found = []
    for order in (np.arange(7), ORDER):
        y = X @ STRENGTH if isinstance(model, Ridge) else Y
        result = bootstrap_attributions(
            from_frame(X[:, order], y),
            model,
            runs=RUNS,
            seed=0,
            executor=Executor(workers=1),
            settings=BootstrapSettings(row_level=False),
        )
        found.append(result.scores[:, np.argsort(order)])
    return found


@pytest.mark.parametrize("name", EXACT)
def test_linear_models_do_not_depend_on_the_order(name):
    given, permuted = both_orders(EXACT[name])
    np.testing.assert_allclose(permuted, given, rtol=1e-6, atol=1e-9 * given.max())
    assert rank(given, NAMES)["feature"].tolist() == rank(permuted, NAMES)["feature"].tolist()


@pytest.mark.parametrize("name", TIES)
def test_ties_between_splits_change_little(name):
    given, permuted = both_orders(TIES[name])
    assert 0 < np.abs(given - permuted).max() / given.max() < 0.2
    means = given.mean(axis=0), permuted.mean(axis=0)
    np.testing.assert_allclose(*means, rtol=0.1, atol=0.02 * means[0].max())


@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_columns_change_runs_but_no_conclusion(name):
    """Named in the docs: other runs, and intervals of the leading features that agree."""
    tables = [rank(S, NAMES).set_index("feature").loc[NAMES] for S in both_orders(SAMPLED[name])]
    assert (tables[0]["roshap"] != tables[1]["roshap"]).any()
    tables = [table.loc[NAMES[:4]] for table in tables]
    for one, other in (tables, tables[::-1]):
        assert (one["roshap_low"] <= other["roshap_high"]).all()
        assert (one["rank_low"] <= other["rank_high"]).all()
