"""One eigendecomposition of a kernel matrix, from which the whole path follows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from roshap.regression.spectral.errors import SpectralError
from roshap.regression.spectral.filters import Array, Filter, Tikhonov, clamp
from roshap.regression.spectral.spectrum import Path, Spectrum, trace

#: A kernel may have eigenvalues this far below zero, relative to the largest: rounding.
_ROUNDING = 1e-8

#: ``kernel(X, Y)`` for two tables of rows: their Gram matrix.
Gram = Callable[[Any, Any], Array]


class KernelProblem(Protocol):
    """What an estimator asks of the exact and of the Nystroem decomposition."""

    spectrum: Spectrum
    basis: Any  # the rows of the kernel expansion

    def dual(self, gain: Array) -> tuple[Array, Array]:
        """Return dual coefficients (m, t) and intercepts (t,) of one level."""

    def leave_one_out(self, residuals: Array) -> Array:
        """Return leave-one-out residuals (n, L, t) for residual factors (L, r)."""


class ExactProblem:
    """Kernel least squares on n rows.

    With weights w and an intercept this is the eigenproblem of ``P' W^.5 K W^.5 P``, where the
    columns of P are an orthonormal basis of what is orthogonal to ``w^.5``: centring, without the
    spurious zero eigenvalue that centring by ``H K H`` leaves among the small ones.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    Y : ndarray of shape (n, t)
    w : ndarray of shape (n,)
        Positive: a row of weight w counts as w rows.
    centre : bool
        Whether there is an intercept.
    basis : rows of X

    Raises
    ------
    SpectralError
        If K is not positive semi-definite.
    """

    def __init__(self, K: Array, Y: Array, w: Array, *, centre: bool, basis: Any) -> None:
        self.basis = basis
        self.w = w
        self.root = np.sqrt(w)
        self.centre = centre
        total = float(w.sum())
        self._row_mean = (w @ K) / total
        self._mean = (w @ Y) / total
        scaled = K * self.root[:, None]
        scaled *= self.root
        if centre:
            scaled, mirror = _without_direction(scaled, self.root)
        values, vectors = linalg.eigh(scaled, driver="evd", overwrite_a=True, check_finite=False)
        _check_positive(values)
        self.Q = _with_direction(vectors, mirror) if centre else vectors
        s = clamp(values)
        target = self.root[:, None] * (Y - self._mean if centre else Y)
        # n lam counts weights, and so do degrees of freedom: a row of weight 2 is two rows
        self.spectrum = Spectrum(
            s, self.Q.T @ target, np.zeros(Y.shape[1]), total, total - centre - len(s)
        )

    def dual(self, gain: Array) -> tuple[Array, Array]:
        """Return dual coefficients (n, t) and intercepts (t,)."""
        c = self.root[:, None] * (self.Q @ (gain[:, None] * self.spectrum.z))
        return c, self._intercept(c)

    def duals(self, gains: Array) -> tuple[Array, Array]:
        """Return those of all levels: (L, n, t) and (L, t)."""
        c = np.moveaxis(self.root[:, None, None] * self._combined(gains), 1, 0)
        return c, self._intercept(c)

    def _combined(self, factors: Array) -> Array:
        """Return ``Q (factors * z)`` of shape (n, L, t) by one product of matrices."""
        r, t = self.spectrum.z.shape
        wide = np.einsum("lr,rt->rlt", factors, self.spectrum.z).reshape(r, len(factors) * t)
        return (self.Q @ wide).reshape(len(self.Q), len(factors), t)

    def _intercept(self, c: Array) -> Array:
        if not self.centre:
            return np.zeros(c.shape[:-2] + c.shape[-1:])
        return self._mean - np.einsum("n,...nt->...t", self._row_mean, c)

    def leave_one_out(self, residuals: Array) -> Array:
        """Return leave-one-out residuals (n, L, t).

        Of a row with weight w > 1 one unit is left out. ``1 - h`` is a sum of positive terms here,
        so that it keeps its digits where the fit interpolates.
        """
        r = self._combined(residuals) / self.root[:, None, None]
        left = np.square(self.Q) @ residuals.T
        share = np.minimum(1.0, 1.0 / self.w)[:, None]
        left = (1.0 - share) + share * left
        return _divided(r, left)


def path_of(
    problem: KernelProblem,
    filter: Filter,
    on_scale: Array,
    levels: Array,
    *,
    leave_out: bool,
    coefficients: bool,
    loss: Callable[[Array], Array] | None,
    w: Array,
) -> Path:
    """Return a filter's path on a kernel problem.

    Parameters
    ----------
    problem : KernelProblem
    filter : Filter
    on_scale, levels : ndarray of shape (L,)
    leave_out, coefficients : bool
        Whether leave-one-out errors and dual coefficients are computed.
    loss : callable, optional
        Leave-one-out residuals (n, L, t) to misclassified rows (n, L).
    w : ndarray of shape (n,)
        Weights of the rows.
    """
    path = trace(problem.spectrum, filter, on_scale, levels)
    if not (leave_out or coefficients):
        return path
    swept = list(filter.sweep(problem.spectrum.s, on_scale))
    gains, residuals = (np.array(part) for part in zip(*swept, strict=True))
    if coefficients:
        assert isinstance(problem, ExactProblem)
        c, b = problem.duals(gains)
        path = dataclasses.replace(path, coefficients=c, intercepts=b)
    if leave_out:
        errors = problem.leave_one_out(residuals)
        share = w / w.sum()
        path = dataclasses.replace(
            path,
            loo=share @ np.mean(errors**2, axis=2),
            loo_error=None if loss is None else share @ loss(errors),
            loo_exact=isinstance(filter, Tikhonov),
        )
    return path


def _divided(r: Array, left: Array) -> Array:
    """Return r / left; infinite where nothing is left to predict a row from."""
    out = np.full_like(r, np.inf)
    return np.divide(r, left[:, :, None], out=out, where=left[:, :, None] > 0)


def _without_direction(A: Array, direction: Array) -> tuple[Array, Array]:
    """Return A on the complement of a direction, and the Householder vector that leads there."""
    v = direction / np.linalg.norm(direction)
    v[0] += 1.0  # the direction's entries are positive: no cancellation
    v /= np.linalg.norm(v)
    p = A @ v
    p -= (v @ p) * v
    # (I - 2vv') A (I - 2vv') = A - 2 (v p' + p v') with p = Av - (v'Av) v
    A -= 2.0 * np.outer(v, p)
    A -= 2.0 * np.outer(p, v)
    return A[1:, 1:], v


def _with_direction(vectors: Array, v: Array) -> Array:
    """Return vectors of the complement in the whole space: ``(I - 2vv')[:, 1:] vectors``."""
    whole = np.vstack([np.zeros((1, vectors.shape[1])), vectors])
    whole -= np.outer(2.0 * v, v[1:] @ vectors)
    return whole


def _check_positive(values: Array) -> None:
    if not len(values):
        return
    smallest, largest = float(values.min()), float(np.abs(values).max())
    if smallest < -_ROUNDING * largest:
        raise SpectralError(
            f"the kernel is not positive semi-definite: eigenvalues from {smallest:.3g} to "
            f"{float(values.max()):.3g}; filters need one that is, such as rbf, laplacian, linear"
        )
