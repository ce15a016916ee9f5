"""Pair the bootstrap engine with the loop that a user writes today, and with the fits alone.

    python benchmarks/attribution.py                       # all cases
    python benchmarks/attribution.py --case xgboost-simulation --runs 40

Everything of a case runs in one process, in turns, so that the ratios hold on a busy machine:

- engine: ``bootstrap_attributions`` with all cores, the start of its workers included;
- fits: the same model on the same bags, one after the other on one thread;
- loop: refit with the model's default threads, ``shap.TreeExplainer`` on the rows out of bag.

Wall times need a machine that does nothing else; the ratio of processor times does not.

A case ends with its peak memory for 20 and for 100 runs, each in a process of its own: the
largest resident set of the parent and of its largest worker (Linux only).
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from joblib.externals.loky import get_reusable_executor

from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.attribution.splitter import BootstrapOOB
from roshap.compute import Executor
from roshap.datasets import Dataset, from_frame
from roshap.datasets.readers.simulation import read as read_simulation
from roshap.models import ModelSpec, build, fit

MODELS = Path(__file__).parents[1] / "conf" / "model"


def simulation() -> Dataset:
    """600 x 1000: the simulation of the paper."""
    table = read_simulation({}).frame
    return from_frame(table.drop(columns="y"), table["y"], name="simulation")


def wide() -> Dataset:
    """72 x 7000: many more features than rows, as in gene expression."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(72, 7000))
    y = (X[:, :10].sum(axis=1) + rng.normal(size=72) > 0).astype(int)
    return from_frame(X, y, name="wide")


def long() -> Dataset:
    """6600 x 166: the shape of the musk data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6600, 166))
    y = (X[:, 0] * X[:, 1] + X[:, 2:12].sum(axis=1) + rng.normal(size=6600) > 1).astype(int)
    return from_frame(X, y, name="long")


@dataclass(frozen=True)
class Case:
    """A model on a data set, with the number of runs of each side."""

    model: str
    make: Callable[[], Dataset]
    engine_runs: int
    other_runs: int

    def spec(self) -> ModelSpec:
        """Return the model's settings, those of the pipeline."""
        return ModelSpec(**yaml.safe_load((MODELS / f"{self.model}.yaml").read_text()))


CASES = {
    "xgboost-simulation": Case("xgboost", simulation, 100, 10),
    "xgboost-wide": Case("xgboost", wide, 100, 10),
    "lightgbm-long": Case("lightgbm", long, 60, 10),
    "forest-long": Case("random_forest", long, 60, 6),
}


def main() -> None:
    """Run the cases that were asked for and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--case", choices=CASES, action="append", help="default: all")
    parser.add_argument("--runs", type=int, help="runs of the engine")
    parser.add_argument("--workers", type=int, default=0, help="0: all cores")
    parser.add_argument("--no-memory", action="store_true", help="leave peak memory out")
    parser.add_argument("--peak", nargs=2, metavar=("CASE", "RUNS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        print(json.dumps(peak(CASES[arguments.peak[0]], int(arguments.peak[1]), arguments.workers)))
        return
    for name in arguments.case or CASES:
        case = CASES[name]
        print(f"\n{name}: {case.make.__doc__}", flush=True)
        for line in compare(case, arguments.runs or case.engine_runs, arguments.workers):
            print(f"  {line}", flush=True)
        if not arguments.no_memory:
            for line in memory(name, arguments.workers):
                print(f"  {line}", flush=True)


def compare(case: Case, runs: int, workers: int) -> Iterator[str]:
    """Time the three sides in turns: half of the fits and of the loop, engine, the other half."""
    data = case.make()
    executor = Executor(workers=workers)
    half = case.other_runs // 2
    fits, loop = [], []
    import_libraries(case, data)
    for first in (0, half):
        indices = range(first, first + half)
        fits.append(measure(lambda indices=indices: fit_alone(case, data, indices)))
        loop.append(measure(lambda indices=indices: user_loop(case, data, indices)))
        if first == 0:
            engine = measure(lambda: run_engine(case, data, runs, executor))
    fit_wall, fit_cpu = (sum(column) / (2 * half) for column in zip(*fits, strict=True))
    loop_wall, _ = (sum(column) / (2 * half) for column in zip(*loop, strict=True))
    ideal = fit_wall * runs / executor.workers
    yield f"engine  {engine.wall:8.2f} s for {runs} runs on {executor.workers} workers"
    yield f"fit     {fit_wall:8.3f} s a run on one thread; {spread(fits)} between the halves"
    yield f"loop    {loop_wall:8.3f} s a run on the model's default threads"
    yield f"engine / (fits alone x runs / cores) = {engine.wall / ideal:.2f}"
    yield f"the same in processor time           = {engine.cpu / (fit_cpu * runs):.2f}"
    yield f"user's loop / engine                 = {loop_wall * runs / engine.wall:.2f}"


def memory(name: str, workers: int) -> Iterator[str]:
    """Measure peak memory for 20 and for 100 runs."""
    total = {}
    for runs in (20, 100):
        command = [sys.executable, __file__, "--workers", str(workers), "--peak", name, str(runs)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        parent, worker = json.loads(answer)
        total[runs] = parent + worker
        yield f"peak memory, {runs:3d} runs: parent {parent:.0f} MB, largest worker {worker:.0f} MB"
    yield f"growth from 20 to 100 runs           = {100 * (total[100] / total[20] - 1):+.1f} %"


def peak(case: Case, runs: int, workers: int) -> tuple[float, float]:
    """Return the peak resident set, in MB, of this process and of its largest worker."""
    run_engine(case, case.make(), runs, Executor(workers=workers))
    children = Path(f"/proc/self/task/{Path('/proc/self').resolve().name}/children").read_text()
    return high_water("self"), max((high_water(child) for child in children.split()), default=0.0)


def high_water(process: str) -> float:
    """Return a process' largest resident set so far, in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found.group(1)) / 1000 if found else 0.0


