"""Blurs of pictures that a fast transform diagonalises; nothing of size pixels^2 is ever formed.

Each is a :class:`scipy.sparse.linalg.LinearOperator` on pictures read row by row, so that
iterative filters can also run on it without its decomposition.

Source: Hansen, Nagy, O'Leary, "Deblurring Images" (2006), chapter 4.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft, linalg
from scipy.sparse.linalg import LinearOperator

from roshap.regression.spectral.decomposition import Decomposition
from roshap.regression.spectral.errors import SpectralError
from roshap.regression.spectral.filters import Array, clamp


def gaussian_psf(sigma: float, radius: int | None = None) -> Array:
    """Return a Gaussian point spread function of odd size, its sum 1.

    Parameters
    ----------
    sigma : float
        Standard deviation in pixels.
    radius : int, optional
        Half size; four sigma, rounded up, by default.
    """
    if not (np.isfinite(sigma) and sigma > 0):
        raise SpectralError(f"the blur's sigma must be finite and positive: {sigma:g}")
    reach = int(np.ceil(4 * sigma)) if radius is None else radius
    line = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    psf = np.outer(line, line)
    return psf / psf.sum()


class PictureOperator(LinearOperator, Decomposition):
    """A linear map of pictures of ``picture`` = (height, width) pixels with a known SVD."""

    def __init__(self, picture: tuple[int, int]) -> None:
        self.picture = (int(picture[0]), int(picture[1]))
        pixels = self.picture[0] * self.picture[1]
        LinearOperator.__init__(self, np.dtype(np.float64), (pixels, pixels))

    @abstractmethod
    def _right(self, x: Array) -> np.ndarray:
        """Return ``V'x``, the inverse of synthesise."""

    @abstractmethod
    def _left(self, c: np.ndarray) -> Array:
        """Return ``U c``, the inverse of analyse."""

    def _matvec(self, x: Array) -> Array:
        return self._left(self.sigma * self._right(np.ravel(x)))

    def _rmatvec(self, y: Array) -> Array:
        return self.synthesise(self.sigma * self.analyse(np.ravel(y)))


class FourierBlur(PictureOperator):
    """Convolution with periodic boundaries: diagonal in the Fourier basis.

    Parameters
    ----------
    psf : array_like of shape (odd, odd)
        Point spread function, its centre in the middle.
    picture : (int, int)
        Height and width of the pictures.
    """

    def __init__(self, psf: ArrayLike, picture: tuple[int, int]) -> None:
        super().__init__(picture)
        psf = _checked_psf(psf, self.picture)
        padded = np.zeros(self.picture)
        padded[: psf.shape[0], : psf.shape[1]] = psf
        middle = [-(size // 2) for size in psf.shape]
        values = fft.fft2(np.roll(padded, middle, axis=(0, 1))).ravel()
        self.sigma = clamp(np.abs(values))
        self._phase = np.exp(1j * np.angle(values))

    def _basis(self, x: np.ndarray) -> np.ndarray:
        return fft.fft2(x.reshape(self.picture), norm="ortho").ravel()

    def analyse(self, b: Array) -> np.ndarray:
        """Return the Fourier coefficients, turned back by the operator's phases."""
        return self._phase.conj() * self._basis(b)

    def synthesise(self, c: np.ndarray) -> Array:
        """Return the picture with Fourier coefficients c."""
        return fft.ifft2(c.reshape(self.picture), norm="ortho").real.ravel()

    def _right(self, x: Array) -> np.ndarray:
        return self._basis(x)

    def _left(self, c: np.ndarray) -> Array:
        return self.synthesise(self._phase * c)


class CosineBlur(PictureOperator):
    """Convolution with a symmetric kernel and mirrored boundaries: diagonal in the cosine basis.

    Parameters
    ----------
    psf : array_like of shape (odd, odd)
        Point spread function, symmetric up-down and left-right.
    picture : (int, int)
    """

    def __init__(self, psf: ArrayLike, picture: tuple[int, int]) -> None:
        super().__init__(picture)
        psf = _checked_psf(psf, self.picture)
        if not (np.allclose(psf, psf[::-1]) and np.allclose(psf, psf[:, ::-1])):
            raise SpectralError("mirrored boundaries need a psf that is symmetric in both axes")
        rows, columns = (
            np.cos(np.pi * np.outer(np.arange(size), np.arange(-(k // 2), k // 2 + 1)) / size)
            for size, k in zip(self.picture, psf.shape, strict=True)
        )
        values = (rows @ psf @ columns.T).ravel()
        self.sigma = clamp(np.abs(values))
        self._sign = np.where(values < 0, -1.0, 1.0)

    def _right(self, x: Array) -> Array:
        return fft.dctn(x.reshape(self.picture), norm="ortho").ravel()

    def _left(self, c: Array) -> Array:
        return self.synthesise(self._sign * c)

    def analyse(self, b: Array) -> Array:
        """Return the cosine coefficients with the signs of the operator."""
        return self._sign * self._right(b)

    def synthesise(self, c: Array) -> Array:
        """Return the picture with cosine coefficients c."""
        return fft.idctn(c.reshape(self.picture), norm="ortho").ravel()


class KroneckerOperator(PictureOperator):
    """``X -> R X C'``, a map of rows times one of columns: its SVD is that of the two factors.

    Parameters
    ----------
    R, C : array_like, square
        The matrix of the operator on pictures read row by row is ``kron(R, C)``.
    """

    def __init__(self, R: ArrayLike, C: ArrayLike) -> None:
        R, C = np.asarray(R, dtype=np.float64), np.asarray(C, dtype=np.float64)
        for factor in (R, C):
            if factor.ndim != 2 or factor.shape[0] != factor.shape[1]:
                raise SpectralError(f"both factors must be square, not of shape {factor.shape}")
        super().__init__((len(R), len(C)))
        self._U1, sigma1, self._V1t = linalg.svd(R)
        self._U2, sigma2, self._V2t = linalg.svd(C)
        self.sigma = clamp(np.outer(sigma1, sigma2).ravel())

    def analyse(self, b: Array) -> Array:
        """Return ``U1' B U2``, row by row."""
        return (self._U1.T @ b.reshape(self.picture) @ self._U2).ravel()

    def synthesise(self, c: Array) -> Array:
        """Return ``V1 C V2'``, row by row."""
        return (self._V1t.T @ c.reshape(self.picture) @ self._V2t).ravel()

    def _right(self, x: Array) -> Array:
        return (self._V1t @ x.reshape(self.picture) @ self._V2t.T).ravel()

    def _left(self, c: Array) -> Array:
        return (self._U1 @ c.reshape(self.picture) @ self._U2.T).ravel()


def _checked_psf(psf: ArrayLike, picture: tuple[int, int]) -> Array:
    psf = np.asarray(psf, dtype=np.float64)
    if psf.ndim != 2 or not all(size % 2 for size in psf.shape):
        raise SpectralError(f"the psf must have odd numbers of rows and columns, not {psf.shape}")
    if not np.isfinite(psf).all():
        raise SpectralError("the psf contains NaN or infinity")
    if any(small > large for small, large in zip(psf.shape, picture, strict=True)):
        raise SpectralError(f"the psf {psf.shape} is larger than the picture {picture}")
    return psf
