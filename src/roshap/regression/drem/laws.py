"""The laws that turn mixed batches into weights.

Every law is a linear recursion ``w <- w + g_b (T_b - w)``, so that a whole epoch is one weighted
sum of the batch solutions; nothing loops over batches unless a law runs away.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logsumexp

from roshap.regression.design import Array

#: Above this sum of logarithms, products over an epoch would overflow.
_SAFE = 600.0


def standard_gain(log_det: Array, alpha: float) -> Array:
    """Return ``g = alpha D^2``: stable below 2 only."""
    with np.errstate(over="ignore"):
        return np.asarray(alpha * np.exp(2.0 * log_det))


def adaptive_gain(log_det: Array, alpha: float) -> Array:
    """Return ``g = alpha D^2 / (1 + alpha D^2)``, without overflow for any D."""
    return np.asarray(expit(np.log(alpha) + 2.0 * log_det))


def blend(w: Array, solutions: Array, gain: Array) -> tuple[Array, float]:
    """Apply ``w <- w + g_b (T_b - w)`` over the batches.

    Parameters
    ----------
    w : (q, k) array
        Weights before the first batch.
    solutions : (B, q, k) array
        ``T_b``.
    gain : (B,) array
        ``g_b``.

    Returns
    -------
    w : (q, k) array
        Weights after the last batch; not finite where the law has run away.
    left : float
        ``prod (1 - g_b)``: what is left of the start.
    """
    keep = 1.0 - gain
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        growth = np.log(np.abs(keep)).clip(min=0.0).sum()
        if not growth < _SAFE:
            return _one_by_one(w, solutions, gain)
    tail = np.append(np.cumprod(keep[::-1])[::-1], 1.0)
    q, k = w.shape
    moved = (gain * tail[1:]) @ solutions.reshape(len(gain), q * k)
    return tail[0] * w + moved.reshape(q, k), float(tail[0])


def _one_by_one(w: Array, solutions: Array, gain: Array) -> tuple[Array, float]:
    left = 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        for solution, g in zip(solutions, gain, strict=True):
            w, left = w + g * (solution - w), float(left * (1.0 - g))
    return w, left


def exact_average(
    mean: Array, log_weight: float, solutions: Array, log_det: Array
) -> tuple[Array, float]:
    """Go on with the mean of the batch solutions, weighted by ``det(X_b' X_b)``.

    Over all subsets of m rows this mean *is* the least-squares solution (for m = q a theorem of
    Jacobi). Weights are kept as logarithms.

    Returns
    -------
    mean : (q, k) array
        Of the batches so far.
    log_weight : float
        Logarithm of their total weight; ``-inf`` before the first.
    """
    total = float(logsumexp(np.append(2.0 * log_det, log_weight)))
    if not np.isfinite(total):
        return mean, log_weight
    shares = np.exp(2.0 * log_det - total)
    return np.exp(log_weight - total) * mean + np.einsum("b,bqk->qk", shares, solutions), total
