"""Time the tree kernel against shap's TreeExplainer and the libraries' own contributions.

One process, one thread. Every routine explains the same rows of the same fitted model; a time is
the median over repeats that alternate between the routines, so that both meet the same machine.
Compiling the kernel, or loading it from numba's cache, is stated apart.

Run: ``python benchmarks/tree_kernel.py`` (about two minutes).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import shap
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits
from xgboost import XGBClassifier

from roshap.attribution.explainers import make_explainer
from roshap.attribution.explainers.tree_kernel import kernel_explainer
from roshap.models import Task

Routine = Callable[[], Any]


def make_data(task: Task, n: int = 2400, p: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Noisy classes that depend on eight of the features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)).astype(np.float32).astype(np.float64)
    score = X[:, :8].sum(axis=1) + 2.0 * rng.normal(size=n)
    return X, np.digitize(score, [0.0] if task == "binary" else [-1.5, 1.5])


def models() -> list[tuple[str, Any, Task, str, int]]:
    """Title, model, task, rival, and the rows that the rival explains in reasonable time."""
    forest: dict[str, Any] = {"n_estimators": 200, "random_state": 0, "n_jobs": 1}
    boosted: dict[str, Any] = {"n_estimators": 100, "learning_rate": 0.1, "n_jobs": 1}
    xgboost = XGBClassifier(**boosted, max_depth=6, subsample=0.8)
    lightgbm = LGBMClassifier(**boosted, max_depth=8, num_leaves=31, verbose=-1)
    wide = LGBMClassifier(**boosted, num_leaves=255, min_child_samples=5, verbose=-1)
    return [
        ("forest, no depth limit", RandomForestClassifier(**forest), "binary", "shap", 8),
        ("forest, depth 6", RandomForestClassifier(**forest, max_depth=6), "binary", "shap", 200),
        (
            "forest, depth 6",
            RandomForestClassifier(**forest, max_depth=6),
            "multiclass",
            "shap",
            200,
        ),
        ("xgboost, depth 6", xgboost, "binary", "native", 800),
        ("xgboost, depth 6", xgboost, "multiclass", "native", 400),
        ("lightgbm, 31 leaves", lightgbm, "binary", "native", 400),
        ("lightgbm, 31 leaves", lightgbm, "multiclass", "native", 200),
        ("lightgbm, 255 leaves", wide, "binary", "native", 100),
    ]


def rival_of(method: str, model: Any, X: np.ndarray, task: Task) -> Routine:
    if method == "shap":
        explainer = shap.TreeExplainer(model)
        return lambda: explainer.shap_values(X, check_additivity=False)
    native = make_explainer(model, X, task, method="native")
    return lambda: native.values(X)


def seconds(routine: Routine) -> float:
    start = time.perf_counter()
    routine()
    return time.perf_counter() - start


def compare(model: Any, X: np.ndarray, task: Task, method: str, rows: int, repeats: int) -> str:
    """Return the columns of one line of the table."""
    load = statistics.median(seconds(lambda: kernel_explainer(model, task)) for _ in range(3))
    kernel = kernel_explainer(model, task)
    assert kernel is not None
    rival = rival_of(method, model, X[:rows], task)
    kernel_rows = X[:1024]  # as many as a replicate has
    times = [(seconds(lambda: kernel.values(kernel_rows)), seconds(rival)) for _ in range(repeats)]
    ours = statistics.median(a for a, _ in times) / len(kernel_rows)
    theirs = statistics.median(b for _, b in times) / rows
    return f"{load * 1e3:8.1f} {ours * 1e6:10.1f} {theirs * 1e6:12.1f} {theirs / ours:8.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    X, y = make_data("binary", n=200)
    small = RandomForestClassifier(2, n_jobs=1).fit(X, y)

    def first_use() -> None:
        explainer = make_explainer(small, X, "binary", method="kernel")
        explainer.values(X)
        explainer.abs_sum(X)

    print(f"compiling the kernel, or loading it from numba's cache: {seconds(first_use):.1f} s")
    print(f"second use on the same model: {seconds(first_use) * 1e3:.1f} ms\n")
    print(f"{'model':<22} {'task':<11} {'rival':<7}", end=" ")
    print(f"{'read ms':>8} {'us per row':>10} {'rival us/row':>12} {'ratio':>8}")
    for title, model, task, method, rows in models():
        X, y = make_data(task)
        line = compare(model.fit(X, y), X, task, method, rows, repeats)
        print(f"{title:<22} {task:<11} {method:<7} {line}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
