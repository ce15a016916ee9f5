"""Stage ``attribute``: the bootstrap distribution of attributions of one experiment."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from roshap.attribution.attributions import Attributions
from roshap.attribution.bootstrap import BootstrapSettings, bootstrap_attributions
from roshap.attribution.stopping import StopRule
from roshap.compute import Progress
from roshap.compute.files import write_json
from roshap.datasets import Dataset, check_dataset
from roshap.models import build, handles_categorical, handles_nan
from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext, parameters
from roshap.stages.data import data_input, load_data, table_folder
from roshap.tracking import write_lineage

log = logging.getLogger(__name__)

FOLDER = "attribute"
ABOUT = "experiment.json"


def attribute(config: RootConfig, context: StageContext) -> Path:
    """Bootstrap the model, explain the out-of-bag rows, write ``<out>/attribute``; return it."""
    whole = load_data(config, context.workspace)
    data = whole.training()
    model = build(config.model, data.task)
    constant = check_dataset(
        data,
        allow_nan=handles_nan(model),
        allow_categorical=handles_categorical(model),
        min_per_class=config.bootstrap.min_per_class,
    )
    notes = _notes(whole, data, constant)
    for note in notes:
        log.info("%s: %s", context.experiment, note)
    folder = context.out / FOLDER
    with (
        context.workspace.output(folder) as fresh,
        context.track(
            config,
            data=[data_input(whole)],
            dependencies=[table_folder(config, context.workspace)],
        ) as run,
    ):
        result = _bootstrap(config, context, data, model)
        result.save(fresh)
        _write_about(fresh / ABOUT, context, data, result, config, notes)
        params = parameters(config, context.workspace.root)
        for later in ("rank", "selection", "simulation"):
            params.pop(later)
        write_lineage(fresh, context.lineage(params, {data.name: data.digest}))
        run.log_metrics(
            {
                "runs": result.runs,
                "oob.mean": float(result.n_oob.mean()),
                "redraws": int(result.redraws.sum()),
            }
        )
        run.set_tags({"explainer": result.explainer, "space": result.space})
        run.log_artifacts([fresh / "attributions.json", fresh / ABOUT, fresh / "lineage.json"])
    log.info(
        "%s: %d runs, %s in %s -> %s",
        context.experiment,
        result.runs,
        result.explainer,
        result.space,
        context.workspace.relative(folder),
    )
    return folder


def _bootstrap(
    config: RootConfig, context: StageContext, data: Dataset, model: Any
) -> Attributions:
    cache = context.workspace.cache
    chosen = config.bootstrap
    settled = stop_rule(config) if chosen.stop == "settled" else None
    return bootstrap_attributions(
        data,
        model,
        runs=chosen.runs,
        seed=config.seed,
        settings=BootstrapSettings(
            strategy=chosen.strategy,
            min_per_class=chosen.min_per_class,
            aggregate=chosen.aggregate,
            screening=chosen.screening,
            keep=chosen.keep,
            row_level=chosen.row_level,
            row_values=chosen.row_values,
            explainer=config.explainer.method,
            chunk_mb=config.explainer.chunk_mb,
        ),
        executor=context.executor(config),
        store=cache / "checkpoints" if config.compute.resume else None,
        label=context.experiment,
        progress=Progress(context.experiment, every=config.compute.log_every),
        stop=settled,
        randomness=chosen.randomness,
        groups_threshold=chosen.groups_threshold,
    )


def stop_rule(config: RootConfig) -> StopRule:
    """Return what the configuration wants settled, and how surely."""
    low, high = config.selection.k_range
    return StopRule(
        k=config.selection.k,
        eps=config.bootstrap.eps,
        alpha=config.bootstrap.alpha,
        looks=tuple(config.bootstrap.looks),
        k_range=(low, high),
    )


def _notes(whole: Dataset, data: Dataset, constant: tuple[str, ...]) -> list[str]:
    """Return what a person should know of the data before reading a ranking."""
    notes = []
    if reason := data.source.get("task_inferred"):
        notes.append(f"task {data.task}, because {reason} (dataset.task=... overrides it)")
    if data.n < whole.n:
        notes.append(f"{whole.n - data.n} published test rows are left out of the ranking")
    if constant:
        shown = ", ".join(constant[:5]) + (", ..." if len(constant) > 5 else "")
        notes.append(f"{len(constant)} constant features, whose attribution is 0: {shown}")
    return notes


def _write_about(
    path: Path,
    context: StageContext,
    data: Dataset,
    result: Attributions,
    config: RootConfig,
    notes: list[str],
) -> None:
    """Write what a reader of the results needs to know of the experiment."""
    about = {
        "experiment": context.experiment,
        "data": {
            "name": data.name,
            "n": data.n,
            "p": data.p,
            "task": data.task,
            "target": data.target,
            "classes": list(data.classes),
            "digest": data.digest,
        },
        "model": config.model.name,
        "runs": result.runs,
        "seed": config.seed,
        "explainer": result.explainer,
        "space": result.space,
        "aggregate": result.aggregate,
        "notes": notes,
    }
    write_json(path, about)
