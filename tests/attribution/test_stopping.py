"""Influence values and the stop rule, by hand and at the edges."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from roshap.attribution.influence import influence
from roshap.attribution.score import score
from roshap.attribution.stopping import (
    LOOKS,
    Decision,
    StopRule,
    decide,
    decision_of,
    judge,
    look,
    separate,
)
from roshap.errors import ConfigError

RNG = np.random.default_rng(0)
S = RNG.gamma(9.0, size=(100, 12)) * np.geomspace(30, 1, 12)
NAMES = [f"f{j:02d}" for j in range(12)]


def test_influence_values_by_hand():
    x = np.array([0.0, 1, 2, 3, 4, 5, 7, 9])
    found = influence(x[:, None])
    q, n1, m, mu, s = 7 / 8, 7, 4.0, x.mean(), x.std(ddof=1)
    c = max(1, round((n1 + 1) / 2 - math.sqrt(n1)))
    z = stats.norm.ppf(1 - stats.binom.cdf(c - 1, n1, 0.5))
    nonzero = x[1:]
    se = (nonzero[n1 - c] - nonzero[c - 1]) / (2 * z)
    here = x > 0
    f = (here - q) / q + here * np.sign(x - m) * se * math.sqrt(n1) / (m * q)
    f += (x - mu) / mu - ((x - mu) ** 2 - s**2) / (2 * s**2)
    np.testing.assert_allclose(found.f[0], f - f.mean())
    assert found.log_score[0] == pytest.approx(math.log(q * m * mu / s))
    assert found.variance[0] == pytest.approx(((f - f.mean()) ** 2).sum() / (7 * 8))


def test_influence_has_no_units_and_knows_awkward_features():
    columns = np.column_stack([S[:, 0], S[:, 0] * 1e200, np.zeros(100), np.ones(100), S[:, 1]])
    columns[:, 4] = np.where(np.arange(100) == 3, 1e-300, 0)
    found = influence(columns)
    np.testing.assert_allclose(found.f[0], found.f[1], rtol=1e-9)
    assert np.isfinite(found.f).all()
    assert not found.f[2:4].any()
    assert found.log_score[3] == np.inf
    assert found.log_score[2] <= found.log_score[4] < found.log_score[0]
    assert found.sure.tolist() == [True, True, False, True, False]


def test_the_weakest_pair_is_the_smallest_of_all_pairs_by_hand():
    k, eps = 3, 0.1
    found, seen = influence(S), separate(S, NAMES, most=5, eps=eps)
    order = np.argsort(-score(S).roshap)
    smallest = math.inf
    for i in order[:k]:
        for j in order[k:]:
            V_i, V_j = found.variance[i], found.variance[j]
            C = found.f[i] @ found.f[j] / (99 * 100)
            se = math.sqrt(2 * max(V_i, V_j) - 2 * C)
            smallest = min(
                smallest, (found.log_score[i] - found.log_score[j] + math.log(1 + eps)) / se
            )
    assert seen.t_min(k) == pytest.approx(smallest)
    i, j = seen.weakest(k)
    assert i in order[:k]
    assert j in order[k:]


def test_the_level_is_spent_evenly_over_looks_and_sizes():
    assert StopRule().level() == 0.05 / 6
    seen, _ = look(S, NAMES, StopRule(k=3))
    assert seen.critical == pytest.approx(stats.t.ppf(1 - 0.05 / 6, 99))
    auto, _ = look(S, NAMES, StopRule(k="auto", k_range=(2, 5)))
    assert auto.critical == pytest.approx(stats.t.ppf(1 - 0.05 / 24, 99))


def test_auto_takes_the_largest_settled_size():
    steps = RNG.gamma(400.0, size=(100, 8)) * np.array([8, 8, 4, 4, 4, 2, 2, 2])
    seen, found = look(steps, NAMES[:8], StopRule(k="auto", k_range=(1, 7), eps=0.0))
    assert seen.settled
    assert seen.k == 5
    assert found.t_min(6) < seen.critical
    decision = decide(steps, NAMES[:8], StopRule(k="auto", k_range=(1, 7), eps=0.0))
    assert decision.k == 5
    assert decision.settled_sizes == (2,)


def test_an_unsettled_set_names_the_features_that_could_change_places():
    x = RNG.gamma(400.0, size=(100, 5)) * np.array([9, 3, 3, 3, 1])
    decision = decide(x, list("abcde"), StopRule(k=2, eps=0.0))
    assert not decision.settled
    assert set(decision.tie_group) == {"b", "c", "d"}
    assert decision.settled_sizes == (1, 4)
    lines = "\n".join(decision.lines())
    assert "the 2 best features are not settled after 100 runs" in lines
    assert "tie group at k = 2" in lines
    assert "settled: k = 1, 4" in lines
    assert "forecast" in lines


def test_a_member_with_few_nonzero_runs_is_never_settled():
    rare = np.where(np.arange(100) < 4, 50.0 + np.arange(100), 0.0)
    x = np.column_stack([S[:, :2], rare])
    seen, _ = look(x, ["a", "b", "rare"], StopRule(k=1))
    assert seen.settled
    unused = np.column_stack([S[:, :1], rare, np.zeros(100)])
    seen, _ = look(unused, ["a", "rare", "zero"], StopRule(k=2))
    assert not seen.settled
    assert seen.t_min is None
    assert decide(unused, ["a", "rare", "zero"], StopRule(k=2)).forecast is None


def test_deterministic_features_leave_nothing_to_chance():
    x = np.column_stack([np.full(100, 2.0), np.full(100, 1.0), S[:, 0]])
    for k in (1, 2):
        assert look(x, ["a", "b", "c"], StopRule(k=k))[0].settled


def test_the_order_of_the_columns_does_not_matter():
    order = RNG.permutation(12)
    first = decide(S, NAMES, StopRule(k=4))
    again = decide(S[:, order], [NAMES[j] for j in order], StopRule(k=4))
    assert first.tie_group == again.tie_group
    assert first.looks[0].t_min == pytest.approx(again.looks[0].t_min, rel=1e-9)


def test_a_decision_survives_json():
    decision = decide(S, NAMES, StopRule(k=4))
    text = json.dumps({"stop": {"decision": decision.to_dict()}}, allow_nan=False)
    assert decision_of(json.loads(text)) == decision
    assert isinstance(decision, Decision)
    assert decision_of({}) is None


def test_a_fixed_number_of_runs_is_judged_by_one_look():
    decision = judge(S, NAMES, StopRule(k=4))
    assert decision.looks[0].critical == pytest.approx(stats.t.ppf(0.95, 99))
    assert not decision.planned
    assert judge(S[:69], NAMES, StopRule(k=4)) is None
    assert judge(S, NAMES, StopRule(k=12)) is None
    assert LOOKS[0] == 70


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"k": 0}, "k=0"),
        ({"k": "many"}, "k='many'"),
        ({"eps": -0.1}, "eps=-0.1"),
        ({"alpha": 1.0}, "alpha=1.0"),
        ({"looks": (100, 70)}, "looks="),
        ({"looks": ()}, "looks="),
        ({"k_range": (5, 3)}, "k_range="),
    ],
)
def test_values_out_of_range_are_refused(values, words):
    with pytest.raises(ConfigError, match=words):
        StopRule(**values)


def test_a_set_that_leaves_nothing_out_is_refused():
    with pytest.raises(ConfigError, match="of 12 features at most 11"):
        look(S, NAMES, StopRule(k=12))
