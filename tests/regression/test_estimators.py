"""scikit-learn's own checks of every public estimator of DREM and gradient descent."""

from __future__ import annotations

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from roshap.regression import drem, gradient

ESTIMATORS = [
    kind()
    for module in (drem, gradient)
    for kind in (getattr(module, name) for name in module.__all__)
    if isinstance(kind, type) and issubclass(kind, BaseEstimator)
]


def not_for_batches(estimator: BaseEstimator) -> dict[str, str]:
    """As scikit-learn says of its own SGDRegressor."""
    if estimator.__class__.__name__ == "DREMClassifier":
        return {}
    if estimator.__class__.__name__.endswith("ClassifierReference"):
        return {}
    reason = "random batches: a row twice is not a row of weight 2"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


def test_all_are_found() -> None:
    assert len(ESTIMATORS) == 7


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=not_for_batches)
def test_scikit_learn_conventions(estimator: BaseEstimator, check: object) -> None:
    check(estimator)  # type: ignore[operator]
