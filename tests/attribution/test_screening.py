import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import f_classif, f_regression

from roshap.attribution.screening import screen
from roshap.errors import ConfigError, DataError


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 12))
    y = (X[:, 3] - X[:, 7] + 0.3 * rng.normal(size=80) > 0).astype(np.int64)
    return X, y


def test_none_keeps_all(table):
    np.testing.assert_array_equal(screen(*table, "binary", "none", 3), np.arange(12))


@pytest.mark.parametrize("method", ["variance", "univariate"])
def test_keep_of_all_or_more_keeps_all(table, method):
    np.testing.assert_array_equal(screen(*table, "binary", method, 12), np.arange(12))


def test_variance_keeps_what_varies_most(table):
    X, y = table
    X = X * np.linspace(1, 2, 12)[::-1] ** 4
    expected = np.sort(np.argsort(-X.var(axis=0))[:4])
    np.testing.assert_array_equal(screen(X, y, "binary", "variance", 4), expected)


@pytest.mark.parametrize(("task", "test"), [("binary", f_classif), ("regression", f_regression)])
def test_univariate_keeps_the_highest_f(table, task, test):
    X, y = table
    y = y if task == "binary" else X[:, 5] + 0.1 * X[:, 2]
    expected = np.sort(np.argsort(-test(X, y)[0])[:4])
    np.testing.assert_array_equal(screen(X, y, task, "univariate", 4), expected)


@pytest.mark.parametrize("method", ["variance", "univariate"])
def test_missing_values_and_constant_columns(table, method):
    X, y = (part.copy() for part in table)
    X[:, 0] = 5.0
    X[:, 1] = np.nan
    X[::9, 3] = np.nan
    kept = screen(X, y, "binary", method, 10)
    assert {0, 1}.isdisjoint(kept)
    assert 3 in kept
    assert np.isnan(X[:, 1]).all()  # the table itself stays as it was


def test_first_of_equal_columns_is_kept(table):
    X, y = table
    X = np.column_stack([X[:, 7], X[:, 7], X])
    assert screen(X, y, "binary", "univariate", 1).tolist() == [0]


def test_wrong_requests_name_the_value(table):
    with pytest.raises(ConfigError, match=r"'f_test' \(valid: none, variance, univariate\)"):
        screen(*table, "binary", "f_test", 3)
    with pytest.raises(ConfigError, match="keep=0"):
        screen(*table, "binary", "variance", 0)
    with pytest.raises(DataError, match="columns of categories"):
        screen(pd.DataFrame(table[0]), table[1], "binary", "variance", 3)
