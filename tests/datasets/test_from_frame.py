"""from_frame: every kind of column and target that pandas has, right or with a clear error."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from roshap.datasets import from_frame
from roshap.errors import DataError

N = 20
RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "b"])
BINARY = np.arange(N) % 2


def with_column(values: object) -> pd.DataFrame:
    return X.assign(extra=values)


@pytest.mark.parametrize(
    "values, expected",
    [
        (np.arange(N, dtype=np.int8), np.arange(N)),
        (np.arange(N, dtype=np.float32), np.arange(N)),
        (BINARY.astype(bool), BINARY),
        (pd.array([True, None] * 10, dtype="boolean"), [1, np.nan] * 10),
        (pd.array([5, None] * 10, dtype="Int64"), [5, np.nan] * 10),
        (pd.array([0.5, None] * 10, dtype="Float64"), [0.5, np.nan] * 10),
        (pd.array([5, None] * 10, dtype="int64[pyarrow]"), [5, np.nan] * 10),
        (pd.arrays.SparseArray(BINARY.astype(float), fill_value=0.0), BINARY),
        (pd.Series([1, 2.5] * 10, dtype=object), [1, 2.5] * 10),
        (pd.Series([True, None] * 10, dtype=object), [1, np.nan] * 10),
        (pd.Series([Decimal("0.5"), None] * 10, dtype=object), [0.5, np.nan] * 10),
        ([2**53, -(2**53)] * 10, [2.0**53, -(2.0**53)] * 10),
        ([2**60, 2**61] * 10, [2.0**60, 2.0**61] * 10),
        (pd.Series([2**70, 1] * 10, dtype=object), [2.0**70, 1] * 10),
    ],
)
def test_numeric_columns_become_float64(values: object, expected: object) -> None:
    column = from_frame(with_column(values), BINARY).X["extra"]
    assert column.dtype == np.float64
    np.testing.assert_array_equal(column, np.asarray(expected, dtype=float))


@pytest.mark.parametrize(
    "values, message",
    [
        (["u", "v"] * 10, r"column 'extra' holds text \(e.g. 'u'\).*dataset.drop.*dataset.categor"),
        (pd.Series(["u", None] * 10, dtype=object), "holds text"),
        (pd.Series(["1", "2", "?", "4"] * 5), r"dataset.reader_options.missing=\['\?'\]"),
        (pd.Series([1, "v"] * 10, dtype=object), "holds text"),
        (pd.date_range("2020-01-01", periods=N), r"holds dates or times \(datetime64"),
        (pd.date_range("2020-01-01", periods=N, tz="UTC"), "holds dates or times"),
        (pd.to_timedelta(np.arange(N), unit="D"), "holds dates or times"),
        (pd.period_range("2020-01", periods=N, freq="M"), "holds dates or times"),
        (np.arange(N) * 1j, "complex"),
        ([2**53 + 1, 0] * 10, "cannot hold exactly.*9007199254740993"),
        (pd.Series([2**64 + 1, 0] * 10, dtype=object), "cannot hold exactly"),
        (pd.Series([10**400, 0] * 10, dtype=object), "cannot hold exactly"),
        (pd.array([2**53 + 1, None] * 10, dtype="Int64"), "cannot hold exactly"),
        ([np.nan] * N, "columns without any value: 'extra'"),
        ([np.inf, 1.0] * 10, r"infinite values in 'extra' \(10\)"),
    ],
)
def test_unfit_columns_are_one_clear_line(values: object, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        from_frame(with_column(values), BINARY)
    assert "\n" not in str(caught.value)


def test_declared_and_pandas_categories_stay_categories() -> None:
    table = with_column(["v", "u", None, "u"] * 5).assign(
        level=pd.Categorical([10, 9] * 10), one=[1.0, np.nan] * 10
    )
    data = from_frame(table, BINARY, categorical=["extra", "one"])
    assert list(data.X.columns) == ["a", "b", "extra", "level", "one"]
    assert list(data.X["extra"].cat.categories) == ["u", "v"]
    assert data.X["extra"].isna().sum() == 5
    assert list(data.X["level"].cat.categories) == ["9", "10"]  # by value, not by text
    assert list(data.X["one"].cat.categories) == ["1"]
    with pytest.raises(DataError, match="categorical names no column: 'nope'"):
        from_frame(X, BINARY, categorical=["nope"])


TEXT = ["b", "a"] * 10


@pytest.mark.parametrize(
    "y, task, classes, codes",
    [
        (pd.Series(TEXT), "binary", ("a", "b"), [1, 0]),
        (pd.Series(TEXT, dtype=object), "binary", ("a", "b"), [1, 0]),
        (pd.Series(TEXT, dtype="string"), "binary", ("a", "b"), [1, 0]),
        (np.array(TEXT), "binary", ("a", "b"), [1, 0]),
        (np.array(TEXT, dtype=object), "binary", ("a", "b"), [1, 0]),
        (TEXT, "binary", ("a", "b"), [1, 0]),
        (pd.Categorical(TEXT), "binary", ("a", "b"), [1, 0]),
        (pd.Categorical(TEXT, ["b", "a"], ordered=True), "binary", ("b", "a"), [0, 1]),
        (pd.Categorical(TEXT, ["c", "b", "a"]), "binary", ("a", "b"), [1, 0]),
        ([True, False] * 10, "binary", ("False", "True"), [1, 0]),
        (pd.array([True, False] * 10, dtype="boolean"), "binary", ("False", "True"), [1, 0]),
        ([10, 9] * 10, "binary", ("9", "10"), [1, 0]),
        (pd.array([10, 9] * 10, dtype="Int64"), "binary", ("9", "10"), [1, 0]),
        ([1.0, 0.0] * 10, "binary", ("0", "1"), [1, 0]),
        ([2**62 + 1, 2**62] * 10, "binary", (str(2**62), str(2**62 + 1)), [1, 0]),
        ([11, 2, 3, 2] * 5, "multiclass", ("2", "3", "11"), [2, 0, 1, 0]),
        (pd.DataFrame({"t": TEXT}), "binary", ("a", "b"), [1, 0]),
        (np.array([TEXT]).T, "binary", ("a", "b"), [1, 0]),
    ],
)
def test_classification_targets(
    y: object, task: str, classes: tuple[str, ...], codes: list[int]
) -> None:
    data = from_frame(X, y)
    assert (data.task, data.classes) == (task, classes)
    assert data.y.dtype == np.int64
    np.testing.assert_array_equal(data.y, codes * (N // len(codes)))
    assert "target" in data.source["task_inferred"]


@pytest.mark.parametrize(
    "y", [RNG.normal(size=N), np.arange(N), pd.array(np.arange(N), dtype="Int64"), [0.5, 1.5] * 10]
)
def test_numeric_targets_are_regression(y: object) -> None:
    data = from_frame(X, y)
    assert (data.task, data.classes, data.y.dtype) == ("regression", (), np.float64)
    np.testing.assert_array_equal(data.y, np.asarray(y, dtype=float))


def test_a_given_task_is_not_inferred() -> None:
    data = from_frame(X, BINARY, task="regression")
    assert data.y.dtype == np.float64
    assert "task_inferred" not in data.source


def test_classes_give_the_order_and_must_be_complete() -> None:
    assert from_frame(X, TEXT, classes=["b", "a"]).classes == ("b", "a")
    assert from_frame(X, np.arange(N) % 4, classes=list("0123")).task == "multiclass"
    with pytest.raises(DataError, match=r"dataset.classes is \['b', 'c'\] but .* has \['a', 'b'\]"):
        from_frame(X, TEXT, classes=["b", "c"])


@pytest.mark.parametrize(
    "y, task, message",
    [
        ([None, "a"] * 10, None, "10 missing values"),
        ([np.nan, 1.0] * 10, "regression", "10 missing values"),
        ([np.inf, 1.0] * 10, "regression", "10 missing or infinite"),
        (TEXT, "regression", "wrong type for regression: 'b' is not a number"),
        (pd.Series(TEXT, dtype=object), "regression", "wrong type for regression"),
        (RNG.normal(size=N), "binary", "wrong type for binary.*dataset.task=regression"),
        (["a", "b", "c", "d"] * 5, "binary", "has 4 classes; binary needs 2"),
        (["a"] * N, None, r"one class only \('a'\)"),
        ([1] * N, "binary", "one class only"),
        ([1.5] * N, None, "always 1.5"),
        (["a"] * (N - 1) + ["b"], None, r"too few rows of class 'b' \(1\); at least 2"),
        (np.arange(N), "multiclass", r"or is this dataset.task=regression\?"),
        (pd.date_range("2020-01-01", periods=N), None, "holds dates or times"),
        (pd.Series([1, "1"] * 10, dtype=object), None, "all written '1'"),
        (np.arange(N - 1), None, "19 values for 20 rows"),
        (np.zeros((N, 2)), None, r"must be one column, got shape \(20, 2\)"),
    ],
)
def test_unfit_targets(y: object, task: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        from_frame(X, y, task=task)
    assert "\n" not in str(caught.value)


def test_a_shuffled_index_shared_by_x_and_y_changes_nothing() -> None:
    order = RNG.permutation(N)
    y = pd.Series(np.arange(N, dtype=float), name="t")
    data = from_frame(X.iloc[order], y.iloc[order])
    np.testing.assert_array_equal(data.y, order)
    np.testing.assert_array_equal(data.X, X.iloc[order])
    assert data.X.index.equals(pd.RangeIndex(N))
    assert data.target == "t"


@pytest.mark.parametrize("start", [0, 500])
def test_y_with_a_shuffled_index_is_paired_by_position_with_plain_x(start: int) -> None:
    y = pd.Series(np.arange(N, dtype=float), index=start + RNG.permutation(N))
    np.testing.assert_array_equal(from_frame(X, y).y, np.arange(N))
    np.testing.assert_array_equal(from_frame(X.to_numpy(), y).y, np.arange(N))


def test_contradicting_indexes_are_refused() -> None:
    labels = [f"patient {i}" for i in range(N)]
    y = pd.Series(np.arange(N, dtype=float), index=labels[::-1])
    with pytest.raises(DataError, match=r"different order: give y.loc\[X.index\]"):
        from_frame(X.set_axis(labels), y)


def test_arrays_and_integer_names_get_text_names() -> None:
    data = from_frame(X.to_numpy(), BINARY)
    assert data.features == ("0", "1")
    assert (data.n, data.p, data.target) == (N, 2, "y")
    assert from_frame(X.set_axis([7, 8], axis=1), BINARY).features == ("7", "8")


@pytest.mark.parametrize("names", [["a", "a"], [1, "1"]])
def test_duplicate_names_are_refused(names: list[object]) -> None:
    with pytest.raises(DataError, match=r"duplicate column names: '(a|1)'"):
        from_frame(X.set_axis(names, axis=1), BINARY)


def test_a_feature_with_the_targets_name_is_refused() -> None:
    with pytest.raises(DataError, match="'a' cannot be a feature"):
        from_frame(X, pd.Series(BINARY, name="a"))
    with pytest.raises(DataError, match="'__group__' cannot be a feature"):
        from_frame(X.rename(columns={"a": "__group__"}), BINARY)


def test_the_input_is_not_changed() -> None:
    table = X.copy()
    data = from_frame(table, BINARY)
    data.X.iloc[0, 0] = 99.0
    pd.testing.assert_frame_equal(table, X)


def test_groups_and_weights() -> None:
    data = from_frame(X, BINARY, groups=np.arange(N) // 2, weights=np.ones(N, dtype=int))
    assert data.groups.dtype == np.int64
    assert data.weights.dtype == np.float64
    text = from_frame(X, BINARY, groups=["p1", "p2"] * 10)
    assert text.groups.tolist() == ["p1", "p2"] * 10
    with pytest.raises(DataError, match="groups has 10 missing values"):
        from_frame(X, BINARY, groups=["p1", None] * 10)
    with pytest.raises(DataError, match="all rows are in one group"):
        from_frame(X, BINARY, groups=np.zeros(N, dtype=int))
    with pytest.raises(DataError, match="weights must be finite, not negative"):
        from_frame(X, BINARY, weights=-np.ones(N))
    with pytest.raises(DataError, match="groups has 3 values for 20 rows"):
        from_frame(X, BINARY, groups=[1, 2, 3])


def test_the_digest_follows_the_content_only() -> None:
    base = from_frame(X, BINARY)
    assert from_frame(X.copy(), BINARY.astype(np.int8), name="other").digest == base.digest
    changed = X.copy()
    changed.iloc[3, 1] += 1e-15 * abs(changed.iloc[3, 1]) * 4
    different = [
        from_frame(changed, BINARY),
        from_frame(X[["b", "a"]], BINARY),
        from_frame(X.rename(columns={"a": "z"}), BINARY),
        from_frame(X, 1 - BINARY),
        from_frame(X, BINARY, target="other"),
        from_frame(X, BINARY, task="regression"),
        from_frame(X, np.where(BINARY, "p", "q")),
        from_frame(X, BINARY, groups=np.arange(N)),
        from_frame(X, BINARY, weights=np.ones(N)),
        from_frame(X, BINARY, held_out=BINARY == 1),
    ]
    assert len({base.digest, *(d.digest for d in different)}) == len(different) + 1


def test_the_digest_is_pinned() -> None:
    """A change of the digest's definition would orphan every digest in conf/: never by accident."""
    table = pd.DataFrame({"a": np.arange(10.0), "b": [np.nan, -0.0] * 5})
    assert from_frame(table, [0, 1] * 5).digest == (
        "5607d0b2927b9c27e5525a8be14321a9dcd635e02f06149cd2ad601533e14362"
    )
