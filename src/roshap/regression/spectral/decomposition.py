"""Singular value decompositions of linear operators, dense or by fast transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from roshap.regression.spectral.errors import SpectralError
from roshap.regression.spectral.filters import Array, clamp
from roshap.regression.spectral.spectrum import Spectrum


class Decomposition(ABC):
    """``A = U diag(sigma) V'``; every filter and rule works on one.

    Attributes
    ----------
    sigma : ndarray of shape (r,)
        Singular values, with the rounding of zero set to zero; in no particular order.
    shape : (int, int)
        Of A.
    """

    sigma: Array
    shape: tuple[int, int]

    @abstractmethod
    def analyse(self, b: Array) -> np.ndarray:
        """Return ``U'b``, of shape (r,); complex where the basis is."""

    @abstractmethod
    def synthesise(self, c: np.ndarray) -> Array:
        """Return ``V c``, of shape (columns,)."""

    def left(self) -> Array | None:
        """Return U of shape (rows, r), or None where it is never formed."""
        return None

    @property
    def s(self) -> Array:
        """Squared singular values: the eigenvalues of ``A'A`` that filters work on."""
        return self.sigma**2

    def spectrum(self, coefficients: np.ndarray, b: Array) -> Spectrum:
        """Return what paths and rules need, for ``coefficients = U'b``."""
        size = np.abs(coefficients)
        rows = self.shape[0]
        # the difference of the norms is rounding where the basis spans all rows
        rest = float(b @ b - size @ size) if len(size) < rows else 0.0
        return Spectrum(
            self.s, size[:, None], np.array([max(rest, 0.0)]), float(rows), rows - len(size)
        )


class DenseDecomposition(Decomposition):
    """By LAPACK, of a matrix of shape (m, n); U and V are thin."""

    def __init__(self, A: ArrayLike) -> None:
        A = np.asarray(A, dtype=np.float64)
        if A.ndim != 2 or not A.size:
            raise SpectralError(f"A must be a matrix with rows and columns, not of shape {A.shape}")
        if not np.isfinite(A).all():
            raise SpectralError("A contains NaN or infinity")
        self.shape = A.shape
        self.U, sigma, self.Vt = linalg.svd(A, full_matrices=False, check_finite=False)
        self.sigma = clamp(sigma)

    def analyse(self, b: Array) -> Array:
        """Return ``U'b``."""
        return self.U.T @ b

    def synthesise(self, c: Array) -> Array:
        """Return ``V c``."""
        return self.Vt.T @ c

    def left(self) -> Array:
        """Return U."""
        return self.U
