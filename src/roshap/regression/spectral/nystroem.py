"""Kernel least squares on the span of a few landmarks, for tables with many rows.

Source: Williams, Seeger, "Using the Nystroem method to speed up kernel machines" (2000); Rudi,
Camoriano, Rosasco, "Less is more: Nystroem computational regularization" (2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import linalg

from roshap.regression.spectral.filters import Array, clamp
from roshap.regression.spectral.kernel import Gram, _check_positive, _divided
from roshap.regression.spectral.spectrum import Spectrum

#: Memory of one block of rows x landmarks.
_CHUNK_BYTES = 64 * 2**20
_EPS = float(np.finfo(np.float64).eps)


class NystroemProblem:
    """The m x m spectrum of n rows seen through m landmarks; memory O(m^2 + block m).

    Features are ``phi(x) = B' k(x)`` with k the kernel against the landmarks and ``B B'`` the
    pseudo-inverse of their Gram matrix, so that ``phi(x)'phi(x')`` is the Nystroem kernel.

    Parameters
    ----------
    gram : callable
        The kernel.
    X : rows
    Y : ndarray of shape (n, t)
    w : ndarray of shape (n,)
    landmarks : rows
    centre : bool
        Whether there is an intercept.
    """

    def __init__(
        self, gram: Gram, X: Any, Y: Array, w: Array, landmarks: Any, *, centre: bool
    ) -> None:
        self.gram, self.X, self.w, self.basis, self.centre = gram, X, w, landmarks, centre
        self._total = float(w.sum())
        self._mean = (w @ Y) / self._total if centre else np.zeros(Y.shape[1])
        self._Y = Y - self._mean
        self._whiten(gram(landmarks, landmarks))
        self._decompose()

    def _whiten(self, K: Array) -> None:
        values, vectors = linalg.eigh(K, driver="evd", check_finite=False)
        _check_positive(values)
        kept = values > len(K) * _EPS * values[-1]
        self._B = vectors[:, kept] / np.sqrt(values[kept])
        # near the features' mean, so that subtracting the mean later cancels little
        self._shift = (K @ self._B).mean(axis=0) if self.centre else np.zeros(self._B.shape[1])

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        n, m = self.X.shape[0], self._B.shape[0]
        size = max(1, _CHUNK_BYTES // (8 * m))
        for start in range(0, n, size):
            rows = slice(start, min(start + size, n))
            yield rows, self.gram(self.X[rows], self.basis)

    def _decompose(self) -> None:
        r = self._B.shape[1]
        C, first, moment = np.zeros((r, r)), np.zeros(r), np.zeros((r, self._Y.shape[1]))
        for rows, K in self._blocks():
            weights = self.w[rows, None]
            features = K @ self._B - self._shift
            first += weights[:, 0] @ features
            moment += features.T @ (weights * self._Y[rows])
            features *= np.sqrt(weights)
            C += features.T @ features
        self._feature_mean = first / self._total if self.centre else np.zeros(r)
        if self.centre:
            C -= self._total * np.outer(self._feature_mean, self._feature_mean)
        values, self._V = linalg.eigh(C, driver="evd", overwrite_a=True, check_finite=False)
        s = clamp(values)
        self._inverse_root = np.divide(1.0, np.sqrt(s), out=np.zeros_like(s), where=s > 0)
        z = self._inverse_root[:, None] * (self._V.T @ moment)
        energy = self.w @ self._Y**2
        rest = np.maximum(energy - np.sum(z**2, axis=0), 0.0)
        self.spectrum = Spectrum(s, z, rest, self._total, self._total - self.centre - len(s))

    def dual(self, gain: Array) -> tuple[Array, Array]:
        """Return coefficients of the landmarks (m, t) and intercepts (t,)."""
        spectrum = self.spectrum
        inner = self._V @ ((np.sqrt(spectrum.s) * gain)[:, None] * spectrum.z)
        offset = (self._shift + self._feature_mean) @ inner if self.centre else 0.0
        return self._B @ inner, self._mean - offset

    def leave_one_out(self, residuals: Array) -> Array:
        """Return leave-one-out residuals (n, L, t), the landmarks held fixed; one more pass."""
        factors = 1.0 - residuals
        z = self.spectrum.z
        shape = (len(residuals), z.shape[1])
        wide = np.einsum("lr,rt->rlt", factors, z).reshape(len(z), shape[0] * shape[1])
        basis = (self._B @ self._V) * self._inverse_root
        centre = ((self._shift + self._feature_mean) @ self._V) * self._inverse_root
        out = np.empty((len(self._Y), *shape))
        for rows, K in self._blocks():
            U = K @ basis - centre
            fit = (U @ wide).reshape(len(U), *shape)
            # U is that of unit weights: h of one unit of the row's weight
            h = np.square(U) @ factors.T + self.centre / self._total
            share = np.minimum(1.0, self.w[rows])[:, None]
            out[rows] = _divided(self._Y[rows, None, :] - fit, 1.0 - share * h)
        return out
