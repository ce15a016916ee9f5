"""Stage ``select``: rankers compared by the models that their leading features make."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from roshap.attribution.bootstrap import BootstrapSettings
from roshap.compute import Progress
from roshap.compute.files import write_bytes, write_json
from roshap.datasets import Dataset, check_dataset
from roshap.models import build, handles_categorical, handles_nan
from roshap.plots import save_figure
from roshap.plots.selection import selection_bars, selection_curves, set_stability_curves
from roshap.plots.style import shorten
from roshap.selection import (
    ALL_FEATURES,
    LABELS,
    Selection,
    SelectionSettings,
    against_roshap,
    curves,
    evaluate,
    metrics_of,
    sentences,
    summarise,
)
from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext, parameters
from roshap.stages.data import data_input, load_data, table_folder
from roshap.tracking import StageRun, write_lineage

log = logging.getLogger(__name__)

FOLDER = "select"
ABOUT = "selection.json"
#: Parts of the configuration that this stage does not read.
UNREAD = ("rank", "simulation")


def select(config: RootConfig, context: StageContext) -> Path:
    """Rank and refit on the splits, write ``<out>/select``; return it."""
    data = load_data(config, context.workspace)
    model = build(config.model, data.task)
    check_dataset(data, allow_nan=handles_nan(model), allow_categorical=handles_categorical(model))
    folder = context.out / FOLDER
    with (
        context.workspace.output(folder) as fresh,
        context.track(
            config,
            data=[data_input(data)],
            dependencies=[table_folder(config, context.workspace)],
        ) as run,
    ):
        found = evaluate(
            data,
            model,
            settings=selection_settings(config),
            bootstrap=bootstrap_settings(config),
            seed=config.seed,
            executor=context.executor(config),
            store=context.workspace.cache / "checkpoints" if config.compute.resume else None,
            label=context.experiment,
            progress=lambda name: Progress(name, every=config.compute.log_every),
        )
        params = parameters(config, context.workspace.root)
        for key in UNREAD:
            params.pop(key, None)
        lineage = context.lineage(params, {data.name: data.digest})
        tables = _write(fresh, context, config, data, found)
        write_lineage(fresh, lineage)
        _draw(fresh / "figures", config, data, found, lineage)
        _log(run, found, tables["summary"], fresh)
    write_json(context.out / "metrics" / f"{FOLDER}.json", _metrics(tables["summary"]))
    for line in sentences(found.metrics, found.task):
        log.info("%s: %s", context.experiment, line)
    return folder


def selection_settings(config: RootConfig) -> SelectionSettings:
    """Return the library's settings of ``conf/selection``."""
    chosen = config.selection
    return SelectionSettings(
        rankers=chosen.rankers,
        upto=chosen.upto,
        runs=chosen.runs or config.bootstrap.runs,
        test_size=chosen.test_size,
        folds=chosen.folds,
        aside=chosen.aside,
        options={
            name: getattr(chosen, name).model_dump() for name in ("lime", "ig", "permutation")
        },
    )


