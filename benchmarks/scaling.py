"""How the cost of a run and the memory grow with rows, features and runs.

    python benchmarks/scaling.py                       # everything
    python benchmarks/scaling.py --model lightgbm --sweep rows

Each line is a process of its own, so that its peak memory is its own. Times are processor time of
one thread, which other programs on the machine disturb little; fit and run alternate on the same
bags. Prints tables for docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import yaml
from sklearn.linear_model import Ridge

from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.attribution.replicate import ReplicateInputs, run_replicate
from roshap.attribution.row_summaries import kept_rows
from roshap.attribution.splitter import BootstrapOOB
from roshap.compute import Executor
from roshap.datasets import from_frame
from roshap.models import ModelSpec, build, fit

MODELS = Path(__file__).parents[1] / "conf" / "model"
ROWS = {"rows": [(n, 100) for n in (100, 1000, 10_000, 100_000, 200_000)]}
FEATURES = {"features": [(500, p) for p in (100, 1000, 5000, 20_000)]}
RUNS = (10, 100, 1000, 10_000)


def main() -> None:
    """Run what was asked for and print tables in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", action="append", help="a file of conf/model; default: three")
    parser.add_argument("--sweep", choices=("rows", "features", "runs"), action="append")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_one(json.loads(arguments.one))))
        return
    print(machine())
    sweeps = arguments.sweep or ["rows", "features", "runs"]
    for model in arguments.model or ["xgboost", "lightgbm", "random_forest"]:
        for name, points in (ROWS | FEATURES).items():
            if name in sweeps:
                print(f"\n{model}, a run as the number of {name} grows\n")
                print("| n | p | run, s | fit alone, s | run / fit | peak memory, MB | file, MB |")
                print("|---|---|---|---|---|---|---|")
                for n, p in points:
                    print(_line({"model": model, "n": n, "p": p}), flush=True)
    if "runs" in sweeps:
        print("\nridge on 200 x 50, one process, as the number of runs grows\n")
        print("| runs | processor time a run, ms | peak memory, MB | checkpoints, MB |")
        print("|---|---|---|---|")
        for runs in RUNS:
            print(_line({"runs": runs}), flush=True)


def machine() -> str:
    """Describe the machine, and how busy it is."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", info.read_text()) if info.exists() else []
    return (
        f"{names[0] if names else platform.machine()}, {joblib.cpu_count()} cores, "
        f"Python {platform.python_version()}, load average {os.getloadavg()[0]:.1f}"
    )


def _line(what: dict[str, Any]) -> str:
    command = [sys.executable, "-W", "ignore", __file__, "--one", json.dumps(what)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return "| " + " | ".join(json.loads(done.stdout.splitlines()[-1])) + " |"


def _one(what: dict[str, Any]) -> list[str]:
    return _many_runs(what["runs"]) if "runs" in what else _single_run(**what)


def _single_run(model: str, n: int, p: int) -> list[str]:
    """Time a replicate, and the fit inside it alone."""
    spec = ModelSpec(**yaml.safe_load((MODELS / f"{model}.yaml").read_text()))
    settings = BootstrapSettings()
    X, y = make_data(n, p)
    inputs = ReplicateInputs(
        X=X,
        y=y,
        task="binary",
        n_outputs=1,
        groups=None,
        weights=None,
        model=build(spec, "binary"),
        settings=settings,
        kept=kept_rows(n, p, 1, settings.row_values),
        seed=0,
    )
    tiny_X, tiny_y = make_data(60, 5)
    tiny = {"X": tiny_X, "y": tiny_y, "kept": np.arange(60)}
    run_replicate(ReplicateInputs(**{**vars(inputs), **tiny}), 0)  # imports, compiled code
    whole, alone, size = [], [], 0
    for index in range(3 if n * p <= 1_000_000 else 1):
        bag = BootstrapOOB().draw(index, n, y=y, seed=0).bag
        alone.append(seconds(lambda bag=bag: fit(inputs.model, X[bag], y[bag])))
        arrays: dict[str, np.ndarray] = {}
        whole.append(seconds(lambda i=index, a=arrays: a.update(run_replicate(inputs, i))))
        size = sum(array.nbytes for array in arrays.values())
    run, fitting = statistics.median(whole), statistics.median(alone)
    return [
        f"{n:,}",
        f"{p:,}",
        f"{run:.3g}",
        f"{fitting:.3g}",
        f"{run / fitting:.2f}",
        f"{high_water():.0f}",
        f"{size / 1e6:.2f}",
    ]


def _many_runs(runs: int) -> list[str]:
    """Run the whole engine with a model that costs next to nothing."""
    X, _ = make_data(200, 50)
    data = from_frame(X, X[:, 0] + X[:, 1], task="regression", name="runs")
    with tempfile.TemporaryDirectory() as store:

        def work(runs: int) -> None:
            bootstrap_attributions(
                data,
                Ridge(),
                runs=runs,
                seed=0,
                executor=Executor(workers=1),
                store=Path(store),
            )

        work(2)
        cost = seconds(lambda: work(runs)) / runs
        size = sum(path.stat().st_size for path in Path(store).glob("*/*.npz"))
    return [f"{runs:,}", f"{1000 * cost:.2f}", f"{high_water():.0f}", f"{size / 1e6:.1f}"]


def make_data(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Two noisy classes that depend on up to ten of the features."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p), dtype=np.float64)
    return X, (X[:, :10].sum(axis=1) + rng.standard_normal(n) > 0).astype(np.int64)


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a call in this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def high_water() -> float:
    """Return the largest resident set of this process so far, in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found.group(1)) / 1000 if found else float("nan")


if __name__ == "__main__":
    main()
