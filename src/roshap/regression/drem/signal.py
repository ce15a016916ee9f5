"""DREM for signals: ``y(t) = m(t)'w`` is extended by operators on the past and mixed.

Every operator is applied to y and to m alike, from a zero state, so that the extended regression
``Y_e(t) = M(t) w`` stays exact. The law ``dw_i/dt = gamma D (Y_i - D w_i)`` then gives
``(w - w(T)) / (w - w(0)) = exp(-gamma int D^2)``: every coordinate goes its way monotonically,
whatever the others do (Aranovskiy et al., doi:10.1109/TAC.2016.2614889).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from roshap.errors import ModelError
from roshap.regression.design import Array
from roshap.regression.iterative import unknown

SIGNAL_LAWS = ("standard", "adaptive", "continuous")


@dataclass(frozen=True)
class FirstOrder:
    """The filter ``rate / (s + rate)``."""

    rate: float


@dataclass(frozen=True)
class Delay:
    """``v(t - time)``; zero before the first sample."""

    time: float


@dataclass(frozen=True)
class Kreisselmeier:
    """The extension ``G' = -rate G + m m'``, ``h' = -rate h + m y``: M is G."""

    rate: float


Operator = FirstOrder | Delay | Kreisselmeier


class _Running(Protocol):
    """An operator at work on samples."""

    def step(self, value: Array) -> Array: ...


class _Filter:
    """Exact for an input that is held over a sample."""

    def __init__(self, rate: float, step: float, size: int) -> None:
        self.keep = np.exp(-rate * step)
        self.state = np.zeros(size)

    def step(self, value: Array) -> Array:
        self.state = self.keep * self.state + (1.0 - self.keep) * value
        return self.state


class _Line:
    def __init__(self, samples: int, size: int) -> None:
        self.past = deque([np.zeros(size)] * samples)

    def step(self, value: Array) -> Array:
        self.past.append(value)
        return self.past.popleft()


def check_operators(operators: Sequence[Operator], q: int) -> None:
    """Refuse operators that cannot extend a regression of q weights.

    Raises
    ------
    ModelError
        For equal or impossible operators, or the wrong number of them.
    """
    if len(set(operators)) < len(operators):
        raise ModelError(f"operators={list(operators)}: equal ones make M singular")
    for operator in operators:
        value = operator.time if isinstance(operator, Delay) else operator.rate
        if not value > 0:
            raise ModelError(f"{operator}: a positive number")
    if any(isinstance(operator, Kreisselmeier) for operator in operators):
        if len(operators) > 1:
            raise ModelError("Kreisselmeier's extension has full order: no other operator with it")
    elif len(operators) != q - 1:
        raise ModelError(f"{len(operators)} operators for {q} weights: {q - 1} are needed")


