"""How long a study will take, from timed runs and refits of each experiment."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import joblib
import numpy as np

from roshap.attribution.bootstrap import (
    BootstrapSettings,
    bootstrap_attributions,
    design_matrix,
)
from roshap.baselines import RankingData
from roshap.baselines.lime import Lime
from roshap.compute import Executor
from roshap.datasets import Dataset
from roshap.models import build, fit
from roshap.selection import ALL_RANKERS, make_splits
from roshap.selection.splits import fit_and_aside
from roshap.selection.workers import Refit, RefitInputs, refit, take
from roshap.stages.config import RootConfig, validate
from roshap.stages.data import load_data
from roshap.stages.study import Study
from roshap.stages.workspace import ROOT_VARIABLE, Workspace

log = logging.getLogger(__name__)

DAY = 24 * 3600.0


@dataclass(frozen=True)
class Timed:
    """Seconds on one core.

    Attributes
    ----------
    replicate
        One bootstrap run: fit and explanation, on all training rows.
    fit
        One fit on the training rows of the held-out split.
    refit
        One refit on the most features of a selection, with its metrics.
    lime
        LIME of one row.
    """

    replicate: float
    fit: float = 0.0
    refit: float = 0.0
    lime: float = 0.0


def print_estimate(study: Study, workspace: Workspace) -> None:
    """Time one run of each experiment of the study; print what all of them will take.

    Runs that are already in the checkpoint store, and the figures, are not counted.
    """
    workers = joblib.cpu_count()
    total = 0.0
    timed: dict[tuple[str, str], Timed] = {}
    print(f"estimate for {workers} free cores, from timed runs of each:")
    for name in dict.fromkeys((*study.experiments, *study.selections, *study.simulations)):
        seconds = 0.0
        if name in study.experiments:
            one = study.experiments[name]
            seconds += one.runs * _timed(timed, one.dataset, one.model, workspace).replicate
        if name in study.selections:
            seconds += _selection(study.selections[name], timed, workspace)
        if name in study.simulations:
            sim = study.simulations[name]
            once = _timed(timed, "simulation", sim.model, workspace).replicate
            seconds += sim.seeds * (sim.runs + 5) * once
        total += seconds / workers
        print(f"  {name:<34} {as_time(seconds / workers):>10}")
    print(f"  {'all':<34} {as_time(total):>10}")
    if total > DAY:
        print(
            f"warning: more than a day ({as_time(total)}): fewer runs (runs=20), some experiments "
            "(only=[...]) or a cluster (compute=...) make it shorter"
        )


def _selection(one: Any, timed: dict[tuple[str, str], Timed], workspace: Workspace) -> float:
    """Return the core-seconds of a comparison of rankers."""
    base = _timed(timed, one.dataset, one.model, workspace)
    config = _config(one.dataset, one.model, workspace)
    cost = time_selection(config, workspace, upto=one.upto, base=base)
    splits, rows = 1 + one.folds, config.selection.lime.rows * config.selection.lime.repeats
    per_split = one.runs * cost.replicate + 2 * cost.fit + rows * cost.lime
    # refits grow with k: half of the largest on average
    refits = len(ALL_RANKERS) * one.upto * cost.refit / 2
    return splits * (per_split + refits)


def _timed(
    timed: dict[tuple[str, str], Timed], dataset: str, model: str, workspace: Workspace
) -> Timed:
    if (dataset, model) not in timed:
        timed[dataset, model] = time_replicate(_config(dataset, model, workspace), workspace)
    return timed[dataset, model]


def time_replicate(config: RootConfig, workspace: Workspace) -> Timed:
    """Time bootstrap runs on the training rows: two, the fewest there are.

    Where they are short they are timed again: the first call of the tree kernel compiles it.
    """
    data = load_data(config, workspace).training()
    model = build(config.model, data.task)

    def two_runs() -> None:
        bootstrap_attributions(
            data,
            model,
            runs=2,
            seed=config.seed,
            settings=BootstrapSettings(row_level=False),
            executor=Executor(workers=1),
        )

    seconds = _seconds(two_runs) / 2
    return Timed(replicate=_seconds(two_runs) / 2 if seconds < 60 else seconds)


def time_selection(config: RootConfig, workspace: Workspace, *, upto: int, base: Timed) -> Timed:
    """Time a fit, a refit on ``upto`` features and LIME of one row, on the held-out split."""
    data = load_data(config, workspace)
    model = build(config.model, data.task)
    split = make_splits(data, test_size=config.selection.test_size, folds=0, seed=config.seed)[0]
    X, y = design_matrix(data), np.asarray(data.y)
    columns = tuple(range(min(upto, data.p)))
    inputs = RefitInputs(
        X, y, None, data.task, model, ((split.train, split.test),), (Refit(0, columns),)
    )
    fitted: list[Any] = []
    fit_seconds = _seconds(lambda: fitted.append(fit(model, take(X, split.train), y[split.train])))
    lime = _lime_seconds(data, X, y, split.train, fitted[0], config)
    share = len(split.train) / data.training().n
    return Timed(base.replicate * share, fit_seconds, _seconds(lambda: refit(inputs, 0)), lime)


def _lime_seconds(
    data: Dataset, X: Any, y: np.ndarray, train: np.ndarray, fitted: Any, config: RootConfig
) -> float:
    fit_rows, aside = fit_and_aside(data.take(train), config.selection.aside, config.seed, 0)
    ranking = RankingData(
        X=take(X, train),
        y=y[train],
        features=data.features,
        task=data.task,
        weights=None,
        fitted=fitted,
        fit_rows=fit_rows,
        aside=aside,
    )
    options = config.selection.lime.model_dump() | {"rows": 1, "repeats": 1}
    ranker = Lime(**options)
    if ranker.unfit(ranking):
        return 0.0
    return _seconds(lambda: ranker.rank(ranking, np.random.default_rng(config.seed)))


def _config(dataset: str, model: str, workspace: Workspace) -> RootConfig:
    """Compose the configuration that the stages of an experiment will have."""
    import os

    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf, open_dict

    os.environ.setdefault(ROOT_VARIABLE, str(workspace.root))
    with initialize_config_dir(version_base="1.3", config_dir=str(workspace.conf)):
        composed = compose("config", [f"dataset={dataset}", f"model={model}", "out=."])
    with open_dict(composed):
        composed.pop("hydra", None)
    values = OmegaConf.to_container(composed, resolve=True)
    assert isinstance(values, dict)
    return validate({str(key): value for key, value in values.items()})


def _seconds(call: Callable[[], Any]) -> float:
    """Return the processor time of a call: other work on the machine does not count."""
    started = process_time()
    call()
    return process_time() - started


def as_time(seconds: float) -> str:
    """Write a time as a person says it: ``40 s``, ``12 min``, ``3.5 h``, ``2.1 days``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < DAY:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / DAY:.1f} days"
