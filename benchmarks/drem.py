"""Time DREM's batched mixing against the article's loop over Cramer determinants.

One process, one thread. Both do the same epoch (adaptive law, square batches, the same start) and
must end at the same weights. A time is the processor's, the least of repeats that alternate between
the two, so that other processes on the machine do not count.

Run: ``python benchmarks/drem.py`` (about a minute).
"""

from __future__ import annotations

import time

import numpy as np
from threadpoolctl import threadpool_limits

from roshap.regression.drem.laws import adaptive_gain, blend
from roshap.regression.drem.mixing import mix_square

ALPHA = 1e-3
BATCHES = {5: 2000, 10: 1000, 20: 400, 50: 60}
REPEATS, INNER = 7, 20
TOLERANCE = 1e-10


def article_epoch(X: np.ndarray, Y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """One epoch as the article says it: q + 1 determinants a batch, one weight after the other."""
    w = w.copy()
    for x, y in zip(X, Y, strict=True):
        D = np.linalg.det(x)
        for i in range(len(w)):
            replaced = x.copy()
            replaced[:, i] = y
            Z = np.linalg.det(replaced)
            w[i] += ALPHA * D / (1 + ALPHA * D**2) * (Z - D * w[i])
    return w


def batched_epoch(X: np.ndarray, Y: np.ndarray, w: np.ndarray) -> np.ndarray:
    mixed = mix_square(X, Y[..., None])
    return blend(w[:, None], mixed.solutions, adaptive_gain(mixed.log_det, ALPHA))[0][:, 0]


def timed(epoch: object, *arguments: np.ndarray) -> float:
    began = time.thread_time()
    epoch(*arguments)  # type: ignore[operator]
    return time.thread_time() - began


def main() -> None:
    print(f"{'q':>3} {'article':>12} {'batched':>12} {'faster':>8} {'largest difference':>20}")
    for q, count in BATCHES.items():
        rng = np.random.default_rng(q)
        # rows as in a trained model's batches: y nearly linear, so that weights stay near 1
        X, truth, w = rng.normal(size=(count, q, q)), rng.normal(size=q), rng.normal(size=q)
        Y = X @ truth + 0.01 * rng.normal(size=(count, q))
        difference = np.abs(article_epoch(X, Y, w) - batched_epoch(X, Y, w)).max()
        slow = fast = np.inf
        for _ in range(REPEATS):
            slow = min(slow, timed(article_epoch, X, Y, w) / count)
            for _ in range(INNER):
                fast = min(fast, timed(batched_epoch, X, Y, w) / count)
        print(
            f"{q:3d} {1e6 * slow:9.1f} us {1e6 * fast:9.2f} us {slow / fast:7.0f}x "
            f"{difference:20.1e}{'' if difference < TOLERANCE else '  DIFFERENT'}"
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
