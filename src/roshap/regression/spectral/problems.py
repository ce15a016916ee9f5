"""Test problems for linear inversion, with known solutions.

Source: Hansen, "Regularization Tools", Numer. Algorithms 6 (1994) and 46 (2007). Here all are
discretised at the midpoints of n intervals, except ``deriv2``, which uses orthonormal boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from roshap.regression.spectral.errors import SpectralError
from roshap.regression.spectral.filters import Array
from roshap.regression.spectral.operators import KroneckerOperator


@dataclass(frozen=True)
class Problem:
    """``A x = b`` without noise.

    Attributes
    ----------
    name : str
    A : ndarray of shape (n, n), or PictureOperator
    x, b : ndarray of shape (n,)
        Solution, and data without noise.
    t : ndarray of shape (n,)
        Where x is sampled; pixel numbers for ``blur``.
    about : str
        What it is, for a person.
    """

    name: str
    A: Any
    x: Array
    b: Array
    t: Array
    about: str

    def noisy(self, relative: float) -> tuple[Array, float]:
        """Return data with noise of norm ``relative * ||b||``, and that norm."""
        delta = relative * float(np.linalg.norm(self.b))
        return self.b + noise(len(self.b), delta), delta


def noise(n: int, norm: float) -> Array:
    """Return ``e_i = sin(12.9898 i^2 + 78.233 i)``, i = 1, 2, ..., scaled to a norm.

    It looks like white noise and is the same in every language, without a generator.
    """
    i = np.arange(1, n + 1, dtype=np.float64)
    e = np.sin(12.9898 * i**2 + 78.233 * i)
    return e * (norm / np.linalg.norm(e))


def shaw(n: int) -> Problem:
    """One-dimensional image restoration: light through a slit."""
    t, h = _midpoints(-np.pi / 2, np.pi / 2, n)
    u = np.sin(t)[:, None] + np.sin(t)
    A = h * ((np.cos(t)[:, None] + np.cos(t)) * np.sinc(u)) ** 2
    x = 2 * np.exp(-6 * (t - 0.8) ** 2) + np.exp(-2 * (t + 0.5) ** 2)
    return Problem("shaw", A, x, A @ x, t, "restoration of light through a slit")


def phillips(n: int) -> Problem:
    """Phillips' convolution equation; b is the exact integral."""
    t, h = _midpoints(-6, 6, n)

    def bump(z: Array) -> Array:
        return np.where(np.abs(z) < 3, 1 + np.cos(np.pi * z / 3), 0.0)

    size = np.abs(t)
    b = (6 - size) * (1 + np.cos(np.pi * t / 3) / 2)
    b += 9 / (2 * np.pi) * np.sin(np.pi * size / 3)
    return Problem("phillips", h * bump(t[:, None] - t), bump(t), b, t, "a smooth convolution")


def deriv2(n: int) -> Problem:
    """Second derivative by its Green's function; x(t) = t, exact integrals over boxes.

    The singular values of the integral operator are ``1 / (k pi)^2``. In orthonormal boxes a
    function's coefficients are its values times ``sqrt(h)``.
    """
    t, h = _midpoints(0, 1, n)
    low, high = np.minimum.outer(t, t), np.maximum.outer(t, t)
    A = h * low * (high - 1)
    A[np.diag_indices(n)] += h**2 / 6
    left, right = t - h / 2, t + h / 2
    b = ((right**4 - left**4) / 4 - (right**2 - left**2) / 2) / 6 / np.sqrt(h)
    return Problem("deriv2", A, np.sqrt(h) * t, b, t, "the second derivative")


def gravity(n: int) -> Problem:
    """Masses at depth 0.25 from the vertical field at the surface."""
    t, h = _midpoints(0, 1, n)
    depth = 0.25
    A = h * depth * (depth**2 + (t[:, None] - t) ** 2) ** -1.5
    x = np.sin(np.pi * t) + 0.5 * np.sin(2 * np.pi * t)
    return Problem("gravity", A, x, A @ x, t, "masses from their field at the surface")


def heat(n: int) -> Problem:
    """Return the inverse heat equation, a Volterra equation; x is Hansen's piecewise bump."""
    t, h = _midpoints(0, 1, n)
    r = h * t**-1.5 * np.exp(-1 / (4 * t)) / (2 * np.sqrt(np.pi))
    A = linalg.toeplitz(r, np.zeros(n))
    u = 20 * (t + h / 2)
    pieces = [u < 2, u < 3, t + h / 2 <= 0.5]
    shapes = [0.75 * u**2 / 4, 0.75 + (u - 2) * (3 - u), 0.75 * np.exp(-2 * (u - 3))]
    x = np.select(pieces, shapes, 0.0)
    return Problem("heat", A, x, A @ x, t, "heat at one end of a rod from the other")


def foxgood(n: int) -> Problem:
    """Fox and Goodwin's severely ill-posed equation; b is the exact integral."""
    t, h = _midpoints(0, 1, n)
    A = h * np.sqrt(t[:, None] ** 2 + t**2)
    b = ((1 + t**2) ** 1.5 - t**3) / 3
    return Problem("foxgood", A, t.copy(), b, t, "Fox and Goodwin's equation")


def baart(n: int) -> Problem:
    """Baart's severely ill-posed equation; b is the exact integral."""
    s, _ = _midpoints(0, np.pi / 2, n)
    t, h = _midpoints(0, np.pi, n)
    A = h * np.exp(np.outer(s, np.cos(t)))
    return Problem("baart", A, np.sin(t), 2 * np.sinh(s) / s, t, "Baart's equation")


def blur(n: int, *, sigma: float = 0.7, band: int = 3) -> Problem:
    """Gaussian blur of an n x n picture of three shapes: kron of banded Toeplitz matrices.

    Parameters
    ----------
    n : int
        Pixels a side; the operator has n^2 rows.
    sigma : float
        Of the blur, in pixels.
    band : int
        Half bandwidth: pixels at least this far apart do not mix.
    """
    if n < band:
        raise SpectralError(f"n={n}: must be at least the band {band}")
    line = np.zeros(n)
    line[:band] = np.exp(-0.5 * (np.arange(band) / sigma) ** 2) / (np.sqrt(2 * np.pi) * sigma)
    T = linalg.toeplitz(line)
    A = KroneckerOperator(T, T)
    row, column = np.indices((n, n)) / n
    picture = 1.0 * ((np.abs(row - 0.3) < 0.15) & (np.abs(column - 0.35) < 0.2))
    picture += 2.0 * ((row - 0.65) ** 2 + (column - 0.6) ** 2 < 0.04)
    picture += 1.5 * ((np.abs(row - 0.8) < 0.04) & (column < 0.4))
    x = picture.ravel()
    return Problem("blur", A, x, A.matvec(x), np.arange(n * n, dtype=float), "a blurred picture")


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    make.__name__: make for make in (shaw, phillips, deriv2, gravity, heat, foxgood, baart, blur)
}


def problem(name: str, n: int) -> Problem:
    """Return a test problem by name.

    Raises
    ------
    SpectralError
        For an unknown name, or a size below 2.
    """
    if name not in PROBLEMS:
        raise SpectralError(f"unknown problem {name!r} (valid: {', '.join(PROBLEMS)})")
    if n < 2:
        raise SpectralError(f"n={n}: must be at least 2")
    return PROBLEMS[name](n)


def _midpoints(low: float, high: float, n: int) -> tuple[Array, float]:
    h = (high - low) / n
    return low + h * (np.arange(n, dtype=np.float64) + 0.5), h