def bootstrap_settings(config: RootConfig) -> BootstrapSettings:
    """Return the library's settings of ``conf/bootstrap`` and ``conf/explainer``."""
    chosen = config.bootstrap
    return BootstrapSettings(
        strategy=chosen.strategy,
        min_per_class=chosen.min_per_class,
        aggregate=chosen.aggregate,
        screening=chosen.screening,
        keep=chosen.keep,
        row_level=chosen.row_level,
        row_values=chosen.row_values,
        explainer=config.explainer.method,
        chunk_mb=config.explainer.chunk_mb,
    )


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV, the same bytes for the same numbers."""
    write_bytes(path, table.to_csv(index=False, lineterminator="\n").encode())


def _write(
    folder: Path, context: StageContext, config: RootConfig, data: Dataset, found: Selection
) -> dict[str, pd.DataFrame]:
    tables = {
        "metrics": found.metrics,
        "rankings": found.rankings,
        "summary": summarise(found.metrics, found.task),
        "against_roshap": against_roshap(found.metrics, found.task),
        "stability": found.stability,
        "details": found.details,
    }
    for name, table in tables.items():
        write_table(folder / f"{name}.csv", table)
    fitted, wanted = found.refits
    about = {
        "experiment": context.experiment,
        "data": {"name": data.name, "n": data.n, "p": data.p, "task": data.task},
        "model": config.model.name,
        "seed": config.seed,
        "runs": selection_settings(config).runs,
        "upto": min(config.selection.upto, data.p),
        "rankers": list(found.rankers),
        "left_out": dict(found.left_out),
        "notes": {name: list(notes) for name, notes in found.notes.items()},
        "splits": [
            {
                "name": split.name,
                "evaluation": split.evaluation,
                "train": len(split.train),
                "test": len(split.test),
                "published": split.published,
            }
            for split in found.splits
        ],
        "refits": {"models_fitted": fitted, "models_asked_for": wanted},
        "sentences": sentences(found.metrics, found.task),
    }
    write_json(folder / ABOUT, about)
    return tables


def _draw(
    folder: Path, config: RootConfig, data: Dataset, found: Selection, lineage: dict[str, str]
) -> None:
    where = f"{shorten(data.name)}, {config.model.name}"
    summary, over_k = summarise(found.metrics, found.task), curves(found.metrics, found.task)
    figures: dict[str, Figure] = {}
    for evaluation in dict.fromkeys(split.evaluation for split in found.splits):
        rows = _rows_of(found, evaluation)
        part = summary[summary["evaluation"] == evaluation]
        full = part["ranker"] == ALL_FEATURES
        key = evaluation.replace("-", "_")
        figures[f"bars_{key}"] = selection_bars(
            part[~full],
            part[full],
            upto=min(config.selection.upto, data.p),
            title=f"Models of the selected features: {where}, {rows}",
        )
        figures[f"curves_{key}"] = selection_curves(
            over_k[over_k["evaluation"] == evaluation],
            title=f"Models of the k leading features: {where}, {rows}",
        )
    if len(found.stability):
        figures["set_stability"] = set_stability_curves(
            found.stability, title=f"Agreement of the selected features between folds: {where}"
        )
    for name, figure in figures.items():
        save_figure(figure, folder / name, {**lineage, "figure": name})


def _rows_of(found: Selection, evaluation: str) -> str:
    splits = [split for split in found.splits if split.evaluation == evaluation]
    if evaluation == "cv":
        return f"{len(splits)} folds"
    kind = "published test" if splits[0].published else "held-out"
    return f"{len(splits[0].test)} {kind} rows"


def _metrics(summary: pd.DataFrame) -> dict[str, Any]:
    """Return the means over k as ``dvc metrics`` compares them."""
    nested: dict[str, Any] = {}
    for row in summary.to_dict("records"):
        evaluation = nested.setdefault(row["evaluation"].replace("-", "_"), {})
        of_ranker = evaluation.setdefault(row["ranker"].replace(" ", "_"), {})
        of_ranker[row["metric"]] = None if np.isnan(row["mean"]) else row["mean"]
    return nested


def _log(run: StageRun, found: Selection, summary: pd.DataFrame, folder: Path) -> None:
    """Log one child run per ranker, its metrics over step = k, so that the UI overlays curves."""
    run.log_metrics({f"seconds.{name}": value for name, value in found.seconds.items()})
    run.log_metrics(
        {"refits.fitted": float(found.refits[0]), "refits.asked_for": float(found.refits[1])}
    )
    over_k = curves(found.metrics, found.task)
    steps = sorted(over_k.loc[over_k["ranker"] != ALL_FEATURES, "k"].unique().tolist())
    for ranker in (*found.rankers, ALL_FEATURES):
        with run.child(ranker, {"ranker": ranker}) as child:
            child.set_tags({"ranker": LABELS[ranker]})
            _log_curves(child, over_k[over_k["ranker"] == ranker], found, steps)
            _log_ranker(child, ranker, found, summary)
    run.note("\n\n".join(sentences(found.metrics, found.task)) or "no ranker to compare with")
    run.log_artifacts([folder])


def _log_curves(
    child: StageRun, part: pd.DataFrame, found: Selection, steps: Sequence[int]
) -> None:
    for evaluation, of_one in part.groupby("evaluation", sort=False):
        for metric in metrics_of(found.task):
            points = of_one[of_one[metric.name].notna()]
            name = f"{str(evaluation).replace('-', '_')}.{metric.name}"
            if len(points) == 1 and len(steps) > 1:  # all features: a flat line beside the curves
                child.log_series(name, steps, [float(points[metric.name].iloc[0])] * len(steps))
            else:
                child.log_series(name, points["k"].tolist(), points[metric.name].tolist())


def _log_ranker(child: StageRun, ranker: str, found: Selection, summary: pd.DataFrame) -> None:
    means = summary[(summary["ranker"] == ranker) & summary["mean"].notna()]
    child.log_metrics(
        {
            f"mean_over_k.{row['evaluation'].replace('-', '_')}.{row['metric']}": row["mean"]
            for row in means.to_dict("records")
        }
    )
    sets = found.stability[found.stability["ranker"] == ranker]
    for measure in ("jaccard", "nogueira"):
        points = sets[sets[measure].notna()]
        child.log_series(f"stability.{measure}", points["k"].tolist(), points[measure].tolist())
    details = found.details[found.details["ranker"] == ranker]
    measured = details.groupby("detail")["value"].mean().dropna()
    child.log_metrics({str(name): float(value) for name, value in measured.items()})
    if ranker in found.seconds:
        child.log_metrics({"seconds": found.seconds[ranker]})
