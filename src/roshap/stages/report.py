"""Stage ``report``: one self-contained HTML page of a study."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined

from roshap.attribution.attributions import Attributions
from roshap.attribution.ranking import GLOSSARY, read_ranking
from roshap.errors import DataError
from roshap.stages import attribute as attribute_stage
from roshap.stages import rank as rank_stage
from roshap.stages.config import RootConfig
from roshap.stages.context import StageContext
from roshap.stages.report_figures import figure_card
from roshap.stages.report_regression import regression_sections
from roshap.stages.report_selection import selection_section, simulation_sections
from roshap.stages.study import load_study

log = logging.getLogger(__name__)

PAGE = "index.html"
ROWS = 30
SPARK_BINS, SPARK_WIDTH, SPARK_HEIGHT = 18, 90, 20

#: Columns of the ranking that the page shows, with their headings.
SHOWN = {
    "rank": "Rank",
    "feature": "Feature",
    "roshap": "RoSHAP",
    "roshap_low": "Score from",
    "roshap_high": "Score to",
    "rank_low": "Rank from",
    "rank_high": "Rank to",
    "p_top_k": "P(top k)",
    "p0": "P0",
    "strength": "Strength",
    "stability": "Stability",
    "distribution": "Distribution",
}
CAPTIONS = {
    "ranking": "The ranking: score, and the three factors that make it.",
    "distributions": "The leading features over the runs; bars: share of runs at zero.",
    "histograms": "Histograms with the Gaussian and the kernel fit of the non-zero runs.",
    "intervals": "How sure each score and each rank is; all for more runs on the same data.",
    "top_k": "Probability of being among the k best, as k grows.",
    "ties": "Features that a bar joins cannot be told apart; lines: top sets that are settled.",
    "settling": "Were there enough runs? The weakest pair of members and features left out.",
    "variance_shares": "How much of the spread is the data's, how much the model seed's.",
    "single_rounds": "What three single runs would have said: the reason to repeat.",
}


def report(config: RootConfig, context: StageContext) -> Path:
    """Write the page of the study in ``report.params`` to ``<out>/index.html``; return it."""
    workspace = context.workspace
    study = load_study(workspace.resolve(config.report.params))
    context = replace(context, experiment=study.study)  # no single experiment's
    results = workspace.resolve(config.report.results)
    folders = {name: results / name for name in study.experiments}
    solved = {name: results / name for name in (*study.regressions, *study.problems)}
    simulated = {name: results / name for name in study.simulations}
    page = render(
        f"Study {study.study}",
        folders,
        solved,
        selections={name: results / name for name in study.selections},
        simulations=simulated,
    )
    with workspace.output(context.out) as fresh, context.track(config) as run:
        (fresh / PAGE).write_text(page)
        run.log_artifacts([fresh / PAGE])
    log.info("report: %s", context.out / PAGE)
    return context.out / PAGE


def render(
    title: str,
    folders: Mapping[str, Path],
    regressions: Mapping[str, Path] | None = None,
    *,
    selections: Mapping[str, Path] | None = None,
    simulations: Mapping[str, Path] | None = None,
) -> str:
    """Return the page of some experiments' results.

    Parameters
    ----------
    title
        Heading of the page.
    folders
        Experiment -> folder that holds its ``attribute`` and ``rank`` results.
    regressions
        Regression experiment -> folder that holds its ``regress`` results.
    selections
        Experiment -> folder that holds its ``select`` results; shown with the experiment.
    simulations
        Simulation study -> folder that holds its ``simulate`` results.
    """
    chosen = {name: selection_section(folder) for name, folder in (selections or {}).items()}
    templates = files("roshap.stages") / "templates"
    environment = Environment(
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        loader=FunctionLoader(lambda name: (templates / name).read_text()),
    )
    template = environment.get_template("report.html.j2")
    return template.render(
        title=title,
        css=(templates / "report.css").read_text(),
        js=(templates / "report.js").read_text(),
        experiments=[
            {**_experiment(name, folder), "selection": chosen.get(name)}
            for name, folder in folders.items()
        ],
        # of an experiment that the study has no ranking of
        selections=[found for name, found in chosen.items() if found and name not in folders],
        simulations=simulation_sections(simulations or {}),
        regressions=regression_sections(regressions or {}),
        columns=[
            {"title": title, "help": GLOSSARY[name], "text": name in {"feature", "distribution"}}
            for name, title in SHOWN.items()
        ],
    )


def _experiment(name: str, folder: Path) -> dict[str, Any]:
    """Return what the template shows of one experiment."""
    ranked = folder / rank_stage.FOLDER
    try:
        summary = json.loads((ranked / rank_stage.SUMMARY).read_text())
        lineage = json.loads((ranked / "lineage.json").read_text())
        lineage.pop("files", None)  # checksums are for `roshap trace`, not for reading
    except FileNotFoundError as error:
        raise DataError(
            f"experiment {name} has no ranking ({error.filename} is missing): "
            "`dvc repro` runs what is missing"
        ) from None
    table = read_ranking(ranked)
    attributions = Attributions.load(folder / attribute_stage.FOLDER)
    data = summary["data"]
    fall = summary["metrics"].get("score_5_of_first")
    return {
        "name": name,
        "data": data,
        "runs": summary["runs"],
        "space": summary["space"],
        "sentence": summary["verdict"],
        "certainty": summary["certainty"]["lines"],
        "settled": _settled(summary["certainty"]["decision"]),
        "groups": _groups(ranked),
        "warnings": summary["notes"],
        "first_five": ", ".join(table["feature"].head(5)),
        "fall": "-" if fall is None else f"{fall:.2f}",
        "facts": {
            "Data": f"{data['name']}: {data['n']} rows x {data['p']} features",
            "Target": f"{data['target']} ({data['task']})",
            "Model": summary["model"],
            "Runs": f"{summary['runs']}, seed {summary['seed']}",
            "Attributions": f"{summary['explainer']}, {summary['aggregate']} over out-of-bag rows",
            "Units": summary["space"],
        },
        "table": "rank/ranking.csv",
        "rows": _rows(table.head(ROWS), attributions),
        "figures": [figure_card(path, name, CAPTIONS) for path in _ordered(ranked / "figures")],
        "lineage": json.dumps(lineage, indent=1, ensure_ascii=False),
    }


def _settled(decision: Mapping[str, Any] | None) -> str:
    """Return a cell's words on whether the top set is settled."""
    if decision is None:
        return "-"
    return f"k = {decision['k']}: {'yes' if decision['settled'] else 'no'}"


