"""One LU of every batch, for its determinant and its solution alike.

numpy factorises twice, in ``slogdet`` and in ``solve``, and calls LAPACK for each small matrix.
Above :data:`LARGEST` weights LAPACK's blocks win, and numpy is used.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from roshap.regression.design import Array

LARGEST = 64


def factorise(X: Array, Y: Array) -> tuple[Array, Array]:
    """Return ``solve(X_b, Y_b)`` (B, q, k) and ``log |det X_b|`` (B,).

    A singular batch has ``-inf``, and zeros for a solution.

    Parameters
    ----------
    X : (B, q, q) array
    Y : (B, q, k) array
    """
    if X.shape[1] <= LARGEST:
        solutions, log_det = np.zeros(Y.shape), np.empty(len(X))
        _eliminate(np.ascontiguousarray(X), np.ascontiguousarray(Y), solutions, log_det)
        return solutions, log_det
    log_det = np.asarray(np.linalg.slogdet(X)[1], dtype=np.float64)
    regular = np.isfinite(log_det)  # one singular batch would make the whole solve raise
    solutions = np.zeros(Y.shape)
    solutions[regular] = np.linalg.solve(X[regular], Y[regular])
    return solutions, log_det


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _eliminate(  # type: ignore[no-untyped-def]  # numba's own types
    X, Y, solutions, log_det
):
    count, q, _ = X.shape
    k = Y.shape[2]
    width = q + k
    A = np.empty((q, width))
    for b in range(count):
        for i in range(q):
            for j in range(q):
                A[i, j] = X[b, i, j]
            for j in range(k):
                A[i, q + j] = Y[b, i, j]
        log_det[b] = 0.0
        for c in range(q):
            pivot, size = c, abs(A[c, c])
            for i in range(c + 1, q):
                if abs(A[i, c]) > size:
                    pivot, size = i, abs(A[i, c])
            log_det[b] += np.log(size)
            if size == 0.0:
                break
            if pivot != c:
                for j in range(c, width):
                    A[c, j], A[pivot, j] = A[pivot, j], A[c, j]
            for i in range(c + 1, q):
                factor = A[i, c] / A[c, c]
                for j in range(c + 1, width):
                    A[i, j] -= factor * A[c, j]
        if log_det[b] == -np.inf:
            continue
        for c in range(q - 1, -1, -1):
            for j in range(q, width):
                value = A[c, j]
                for i in range(c + 1, q):
                    value -= A[c, i] * A[i, j]
                A[c, j] = value / A[c, c]
            for j in range(k):
                solutions[b, c, j] = A[c, q + j]
