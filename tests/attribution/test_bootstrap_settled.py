"""Bootstraps that stop by themselves, and runs of a second model seed."""

from __future__ import annotations

import io

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from roshap.attribution.attributions import Attributions
from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.attribution.stopping import StopRule, decide, decision_of
from roshap.compute import Executor, Progress
from roshap.datasets import from_frame
from roshap.errors import ConfigError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6))
X[:, 3] = X[:, 2]  # an exact tie
Y = X @ np.array([3.0, 2.0, 1.0, 1.0, 0.3, 0.0]) + RNG.normal(size=60)
LOOKS = (10, 20, 40, 60)
CLEAR = StopRule(k=2, looks=LOOKS)
TIED = StopRule(k=3, looks=LOOKS, eps=0.0)


def study(rule, store=None, *, runs=60, workers=1, model=None, backend="loky", **options):
    said = io.StringIO()
    result = bootstrap_attributions(
        from_frame(X, Y, task="regression", name="study"),
        Ridge() if model is None else model,
        runs=runs,
        seed=0,
        settings=BootstrapSettings(explainer="native" if model is None else "auto"),
        executor=Executor(workers=workers, backend=backend),
        store=store,
        progress=Progress("study", every=1e9, stream=said),
        stop=rule,
        **options,
    )
    return result, said.getvalue()


def contents(result: Attributions, folder):
    result.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_it_stops_at_the_first_look_that_settles(tmp_path):
    result, said = study(CLEAR, tmp_path)
    decision = decision_of(result.meta)
    assert decision.settled
    assert result.runs == decision.runs == decision.looks[-1].runs
    assert [look.settled for look in decision.looks] == [False] * (len(decision.looks) - 1) + [True]
    assert len(list(tmp_path.glob("*/*.npz"))) == result.runs  # nothing was computed beyond it
    assert f"look at {result.runs} runs: the 2 best are settled" in said
    assert "resuming" not in said


def test_the_runs_are_those_of_a_fixed_number():
    settled, _ = study(CLEAR)
    fixed, _ = study(None, runs=settled.runs)
    np.testing.assert_array_equal(settled.S, fixed.S)
    np.testing.assert_array_equal(settled.rows.mean, fixed.rows.mean)


def test_a_tie_goes_to_the_cap_and_is_named():
    result, _ = study(TIED)
    decision = decision_of(result.meta)
    assert not decision.settled
    assert result.runs == 60
    assert set(decision.tie_group) >= {"2", "3"}
    assert 2 in decision.settled_sizes


def test_the_cap_decides_when_to_give_up_and_nothing_else():
    """A decision at a look does not know of the cap, so that raising the cap later is allowed."""
    low, high = (decision_of(study(TIED, runs=runs)[0].meta) for runs in (45, 60))
    assert low.runs == 40  # the last look that the cap allows
    assert high.looks[:3] == low.looks
    assert study(CLEAR, runs=60)[0].runs == study(CLEAR, runs=40)[0].runs


def test_no_look_below_the_cap_leaves_no_decision():
    result, said = study(CLEAR, runs=9)
    assert result.runs == 9
    assert decision_of(result.meta) is None
    assert "the first look is at 10 runs, and there are to be 9" in said


@pytest.mark.parametrize("rule", [CLEAR, TIED])
def test_workers_interruptions_and_longer_studies_change_no_byte(tmp_path, rule):
    expected = contents(study(rule)[0], tmp_path / "expected")
    assert contents(study(rule, workers=2)[0], tmp_path / "parallel") == expected
    store = tmp_path / "store"
    study(None, store, runs=13)  # interrupted between two looks
    resumed, said = study(rule, store)
    assert "resuming: 10 of 10 runs found" in said
    assert contents(resumed, tmp_path / "resumed") == expected
    study(None, store, runs=60)  # more runs than any look needed: they are not peeked at
    assert contents(study(rule, store)[0], tmp_path / "longer") == expected


def test_the_decision_is_that_of_its_runs():
    result, _ = study(TIED)
    decision = decision_of(result.meta)
    assert decision == decide(result.scores, result.features, TIED, decision.looks)


def test_an_impossible_size_is_an_error_before_any_run(tmp_path):
    with pytest.raises(ConfigError, match="of 6 features at most 5"):
        study(StopRule(k=6, looks=LOOKS), tmp_path)
    assert not list(tmp_path.glob("*/*.npz"))


def test_means_are_judged_as_means():
    settings = BootstrapSettings(explainer="native", aggregate="mean")
    result = bootstrap_attributions(
        from_frame(X, Y, task="regression"), Ridge(), runs=60, seed=0, settings=settings,
        executor=Executor(workers=1), stop=CLEAR,
    )  # fmt: skip
    assert decision_of(result.meta) == decide(
        result.scores, result.features, CLEAR, decision_of(result.meta).looks
    )


def seeded_tree() -> DecisionTreeRegressor:
    return DecisionTreeRegressor(max_depth=3, max_features=2, random_state=0)


def test_a_second_seed_repeats_the_draws_with_another_model(tmp_path):
    options = {"runs": 12, "model": seeded_tree(), "randomness": 8}
    result, _ = study(None, tmp_path / "store", **options)
    assert result.second_seed.shape == (8, 6, 1)
    other = seeded_tree().set_params(random_state=1)
    direct, _ = study(None, runs=8, model=other)
    np.testing.assert_allclose(result.second_seed, direct.S, rtol=1e-12)
    plain, _ = study(None, tmp_path / "store", runs=12, model=seeded_tree())
    np.testing.assert_array_equal(plain.S, result.S)  # the runs themselves stay what they were
    assert contents(study(None, workers=2, **options)[0], tmp_path / "two") == contents(
        result, tmp_path / "one"
    )
    np.testing.assert_array_equal(
        Attributions.load(tmp_path / "one").second_seed, result.second_seed
    )


def test_more_runs_repeat_no_second_seed(tmp_path):
    study(None, tmp_path, runs=6, model=seeded_tree(), randomness=6)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.npz")}
    study(None, tmp_path, runs=9, model=seeded_tree(), randomness=8)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.npz")}
    assert len(before) == 12
    assert {path: after[path] for path in before} == before
    assert len(after) == 17


def test_a_model_without_a_seed_says_so():
    result, said = study(None, runs=6, randomness=6)
    assert "Ridge has no seed: all spread is data" in said
    np.testing.assert_array_equal(result.second_seed, result.S)
    with pytest.raises(ConfigError, match="randomness=3"):
        study(None, runs=6, randomness=3)
