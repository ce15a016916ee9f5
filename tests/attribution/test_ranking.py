"""The ranking table: its order, its columns, and its files."""

from __future__ import annotations

import csv
import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from roshap.attribution.attributions import Attributions, RowSummaries
from roshap.attribution.ranking import (
    COLUMNS,
    GLOSSARY,
    rank,
    rank_attributions,
    rank_classes,
    read_ranking,
    write_ranking,
)
from roshap.attribution.score import score
from roshap.errors import DataError, OutputError

RNG = np.random.default_rng(0)
S = RNG.gamma(2.0, size=(30, 6)) * np.array([1.0, 5, 0, 3, 2, 0.1])
NAMES = ["delta", "alpha", "unused", "gamma", "beta", "epsilon"]


def attributions(K: int) -> Attributions:
    values = np.random.default_rng(1).gamma(2.0, size=(25, 4, K))
    sums = np.random.default_rng(2).gamma(2.0, size=(4, K))
    filler = np.zeros((10, 4, K), dtype=np.float32)
    rows = RowSummaries(
        rows=np.arange(10),
        n_oob=np.full(10, 9),
        mean=filler,
        sd=filler,
        p0=filler,
        quantiles=np.zeros((10, 4, K, 3), dtype=np.float32),
        var_sum=sums,
        abs3_sum=sums / 3,
        var_max=sums / 5,
        n_rows_total=10,
    )
    return Attributions(
        S=values,
        aggregate="sum",
        features=("a", "b", "c", "d"),
        classes=tuple(f"class {k}" for k in range(K)) if K > 1 else (),
        n_oob=np.full(25, 4),
        redraws=np.zeros(25, dtype=int),
        explainer="tree kernel",
        space="probability",
        rows=rows,
        meta={},
    )


def test_best_feature_first_with_its_own_numbers():
    table = rank(S, NAMES)
    scored = score(S)
    assert table["rank"].tolist() == [1, 2, 3, 4, 5, 6]
    assert table["roshap"].is_monotonic_decreasing
    assert table["feature"].iloc[-1] == "unused"
    for row in table.itertuples():
        j = NAMES.index(row.feature)
        assert row.roshap == scored.roshap[j]
        assert row.strength == scored.strength[j]
        assert row.p0 == scored.p0[j]
        assert row.p0_low <= row.p0 <= row.p0_high


def test_columns_are_those_of_the_glossary_in_order():
    table = rank(S, NAMES)
    assert tuple(table.columns) == COLUMNS
    assert all(text.endswith(".") for text in GLOSSARY.values())


def test_ties_are_broken_by_mean_then_name_never_by_column():
    tied = np.zeros((4, 4))
    tied[:, 0] = [1, 2, 3, 4]
    tied[:, 2] = [1, 2, 3, 4]
    assert rank(tied, ["z", "n", "a", "m"])["feature"].tolist() == ["a", "z", "m", "n"]


def test_a_tie_in_score_goes_to_the_larger_mean():
    constant = np.column_stack([np.full(4, 1.0), np.full(4, 2.0)])
    assert rank(constant, ["a", "b"])["feature"].tolist() == ["b", "a"]


def test_deterministic_features_lead_are_flagged_and_leave_no_infinity():
    table = rank(np.column_stack([S[:, 0] * 1e6, np.full(30, 1e-3)]), ["large", "fixed"])
    assert table["feature"].tolist() == ["fixed", "large"]
    assert table["deterministic"].tolist() == [True, False]
    assert np.isnan(table.loc[0, ["roshap", "stability"]].astype(float)).all()
    numbers = table.select_dtypes("number").to_numpy(dtype=float, na_value=np.nan)
    assert not np.isinf(numbers).any()


@settings(max_examples=25, deadline=None)  # the first table compiles a kernel
@given(
    hnp.arrays(np.int64, (5, 5), elements=st.integers(0, 3)),
    st.permutations(range(5)),
)
def test_permuted_columns_give_the_same_table(values, order):
    names = np.array(["e", "a", "d", "b", "c"])
    table = rank(values, names.tolist())
    permuted = rank(values[:, order], names[list(order)].tolist())
    pd.testing.assert_frame_equal(table, permuted, check_exact=True)


def test_integer_column_names_become_text():
    assert rank(S, range(6))["feature"].map(type).eq(str).all()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a", "b"], "2 feature names for attributions of 6 features"),
        (["a", "b", "c", "d", "e", "b"], "unique, but 'b' appears more than once"),
    ],
)
def test_unfit_names_are_refused(names, words):
    with pytest.raises(DataError, match=words):
        rank(S, names)


def test_files_are_read_back_exactly_and_written_the_same_twice(tmp_path):
    names = [*NAMES, "fixed, with a comma"]
    with_fixed = np.column_stack([S, np.ones(30)])
    table = rank(with_fixed, names)
    first = write_ranking(table, tmp_path / "one")
    second = write_ranking(rank(with_fixed, names), tmp_path / "two")
    assert [path.name for path in first] == ["ranking.parquet", "ranking.csv"]
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
    pd.testing.assert_frame_equal(read_ranking(tmp_path / "one"), table, check_exact=True)
    with first[1].open(newline="") as file:
        written = [float(row["mean"]) for row in csv.DictReader(file)]
    assert written == table["mean"].tolist()
    assert "inf" not in first[1].read_text()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        "ranking.csv",
        "ranking.parquet",
    ]


def test_unreadable_rankings_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"ranking.parquet is missing"):
        read_ranking(tmp_path)
    (tmp_path / "ranking.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match="cannot be read"):
        read_ranking(tmp_path)
    pd.DataFrame({"rank": [1]}).to_parquet(tmp_path / "ranking.parquet")
    with pytest.raises(DataError, match="columns feature, roshap"):
        read_ranking(tmp_path)


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        write_ranking(rank(S, NAMES), tmp_path / "file")


def test_one_output_carries_its_row_diagnostics():
    table = rank_attributions(attributions(1)).set_index("feature")
    sums = attributions(1).rows.var_sum[:, 0]
    np.testing.assert_allclose(table.loc[["a", "b", "c", "d"], "lyapunov"], 1 / (3 * sums**0.5))
    np.testing.assert_allclose(table["max_row_share"], 0.2)


def test_switched_off_rows_leave_the_diagnostics_empty():
    table = rank_attributions(dataclasses.replace(attributions(1), rows=None))
    assert table["lyapunov"].isna().all()


def test_several_classes_are_ranked_together_and_each_for_itself(tmp_path):
    found = attributions(3)
    together = rank_attributions(found)
    pd.testing.assert_frame_equal(together, rank(found.S.mean(axis=2), found.features))
    each = rank_classes(found)
    assert each.columns.tolist() == ["class", *COLUMNS]
    assert len(each) == 12
    for k, label in enumerate(found.classes):
        own = each[each["class"] == label].drop(columns="class").reset_index(drop=True)
        expected = rank(found.S[:, :, k], found.features, found.rows, output=k)
        pd.testing.assert_frame_equal(own, expected)
        assert own["lyapunov"].notna().all()
    write_ranking(each, tmp_path, name="classes")
    pd.testing.assert_frame_equal(read_ranking(tmp_path, name="classes"), each)


def test_one_output_has_no_rankings_per_class():
    with pytest.raises(DataError, match="only a multi-class bootstrap"):
        rank_classes(attributions(1))
