"""Collinear groups: which columns, the attribution of a group, the place of its members."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge

from roshap.attribution.attributions import Attributions
from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.attribution.groups import find_groups
from roshap.attribution.ranking import (
    GROUP_GLOSSARY,
    rank_attributions,
    rank_groups,
    read_ranking,
    write_ranking,
)
from roshap.compute import Executor
from roshap.datasets import from_frame
from roshap.errors import ConfigError, DataError

RNG = np.random.default_rng(0)


def table(n: int = 100) -> pd.DataFrame:
    a, b = RNG.normal(size=(2, n))
    return pd.DataFrame(
        {
            "a": a,
            "noise": RNG.normal(size=n),
            "a_cubed": -(a**3),  # the same ranks, the other way round
            "b": b,
            "a_near": a + 0.1 * RNG.normal(size=n),
            "b_copy": b,
            "fixed": 1.0,
        }
    )


def members(X: pd.DataFrame, threshold: float = 0.9) -> set[frozenset[str]]:
    names = X.columns
    return {frozenset(names[j] for j in group) for group in find_groups(X, threshold).members}


def test_rank_correlation_joins_and_copies_are_named():
    X = table()
    assert members(X) == {frozenset({"a", "a_cubed", "a_near"}), frozenset({"b", "b_copy"})}
    assert find_groups(X).copies == ((3, 5),)
    assert members(X, 1.0) == {frozenset({"a", "a_cubed"}), frozenset({"b", "b_copy"})}


def test_groups_do_not_depend_on_the_order_of_columns():
    X = pd.DataFrame(np.repeat(RNG.normal(size=(60, 4)), 3, axis=1) + RNG.normal(size=(60, 12)))
    X.columns = [f"f{j}" for j in range(12)]
    expected = members(X, 0.5)
    assert len(expected) > 1
    for _ in range(10):
        assert members(X[RNG.permutation(X.columns)], 0.5) == expected


def test_average_linkage_is_that_of_the_whole_matrix():
    """Clusters are sought inside connected parts only: the same as over all columns at once."""
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    X = pd.DataFrame(RNG.normal(size=(50, 3))[:, RNG.integers(3, size=14)])
    X = X + 0.7 * RNG.normal(size=X.shape)
    distance = 1 - X.corr("spearman").abs().to_numpy()
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy.linkage(squareform(distance, checks=False), "average")
    label = hierarchy.fcluster(tree, 0.45, "distance")
    whole = {frozenset(np.flatnonzero(label == c)) for c in set(label) if (label == c).sum() > 1}
    assert {frozenset(group) for group in find_groups(X, 0.55).members} == whole


def test_missing_values_and_categories():
    X = table().assign(city=pd.Categorical(["x", "y"] * 50), town=pd.Categorical(["x", "y"] * 50))
    X.loc[:3, ["b", "b_copy"]] = np.nan
    assert frozenset({"b", "b_copy"}) in members(X)
    assert frozenset({"city", "town"}) in members(X)
    assert find_groups(table()[["fixed"]]).members == ()


@pytest.mark.parametrize("threshold", [0.0, 1.1])
def test_a_threshold_out_of_range_is_refused(threshold):
    with pytest.raises(ConfigError, match="groups_threshold"):
        find_groups(table(), threshold)


def attributed(X: pd.DataFrame, y: np.ndarray, model, runs: int = 30, **options) -> Attributions:
    options = {"groups_threshold": 0.9, **options}
    data = from_frame(X, y, weights=options.pop("weights", None))
    return bootstrap_attributions(
        data, model, runs=runs, seed=0, executor=Executor(workers=1), **options
    )


def test_the_sum_is_inside_a_row_before_the_absolute_value():
    """Of a linear model phi_j = w_j (x_j - mean): the members' contributions cancel or add up."""
    X = table()[["a", "a_near", "noise"]]
    y = (X["a"] + RNG.normal(size=100)).to_numpy()
    weights = RNG.uniform(0.5, 2.0, size=100)
    found = attributed(X, y, Ridge(), runs=4, weights=weights)
    from roshap.attribution.splitter import BootstrapOOB
    from roshap.models import fit

    values = X.to_numpy()
    for run in range(4):
        draw = BootstrapOOB().draw(run, 100, seed=0)
        ridge = fit(Ridge(), values[draw.bag], y[draw.bag], weights[draw.bag])
        phi = (values[draw.oob] - values[draw.bag].mean(axis=0)) * ridge.coef_
        expected = (weights[draw.oob] * np.abs(phi[:, :2].sum(axis=1))).sum()
        assert found.groups.S[run, 0, 0] == pytest.approx(expected, rel=1e-5)
        assert found.groups.S[run, 0, 0] < found.S[run, :2, 0].sum()


def test_a_sample_of_the_rows_is_scaled_up():
    X, y = table(200), RNG.normal(size=200)
    whole = attributed(X, y, Ridge(), runs=6)
    part = attributed(X, y, Ridge(), runs=6, settings=BootstrapSettings(row_values=250))
    assert whole.groups.row_share == 1.0
    assert part.groups.row_share < 0.6
    np.testing.assert_allclose(part.groups.S, whole.groups.S, rtol=0.5)
    mean = attributed(X, y, Ridge(), runs=6, settings=BootstrapSettings(aggregate="mean"))
    np.testing.assert_allclose(mean.groups.S * whole.n_oob[:, None, None], whole.groups.S)


def test_without_rows_there_are_no_groups(tmp_path):
    found = attributed(
        table(), RNG.normal(size=100), Ridge(), runs=2, settings=BootstrapSettings(row_level=False)
    )
    assert found.groups is None
    with pytest.raises(DataError, match="no groups"):
        rank_groups(found)


def test_copies_in_reversed_order_give_the_group_the_same_place(tmp_path):
    """Which copy a model uses depends on their order; the group's score and rank do not."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 5))
    y = (X[:, 0] + 0.7 * X[:, 1] + 0.4 * X[:, 2] + rng.normal(size=150) > 0).astype(int)
    doubled = np.column_stack([X, X[:, 1]])
    forest = RandomForestClassifier(15, max_depth=4, random_state=0)
    names = ["x0", "x1", "x2", "x3", "x4", "x1 again"]
    forward = attributed(pd.DataFrame(doubled, columns=names), y, forest)
    reverse = attributed(pd.DataFrame(doubled[:, ::-1], columns=names[::-1]), y, forest)
    tables = [rank_groups(found).set_index("size").loc[2] for found in (forward, reverse)]
    for one, other in (tables, tables[::-1]):
        assert one["roshap_low"] <= other["roshap"] <= one["roshap_high"]
        assert one["rank_low"] <= other["rank"] <= one["rank_high"]
        assert one["copies"] == "x1 = x1 again"
    for found in (forward, reverse):
        ranked = rank_attributions(found).set_index("feature")
        assert ranked.loc["x1", "copies"] == "x1 again"
        assert ranked.loc[["x1", "x1 again"], "interchangeable"].all()
        assert ranked["group"].ne("").sum() == 2
        assert ranked.loc["x1", "group_rank"] == ranked.loc["x1 again", "group_rank"]
    whole = rank_groups(forward)
    assert tuple(whole.columns) == tuple(GROUP_GLOSSARY)
    write_ranking(whole, tmp_path, name="groups")
    pd.testing.assert_frame_equal(read_ranking(tmp_path, name="groups"), whole)
    forward.save(tmp_path)
    again = Attributions.load(tmp_path)
    np.testing.assert_array_equal(again.groups.S, forward.groups.S)
    assert again.groups.members == forward.groups.members
