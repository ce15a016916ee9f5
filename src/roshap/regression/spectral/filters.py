"""Spectral filters: what takes the place of 1/s where dividing by s would blow noise up.

A filter replaces the inverse of a symmetric operator with eigenvalues ``s >= 0`` by ``G(s)``; its
filter factors are ``phi = s G(s)`` and its residual factors ``rho = 1 - phi``. For kernels ``s``
are the eigenvalues of the kernel matrix, for a linear inverse problem the squared singular values
of the operator. Each filter gives ``G`` and ``rho`` by formulas of their own, because
neither ``phi / s`` nor ``1 - phi`` keeps its digits where it matters.

Sources: Engl, Hanke, Neubauer, "Regularization of Inverse Problems" (1996), chapters 4 to 6;
Lo Gerfo, Rosasco, Odone, De Vito, Verri, "Spectral algorithms for supervised learning", Neural
Computation 20 (2008); Hanke, "Accelerated Landweber iterations", Numer. Math. 60 (1991).

A filter of one's own is one small class: derive from :class:`ShiftFilter` or
:class:`IterativeFilter`, give ``name``, ``qualification``, ``gain`` and ``residual``, and pass an
instance of it wherever a filter's name is accepted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roshap.regression.spectral.errors import SpectralError

Array = NDArray[np.float64]
Parameter = Literal["lam", "steps", "components"]

_EPS = float(np.finfo(np.float64).eps)
#: The default path ends where the shift is this part of the largest eigenvalue ...
_SMALLEST_SHIFT = 1e-14
#: ... or far below the smallest eigenvalue that is certainly not rounding, a part of the largest,
_DISTINCT = 1e-12
#: ... or where the iteration has taken this many steps.
_MOST_STEPS = 1_000_000


def clamp(s: ArrayLike) -> Array:
    """Return eigenvalues, or singular values, with what is rounding of zero set to zero.

    That is ``s <= eps * max(s)``, tiny negative values included.
    """
    s = np.asarray(s, dtype=np.float64)
    return np.where(s > _EPS * np.max(s, initial=0.0), s, 0.0)


class Filter(ABC):
    """A family of functions ``G(s)``, one for each level of regularisation.

    Attributes
    ----------
    name
        What configurations call it.
    parameter
        What its level is: ``lam`` (a shift), ``steps`` (of an iteration) or ``components``.
    gcv_share
        Share of the rows that the degrees of freedom may take up where GCV chooses: a filter that
        reaches ``phi = 1`` drives both sides of the score to zero.
    """

    name: ClassVar[str]
    parameter: ClassVar[Parameter]
    gcv_share: ClassVar[float] = 1.0

    @property
    @abstractmethod
    def qualification(self) -> float:
        """The highest smoothness of the solution that the filter makes use of."""

    @abstractmethod
    def gain(self, s: Array, level: float) -> Array:
        """Return ``G(s)`` for clamped eigenvalues ``s``; finite at ``s = 0``."""

    @abstractmethod
    def residual(self, s: Array, level: float) -> Array:
        """Return ``1 - s G(s)``, accurate where it is small."""

    @abstractmethod
    def grid(self, s: Array, count: int) -> Array:
        """Return about ``count`` levels that span the path, the smoothest solution first."""

    def factors(self, s: Array, level: float) -> Array:
        """Return the filter factors ``s G(s)``, accurate where they are small."""
        return s * self.gain(s, level)

    def sweep(self, s: Array, levels: Iterable[float]) -> Iterator[tuple[Array, Array]]:
        """Yield ``(G(s), 1 - s G(s))`` for each level in turn."""
        for level in levels:
            yield self.gain(s, level), self.residual(s, level)

    def check(self, s: Array, levels: Sequence[float] | Array) -> Array:
        """Return the levels as an array, ordered from smooth to rough.

        Raises
        ------
        SpectralError
            For a level, or a step size, that the filter is not defined for.
        """
        values = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if values.ndim != 1 or not len(values):
            raise SpectralError(f"{self.parameter} must be a number or a list of numbers")
        bad = values[~(np.isfinite(values) & (values >= 0))]
        if len(bad):
            raise SpectralError(f"{self.parameter}={bad[0]:g}: must be finite and not negative")
        return np.sort(values)


class ShiftFilter(Filter):
    """A filter whose level is a shift on the scale of ``s``: ``n lam`` for kernels.

    A shift of zero is no regularisation: the pseudo-inverse.
    """

    parameter = "lam"

    def check(self, s: Array, levels: Sequence[float] | Array) -> Array:
        """Return the levels, the largest shift first."""
        return super().check(s, levels)[::-1]

    def grid(self, s: Array, count: int) -> Array:
        """Return shifts in equal ratios, from ten times the largest eigenvalue downwards."""
        top = float(np.max(s, initial=0.0))
        if not top > 0:
            return np.ones(1)
        # below the smallest eigenvalue a smaller shift changes nothing more
        bottom = max(_SMALLEST_SHIFT, 1e-3 * float(s[s > _DISTINCT * top].min()) / top)
        return top * np.geomspace(10.0, min(bottom, 1.0), count)


class IterativeFilter(Filter):
    """A filter whose level is the number of steps of a gradient method.

    Attributes
    ----------
    eta
        Step size; None takes one over the largest eigenvalue.
    """

    parameter = "steps"
    gcv_share = 0.99
    eta: float | None = None
    #: eta times the largest eigenvalue must stay below this (at it, where ``limit_included``).
    limit: ClassVar[float]
    limit_included: ClassVar[bool]

    @abstractmethod
    def iterate(
        self,
        forward: Callable[[Array], Array],
        adjoint: Callable[[Array], Array],
        b: Array,
        eta: float,
    ) -> Iterator[tuple[Array, Array]]:
        """Yield ``(x, b - A x)`` after each step from ``x = 0``, for ever.

        ``forward(x)`` is ``A x`` and ``adjoint(r)`` is ``A' r``.
        """

    def step_size(self, largest: float) -> float:
        """Return the step size for a largest eigenvalue.

        Raises
        ------
        SpectralError
            Where the iteration would diverge.
        """
        if self.eta is None:
            return 1.0 / largest if largest > 0 else 1.0
        bound = self.limit / largest if largest > 0 else math.inf
        if not (math.isfinite(self.eta) and self.eta > 0):
            raise SpectralError(f"eta={self.eta:g}: must be finite and positive")
        # a bound that is included may be missed by the rounding of the largest eigenvalue
        within = self.eta <= bound * (1 + 1e-9) if self.limit_included else self.eta < bound
        if not within:
            sign = "at most" if self.limit_included else "below"
            raise SpectralError(
                f"eta={self.eta:g} is too large: {self.name} diverges; it must be {sign} "
                f"{self.limit:g} / (largest eigenvalue {largest:g}) = {bound:g}"
            )
        return self.eta

    def check(self, s: Array, levels: Sequence[float] | Array) -> Array:
        """Return the levels, the fewest steps first."""
        self.step_size(float(np.max(s, initial=0.0)))
        values = super().check(s, levels)
        broken = values[values != np.round(values)]
        if len(broken):
            raise SpectralError(f"steps={broken[0]:g}: must be a whole number")
        return values

    def _steps(self, count: int, most: float) -> Array:
        return np.unique(np.round(np.geomspace(1, max(most, 1), count)))


@dataclass(frozen=True)
class Tikhonov(ShiftFilter):
    """Tikhonov regularisation, which is ridge regression: ``G = 1 / (s + a)``."""

    name = "tikhonov"

    @property
    def qualification(self) -> float:
        """One: it saturates for solutions smoother than that."""
        return 1.0

    def gain(self, s: Array, level: float) -> Array:
        """Return ``1 / (s + a)``."""
        return 1.0 / (s + level) if level > 0 else _inverse(s)

    def residual(self, s: Array, level: float) -> Array:
        """Return ``a / (s + a)``."""
        return level / (s + level) if level > 0 else _null(s)


@dataclass(frozen=True)
class IteratedTikhonov(ShiftFilter):
    """Tikhonov applied to its own residual: ``G = (1 - (a / (s + a))^order) / s``."""

    name = "iterated_tikhonov"
    order: int = 2

    @property
    def qualification(self) -> float:
        """The order."""
        return float(self.order)

    def check(self, s: Array, levels: Sequence[float] | Array) -> Array:
        """Return the levels, the largest shift first."""
        if self.order < 1 or self.order != int(self.order):
            raise SpectralError(f"order={self.order}: must be a whole number of at least 1")
        return super().check(s, levels)

    def gain(self, s: Array, level: float) -> Array:
        """Return ``(1 - (a / (s + a))^order) / s``, at zero ``order / a``."""
        if level == 0:
            return _inverse(s)
        return _over(-np.expm1(-self.order * np.log1p(s / level)), s, self.order / level)

    def residual(self, s: Array, level: float) -> Array:
        """Return ``(a / (s + a))^order``."""
        return (level / (s + level)) ** self.order if level > 0 else _null(s)


@dataclass(frozen=True)
class Showalter(ShiftFilter):
    """Asymptotic regularisation, gradient flow up to time 1/a: ``G = (1 - exp(-s / a)) / s``."""

    name = "showalter"
    gcv_share = 0.99

    @property
    def qualification(self) -> float:
        """Infinite."""
        return math.inf

    def gain(self, s: Array, level: float) -> Array:
        """Return ``(1 - exp(-s / a)) / s``, at zero ``1 / a``."""
        return _over(-np.expm1(-s / level), s, 1 / level) if level > 0 else _inverse(s)

    def residual(self, s: Array, level: float) -> Array:
        """Return ``exp(-s / a)``."""
        return np.exp(-s / level) if level > 0 else _null(s)


@dataclass(frozen=True)
class TSVD(Filter):
    """Truncation: ``G = 1/s`` for the leading components and 0 for the others.

    The level is a number of components. Eigenvalues equal to the last of them (to 1e-12) are kept
    with it: half of an eigenspace has no meaning.
    """

    name = "tsvd"
    parameter = "components"
    gcv_share = 0.5

    @property
    def qualification(self) -> float:
        """Infinite."""
        return math.inf

    def gain(self, s: Array, level: float) -> Array:
        """Return ``1/s`` for the kept components."""
        return np.where(self._kept(s, level), _inverse(s), 0.0)

    def residual(self, s: Array, level: float) -> Array:
        """Return 0 for the kept components, 1 for the others."""
        return np.where(self._kept(s, level), 0.0, 1.0)

    @staticmethod
    def _kept(s: Array, level: float) -> NDArray[np.bool_]:
        count = min(int(level), len(s))
        if not count:
            return np.zeros(len(s), dtype=bool)
        last = np.partition(s, len(s) - count)[len(s) - count]
        return (s >= last * (1 - 1e-12)) & (s > 0)

    @staticmethod
    def components(s: Array, shift: float) -> int:
        """Return how many eigenvalues are at least ``shift``: the level of a threshold."""
        return int(np.count_nonzero((s >= shift) & (s > 0)))

    def check(self, s: Array, levels: Sequence[float] | Array) -> Array:
        """Return the levels, the fewest components first."""
        values = super().check(s, levels)
        broken = values[values != np.round(values)]
        if len(broken):
            raise SpectralError(f"components={broken[0]:g}: must be a whole number")
        return values

    def grid(self, s: Array, count: int) -> Array:
        """Return numbers of components up to the numerical rank, each one where they are few."""
        rank = int(np.count_nonzero(s))
        few = np.arange(1, min(rank, count // 2) + 1, dtype=np.float64)
        return np.unique(np.r_[few, np.round(np.geomspace(1, max(rank, 1), count))])


@dataclass(frozen=True)
class Landweber(IterativeFilter):
    """Gradient descent stopped early: ``G = (1 - (1 - eta s)^t) / s``; t steps are 1/lam."""

    name = "landweber"
    eta: float | None = None
    limit = 2.0
    limit_included = False

    @property
    def qualification(self) -> float:
        """Infinite."""
        return math.inf

    def gain(self, s: Array, level: float) -> Array:
        """Return ``(1 - (1 - eta s)^t) / s``, at zero ``eta t``."""
        eta = self.step_size(float(np.max(s, initial=0.0)))
        u = np.minimum(eta * s, 1.0)
        with np.errstate(divide="ignore"):  # log 0 = -inf is what a step onto the solution gives
            slow = -np.expm1(level * np.log1p(-u)) if level else np.zeros_like(s)
        factors = np.where(eta * s < 1.0, slow, 1.0 - (1.0 - eta * s) ** level)
        return _over(factors, s, eta * level)

    def residual(self, s: Array, level: float) -> Array:
        """Return ``(1 - eta s)^t``."""
        eta = self.step_size(float(np.max(s, initial=0.0)))
        return (1.0 - eta * s) ** level

    def grid(self, s: Array, count: int) -> Array:
        """Return numbers of steps in about equal ratios up to a million."""
        return self._steps(count, _MOST_STEPS)

    def iterate(
        self,
        forward: Callable[[Array], Array],
        adjoint: Callable[[Array], Array],
        b: Array,
        eta: float,
    ) -> Iterator[tuple[Array, Array]]:
        """Yield ``x + eta A'(b - A x)`` over and over."""
        x: Any = 0.0
        r = b
        while True:
            x = x + eta * adjoint(r)
            r = b - forward(x)
            yield x, r


