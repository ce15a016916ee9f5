"""DREM in continuous time: the known integrals, and the streaming estimator."""

from __future__ import annotations

import numpy as np
import pytest

from roshap.errors import ModelError
from roshap.regression.drem import Delay, FirstOrder, Kreisselmeier, SignalDREM, excitation

TRUTH = np.array([2.0, -1.0])


def wave(t: float) -> np.ndarray:
    return np.array([np.sin(t), np.cos(t)])


def test_a_delay() -> None:
    ratio = np.exp(-excitation(wave, [Delay(np.pi / 2)], [5.0])[0])
    # D = 1 once the delay line is full
    assert ratio == pytest.approx(np.exp(-(5 - np.pi / 2)), rel=1e-11)
    # the number, from a simulation: its tenth decimal is off
    assert ratio == pytest.approx(0.0324127418, abs=2e-10)


def test_a_filter() -> None:
    integral = excitation(wave, [FirstOrder(1.0)], [10.0])[0]
    assert integral == pytest.approx(2.1874809527, abs=5e-11)
    assert np.exp(-4 * integral) == pytest.approx(1.5847339863e-4, abs=5e-14)


@pytest.mark.parametrize(
    ("law", "ratio"), [("standard", 7.868983699e-6), ("adaptive", 9.050483335e-5)]
)
def test_the_discrete_laws(law: str, ratio: float) -> None:
    model = SignalDREM([Delay(0.5)], law=law, gain=1.0, interval=0.1)
    for k in range(5):  # the delay line fills: D = 0
        np.testing.assert_array_equal(model.step(wave(0.1 * k) @ TRUTH, wave(0.1 * k)), 0)
    for k in range(5, 50):
        w = model.step(wave(0.1 * k) @ TRUTH, wave(0.1 * k))
    left = (w - TRUTH) / -TRUTH
    square = np.sin(0.5) ** 2
    exact = (1 - square) ** 45 if law == "standard" else (1 + square) ** -45
    np.testing.assert_allclose(left, exact, rtol=1e-10)
    # the numbers; the adaptive one differs from the closed form in its ninth digit
    np.testing.assert_allclose(left, ratio, rtol=5e-9)


@pytest.mark.parametrize("operator", [Delay(0.2), FirstOrder(1.0), Kreisselmeier(0.5)])
def test_samples_follow_the_theory_monotonically(
    operator: Delay | FirstOrder | Kreisselmeier,
) -> None:
    t = 0.01 * np.arange(2000)
    m = np.array([wave(s) for s in t])
    model = SignalDREM([operator], law="continuous", gain=3.0, interval=0.01)
    path = model.run(m @ TRUTH, m)
    error = (path - TRUTH) / -TRUTH
    assert (np.diff(error, axis=0) <= 1e-12).all()
    np.testing.assert_allclose(error[:, 0], error[:, 1], atol=1e-9)
    np.testing.assert_allclose(error[-1], np.exp(-3.0 * model.excitation_), rtol=1e-6, atol=1e-14)
    if not isinstance(operator, Kreisselmeier):
        exact = excitation(wave, [operator], [20.0])[0]
        assert model.excitation_ == pytest.approx(exact, rel=0.02)


def test_three_weights_with_two_operators() -> None:
    t = 0.05 * np.arange(3000)
    m = np.column_stack([np.sin(t), np.cos(t), np.sin(2.3 * t)])
    w = np.array([1.0, -2, 0.5])
    model = SignalDREM([FirstOrder(1.0), Delay(0.5)], gain=5.0, interval=0.05)
    np.testing.assert_allclose(model.run(m @ w, m)[-1], w, atol=1e-6)


@pytest.mark.parametrize(
    ("operators", "match"),
    [
        ([Delay(1), Delay(1)], "equal ones"),
        ([], "0 operators for 2 weights"),
        ([Delay(0.15)], "whole number of samples"),
        ([Delay(-1)], "positive"),
        ([Kreisselmeier(1), Delay(1)], "full order"),
    ],
)
def test_operators_that_cannot_work(operators: list[Delay], match: str) -> None:
    with pytest.raises(ModelError, match=match):
        SignalDREM(operators, interval=0.1).step(1.0, [1.0, 2.0])


def test_bad_samples_and_laws() -> None:
    with pytest.raises(ModelError, match="law='fast'"):
        SignalDREM([Delay(1)], law="fast")
    with pytest.raises(ModelError, match="nan"):
        SignalDREM([Delay(1)]).step(np.nan, [1, 2])
    model = SignalDREM([Delay(1)])
    model.step(1, [1, 2])
    with pytest.raises(ModelError, match="3 entries"):
        model.step(1, [1, 2, 3])
    assert model.reset().weights_ is None
