"""Stage ``rank``: score the features, judge their distributions, draw the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from roshap.attribution.attributions import Attributions
from roshap.attribution.distribution import Verdict, verdict
from roshap.attribution.ranking import rank_attributions, rank_classes, write_ranking
from roshap.compute.files import write_bytes, write_json
from roshap.errors import DataError
from roshap.plots import histograms, ranking, ridgelines, save_figure, single_rounds
from roshap.plots.style import shorten
from roshap.stages import attribute as attribute_stage
from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext
from roshap.tracking import StageRun, write_lineage

FOLDER = "rank"
SUMMARY = "summary.json"
NOTE_ROWS = 20


def rank(config: RootConfig, context: StageContext) -> Path:
    """Rank the features of ``<out>/attribute``, write ``<out>/rank``; return it."""
    source = context.out / attribute_stage.FOLDER
    about = read_about(source, context)
    attributions = Attributions.load(source)
    table = rank_attributions(attributions)
    found = verdict(table)
    folder = context.out / FOLDER
    with (
        context.workspace.output(folder) as fresh,
        context.track(config, dependencies=[source]) as run,
    ):
        write_ranking(table, fresh)
        if attributions.classes:
            write_ranking(rank_classes(attributions), fresh, name="classes")
        lineage = context.lineage(
            {"rank": config.rank.model_dump(), "attribute": _parameters(source)},
            {about["data"]["name"]: about["data"]["digest"]},
        )
        write_lineage(fresh, lineage)
        _draw(fresh / "figures", config, about, attributions, table, lineage)
        metrics = summarise(table, found)
        write_json(fresh / SUMMARY, {**about, "verdict": found.sentence, "metrics": metrics})
        _log(run, about, table, found, metrics, fresh)
    write_json(context.out / "metrics" / f"{FOLDER}.json", metrics)
    write_bytes(context.out / "plots" / f"{FOLDER}.csv", _for_dvc_plots(table))
    return folder


def _for_dvc_plots(table: pd.DataFrame) -> bytes:
    """Return the leading features as CSV, for ``dvc plots diff`` to lay over another revision's."""
    columns = ["rank", "feature", "roshap", "p0", "strength", "stability"]
    text = table.loc[: NOTE_ROWS - 1, columns].to_csv(index=False, lineterminator="\n")
    return text.encode()


def read_about(folder: Path, context: StageContext) -> dict[str, Any]:
    """Return what the attribute stage wrote about the experiment.

    Raises
    ------
    DataError
        Where that stage has not run.
    """
    try:
        about = json.loads((folder / attribute_stage.ABOUT).read_text())
    except FileNotFoundError:
        raise DataError(
            f"no attributions in {folder}: run `roshap attribute ... out=DIR` first and give the "
            "same out=DIR, or `roshap run`, which does both"
        ) from None
    if not isinstance(about, dict):
        raise DataError(f"{folder / attribute_stage.ABOUT} does not describe an experiment")
    return about


def summarise(table: pd.DataFrame, found: Verdict) -> dict[str, Any]:
    """Return the numbers that ``dvc metrics`` and MLflow compare between runs."""
    scores = table["roshap"].to_numpy(dtype=float)
    finite = scores[np.isfinite(scores)]
    top = finite[0] if len(finite) and finite[0] > 0 else np.nan
    fall = {
        f"score_{k}_of_first": float(finite[k - 1] / top) for k in (2, 5, 10) if len(finite) >= k
    }
    return {
        "top_feature": str(table["feature"].iloc[0]),
        "top_score": float(top) if np.isfinite(top) else None,
        **{name: value if np.isfinite(value) else None for name, value in fall.items()},
        "features_never_used": int((table["p0"] == 1).sum()),
        "distribution": found.shape,
    }


def _draw(
    folder: Path,
    config: RootConfig,
    about: dict[str, Any],
    attributions: Attributions,
    table: pd.DataFrame,
    lineage: dict[str, str],
) -> None:
    S, features, units = attributions.scores, attributions.features, attributions.space
    top = table["feature"].head(config.rank.top).tolist()
    where = f"{shorten(about['data']['name'])}, {about['model']}, {attributions.runs} runs"
    shared: Any = {"units": units, "aggregate": attributions.aggregate}
    figures = {
        "ranking": ranking(table, units=units, title=f"Features ranked by RoSHAP: {where}"),
        "distributions": ridgelines(
            S, features, top, title=f"Attributions of the leading features: {where}", **shared
        ),
        "histograms": histograms(
            S, features, top[:9], title=f"Attributions over bootstrap runs: {where}", **shared
        ),
        "single_rounds": single_rounds(
            S, features, title=f"Leading features of three single runs: {where}", **shared
        ),
    }
    for name, figure in figures.items():
        save_figure(figure, folder / name, {**lineage, "figure": name})


def _log(
    run: StageRun,
    about: dict[str, Any],
    table: pd.DataFrame,
    found: Verdict,
    metrics: dict[str, Any],
    folder: Path,
) -> None:
    run.log_metrics({k: v for k, v in metrics.items() if isinstance(v, int | float)})
    numbers = table.head(50)
    for column in ("roshap", "p0", "strength", "stability"):
        shown = numbers[numbers[column].notna()]
        run.log_series(f"by_rank.{column}", shown["rank"].tolist(), shown[column].tolist())
    run.set_tags({"top_feature": metrics["top_feature"], "distribution": found.shape})
    head = table[["rank", "feature", "roshap", "p0", "strength", "stability"]].head(NOTE_ROWS)
    rows = [head.columns.tolist(), ["---"] * head.shape[1]]
    rows += [
        [f"{v:.4g}" if isinstance(v, float) else str(v) for v in row]
        for row in head.itertuples(index=False)
    ]
    body = "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
    run.note(f"**{about['experiment']}**: {found.sentence}\n\n{body}")
    run.log_artifacts([folder])


def _parameters(folder: Path) -> Any:
    return json.loads((folder / "lineage.json").read_text())["parameters"]