def run_engine(case: Case, data: Dataset, runs: int, executor: Executor) -> None:
    """Run the engine as the pipeline does, without a store."""
    model = build(case.spec(), data.task)
    bootstrap_attributions(
        data, model, runs=runs, seed=0, settings=BootstrapSettings(), executor=executor
    )


def fit_alone(case: Case, data: Dataset, indices: range) -> None:
    """Fit the engine's model on the engine's bags."""
    X, model = np.ascontiguousarray(data.X), build(case.spec(), data.task)
    for bag, _ in draws(data, indices):
        fit(model, X[bag], data.y[bag])


def user_loop(case: Case, data: Dataset, indices: range) -> None:
    """Do what a user writes today: pandas in, default threads, shap's TreeExplainer."""
    import shap

    settings = case.spec().settings(data.task)
    total = np.zeros((len(indices), data.p))
    for row, (bag, oob) in zip(total, draws(data, indices), strict=True):
        model = default_threads(settings).fit(data.X.iloc[bag], data.y[bag])
        phi = np.asarray(shap.TreeExplainer(model).shap_values(data.X.iloc[oob]))
        phi = phi[..., 1] if phi.ndim == 3 else phi
        row += np.abs(phi).sum(axis=0)


def default_threads(settings: dict[str, Any]) -> Any:
    """Return an estimator with the pipeline's settings and the library's own threads."""
    module, _, name = settings["_target_"].rpartition(".")
    parameters = {key: value for key, value in settings.items() if key != "_target_"}
    if module == "lightgbm":
        parameters["verbosity"] = -1
    return getattr(importlib.import_module(module), name)(**parameters, random_state=0)


def draws(data: Dataset, indices: range) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the engine's bags and out-of-bag rows."""
    for index in indices:
        draw = BootstrapOOB().draw(index, data.n, y=data.y, seed=0)
        yield draw.bag, draw.oob


def import_libraries(case: Case, data: Dataset) -> None:
    """Import what the sides use, so that none of them pays for another's."""
    import shap

    tiny = fit(build(case.spec(), data.task), np.ascontiguousarray(data.X)[:40], data.y[:40])
    shap.TreeExplainer(tiny)


class Cost(NamedTuple):
    """Seconds of wall time, and of processor time of this process and its workers."""

    wall: float
    cpu: float


def measure(work: Callable[[], None]) -> Cost:
    """Return the cost of a call that starts without workers."""
    end_workers()
    gc.collect()
    cpu, start = processor_time(), time.perf_counter()
    work()
    wall = time.perf_counter() - start
    end_workers()
    return Cost(wall, processor_time() - cpu)


def end_workers() -> None:
    """End the workers, so that the next ones start anew and the old ones' time is known."""
    get_reusable_executor().shutdown(wait=True)


def processor_time() -> float:
    """Return the processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def spread(costs: list[Cost]) -> str:
    """Say how far the two halves of a measurement are apart."""
    walls = [cost.wall for cost in costs]
    return f"{100 * (max(walls) / min(walls) - 1):.0f} %"


if __name__ == "__main__":
    main()