def _groups(folder: Path) -> list[dict[str, str]]:
    """Return the collinear groups, best first."""
    if not (folder / "groups.parquet").is_file():
        return []
    table = read_ranking(folder, name="groups")
    return [
        {
            "rank": str(row["rank"]),
            "members": row["members"],
            "copies": row["copies"],
            "roshap": "no spread" if pd.isna(row["roshap"]) else f"{row['roshap']:.4g}",
            "ranks": "" if pd.isna(row["rank_low"]) else f"{row['rank_low']} - {row['rank_high']}",
        }
        for row in table[table["size"] > 1].head(ROWS).to_dict("records")
    ]


def _ordered(folder: Path) -> list[Path]:
    """Return the PNG figures, the known ones first and in the order of :data:`CAPTIONS`."""
    order = {name: place for place, name in enumerate(CAPTIONS)}
    return sorted(folder.glob("*.png"), key=lambda p: (order.get(p.stem, len(order)), p.stem))


@dataclass(frozen=True)
class Cell:
    """One cell: what is shown, what sorts, and the width of a bar for shares."""

    shown: str
    value: str
    text: bool = False
    share: int | None = None


def _rows(table: pd.DataFrame, attributions: Attributions) -> list[dict[str, Any]]:
    column = {name: place for place, name in enumerate(attributions.features)}
    scores = attributions.scores
    return [
        {
            "name": row["feature"],
            "cells": [_cell(name, row) for name in SHOWN],
            "spark": _spark(scores[:, column[row["feature"]]]),
        }
        for row in table.to_dict("records")
    ]


def _cell(name: str, row: Mapping[Any, Any]) -> Cell:
    value = row[name]
    if name in {"feature", "distribution"}:
        return Cell(str(value), str(value), text=True)
    if name in {"rank", "rank_low", "rank_high"}:
        return Cell("", "") if pd.isna(value) else Cell(str(value), str(value))
    if name in {"p_top_k", "roshap_low", "roshap_high"} and pd.isna(value):
        return Cell("", "")
    if name == "p_top_k":
        return Cell(f"{value:.2f}", repr(float(value)))
    if name == "p0":
        return Cell(f"{value:.0%}", repr(float(value)), share=round(40 * float(value)))
    if pd.isna(value):
        return Cell("no spread" if row["deterministic"] else "", "inf")
    return Cell(f"{value:.4g}", repr(float(value)))


def _spark(values: np.ndarray) -> list[dict[str, str]]:
    """Return the bars of a histogram from zero to the largest value."""
    high = float(values.max())
    if high <= 0:
        return []
    counts, _ = np.histogram(values, bins=SPARK_BINS, range=(0.0, high))
    width = SPARK_WIDTH / SPARK_BINS
    heights = counts / counts.max() * SPARK_HEIGHT
    return [
        {
            "x": f"{place * width:.1f}",
            "y": f"{SPARK_HEIGHT - height:.1f}",
            "w": f"{width - 0.6:.1f}",
            "h": f"{height:.1f}",
        }
        for place, height in enumerate(heights)
        if height > 0
    ]
