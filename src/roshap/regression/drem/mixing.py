"""Extension and mixing: every batch of an epoch in one batched factorisation.

Mixing multiplies ``y_b = X_b w`` by the adjugate of ``X_b``, which gives q scalar regressions
``Z_i = D w_i`` with ``D = det X_b``. Cramer's rule gives Z at O(q^4) a batch; the identity
``Z = D T`` with ``T = solve(X_b, y_b)`` gives the same at O(q^3), for all batches at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roshap.regression.design import Array
from roshap.regression.drem.lu import factorise

#: A column of a batch nearer than this to the span of those before it makes the batch singular.
SINGULAR = 1e-10


@dataclass(frozen=True)
class Mixed:
    """The mixed batches that could be used.

    Attributes
    ----------
    solutions : (B, q, k) array
        ``T_b``: least-squares solution of each batch, exact for square ones.
    log_det : (B,) array
        ``log |det X_b|`` for square batches, ``log det(X_b' X_b) / 2`` in general.
    information : (B, q) array or None
        ``a_bi = 1 / ((X_b' X_b)^-1)_ii``: inverse noise variance of scalar regression i.
    skipped : int
        Batches left out because they are singular.
    """

    solutions: Array
    log_det: Array
    information: Array | None
    skipped: int


def batches(A: Array, rows: int) -> Array:
    """Cut (n, ...) into (n // rows, rows, ...); a ragged last batch is dropped."""
    count = len(A) // rows
    return A[: count * rows].reshape(count, rows, *A.shape[1:])


def mix_square(X: Array, Y: Array, *, eps: float = 0.0) -> Mixed:
    """Mix square batches by LU, without the scalar regressions' information.

    Parameters
    ----------
    X : (B, q, q) array
        Rows of the extended design.
    Y : (B, q, k) array
        Outputs.
    eps : float
        Batches with ``|D| < eps`` are skipped; exactly singular ones always are.
    """
    solutions, log_det = factorise(X, Y)
    with np.errstate(divide="ignore"):
        usable = np.isfinite(log_det) & (log_det >= np.log(eps))
    if not usable.all():
        solutions, log_det = solutions[usable], log_det[usable]
    return Mixed(solutions, log_det, None, len(usable) - len(solutions))


def mix_tall(X: Array, Y: Array) -> Mixed:
    """Mix batches of at least q rows by QR, with the information of each scalar regression.

    Parameters
    ----------
    X : (B, m, q) array
        Rows of the extended design, m >= q.
    Y : (B, m, k) array
        Outputs.
    """
    Q, R = np.linalg.qr(X)
    diagonal = np.abs(np.diagonal(R, axis1=1, axis2=2))
    usable = (diagonal > SINGULAR * np.linalg.norm(R, axis=1)).all(axis=1)
    if not usable.all():
        Q, R, Y, diagonal = Q[usable], R[usable], Y[usable], diagonal[usable]
    inverse = np.linalg.inv(R)
    information = 1.0 / np.einsum("bij,bij->bi", inverse, inverse)
    solutions = inverse @ (Q.transpose(0, 2, 1) @ Y)
    return Mixed(solutions, np.log(diagonal).sum(axis=1), information, len(usable) - len(Q))


def mix_memory(X: Array, Y: Array, forget: float, state: tuple[Array, Array]) -> Mixed:
    """Mix Kreisselmeier's extension ``G <- forget G + X_b' X_b``; updates ``state`` in place.

    Parameters
    ----------
    X, Y : (B, m, q) and (B, m, k) arrays
        The batches, in their order.
    forget : float
        1 keeps everything: recursive least squares.
    state : (q, q) and (q, k) arrays
        ``G`` and ``h = sum X_b' y_b`` before the first batch and, afterwards, after the last.
    """
    G, h = state
    grams, sides = np.empty((len(X), *G.shape)), np.empty((len(X), *h.shape))
    for b, (x, y) in enumerate(zip(X, Y, strict=True)):
        G *= forget
        G += x.T @ x
        h *= forget
        h += x.T @ y
        grams[b], sides[b] = G, h
    usable = np.linalg.cond(grams) < 1.0 / SINGULAR
    grams, sides = grams[usable], sides[usable]
    inverse = np.linalg.inv(grams)
    information = 1.0 / np.diagonal(inverse, axis1=1, axis2=2)
    log_det = np.linalg.slogdet(grams)[1] / 2
    solutions = np.asarray(np.linalg.solve(grams, sides), dtype=np.float64)
    return Mixed(solutions, log_det, information, len(usable) - len(grams))
