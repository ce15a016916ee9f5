"""What the report shows of a comparison of rankers, and of the simulation study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from roshap.errors import DataError
from roshap.selection import LABELS, METRICS
from roshap.stages.report_figures import figure_card

SELECT, ABOUT, SIMULATE = "select", "selection.json", "simulate"
CAPTIONS = {
    "bars_cv": "Means over k in the cross-validation, as the paper's figures show them.",
    "curves_cv": "The same models over k, means over the folds.",
    "bars_held_out": "Means over k on the held-out rows.",
    "curves_held_out": "The same models over k, on the held-out rows.",
    "set_stability": "How far the folds agree on the selected features.",
    "places": "Places of the signals by method; the published ones are in the table.",
}


def selection_section(folder: Path) -> dict[str, Any] | None:
    """Return what ``templates/selection.html.j2`` shows of an experiment.

    Parameters
    ----------
    folder
        Holds the experiment's ``select`` results; None is returned where it has none.
    """
    chosen = folder / SELECT
    if not (chosen / ABOUT).is_file():
        return None
    about = json.loads((chosen / ABOUT).read_text())
    evaluations = [split["evaluation"] for split in about["splits"]]
    folds = evaluations.count("cv")
    test = next(split for split in about["splits"] if split["evaluation"] == "held-out")
    kind = "published test" if test["published"] else "held-out"
    fitted, wanted = about["refits"]["models_fitted"], about["refits"]["models_asked_for"]
    return {
        "name": about["experiment"],
        "sentence": (
            f"Every ranking was made from training rows only, and the same {about['model']} was "
            f"refitted on its first 1 to {about['upto']} features and measured on {test['test']} "
            f"{kind} rows"
            + (f" and in {folds} folds, each with rankings of its own" if folds else "")
            + f". {fitted} models were fitted for {wanted} pairs of ranking and k: equal sets of "
            "features share one."
        ),
        "findings": about["sentences"],
        "left_out": [f"{LABELS[name]}: {reason}" for name, reason in about["left_out"].items()],
        "notes": [f"{LABELS[name]}: {'; '.join(said)}" for name, said in about["notes"].items()],
        "tables": _means(pd.read_csv(chosen / "summary.csv")),
        "against": _against(chosen / "against_roshap.csv") if about["sentences"] else [],
        "figures": _figures(chosen, about["experiment"]),
    }


def simulation_sections(folders: Mapping[str, Path]) -> list[dict[str, Any]]:
    """Return what the report shows of simulation studies, given their folders.

    Raises
    ------
    DataError
        Where a study has no results.
    """
    sections = []
    for name, folder in folders.items():
        found = folder / SIMULATE
        try:
            tables = {
                key: pd.read_csv(found / f"{key}.csv", dtype=str, keep_default_na=False)
                for key in ("table1", "recovery", "costs")
            }
        except FileNotFoundError as error:
            raise DataError(
                f"simulation study {name} has no results ({error.filename} is missing): "
                "`dvc repro` runs what is missing"
            ) from None
        captions = {
            "table1": "Places of the signals (percent of zero runs), published and here.",
            "recovery": "Signals among the first features, by data set.",
            "costs": "What runs cost and cover.",
        }
        sections.append(
            {
                "name": name,
                "tables": [
                    _table(captions[key], f"{SIMULATE}/{key}.csv", table)
                    for key, table in tables.items()
                ],
                "figures": _figures(found, name),
            }
        )
    return sections


def _figures(folder: Path, name: str) -> list[dict[str, str]]:
    order = {stem: place for place, stem in enumerate(CAPTIONS)}
    paths = sorted(
        (folder / "figures").glob("*.png"), key=lambda p: (order.get(p.stem, 99), p.stem)
    )
    return [figure_card(path, name, CAPTIONS) for path in paths]


def _means(summary: pd.DataFrame) -> list[dict[str, Any]]:
    tables = []
    for evaluation, part in summary.groupby("evaluation", sort=False):
        wide = part.assign(shown=[_mean(row) for row in part.to_dict("records")])
        names = [name for name in METRICS if name in set(part["metric"])]
        table = wide.pivot_table("shown", "ranker", "metric", aggfunc="first", sort=False)[names]
        table.insert(0, "Ranking", [LABELS[name] for name in table.index])
        table.columns = ["Ranking", *[METRICS[name].title for name in names]]
        where = _where(str(evaluation))
        tables.append(_table(f"Mean over k ± spread over k, {where}.", "select/summary.csv", table))
    return tables


def _against(path: Path) -> list[dict[str, Any]]:
    tables = []
    for evaluation, part in pd.read_csv(path).groupby("evaluation", sort=False):
        table = pd.DataFrame(
            {
                "Against": [LABELS[name] for name in part["ranker"]],
                "Metric": [METRICS[name].title for name in part["metric"]],
                "RoSHAP's gain": [f"{value:+.4g}" for value in part["gain"]],
                "k better": part["better"],
                "k equal": part["equal"],
                "k worse": part["worse"],
                "Verdict": part["verdict"],
            }
        )
        caption = f"What RoSHAP gained (+) or lost (-), {_where(str(evaluation))}."
        tables.append(_table(caption, "select/against_roshap.csv", table))
    return tables


def _where(evaluation: str) -> str:
    return "cross-validation" if evaluation == "cv" else "held-out rows"


def _mean(row: Mapping[Any, Any]) -> str:
    if pd.isna(row["mean"]):
        return "not defined"
    return f"{row['mean']:.4g}" + ("" if pd.isna(row["spread"]) else f" ± {row['spread']:.2g}")


def _table(caption: str, file: str, table: pd.DataFrame) -> dict[str, Any]:
    rows = [[str(cell) for cell in row] for row in table.itertuples(index=False)]
    return {"caption": caption, "file": file, "columns": list(table.columns), "rows": rows}
