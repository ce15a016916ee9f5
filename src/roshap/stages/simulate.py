"""Stage ``simulate``: Table 1 of the paper on several data sets, and what runs cost."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from roshap.attribution.bootstrap import bootstrap_attributions
from roshap.compute import Progress
from roshap.errors import ConfigError
from roshap.models import build
from roshap.plots import save_figure
from roshap.plots.simulation import signal_places
from roshap.selection.simulation import (
    Stopwatch,
    costs,
    recovery,
    signal_ranks,
    signals,
    table1,
)
from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext, parameters
from roshap.stages.data import data_input, load_data
from roshap.stages.select import (
    bootstrap_settings,
    selection_settings,
    write_table,
)
from roshap.tracking import DataInput, StageRun, write_lineage

log = logging.getLogger(__name__)

FOLDER = "simulate"


def simulate(config: RootConfig, context: StageContext) -> Path:
    """Rank each simulated data set with every method, write ``<out>/simulate``; return it."""
    if config.dataset.reader != "simulation":
        raise ConfigError(
            f"roshap simulate draws its own data: dataset=simulation, not {config.dataset.name}"
        )
    chosen = config.simulation
    few = min(chosen.few, chosen.runs)
    folder = context.out / FOLDER
    watch = Stopwatch()
    with context.workspace.output(folder) as fresh, context.track(config) as run:
        parts, inputs, p = [], [], 0
        for seed in range(chosen.seeds):
            part, data_of = _one(config, context, seed, watch)
            parts.append(part)
            inputs.append(data_of)
            p = data_of.p or 0
        ranks = pd.concat(parts, ignore_index=True)
        tables = {
            "ranks": ranks,
            "table1": table1(ranks),
            "recovery": recovery(ranks, sorted({10, chosen.top})),
            "costs": costs(
                load_data(_with_seed(config, 0), context.workspace),
                [few, chosen.runs],
                seed=config.seed,
            ),
        }
        for name, table in tables.items():
            write_table(fresh / f"{name}.csv", table)
        params = parameters(config, context.workspace.root)
        for key in ("rank", "selection"):
            params.pop(key, None)
        lineage = context.lineage(params, {f"{i.name}-{n}": i.digest for n, i in enumerate(inputs)})
        write_lineage(fresh, lineage)
        figure = signal_places(
            ranks,
            p,
            top=chosen.top,
            title=f"Where rankers put the signals: simulation, {config.model.name}",
        )
        save_figure(figure, fresh / "figures" / "places", {**lineage, "figure": "places"})
        _log(run, tables, watch, fresh)
    print(_as_text(tables["recovery"]))
    return folder


def _one(
    config: RootConfig, context: StageContext, seed: int, watch: Stopwatch
) -> tuple[pd.DataFrame, DataInput]:
    """Return the signals' places in one data set."""
    data = load_data(_with_seed(config, seed), context.workspace)
    if not signals(data.features):
        raise ConfigError("dataset.reader_options.signals=0: there is no signal to find")
    model = build(config.model, data.task)
    name = f"{context.experiment} data {seed}"
    run_here = context.executor(config)
    runs = config.simulation.runs
    few = min(config.simulation.few, runs)
    watch.lap("data")
    for count in (few, runs):  # the second goes on from the first
        attributions = bootstrap_attributions(
            data,
            model,
            runs=count,
            seed=config.seed,
            settings=replace(bootstrap_settings(config), row_level=False),
            executor=run_here,
            store=context.workspace.cache / "checkpoints" if config.compute.resume else None,
            label=name,
            progress=Progress(name, every=config.compute.log_every),
        )
        watch.lap(f"RoSHAP, runs up to {count}")

    def compute(what: str, function: Any, inputs: Any, count: int) -> list[Any]:
        found = dict(run_here.run(function, inputs, range(count)))
        return [found[task] for task in range(count)]

    ranks = signal_ranks(
        data,
        attributions,
        model,
        few=few,
        seed=config.seed,
        compute=compute,
        options=selection_settings(config).options,
        seconds=watch.seconds,
    )
    watch.lap("other rankers, wall")
    ranks.insert(0, "seed", seed)
    return ranks, data_input(data)


def _with_seed(config: RootConfig, seed: int) -> RootConfig:
    spec = config.dataset
    options = {**spec.reader_options, "seed": seed}
    return config.model_copy(
        update={"dataset": spec.model_copy(update={"reader_options": options})}
    )


def _log(run: StageRun, tables: dict[str, pd.DataFrame], watch: Stopwatch, folder: Path) -> None:
    run.log_metrics({f"seconds.{name}": value for name, value in watch.seconds.items()})
    found = tables["recovery"]
    tops: Sequence[str] = [name for name in found.columns if name.startswith("in_top_")]
    for method, part in found.groupby("method", sort=False):
        with run.child(str(method), {"method": method}) as child:
            for top in tops:
                child.log_series(top, part["seed"].tolist(), part[top].tolist())
            ranks = tables["ranks"]
            middle = ranks[ranks["method"] == method].groupby("signal")["rank"].median()
            child.log_series("median_place", middle.index.tolist(), middle.tolist())
    run.note(f"```\n{_as_text(tables['recovery'])}\n```")
    run.log_artifacts([folder])


def _as_text(found: pd.DataFrame) -> str:
    """Return the mean recovery over the data sets."""
    means = found.drop(columns="seed").groupby("method", sort=False).mean()
    return str(means.to_string(float_format="{:.1f}".format))