class SignalDREM:
    """DREM on a stream of samples.

    Parameters
    ----------
    operators : sequence of FirstOrder and Delay, or one Kreisselmeier
        q - 1 distinct ones for q weights.
    law : {"adaptive", "standard", "continuous"}
        Per sample ``w_i += g (T_i - w_i)`` with ``g`` as in
        :class:`~roshap.regression.drem.DREMRegressor`; ``continuous`` solves the differential
        law over a sample that is held: ``g = 1 - exp(-gain step D^2)``.
    gain : float
        ``alpha`` of the discrete laws, ``gamma`` of the continuous one.
    interval : float
        Time between samples. A delay must be a whole number of them.
    start : (q,) array-like, optional
        First weights; zeros by default.

    Attributes
    ----------
    weights_ : (q,) array
        None before the first sample.
    excitation_ : float
        ``int D^2`` so far (its sum over samples times ``interval``).
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        *,
        law: str = "adaptive",
        gain: float = 1.0,
        interval: float = 1.0,
        start: ArrayLike | None = None,
    ) -> None:
        if law not in SIGNAL_LAWS:
            raise unknown("law", law, SIGNAL_LAWS)
        if not gain > 0 or not interval > 0:
            raise ModelError(f"gain={gain}, interval={interval}: positive numbers")
        self.operators = tuple(operators)
        self.law = law
        self.gain = gain
        self.interval = interval
        self.start = start
        self.weights_: Array | None = None
        self.excitation_ = 0.0

    def step(self, y: float, m: ArrayLike) -> Array:
        """Take one sample, y and m (q,); return the weights (q,) after it."""
        row = np.append(np.asarray(m, dtype=np.float64), float(y))
        if not np.isfinite(row).all():
            raise ModelError("a sample holds nan or inf")
        w = self._begin(len(row) - 1) if self.weights_ is None else self.weights_
        if len(row) != len(w) + 1:
            raise ModelError(f"m has {len(row) - 1} entries, the model {len(w)}")
        M, side = self._extended(row)
        determinant = float(np.linalg.det(M))
        self.excitation_ += self.interval * determinant**2
        if determinant != 0.0:
            w = w + self._share(determinant**2) * (np.linalg.solve(M, side) - w)
        self.weights_ = w
        return w

    def run(self, y: ArrayLike, m: ArrayLike) -> Array:
        """Take samples y (n,) and m (n, q); return the weights after each, (n, q)."""
        pairs = zip(np.asarray(y, dtype=np.float64), np.asarray(m), strict=True)
        return np.array([self.step(value, row) for value, row in pairs])

    def _begin(self, q: int) -> Array:
        check_operators(self.operators, q)
        first = np.zeros(q) if self.start is None else np.array(self.start, dtype=np.float64)
        if first.shape != (q,):
            raise ModelError(f"start has shape {first.shape}, m has {q} entries")
        self._gram = np.zeros((q, q + 1))
        self._running: list[_Running] = [
            self._make(operator, q + 1)
            for operator in self.operators
            if not isinstance(operator, Kreisselmeier)
        ]
        return first

    def _make(self, operator: FirstOrder | Delay, size: int) -> _Running:
        if isinstance(operator, FirstOrder):
            return _Filter(operator.rate, self.interval, size)
        samples = operator.time / self.interval
        if abs(samples - round(samples)) > 1e-9 * samples or round(samples) < 1:
            raise ModelError(
                f"{operator}: a whole number of samples of interval={self.interval}, at least one"
            )
        return _Line(round(samples), size)

    def _extended(self, row: Array) -> tuple[Array, Array]:
        """Return M (q, q) and Y_e (q,)."""
        if self._running:
            rows = np.array([row, *(operator.step(row) for operator in self._running)])
        elif self.operators:
            (operator,) = self.operators
            assert isinstance(operator, Kreisselmeier)
            keep = np.exp(-operator.rate * self.interval)
            held = (1.0 - keep) / operator.rate
            self._gram = keep * self._gram + held * np.outer(row[:-1], row)
            rows = self._gram
        else:
            rows = row[None]
        return rows[:, :-1], rows[:, -1]

    def _share(self, square: float) -> float:
        if self.law == "standard":
            return self.gain * square
        if self.law == "adaptive":
            return self.gain * square / (1.0 + self.gain * square)
        return float(-np.expm1(-self.gain * self.interval * square))

    def reset(self) -> Self:
        """Forget everything; return self."""
        self.weights_ = None
        self.excitation_ = 0.0
        return self


def excitation(
    regressor: Callable[[float], Array],
    operators: Sequence[FirstOrder | Delay],
    times: ArrayLike,
    *,
    tolerance: float = 1e-12,
) -> Array:
    """Return ``int_0^t D^2`` of a regressor in continuous time, by an adaptive ODE solver.

    ``exp(-gamma * excitation)`` is the error of every weight as a share of its first error.

    Parameters
    ----------
    regressor : callable
        t -> m(t), (q,).
    operators : sequence
        q - 1 filters and delays.
    times : (n,) array-like
        Increasing, from 0 on.
    tolerance : float
        Relative tolerance of the solver.
    """
    times = np.atleast_1d(np.asarray(times, dtype=np.float64))
    q = len(regressor(0.0))
    check_operators(operators, q)
    filters = [operator for operator in operators if isinstance(operator, FirstOrder)]
    delays = [operator for operator in operators if isinstance(operator, Delay)]

    def change(t: float, state: Array, active: list[bool]) -> Array:
        m = regressor(t)
        filtered = state[:-1].reshape(len(filters), q)
        late = [
            regressor(t - d.time) if on else np.zeros(q)
            for d, on in zip(delays, active, strict=True)
        ]
        slopes = [f.rate * (m - v) for f, v in zip(filters, filtered, strict=True)]
        determinant = np.linalg.det(np.array([m, *filtered, *late]))
        return np.append(np.ravel(slopes), determinant**2)

    # a delay switches on at its time: the solver must not step across that corner
    corners = sorted({d.time for d in delays if d.time < times[-1]})
    state = np.zeros(len(filters) * q + 1)
    found = np.zeros(len(times))
    edges = [0.0, *corners, float(times[-1])]
    for low, high in itertools.pairwise(edges):
        active = [d.time <= low for d in delays]
        inside = (times > low) & (times <= high)
        solved = solve_ivp(
            change,
            (low, high),
            state,
            args=(active,),
            method="DOP853",
            t_eval=np.unique(np.append(times[inside], high)),
            rtol=tolerance,
            atol=1e-14,
        )
        found[inside] = np.interp(times[inside], solved.t, solved.y[-1])
        state = solved.y[:, -1]
    return found