@dataclass(frozen=True)
class NuMethod(IterativeFilter):
    """Brakhage's accelerated Landweber iteration: t steps do the work of about t^2."""

    name = "nu_method"
    nu: float = 1.0
    eta: float | None = None
    limit = 1.0
    limit_included = True

    @property
    def qualification(self) -> float:
        """The method's nu."""
        return self.nu

    def weights(self, k: int) -> tuple[float, float]:
        """Return step k's momentum ``mu`` and gradient weight ``omega`` (Engl et al., 6.3)."""
        nu = self.nu
        if k == 1:
            return 0.0, (4 * nu + 2) / (4 * nu + 1)
        mu = ((k - 1) * (2 * k - 3) * (2 * k + 2 * nu - 1)) / (
            (k + 2 * nu - 1) * (2 * k + 4 * nu - 1) * (2 * k + 2 * nu - 3)
        )
        omega = 4 * (2 * k + 2 * nu - 1) * (k + nu - 1) / ((k + 2 * nu - 1) * (2 * k + 4 * nu - 1))
        return mu, omega

    def check(self, s: Array, levels: Sequence[float] | Array) -> Array:
        """Return the levels, the fewest steps first."""
        if not (math.isfinite(self.nu) and self.nu > 0):
            raise SpectralError(f"nu={self.nu:g}: must be finite and positive")
        return super().check(s, levels)

    def gain(self, s: Array, level: float) -> Array:
        """Return ``G`` by the method's recursion."""
        return next(self.sweep(s, [level]))[0]

    def residual(self, s: Array, level: float) -> Array:
        """Return ``1 - s G`` by the method's recursion."""
        return next(self.sweep(s, [level]))[1]

    def sweep(self, s: Array, levels: Iterable[float]) -> Iterator[tuple[Array, Array]]:
        """Yield ``(G, 1 - s G)`` at increasing numbers of steps from one run of the recursion."""
        eta = self.step_size(float(np.max(s, initial=0.0)))
        u = eta * s
        g, g_old = np.zeros_like(s), np.zeros_like(s)
        rho, rho_old = np.ones_like(s), np.ones_like(s)
        k = 0
        for level in levels:
            if level < k:
                raise SpectralError("the numbers of steps must not decrease")
            while k < level:
                k += 1
                mu, omega = self.weights(k)
                # both recursions: 1 - s g would lose the small residuals, (1 - rho) / s the gains
                g, g_old = g + mu * (g - g_old) + omega * eta * rho, g
                rho, rho_old = rho + mu * (rho - rho_old) - omega * u * rho, rho
            yield g, rho

    def grid(self, s: Array, count: int) -> Array:
        """Return numbers of steps in about equal ratios up to a thousand."""
        return self._steps(count, math.sqrt(_MOST_STEPS))

    def iterate(
        self,
        forward: Callable[[Array], Array],
        adjoint: Callable[[Array], Array],
        b: Array,
        eta: float,
    ) -> Iterator[tuple[Array, Array]]:
        """Yield the iterates of the two-step recursion."""
        x: Any = 0.0
        x_old: Any = 0.0
        r, k = b, 0
        while True:
            k += 1
            mu, omega = self.weights(k)
            x, x_old = x + mu * (x - x_old) + omega * eta * adjoint(r), x
            r = b - forward(x)
            yield x, r


FILTERS: dict[str, type[Filter]] = {
    cls.name: cls for cls in (Tikhonov, IteratedTikhonov, TSVD, Landweber, Showalter, NuMethod)
}


def make_filter(which: str | Filter) -> Filter:
    """Return a filter by name, or the one given.

    Raises
    ------
    SpectralError
        For an unknown name.
    """
    if isinstance(which, Filter):
        return which
    if isinstance(which, str) and which in FILTERS:
        return FILTERS[which]()
    raise SpectralError(f"unknown filter {which!r} (valid: {', '.join(FILTERS)}, or an instance)")


def _inverse(s: Array) -> Array:
    """Return 1/s, and 0 where s is 0."""
    return np.divide(1.0, s, out=np.zeros_like(s), where=s > 0)


def _null(s: Array) -> Array:
    return np.where(s > 0, 0.0, 1.0)


def _over(factors: Array, s: Array, limit: float) -> Array:
    """Return factors / s, and the limit where s is 0."""
    return np.divide(factors, s, out=np.full_like(s, limit), where=s > 0)
