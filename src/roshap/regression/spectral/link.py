"""From scores to probabilities: one scale, fitted on scores of rows left out."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from roshap.regression.spectral.filters import Array

_SCALES = (1e-3, 1e3)


def fit_scale(scores: Array, codes: np.ndarray, w: Array) -> float:
    """Return the scale a of ``softmax(a * scores)`` with the largest likelihood.

    One scale and no offset keeps the order of the scores and the predicted class: least squares
    on +-1 estimates ``2 P - 1``, whose sign already decides. Targets are smoothed as by Platt
    (1999), so that classes that are separable do not lead to an infinite scale.

    Parameters
    ----------
    scores : ndarray of shape (n, C)
        Of rows that were left out; those that are not finite are not used.
    codes : ndarray of int, shape (n,)
        Class of each row.
    w : ndarray of shape (n,)
        Weights.
    """
    usable = np.isfinite(scores).all(axis=1)
    scores, codes, w = scores[usable], codes[usable], w[usable]
    C = scores.shape[1]
    count = np.bincount(codes, weights=w, minlength=C)[codes][:, None]
    target = (np.eye(C)[codes] * count + 1.0) / (count + C)

    def slope(a: float) -> float:
        return float(np.sum(w[:, None] * (softmax(a * scores, axis=1) - target) * scores))

    low, high = _SCALES
    # the negative log-likelihood is convex in a: its slope changes sign at most once
    if not len(w) or slope(low) >= 0:
        return low
    return high if slope(high) <= 0 else float(brentq(slope, low, high, xtol=1e-14, rtol=1e-14))
