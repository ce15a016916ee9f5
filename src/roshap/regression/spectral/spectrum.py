"""Data seen in the singular coordinates of an operator, where every filter is a product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roshap.regression.spectral.filters import Array, Filter


@dataclass(frozen=True)
class Spectrum:
    """What filters, paths and rules need to know of a problem.

    Attributes
    ----------
    s : ndarray of shape (r,)
        Eigenvalues, clamped, in no particular order: of the kernel matrix, or of ``A'A``.
    z : ndarray of shape (r, t)
        Coefficients of the data in the left singular basis, one column for each target. Of
        diagonal operators in a complex basis: their absolute values.
    rest : ndarray of shape (t,)
        Squared norm of the data outside that basis, which no filter can fit.
    n : float
        Number of rows; the sum of their weights where they have weights.
    outside : float
        Dimensions of the data outside the basis; a fitted intercept does not count.
    """

    s: Array
    z: Array
    rest: Array
    n: float
    outside: float

    @property
    def free(self) -> float:
        """Degrees of freedom that an intercept takes."""
        return self.n - self.outside - len(self.s)


@dataclass(frozen=True)
class Path:
    """A filter's solutions at all its levels, the smoothest first.

    Attributes
    ----------
    parameter : str
        What the level is: ``lam``, ``steps`` or ``components``.
    levels : ndarray of shape (L,)
        In the user's units (``lam``).
    residual_norm : ndarray of shape (L,)
        Norm of data minus fit (over all targets; weighted rows).
    solution_norm : ndarray of shape (L,)
        Norm of the solution: ``||x||`` for operators, ``||f||`` in the kernel's space.
    dof : ndarray of shape (L,)
        Degrees of freedom: the sum of the filter factors, plus one for an intercept.
    gcv : ndarray of shape (L,)
        ``n ||r||^2 / (n - dof)^2``, over all targets.
    change : ndarray of shape (L,)
        Speed of the solution, ``||dx||`` from the level before, divided by the difference of
        ``log level`` for ``lam`` and ``steps``; NaN at the first level.
    n : float
        Number of rows.
    gcv_share : float
        Of the filter: see :class:`~roshap.regression.spectral.filters.Filter`.
    loo, loo_error : ndarray of shape (L,) or None
        Leave-one-out mean squared error, and for a classifier the share of rows misclassified.
    loo_exact : bool
        Whether leave-one-out equals refitting (Tikhonov), or approximates it (other filters).
    kfold : ndarray of shape (L,) or None
        Mean loss over folds; computed where the rule asks for it.
    coefficients : ndarray of shape (L, m) or (L, m, t), or None
        Of each level: the solution, or the dual coefficients of the kernel expansion.
    intercepts : ndarray of shape (L,) or (L, t), or None
    """

    parameter: str
    levels: Array
    residual_norm: Array
    solution_norm: Array
    dof: Array
    gcv: Array
    change: Array
    n: float
    gcv_share: float = 1.0
    loo: Array | None = None
    loo_error: Array | None = None
    loo_exact: bool = False
    kfold: Array | None = None
    coefficients: Array | None = None
    intercepts: Array | None = None

    def __len__(self) -> int:
        return len(self.levels)


def trace(spectrum: Spectrum, filter: Filter, on_scale: Array, levels: Array) -> Path:
    """Follow a filter along its levels and return the norms, without the solutions.

    Parameters
    ----------
    spectrum : Spectrum
    filter : Filter
    on_scale, levels : ndarray of shape (L,)
        The levels on the scale of ``s``, and as a person gives them.
    """
    s, energy = spectrum.s, np.sum(spectrum.z**2, axis=1)
    root = np.sqrt(s)
    rows = []
    before: Array | None = None
    for gain, residual in filter.sweep(s, on_scale):
        # the norms weigh the gain by sqrt(s): x = V sqrt(s) G z
        scaled = root * gain
        change = np.nan if before is None else np.sqrt(np.sum((scaled - before) ** 2 * energy))
        left = float(np.sum(residual)) + spectrum.outside
        rest = float(np.sum(residual**2 * energy) + np.sum(spectrum.rest))
        rows.append(
            (
                np.sqrt(rest),
                np.sqrt(np.sum(scaled**2 * energy)),
                spectrum.n - left,
                # without a degree of freedom left the score says nothing
                spectrum.n * (np.sqrt(rest) / left) ** 2 if left > 0 else np.inf,
                change,
            )
        )
        before = scaled
    residual_norm, solution_norm, dof, gcv, change_ = np.array(rows).T
    if filter.parameter != "components" and len(levels) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            change_[1:] /= np.abs(np.diff(np.log(levels)))
    return Path(
        filter.parameter,
        levels,
        residual_norm,
        solution_norm,
        dof,
        gcv,
        change_,
        float(spectrum.n),
        filter.gcv_share,
    )
