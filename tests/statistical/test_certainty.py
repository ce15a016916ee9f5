"""Statistical claims of docs/certainty.md, with fixed seeds: each would catch a broken formula.

The cached matrices hold 1000 runs each; a study is a sample of them, and the truth is all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from roshap.attribution.distribution import wilson
from roshap.attribution.influence import influence
from roshap.attribution.intervals import (
    correction,
    rank_intervals,
    resample,
    score_intervals,
    simultaneous_factor,
    swap_probabilities,
)
from roshap.attribution.randomness import shares
from roshap.attribution.score import score
from roshap.attribution.stopping import LOOKS, StopRule, decide, look

pytestmark = pytest.mark.statistical

MATRICES = ("breast_cancer", "diabetes", "sparse")
Rng = np.random.Generator


def matrix(name: str) -> np.ndarray:
    """Return S (1000, p) of a cached study."""
    with np.load(Path(__file__).parent / "matrices" / f"{name}.npz") as arrays:
        return arrays["S"].astype(np.float64)


def studies(S: np.ndarray, runs: int, count: int, seed: int = 0) -> list[np.ndarray]:
    """Draw studies of some runs from all runs."""
    rng = np.random.default_rng(seed)
    return [S[rng.integers(len(S), size=runs)] for _ in range(count)]


def names(p: int) -> list[str]:
    return [f"f{j:03d}" for j in range(p)]


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("runs", [20, 50])
def test_score_intervals_cover_the_score(name: str, runs: int) -> None:
    S = matrix(name)
    truth = score(S).roshap
    covered = []
    for study in studies(S, runs, 60):
        low, high = score_intervals(study)
        known = np.isfinite(low)
        covered.append(((low <= truth) & (truth <= high))[known])
    assert 0.91 <= np.concatenate(covered).mean() <= 0.99


@pytest.mark.parametrize("name", MATRICES)
def test_influence_values_give_the_spread_of_the_score(name: str) -> None:
    S = matrix(name)
    found = [influence(study) for study in studies(S, 100, 150)]
    # features that every study knows well: the formula is for small changes
    often = (S > 0).mean(axis=0) > 0.3
    real = np.std([one.log_score[often] for one in found], axis=0, ddof=1)
    stated = np.sqrt(np.mean([one.variance[often] for one in found], axis=0))
    assert np.median(stated / real) == pytest.approx(1.0, abs=0.1)
    assert ((stated / real > 0.75) & (stated / real < 1.4)).all()


def test_the_bias_of_ten_runs_is_taken_away() -> None:
    S = matrix("breast_cancer")
    truth = score(S).roshap
    raw = np.mean([score(study).roshap for study in studies(S, 10, 400)], axis=0)
    often = (S > 0).all(axis=0)
    assert 1.07 <= np.median((raw / truth)[often]) <= 1.18
    assert np.median((raw * correction(10) / truth)[often]) == pytest.approx(1.0, abs=0.04)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("runs", [20, 50])
def test_rank_intervals_cover_the_rank(name: str, runs: int) -> None:
    S = matrix(name)
    p = S.shape[1]
    rank = np.empty(p, dtype=int)
    rank[influence(S).order(names(p))] = np.arange(1, p + 1)
    each, every = [], []
    for study in studies(S, runs, 60):
        found = influence(study)
        lead = found.order(names(p))[:50]
        both = rank_intervals(found, [_t(runs), simultaneous_factor(found, lead)])
        inside = (both[:, :, 0] <= rank) & (rank <= both[:, :, 1])
        each.append(inside[0])
        every.append(inside[1].all())
    assert np.mean(each) >= 0.96
    assert np.mean(every) >= 0.88  # 60 studies: a nominal .95 falls below in 1 of 60 cases


def _t(runs: int) -> float:
    from scipy import stats

    return float(stats.t.ppf(0.975, runs - 1))


@pytest.mark.parametrize("name", MATRICES)
def test_probability_of_the_top_k_is_calibrated(name: str) -> None:
    """Of the features said to be in the top k with a probability of p, a share p are, +- 10."""
    S = matrix(name)
    p, k = S.shape[1], 5
    truth = np.zeros(p, dtype=bool)
    truth[influence(S).order(names(p))[:k]] = True
    said = np.concatenate(
        [resample(study, count=200).in_top([k])[0] for study in studies(S, 30, 60)]
    )
    came = np.tile(truth, 60)
    for low, high in ((0.2, 0.5), (0.5, 0.8), (0.0, 1.01)):
        here = (said >= low) & (said < high)
        assert abs(said[here].mean() - came[here].mean()) <= 0.10


def test_probability_of_a_swap_is_calibrated() -> None:
    S = matrix("breast_cancer")
    p = S.shape[1]
    truth = influence(S).log_score
    said, came = [], []
    for study in studies(S, 50, 60):
        found = influence(study)
        order = found.order(names(p))
        said.append(swap_probabilities(found, order)[order[:-1]])
        came.append(truth[order[1:]] > truth[order[:-1]])
    said, came = np.concatenate(said), np.concatenate(came)
    for low, high in ((0.0, 0.3), (0.3, 0.5)):
        here = (said >= low) & (said < high)
        assert abs(said[here].mean() - came[here].mean()) <= 0.10


def test_wilson_covers_p0() -> None:
    S = matrix("sparse")
    truth = (S == 0).mean(axis=0)
    inside = []
    for study in studies(S, 30, 200):
        low, high = wilson((study == 0).sum(axis=0), 30)
        inside.append((low <= truth) & (truth <= high))
    assert 0.92 <= np.mean(inside) <= 0.99


def _normal(rng: Rng, shape: tuple[int, int]) -> np.ndarray:
    return np.maximum(rng.normal(1.0, 0.25, size=shape), 0.05)


def _zeros(rng: Rng, shape: tuple[int, int]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.03, 0.0, _normal(rng, shape))


def _outliers(rng: Rng, shape: tuple[int, int]) -> np.ndarray:
    return _normal(rng, shape) * np.where(rng.random(shape) < 0.05, 4.0, 1.0)


LAWS: dict[str, Callable[[Rng, tuple[int, int]], np.ndarray]] = {
    "normal": _normal,
    "gamma(2)": lambda rng, shape: rng.gamma(2.0, size=shape),
    "lognormal(1)": lambda rng, shape: rng.lognormal(0.0, 1.0, size=shape),
    "normal, 3 % zeros": _zeros,
    "5 % of values x 4": _outliers,
}


@pytest.mark.parametrize("law", LAWS)
def test_stop_rule_errs_within_its_level(law: str) -> None:
    """The hardest case: of two features of one law one is better by exactly eps."""
    rule = StopRule(k=1)
    count, wrong = 800, 0
    scale = np.array([1 + rule.eps, 1.0])
    rng = np.random.default_rng(7)
    for _ in range(count):
        S = LAWS[law](rng, (LOOKS[-1], 2)) * scale
        for runs in LOOKS:
            seen, found = look(S[:runs], names(2), rule)
            if seen.settled:
                wrong += found.order[0] != 0
                break
    error = wrong / count
    assert error <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / count)


def test_stop_rule_stops_early_where_the_gap_is_clear() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        S = _normal(rng, (LOOKS[0], 8)) * np.array([4.0] * 4 + [1.0] * 4)
        assert look(S, names(8), StopRule(k=4))[0].settled


@pytest.mark.parametrize("law", ["normal", "lognormal(1)"])
def test_an_exact_tie_does_not_settle_without_tolerance(law: str) -> None:
    """Features of one law: whichever lead, settling would be wrong, and is rare."""
    rng = np.random.default_rng(5)
    rule, settled, count = StopRule(k=3, eps=0.0), 0, 60
    for _ in range(count):
        S = LAWS[law](rng, (LOOKS[-1], 6))
        settled += any(look(S[:runs], names(6), rule)[0].settled for runs in LOOKS)
    assert settled / count <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / count)


def test_copies_never_settle_without_tolerance() -> None:
    x = LAWS["gamma(2)"](np.random.default_rng(0), (LOOKS[-1], 1))
    S = np.hstack([x, x, 0.1 * x[::-1]])
    decision = decide(S, ["a", "b", "c"], StopRule(k=1, eps=0.0))
    assert not decision.settled
    assert decision.tie_group == ("a", "b")
    assert decide(S, ["a", "b", "c"], StopRule(k=1)).settled  # within 10 % they are equal


def test_shares_of_data_and_seed_are_found() -> None:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(200):
        data = rng.normal(size=(30, 1)) * 0.8**0.5
        first, second = (10 + data + rng.normal(size=(30, 1)) * 0.2**0.5 for _ in range(2))
        found.append(shares(first, second).share[0])
    assert np.mean(found) == pytest.approx(0.8, abs=0.02)
