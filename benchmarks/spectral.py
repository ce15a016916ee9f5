"""Pair one decomposition with refits, and measure Nystroem features on a large table.

    python benchmarks/spectral.py                  # both
    python benchmarks/spectral.py path --rows 1000
    python benchmarks/spectral.py nystroem --rows 100000 --landmarks 1000

One process, one thread; Linux for the peak memory.

- path: 50 values of lam with leave-one-out for all of them, against 50 fits of scikit-learn's
  ``KernelRidge`` without it, in turns; the median of the ratios of
  processor times, which a busy machine does not change.
- nystroem: a smooth function of five standard normal features plus noise; seconds, peak resident
  memory of a process of its own, and the error on new rows against the noise.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from threadpoolctl import threadpool_limits

from roshap.regression.spectral import SpectralRegressor

NOISE = 0.5
LEVELS = 50


def smooth(X: np.ndarray) -> np.ndarray:
    return np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + np.exp(-(X[:, 3] ** 2)) + 0.3 * X[:, 4]


def sample(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, smooth(X) + NOISE * rng.normal(size=n)


def path(rows: int, repeats: int) -> None:
    X, y = sample(rows, 0)
    lams = np.geomspace(1e-8, 1.0, LEVELS)
    ratios = []
    SpectralRegressor(gamma=0.1).fit(X[:50], y[:50])  # imports and first calls
    KernelRidge(kernel="rbf").fit(X[:50], y[:50])
    for _ in range(repeats):
        start = time.process_time()
        model = SpectralRegressor(gamma=0.1, levels=lams, rule="loo", fit_intercept=False)
        model.fit(X, y)
        one = time.process_time() - start
        start = time.process_time()
        refits = [KernelRidge(alpha=rows * lam, kernel="rbf", gamma=0.1).fit(X, y) for lam in lams]
        many = time.process_time() - start
        ratios.append(many / one)
        last = model.path_.coefficients[0][:, 0]  # the largest lam comes first
        difference = np.abs(refits[-1].dual_coef_ - last).max()
        print(
            f"path, n={rows}: one decomposition with leave-one-out {one:.2f} s, {LEVELS} refits "
            f"{many:.2f} s, ratio {many / one:.1f} (largest lam: equal to {difference:.1e})"
        )
    print(f"path, n={rows}: median ratio {np.median(ratios):.1f} of {repeats}")


def nystroem(rows: int, landmarks: int, rule: str) -> None:
    arguments = ["--rows", str(rows), "--landmarks", str(landmarks), "--rule", rule]
    command = [sys.executable, __file__, "nystroem-alone", *arguments]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(answer.stdout.splitlines()[-1])
    print(
        f"nystroem, n={rows}, m={landmarks}, rule {rule}: {found['seconds']:.1f} s, peak "
        f"{found['peak_gb']:.2f} GB, lam {found['lam']:.2e}, dof {found['dof']:.0f}, test MSE "
        f"against noise {found['mse'] / NOISE**2:.3f} of its variance, against the function "
        f"{found['excess'] / NOISE**2:.4f} of it"
    )


def nystroem_alone(rows: int, landmarks: int, rule: str) -> None:
    X, y = sample(rows, 0)
    X_new, y_new = sample(20_000, 1)
    model = SpectralRegressor(
        gamma=0.1, method="nystroem", landmarks=landmarks, rule=rule, random_state=0
    )
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    predicted = model.predict(X_new)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found = {
        "seconds": seconds,
        "peak_gb": peak,
        "lam": model.value_,
        "dof": model.dof_,
        "mse": float(np.mean((predicted - y_new) ** 2)),
        "excess": float(np.mean((predicted - smooth(X_new)) ** 2)),
    }
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "case", nargs="?", default="all", choices=["all", "path", "nystroem", "nystroem-alone"]
    )
    parser.add_argument("--rows", type=int)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rule", help="of nystroem; both gcv and loo by default")
    chosen = parser.parse_args()
    threadpool_limits(1)
    if chosen.case == "nystroem-alone":
        nystroem_alone(chosen.rows, chosen.landmarks, chosen.rule)
        return
    if chosen.case in ("all", "path"):
        path(chosen.rows or 1000, chosen.repeats)
    if chosen.case in ("all", "nystroem"):
        for rule in [chosen.rule] if chosen.rule else ["gcv", "loo"]:
            nystroem(chosen.rows or 100_000, chosen.landmarks, rule)


if __name__ == "__main__":
    main()
